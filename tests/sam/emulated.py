"""Runs every built function under the real runtime interface emulator, with the events that SAM generates and our own."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import samcli

import aws
import story
import tokens

EMULATOR = Path(samcli.__file__).parent / "local" / "rapid" / "aws-lambda-rie-x86_64"
EVENTS = Path(__file__).parent / "events"
ANSWER_SECONDS_MAX = 60


def main(build: Path) -> None:
    with aws.emulator() as endpoint:
        parts = aws.parts(build)
        for name, template in parts:
            if name == "Tables":
                aws.deploy(name, template, {"DeletionProtection": "false"})
        make_queues(endpoint, [template for _, template in parts])
        functions = [(name, template, function) for name, template in parts for function in functions_of(template)]
        # The request path first: what consumers decide on has to be there.
        for name, template, function in sorted(functions, key=lambda one: one[2]["binary"] != "api"):
            with running(template.parent / "Function" / "bootstrap", function, endpoint) as invoke:
                checked = check(function["binary"], template, invoke)
            print(f"{name}: {checked} events answered as expected")
        expect("relay-rejected", messages(endpoint, "relay-rejected"), ["ObjectCreated:Put"])
        expect("game-ended", messages(endpoint, "game-ended"), ["game_ended"])
        expect("canary", version(endpoint, "records", "CANARY"), "2")


def functions_of(template: Path) -> list[dict]:
    """Returns what the part's built template says of its function."""
    content = aws.load(template)
    functions = [resource for resource in content["Resources"].values() if resource["Type"] == "AWS::Serverless::Function"]
    return [
        {
            "binary": function["Metadata"]["BuildProperties"]["Binary"],
            "timeout": function["Properties"]["Timeout"],
            "environment": {
                name: resolved(value, content["Parameters"]) for name, value in function["Properties"]["Environment"]["Variables"].items()
            },
        }
        for function in functions
    ]


def resolved(value, parameters: dict) -> str:
    """Resolves what the templates use in names and environments: parameters, by themselves or in a text."""
    known = {
        "AWS::Region": aws.REGION,
        "AWS::URLSuffix": "amazonaws.com",
        "AWS::AccountId": "000000000000",
        **{name: str(parameter["Default"]) for name, parameter in parameters.items() if "Default" in parameter},
    }
    if isinstance(value, dict):
        value = known[value["Ref"]] if "Ref" in value else value["Fn::Sub"]
    for name, replacement in known.items():
        value = value.replace(f"${{{name}}}", replacement)
    if "${" in value:
        sys.exit(f"{value}: a variable that this test does not know")
    return value


def make_queues(endpoint: str, templates: list[Path]) -> None:
    """Makes the queues of all parts, without what only mappings and redrive need."""
    sqs = aws.client("sqs", endpoint)
    for template in templates:
        content = aws.load(template)
        for resource in content["Resources"].values():
            if resource["Type"] == "AWS::SQS::Queue":
                name = resolved(resource["Properties"]["QueueName"], content["Parameters"])
                sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"} if name.endswith(".fifo") else {})


def messages(endpoint: str, queue: str) -> list[str]:
    """Returns what a queue holds: of each message its event's type, or that of the record that it carries."""
    sqs = aws.client("sqs", endpoint)
    url = sqs.get_queue_url(QueueName=f"{aws.PREFIX}-{queue}")["QueueUrl"]
    received = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
    bodies = [json.loads(message["Body"]) for message in received]
    return [body["event_type"] if "event_type" in body else body["record"]["eventName"] for body in bodies]


@contextmanager
def running(binary: Path, function: dict, endpoint: str):
    """Runs a function under the emulator; yields a call that invokes it once and returns its answer."""
    port, runtime_port = aws.free_port(), aws.free_port()
    environment = {
        **os.environ,
        **function["environment"],
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_LAMBDA_FUNCTION_NAME": f"{aws.PREFIX}-{function['binary']}",
        "AWS_LAMBDA_FUNCTION_TIMEOUT": str(function["timeout"]),
    }
    command = [str(EMULATOR), "--runtime-interface-emulator-address", f"127.0.0.1:{port}"]
    command += ["--runtime-api-address", f"127.0.0.1:{runtime_port}", str(binary.resolve())]
    log = Path("target/sam") / f"emulated-{function['binary']}.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            command, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            aws.wait_for(lambda: aws.listening(port), 20, f"the runtime interface emulator does not start, see {log}")
            yield lambda event: invoke(port, event)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def invoke(port: int, event) -> dict:
    url = f"http://127.0.0.1:{port}/2015-03-31/functions/function/invocations"
    request = urllib.request.Request(url, data=json.dumps(event).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS_MAX) as answer:
        return json.loads(answer.read())


def check(binary: str, template: Path, invoke) -> int:
    """Sends a function all its events. Returns how many."""
    if binary == "api":
        return check_api(story.requests(template), invoke)
    if binary == "canary":
        return check_canary(invoke)
    if binary == "outbox-relay":
        return check_events(invoke, generated("dynamodb", "update"), [], binary)
    foreign = generated("sqs", "receive-message", "--body", "Hello from SQS!")
    return check_events(invoke, foreign, [record["messageId"] for record in foreign["Records"]], binary)


def check_events(invoke, event, failures: list[str], binary: str) -> int:
    """An event of the right service with foreign contents, our own event, and one of another service."""
    expect(binary, invoke(event), {"batchItemFailures": [{"itemIdentifier": failed} for failed in failures]})
    own = json.loads((EVENTS / f"{binary}.json").read_text())
    expect(binary, invoke(own), {"batchItemFailures": []})
    other = invoke(generated("s3", "put"))
    # The relay reads each record on its own and puts aside what it cannot send; a consumer refuses the whole batch.
    taken = other == {"batchItemFailures": []} if binary == "outbox-relay" else "errorType" in other
    if not taken:
        sys.exit(f"{binary} answers an event of another service with {other}")
    return 3


def check_canary(invoke) -> int:
    """The event of a schedule, and any other: what invokes it is of no interest to it."""
    own = json.loads((EVENTS / "canary.json").read_text())
    for event in (own, generated("s3", "put")):
        answer = invoke(event)
        if "event_id" not in answer:
            sys.exit(f"canary answers {answer}")
    return 2


def version(endpoint: str, table: str, key: str) -> str:
    """Returns the version of the record whose partition and sort key are this."""
    found = aws.client("dynamodb", endpoint).get_item(
        TableName=f"{aws.PREFIX}-{table}", Key={"pk": {"S": key}, "sk": {"S": key}}, ConsistentRead=True
    )
    return found["Item"]["version"]["N"]


def check_api(requests: list[dict], invoke) -> int:
    for request in requests:
        check_request(request, invoke)
    foreign = invoke(generated("apigateway", "http-api-proxy"))
    if foreign.get("statusCode") != 404:
        sys.exit(f"api: a path that is not its own answers {foreign}")
    return len(requests) + 1


def check_request(request: dict, invoke) -> None:
    answer = invoke(http(request))
    story.check(request, answer.get("statusCode"), answer.get("body") or "null")


def http(request: dict) -> dict:
    """Returns the event of an HTTP API, format 2.0, for a request."""
    path, _, query = request["path"].partition("?")
    context = {
        "http": {"method": request["method"], "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1", "userAgent": ""},
        "stage": "$default",
        "requestId": "request",
        "timeEpoch": 0,
        **tokens.authorizer(request),
    }
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": query,
        "headers": {"content-type": "application/json", "host": "localhost"},
        "requestContext": context,
        "body": json.dumps(request["body"]) if "body" in request else None,
        "isBase64Encoded": False,
    }


def generated(*arguments: str) -> dict:
    command = ["sam", "local", "generate-event", *arguments]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def expect(name: str, actual, expected) -> None:
    if actual != expected:
        sys.exit(f"{name} answers {actual} instead of {expected}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
