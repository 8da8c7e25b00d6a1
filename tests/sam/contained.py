"""Runs the built functions in containers, as `sam local` does it: each with its event by `sam local invoke`, and the HTTP API
by `sam local start-api` with a request for every route. Tables and queues are those of an emulator of AWS."""

import ipaddress
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import aws
import story
from emulated import EVENTS, check_request, functions_of, http, make_queues, messages, running

INVOCATIONS_AT_ONCE = 2
ANSWER_SECONDS_MAX = 60

# What an event leaves behind that was not there before: table and beginning of a key. Not listed are those that change
# nothing: a player's new name is on no board yet, and the relay writes to a queue.
EFFECTS = {
    "active-players": ("views", "ACTIVE#2026-11-30#player-00001"),
    "activity": ("views", "ACTIVITY#2026-11-30#"),
    "canary": ("records", "CANARY"),
    "fan-out": ("records", "NOTIFICATION#"),
    "follow-changed": ("views", "FOLLOWERS#player-00002"),
    "game-ended": ("views", "BOARD#blitz#player-00001"),
    "game-ended-statistics": ("views", "STATISTICS#player-00001"),
    "notification-requested": ("views", "INBOX#player-00001"),
    "order-changed": ("views", "ORDER#order-00001"),
    "post-changed": ("views", "POSTS#player-00001"),
    "reaction-changed": ("views", "REACTION#post-1#player-00001"),
}


def main(build: Path, image: str) -> None:
    with aws.emulator(gateway()) as endpoint, containers(image):
        tell_endpoint(image, endpoint)
        parts = aws.parts(build)
        aws.deploy("Tables", dict(parts)["Tables"], {"DeletionProtection": "false"})
        make_queues(endpoint, [template for _, template in parts])
        answer_requests(dict(parts)["Api"], image, endpoint)
        functions = [(part, function["binary"]) for part, template in parts for function in functions_of(template)]
        before = effects(endpoint)
        with ThreadPoolExecutor(INVOCATIONS_AT_ONCE) as pool:
            list(pool.map(lambda one: invoke(build, image, *one), functions))
        compare(before, effects(endpoint))
        if messages(endpoint, "game-ended") != ["game_ended"]:
            sys.exit("outbox-relay has sent no event to the queue game-ended")


def gateway() -> str:
    """Returns the address under which containers reach this machine. Some engines name only the subnet that it is first in."""
    network = json.loads(output(["docker", "network", "inspect", "bridge"]))[0]["IPAM"]["Config"][0]
    return network.get("Gateway") or str(next(ipaddress.ip_network(network["Subnet"]).hosts()))


@contextmanager
def containers(image: str):
    """Removes the containers that were made meanwhile and are left, and the images."""
    try:
        yield
    finally:
        left = output(["docker", "ps", "--all", "--quiet", "--filter", f"ancestor={image}:rapid-x86_64"]).split()
        if left:
            output(["docker", "rm", "--force", *left])
        subprocess.run(["docker", "rmi", "--force", f"{image}:rapid-x86_64", f"{image}:base"], capture_output=True)


def tell_endpoint(image: str, endpoint: str) -> None:
    """Makes the image that functions run in. `sam local` sets only variables that a template declares, so the address of the
    emulator is part of the image. An image of this tag is taken by `sam local` as it is; from others it makes one."""
    dockerfile = f"FROM {image}:base\nENV AWS_ENDPOINT_URL={endpoint}\n"
    output(["docker", "build", "--quiet", "--tag", f"{image}:rapid-x86_64", "-"], dockerfile)


def local(image: str) -> list[str]:
    return ["--skip-pull-image", "--invoke-image", f"{image}:al2023", "--region", aws.REGION]


def answer_requests(template: Path, image: str, endpoint: str) -> None:
    """Sends the story to the HTTP API, which one container serves. `sam local` knows no JWT authorizer and hands over no claims, so
    the function refuses what no open route leads to; the same function then gets the request with the claims that it needs."""
    requests = story.requests(template)
    function, = functions_of(template)
    port = aws.free_port()
    command = ["sam", "local", "start-api", "--template", str(template), "--port", str(port), *local(image)]
    log = Path("target/sam") / "start-api.log"
    began = time.monotonic()
    with log.open("w") as output_file:
        process = subprocess.Popen(
            [*command, "--warm-containers", "LAZY"], stdout=output_file, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            aws.wait_for(lambda: aws.listening(port), ANSWER_SECONDS_MAX, f"sam local start-api does not start, see {log}")
            with running(template.parent / "Function" / "bootstrap", function, endpoint) as invoke_beside:
                for request in requests:
                    if story.is_open(request, template):
                        story.check(request, *send(port, request))
                    else:
                        story.check({"method": request["method"], "path": request["path"], "status": 401}, *send(port, request))
                        check_request(request, invoke_beside)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(ANSWER_SECONDS_MAX)
    print(f"sam local start-api: {len(requests)} requests answered as expected in {time.monotonic() - began:.0f} s")


def send(port: int, request: dict) -> tuple[int, str]:
    body = json.dumps(request["body"]).encode() if "body" in request else None
    headers = {"content-type": "application/json"}
    url = f"http://{aws.LOOPBACK}:{port}{request['path']}"
    call = urllib.request.Request(url, data=body, headers=headers, method=request["method"])
    try:
        with urllib.request.urlopen(call, timeout=ANSWER_SECONDS_MAX) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def invoke(build: Path, image: str, part: str, binary: str) -> None:
    """Invokes a function of the whole stack with its event."""
    began = time.monotonic()
    event = EVENTS / f"{binary}.json"
    command = ["sam", "local", "invoke", f"{part}/Function", "--template", str(build / "template.yaml"), *local(image)]
    if binary == "api":
        text = json.dumps(http({"method": "GET", "path": "/players/player-00001"}))
        answer = json.loads(output([*command, "--event", "-"], text))
        expected = answer.get("statusCode") == 200 and json.loads(answer["body"])["username"] == "Player 1"
    else:
        answer = json.loads(output([*command, "--event", str(event)]))
        expected = "event_id" in answer if binary == "canary" else answer == {"batchItemFailures": []}
    if not expected:
        sys.exit(f"sam local invoke {part}/Function answers {answer}")
    print(f"sam local invoke {part}/Function: answered as expected in {time.monotonic() - began:.1f} s")


def effects(endpoint: str) -> set[str]:
    """Returns whose events have left something behind."""
    client = aws.client("dynamodb", endpoint)
    keys = {
        table: [item["pk"]["S"] for item in client.scan(TableName=f"{aws.PREFIX}-{table}")["Items"]]
        for table in {table for table, _ in EFFECTS.values()}
    }
    return {name for name, (table, prefix) in EFFECTS.items() if any(key.startswith(prefix) for key in keys[table])}


def compare(before: set[str], after: set[str]) -> None:
    if before:
        sys.exit(f"the effects of {sorted(before)} were there before their events")
    without = set(EFFECTS) - after
    if without:
        sys.exit(f"the events of {sorted(without)} have left nothing behind")


def output(command: list[str], given: str | None = None) -> str:
    result = subprocess.run(command, input=given, env=os.environ, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{result.stdout[-3000:]}\n{result.stderr[-3000:]}")
    return result.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
