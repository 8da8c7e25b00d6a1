"""Checks what `sam build` made: what each binary needs of its system, how large its package is, and that a panic unwinds."""

import io
import re
import subprocess
import sys
import zipfile
from pathlib import Path

# What Amazon Linux 2023 has (https://docs.aws.amazon.com/linux/al2023/ug/core-glibc.html).
GLIBC_MAX = (2, 34)
ZIP_BYTES_MAX = 5_000_000


def main(build: Path) -> None:
    binaries = sorted(build.rglob("bootstrap"))
    if not binaries:
        sys.exit(f"{build}: no bootstrap in it")
    for binary in binaries:
        name = binary.parent.relative_to(build)
        glibc, size = glibc_needed(binary), zipped_bytes(binary)
        print(f"{name}: glibc {'.'.join(map(str, glibc))}, {size / 1e6:.2f} MB zipped")
        if glibc > GLIBC_MAX:
            sys.exit(f"{name} needs glibc {glibc}, more than {GLIBC_MAX}")
        if size > ZIP_BYTES_MAX:
            sys.exit(f"{name} has {size} bytes zipped, more than {ZIP_BYTES_MAX}")
        if not unwinds(binary):
            sys.exit(f"{name} aborts on a panic: the driver could not turn it into one record's failure")


def glibc_needed(binary: Path) -> tuple[int, int]:
    text = readelf("--version-info", binary)
    versions = [(int(major), int(minor)) for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", text)]
    if not versions:
        sys.exit(f"{binary} names no version of glibc")
    return max(versions)


def zipped_bytes(binary: Path) -> int:
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(binary, "bootstrap")
    return len(package.getvalue())


def unwinds(binary: Path) -> bool:
    """A binary that aborts has no use for the call that starts unwinding."""
    return "_Unwind_RaiseException" in readelf("--dyn-syms", binary)


def readelf(option: str, binary: Path) -> str:
    command = ["readelf", "--wide", option, str(binary)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]))
