"""Which alarms there have to be, by the topology, and which metrics there are, by what the code declares. The stack is compared
with both, both ways."""

import json
from dataclasses import dataclass
from functools import cache

from .cloudwatch import Metric, children, metrics_of
from .templates import PREFIX, ROOT, TOPIC, Resource

GOLDEN = ROOT / "tests" / "wire" / "golden"
# Metrics that AWS itself writes for what the stack has: by dimension, whose values are found in the stack.
QUEUE_METRICS = ("ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage")
FUNCTION_METRICS = ("Errors", "Throttles")
API_METRICS = ("Count", "5xx", "Latency")
ALARM, COMPOSITE = "AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"
HEALTH = f"{PREFIX}-health"
# Limits of a composite alarm (https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutCompositeAlarm.html).
CHILDREN_MAX, RULE_LENGTH_MAX = 100, 10_240
# The longest that a prefix may be.
PREFIX_LENGTH_MAX = 40
# These notify nobody by themselves: they are halves of others, or say once more what was said.
QUIET = {f"{PREFIX}-{name}" for name in ("silence", "delay", "aside", "failure", "requests")} | {
    f"{PREFIX}-api-burn-{name}" for name in ("fast-1h", "fast-5m", "slow-6h", "slow-30m")
}


@dataclass(frozen=True)
class Consumer:
    name: str
    queue: str
    order: str

    @property
    def dead_letters(self) -> str:
        base, dot, fifo = self.queue.partition(".")
        return f"{base}-dead-letters{dot}{fifo}"


@cache
def topology() -> dict:
    return json.loads((GOLDEN / "topology.json").read_text())


@cache
def consumers() -> tuple[Consumer, ...]:
    return tuple(Consumer(**consumer) for consumer in topology()["consumers"])


@cache
def own(name: str, subject: str) -> Metric:
    """Returns a metric that the code writes, of a consumer or a function."""
    (declared,) = [metric for metric in declarations() if metric["name"] == name]
    if subject not in declared["of"]:
        raise ValueError(f"{name} is not measured of {subject}")
    return Metric(PREFIX, name, frozenset([(declared["dimension"], subject)]))


@cache
def of_queue(name: str, queue: str) -> Metric:
    return Metric("AWS/SQS", name, frozenset([("QueueName", f"{PREFIX}-{queue}")]))


@cache
def of_function(name: str, function: str) -> Metric:
    return Metric("AWS/Lambda", name, frozenset([("FunctionName", f"{PREFIX}-{function}")]))


@cache
def of_api(name: str) -> Metric:
    return Metric("AWS/ApiGateway", name, frozenset([("ApiId", "HttpApi")]))


@cache
def declarations() -> list[dict]:
    return json.loads((GOLDEN / "metrics.json").read_text())["metrics"]


def required() -> dict[str, set[Metric]]:
    """Returns the metric alarms that there have to be, each with the metrics that it is about."""
    alarms = {}
    for consumer in consumers():
        name = consumer.name
        alarms[f"{name}-silence"] = {own("Published", name), own("Processed", name)}
        alarms[f"{name}-canary"] = {own("CanaryArrived", name)}
        alarms[f"{name}-age"] = {of_queue("ApproximateAgeOfOldestMessage", consumer.queue)}
        alarms[f"{name}-dead-letters"] = {of_queue("ApproximateNumberOfMessagesVisible", consumer.dead_letters)}
        if consumer.order != "standard":
            alarms[f"{name}-gap-unresolved"] = {own("Unresolved", name)}
    for function in [consumer.name for consumer in consumers()] + ["outbox-relay", "api", "canary"]:
        alarms[f"{function}-errors"] = {of_function("Errors", function)}
        alarms[f"{function}-throttles"] = {of_function("Throttles", function)}
    rejected = topology()["rejected_queue"]
    alarms[rejected] = {of_queue("ApproximateNumberOfMessagesVisible", rejected)}
    alarms["outbox-relay-iterator-age"] = {of_function("IteratorAge", "outbox-relay")}
    alarms["api-latency"] = {of_api("Latency"), of_api("Count")}
    for window in ("fast-1h", "fast-5m", "slow-6h", "slow-30m"):
        alarms[f"api-burn-{window}"] = {of_api("5xx"), of_api("Count")}
    return {f"{PREFIX}-{name}": metrics for name, metrics in alarms.items()}


def alarms(stack: tuple[Resource, ...]) -> dict[str, dict]:
    return {resource.properties["AlarmName"]: resource.properties for resource in stack if resource.type == ALARM}


def composites(stack: tuple[Resource, ...]) -> dict[str, dict]:
    return {resource.properties["AlarmName"]: resource.properties for resource in stack if resource.type == COMPOSITE}


def findings(stack: tuple[Resource, ...]) -> list[str]:
    """Returns everything in which the stack's alarms are not as they have to be."""
    return [*missing_and_foreign(stack), *unmeasured(stack), *unheard(stack), *not_notifying(stack), *beyond_limits(stack)]


def missing_and_foreign(stack: tuple[Resource, ...]) -> list[str]:
    expected, found = required(), alarms(stack)
    wrong = [f"{name}: there is no such alarm" for name in expected.keys() - found.keys()]
    wrong += [f"{name}: an alarm that nobody asks for" for name in found.keys() - expected.keys()]
    for name in expected.keys() & found.keys():
        actual = set(metrics_of(found[name]))
        if actual != expected[name]:
            wrong.append(f"{name}: is about {sorted(map(str, actual))} instead of {sorted(map(str, expected[name]))}")
    return wrong


def unmeasured(stack: tuple[Resource, ...]) -> list[str]:
    """An alarm on a metric that nobody writes never rings."""
    written = measured(stack)
    return [
        f"{name}: nobody writes {metric}"
        for name, alarm in alarms(stack).items()
        for metric in metrics_of(alarm)
        if metric not in written
    ]


def measured(stack: tuple[Resource, ...]) -> set[Metric]:
    """Returns all metrics that the code writes, and those of AWS that alarms may be about, for what the stack has."""
    found = {own(metric["name"], subject) for metric in declarations() for subject in metric["of"]}
    for resource in stack:
        match resource.type:
            case "AWS::SQS::Queue":
                queue = frozenset([("QueueName", resource.properties["QueueName"])])
                found |= {Metric("AWS/SQS", name, queue) for name in QUEUE_METRICS}
            case "AWS::Lambda::Function":
                function = frozenset([("FunctionName", resource.properties["FunctionName"])])
                found |= {Metric("AWS/Lambda", name, function) for name in FUNCTION_METRICS}
            case "AWS::ApiGatewayV2::Api":
                api = frozenset([("ApiId", resource.logical_id)])
                found |= {Metric("AWS/ApiGateway", name, api) for name in API_METRICS}
            case "AWS::Lambda::EventSourceMapping" if "StartingPosition" in resource.properties:
                function = frozenset([("FunctionName", resource.properties["FunctionName"])])
                found.add(Metric("AWS/Lambda", "IteratorAge", function))
    return found


def unheard(stack: tuple[Resource, ...]) -> list[str]:
    """The alarm over all alarms leaves none out, and names none that there is not."""
    rules = {name: children(composite["AlarmRule"]) for name, composite in composites(stack).items()}
    known = alarms(stack).keys() | rules.keys()
    wrong = [f"{name}: names {child}, which there is not" for name, named in rules.items() for child in named - known]
    heard, new = set(), {HEALTH}
    while new:
        heard |= new
        new = {child for name in new for child in rules.get(name, set())} - heard
    return wrong + [f"{name}: {HEALTH} does not hear of it" for name in known - heard]


def not_notifying(stack: tuple[Resource, ...]) -> list[str]:
    wrong = []
    for name, alarm in (alarms(stack) | composites(stack)).items():
        expected = [] if name in QUIET else [TOPIC]
        if alarm.get("AlarmActions", []) != expected:
            wrong.append(f"{name}: notifies {alarm.get('AlarmActions')} instead of {expected}")
    return wrong


def beyond_limits(stack: tuple[Resource, ...]) -> list[str]:
    wrong = []
    for name, composite in composites(stack).items():
        named = children(composite["AlarmRule"])
        length = len(composite["AlarmRule"]) + len(named) * (PREFIX_LENGTH_MAX - len(PREFIX))
        if len(named) > CHILDREN_MAX or length > RULE_LENGTH_MAX:
            wrong.append(f"{name}: {len(named)} alarms and {length} characters are too many")
    for name, alarm in alarms(stack).items():
        periods = [alarm["Period"]] if "Period" in alarm else [
            query["MetricStat"]["Period"] for query in alarm["Metrics"] if "MetricStat" in query
        ]
        # All metrics of an expression have one period, and shorter ones than an hour reach back for a day at most.
        if len(set(periods)) != 1 or periods[0] * alarm["EvaluationPeriods"] > 86_400:
            wrong.append(f"{name}: periods of {periods} s, {alarm['EvaluationPeriods']} times")
    return wrong
