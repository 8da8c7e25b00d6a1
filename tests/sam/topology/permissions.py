"""What functions are allowed to do, and what they need: the calls that the local stack has recorded, and what Lambda does in
their name. No more and no less."""

from collections.abc import Iterable

from transformed import Resource, Stack

Permission = tuple[str, str]

QUEUE_POLLER = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")
STREAM_POLLER = ("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator")
LOGS = ("logs:CreateLogStream", "logs:PutLogEvents")
TRACES = ("xray:PutTraceSegments", "xray:PutTelemetryRecords")
# Actions that know no resources.
ON_ANYTHING = "*"


def functions_may_do_what_they_do(project) -> Iterable[str]:
    stack = project.stack
    for name, function in stack.functions().items():
        try:
            found = allowed(stack, function)
        except ValueError as error:
            yield f"{function}: {error}"
            continue
        expected = needed(project, name, function)
        # What the relay may send to is a rule of its own.
        if name == project.topology["relay"]:
            found = {one for one in found if one[0] != "sqs:SendMessage"}
            expected = {one for one in expected if one[0] != "sqs:SendMessage"}
        yield from (f"{function} may not {action} on {resource}" for action, resource in sorted(expected - found))
        yield from (f"{function} may {action} on {resource} and never does" for action, resource in sorted(found - expected))


def allowed(stack: Stack, function: Resource) -> set[Permission]:
    """Returns what a function's role allows."""
    (role,) = [
        role
        for role in stack.of_type("AWS::IAM::Role")
        if function.properties["Role"] == f"{role.part}/{role.logical_id}.Arn"
    ] or [None]
    if role is None:
        raise ValueError(f"its role {function.properties['Role']} is not in the templates")
    if role.properties.get("ManagedPolicyArns"):
        raise ValueError(f"{role} has policies that are not in the templates")
    permissions: set[Permission] = set()
    for policy in role.properties.get("Policies", []):
        for statement in policy["PolicyDocument"]["Statement"]:
            # A condition makes a permission narrower: by items of a table, of which no call is recorded.
            if statement["Effect"] != "Allow" or {"NotAction", "NotResource"} & set(statement):
                raise ValueError(f"statement {statement.get('Sid')} of {role} does more than to allow")
            permissions |= {
                (action, resource)
                for action in as_list(statement["Action"])
                for resource in as_list(statement["Resource"])
            }
    return permissions


def needed(project, name: str, function: Resource) -> set[Permission]:
    """Returns what a function needs by itself, for its mappings, its logs and its traces."""
    stack = project.stack
    calls = project.calls.get(f"{stack.prefix}-{name}", {})
    permissions = {(action, resource) for action, resources in calls.items() for resource in resources}
    for mapping in stack.mappings():
        if mapping.properties["FunctionName"] == function.properties["FunctionName"]:
            source = mapping.properties["EventSourceArn"]
            actions = QUEUE_POLLER if ":sqs:" in source else STREAM_POLLER
            permissions |= {(action, source) for action in actions}
            if ":sqs:" not in source:
                permissions.add(("dynamodb:ListStreams", ON_ANYTHING))
    for group in stack.of_type("AWS::Logs::LogGroup"):
        if group.properties["LogGroupName"] == function.properties.get("LoggingConfig", {}).get("LogGroup"):
            arn = f"arn:aws:logs:us-east-1:000000000000:log-group:{group.properties['LogGroupName']}:*"
            permissions |= {(action, arn) for action in LOGS}
    if function.properties.get("TracingConfig", {}).get("Mode") == "Active":
        permissions |= {(action, ON_ANYTHING) for action in TRACES}
    return permissions


def as_list(value) -> list:
    return value if isinstance(value, list) else [value]
