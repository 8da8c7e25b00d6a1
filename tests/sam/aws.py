"""An emulator of AWS of our own for the time of a test, and the parts of the built stack."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import boto3
import yaml

REGION = "us-east-1"
PREFIX = "players-engine"
LOOPBACK = "127.0.0.1"
START_SECONDS_MAX = 60


@contextmanager
def emulator(host: str = LOOPBACK):
    """Runs the emulator on a free port; yields its address. The functions that it starts inherit its environment."""
    port = free_port()
    endpoint = f"http://{host}:{port}"
    environment = {
        **os.environ,
        "GATEWAY_PORT": str(port),
        "BIND_HOST": host,
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": REGION,
        "AWS_REGION": REGION,
    }
    os.environ.update({name: value for name, value in environment.items() if name.startswith("AWS_")})
    log = Path("target/sam/emulator.log")
    with log.open("w") as output:
        process = subprocess.Popen(
            ["ministack"], env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            wait_for(lambda: listening(port, host), START_SECONDS_MAX, f"the emulator does not start, see {log}")
            yield endpoint
        finally:
            # Its whole group: the functions are processes of its own.
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def client(service: str, endpoint: str):
    return boto3.client(service, endpoint_url=endpoint, region_name=REGION)


def parts(build: Path) -> list[tuple[str, Path]]:
    """Returns the stack's parts, each with its built template, those first on which others depend."""
    resources = load(build / "template.yaml")["Resources"]
    ordered: list[str] = []

    def place(name: str) -> None:
        needed = resources[name].get("DependsOn", [])
        for other in [needed] if isinstance(needed, str) else needed:
            place(other)
        if name not in ordered:
            ordered.append(name)

    for name in resources:
        place(name)
    return [(name, build / resources[name]["Properties"]["Location"]) for name in ordered]


def deploy(part: str, template: Path, parameters: dict[str, str]) -> bool:
    """Deploys one part as a stack of its own, if the emulator knows anything of it. In nested stacks it does not apply SAM's
    transform."""
    template = without_unknown(part, template)
    if template is None:
        return False
    overrides = [f"{name}={value}" for name, value in parameters.items()]
    command = ["sam", "deploy", "--template-file", str(template), "--stack-name", f"{PREFIX}-{part}", "--resolve-s3"]
    command += ["--capabilities", "CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND", "--no-confirm-changeset"]
    command += ["--region", REGION]
    command += ["--parameter-overrides", *overrides] if overrides else []
    environment = {**os.environ, "SAM_CLI_POLL_DELAY": "0.3"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"sam deploy of {part} failed:\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}")
    return True


def without_unknown(part: str, template: Path) -> Path | None:
    """Returns the part's template without what the emulator does not take, if something is left of it: it has no composite alarms,
    no dashboards, no saved queries and no metric math. What alarms say is tested by themselves, see tests/sam/alarms."""
    content = load(template)
    unknown = [name for name, resource in content["Resources"].items() if is_unknown(resource)]
    if not unknown:
        return template
    print(f"{part}: not known to the emulator and left out: {', '.join(unknown)}")
    content["Resources"] = {name: found for name, found in content["Resources"].items() if name not in unknown}
    # Next to the original, so that relative paths mean the same.
    shortened = template.with_name("emulated.yaml")
    shortened.write_text(yaml.safe_dump(content))
    return shortened if content["Resources"] else None


UNKNOWN_TYPES = ("AWS::CloudWatch::CompositeAlarm", "AWS::CloudWatch::Dashboard", "AWS::Logs::QueryDefinition")


def is_unknown(resource: dict) -> bool:
    is_math = resource["Type"] == "AWS::CloudWatch::Alarm" and "Metrics" in resource["Properties"]
    return is_math or resource["Type"] in UNKNOWN_TYPES


def outputs(endpoint: str, part: str) -> dict[str, str]:
    stacks = client("cloudformation", endpoint).describe_stacks(StackName=f"{PREFIX}-{part}")["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in stacks[0].get("Outputs", [])}


def load(template: Path) -> dict:
    """Reads a built template, in which `sam build` has left no short form of an intrinsic function."""
    return yaml.safe_load(template.read_text())


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        return listener.getsockname()[1]


def listening(port: int, host: str = LOOPBACK) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def wait_for(condition, seconds_max: float, otherwise: str) -> None:
    end = time.monotonic() + seconds_max
    while not condition():
        if time.monotonic() > end:
            sys.exit(otherwise)
        time.sleep(0.2)
