# What run and docker have in common: SAM and the emulator of AWS, in exact versions and environments of their own.

export SAM_CLI_TELEMETRY=0
export PIP_DISABLE_PIP_VERSION_CHECK=1
readonly CARGO_LAMBDA_VERSION=1.9.2
readonly VENV=target/sam/venv
readonly EMULATOR_VENV=target/sam/emulator-venv

step() {
    local title=$1 began=$SECONDS
    shift
    printf -- '-- %s\n' "$title"
    "$@"
    printf -- '-- %s: done in %d s\n' "$title" "$((SECONDS - began))"
}

tools() {
    if ! command -v readelf >/dev/null; then
        apt-get update -qq
        apt-get install -y -qq --no-install-recommends binutils
    fi
    [ -x "$VENV/bin/python" ] || python3 -m venv "$VENV"
    [ -x "$EMULATOR_VENV/bin/python" ] || python3 -m venv "$EMULATOR_VENV"
    "$VENV/bin/pip" install --quiet --requirement tests/sam/requirements.txt
    "$EMULATOR_VENV/bin/pip" install --quiet --requirement tests/sam/emulator-requirements.txt
    # Its dependency is a compiler of its own, for cross-compiling, which nothing here needs.
    "$VENV/bin/pip" install --quiet --no-deps "cargo-lambda==$CARGO_LAMBDA_VERSION"
    # Behind SAM's own folder, so that its Python is the one that runs the tests.
    export PATH="$PWD/$VENV/bin:$PWD/$EMULATOR_VENV/bin:$PATH"
    sam --version
}
