"""The requests of events/api.json: a story that meets every route of the HTTP API, and what is answered."""

import json
import re
import sys
from pathlib import Path

import aws

REQUESTS = Path(__file__).parent / "events" / "api.json"


def requests(template: Path) -> list[dict]:
    """Returns the requests in their order, provided that they meet exactly the routes that a built template declares. Those of open
    routes, which no authorizer looks at, get no token."""
    found = json.loads(REQUESTS.read_text())
    declared = routes(template)
    for request in found:
        if is_open(request, template):
            request.setdefault("token", None)
    met = set()
    for request in found:
        of_request = [route for route in declared if meets(request, *route)]
        if not of_request:
            sys.exit(f"{request['method']} {request['path']} meets no route of {template}")
        met.update(of_request)
    for method, path in sorted(declared - met):
        sys.exit(f"{REQUESTS} has no request for {method} {path}")
    return found


def is_open(request: dict, template: Path) -> bool:
    """Returns whether a request's route is one that no authorizer looks at."""
    unguarded = [event for event in events(template) if event.get("Auth", {}).get("Authorizer") == "NONE"]
    return any(meets(request, event["Method"].upper(), event["Path"]) for event in unguarded)


def routes(template: Path) -> set[tuple[str, str]]:
    """Returns method and path of each event of an HTTP API."""
    return {(event["Method"].upper(), event["Path"]) for event in events(template)}


def events(template: Path) -> list[dict]:
    """Returns the events of an HTTP API that a built template declares."""
    resources = aws.load(template)["Resources"].values()
    functions = [resource["Properties"] for resource in resources if resource["Type"] == "AWS::Serverless::Function"]
    declared = [event for function in functions for event in function.get("Events", {}).values()]
    return [event["Properties"] for event in declared if event["Type"] == "HttpApi"]


def meets(request: dict, method: str, path: str) -> bool:
    pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))
    return request["method"] == method and bool(re.fullmatch(pattern, request["path"].partition("?")[0]))


def check(request: dict, status: int, body: str) -> None:
    """Ends the test unless a request is answered as the story says; what it does not name may be anything."""
    if status == request["status"] and ("answer" not in request or has(json.loads(body), request["answer"])):
        return
    expected = f"{request['status']} {json.dumps(request.get('answer'))}"
    sys.exit(f"{request['method']} {request['path']} answers {status} {body} instead of {expected}")


def has(actual, expected) -> bool:
    if not isinstance(expected, dict) or not expected:
        return actual == expected
    return isinstance(actual, dict) and all(name in actual and has(actual[name], expected[name]) for name in expected)
