"""What has to hold between the topology and the transformed templates. Each rule returns what breaks it, a line each."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from permissions import allowed
from transformed import Resource, Stack

MAX_RECEIVES = 20
# Whoever depends on somebody outside may have to wait for hours.
MAX_RECEIVES_EXTERNAL = 100
TIMEOUTS_HIDDEN = 6
FIFO_BATCH_MAX = 10
CONCURRENCY_MIN = 2
EXPIRES_AT = "expires_at"
WRITES = ("dynamodb:PutItem", "dynamodb:UpdateItem")


@dataclass
class Project:
    """What is compared: the templates, what the code says, and the calls that functions make."""

    stack: Stack
    topology: dict
    calls: dict

    def consumers(self) -> Iterable[tuple[dict, Resource | None]]:
        queues = self.stack.queues()
        return ((consumer, queues.get(consumer["queue"])) for consumer in self.topology["consumers"])

    def pairs(self) -> Iterable[tuple[dict, Resource, Resource]]:
        """Returns the consumers whose queues are there, with queue and dead letter queue."""
        queues = self.stack.queues()
        for consumer, queue in self.consumers():
            dead_letters = queues.get(consumer["dead_letter_queue"])
            if queue and dead_letters:
                yield consumer, queue, dead_letters

    def mappings_of(self, queue: str) -> list[Resource]:
        arn = self.stack.queue_arn(queue)
        return [mapping for mapping in self.stack.mappings() if mapping.properties["EventSourceArn"] == arn]

    def mapped(self) -> Iterable[tuple[dict, Resource, Resource, Resource]]:
        """Returns the consumers whose queues are mapped, with queue, mapping and the mapping's function."""
        functions = self.stack.functions()
        for consumer, queue in self.consumers():
            for mapping in self.mappings_of(consumer["queue"]) if queue else []:
                function = functions.get(self.stack.unprefixed(mapping.properties["FunctionName"]))
                if function:
                    yield consumer, queue, mapping, function


def event_types_have_consumers(project: Project) -> Iterable[str]:
    named = {consumer["name"]: consumer for consumer in project.topology["consumers"]}
    for event_type, consumers in project.topology["events"].items():
        if not consumers:
            yield f"{event_type} has no consumer"
        for consumer in consumers:
            if event_type not in named.get(consumer, {}).get("events", []):
                yield f"{event_type} is for {consumer}, which does not get it"
    for name, consumer in named.items():
        for event_type in consumer["events"]:
            if name not in project.topology["events"].get(event_type, []):
                yield f"{name} gets {event_type}, which is not for it"


def resources_are_those_of_the_topology(project: Project) -> Iterable[str]:
    topology, stack = project.topology, project.stack
    consumers = topology["consumers"]
    queues = [name for consumer in consumers for name in (consumer["queue"], consumer["dead_letter_queue"])]
    for kind, declared, expected in (
        ("queue", stack.queues(), {*queues, topology["rejected_queue"]}),
        ("function", stack.functions(), set(topology["functions"])),
        ("table", stack.tables(), set(topology["tables"])),
    ):
        yield from (f"{kind} {name} is not in the templates" for name in sorted(expected - set(declared)))
        yield from (f"{kind} {name} is not in the topology" for name in sorted(set(declared) - expected))


def queues_have_one_enabled_mapping(project: Project) -> Iterable[str]:
    for consumer in project.topology["consumers"]:
        enabled = [one for one in project.mappings_of(consumer["queue"]) if one.properties.get("Enabled", True)]
        to = [project.stack.unprefixed(mapping.properties["FunctionName"]) for mapping in enabled]
        if to != [consumer["name"]]:
            yield f"queue {consumer['queue']} has enabled mappings to {to} instead of one to {consumer['name']}"
    sources = {project.stack.queue_arn(consumer["queue"]) for consumer in project.topology["consumers"]}
    for mapping in project.stack.mappings():
        source = mapping.properties["EventSourceArn"]
        if ":sqs:" in source and source not in sources:
            yield f"{mapping} reads {source}, which is no consumer's queue"


def dead_letters_are_kept_longer(project: Project) -> Iterable[str]:
    for consumer, queue, dead_letters in project.pairs():
        target = queue.properties.get("RedrivePolicy", {}).get("deadLetterTargetArn")
        if target != project.stack.queue_arn(consumer["dead_letter_queue"]):
            yield f"{queue}: what fails goes to {target} instead of {consumer['dead_letter_queue']}"
        kept, kept_dead = retention(queue), retention(dead_letters)
        if kept_dead <= kept:
            yield f"{dead_letters}: dead letters are kept for {kept_dead} s, messages for {kept} s"


def dead_letters_come_from_one_queue(project: Project) -> Iterable[str]:
    for consumer, _, dead_letters in project.pairs():
        expected = {"redrivePermission": "byQueue", "sourceQueueArns": [project.stack.queue_arn(consumer["queue"])]}
        if dead_letters.properties.get("RedriveAllowPolicy") != expected:
            yield f"{dead_letters}: not only {consumer['queue']} may send dead letters there"


def messages_are_tried_often_enough(project: Project) -> Iterable[str]:
    for consumer, queue, _ in project.pairs():
        expected = MAX_RECEIVES_EXTERNAL if consumer["external"] else MAX_RECEIVES
        receives = queue.properties.get("RedrivePolicy", {}).get("maxReceiveCount")
        if receives is not None and int(receives) != expected:
            yield f"{queue}: a message is received {receives} times instead of {expected}"


def messages_are_hidden_long_enough(project: Project) -> Iterable[str]:
    for _, queue, mapping, function in project.mapped():
        window = int(mapping.properties.get("MaximumBatchingWindowInSeconds", 0))
        needed = TIMEOUTS_HIDDEN * int(function.properties["Timeout"]) + window
        hidden = int(queue.properties.get("VisibilityTimeout", 30))
        if hidden < needed:
            yield f"{queue}: messages are hidden for {hidden} s, less than {needed} s"


def failures_are_reported_one_by_one(project: Project) -> Iterable[str]:
    for mapping in project.stack.mappings():
        if mapping.properties.get("FunctionResponseTypes") != ["ReportBatchItemFailures"]:
            yield f"{mapping}: a failure is one of the whole batch"


def concurrency_is_limited_by_the_mapping(project: Project) -> Iterable[str]:
    for _, _, mapping, function in project.mapped():
        most = mapping.properties.get("ScalingConfig", {}).get("MaximumConcurrency")
        reserved = function.properties.get("ReservedConcurrentExecutions")
        if most is None or int(most) < CONCURRENCY_MIN:
            yield f"{mapping}: MaximumConcurrency is {most}"
        elif reserved is not None and int(most) > int(reserved):
            yield f"{mapping}: {most} instances at once are more than the {reserved} that {function} has in reserve"


def claims_outlast_messages(project: Project) -> Iterable[str]:
    kept = project.topology["claims"]["kept_seconds"]
    age = project.topology["claims"]["event_age_seconds_max"]
    if kept <= age:
        yield f"claims are kept for {kept} s, events are applied through them for {age} s"
    for _, queue, dead_letters in project.pairs():
        # A FIFO queue's dead letter begins anew.
        stays = retention(queue) + retention(dead_letters)
        if age <= stays:
            yield f"{dead_letters}: a message may be {stays} s old, events are applied through claims for {age} s"
    ledger = project.stack.tables().get("ledger")
    expiry = ledger.properties.get("TimeToLiveSpecification") if ledger else None
    if ledger and expiry != {"AttributeName": EXPIRES_AT, "Enabled": True}:
        yield f"{ledger}: claims do not expire by {EXPIRES_AT}"


def fifo_queues_come_in_pairs(project: Project) -> Iterable[str]:
    for consumer, queue, dead_letters in project.pairs():
        ordered = consumer["order"] == "fifo"
        for one in (queue, dead_letters):
            is_fifo = bool(one.properties.get("FifoQueue", False))
            if is_fifo != ordered or one.properties["QueueName"].endswith(".fifo") != ordered:
                yield f"{one}: FIFO is {is_fifo}, {consumer['name']} takes messages in {consumer['order']} order"
            elif ordered and one.properties.get("DeduplicationScope") != "messageGroup":
                yield f"{one}: messages of one group are compared with those of others"
    for consumer, _, mapping, _ in project.mapped():
        batch, window = mapping.properties["BatchSize"], mapping.properties.get("MaximumBatchingWindowInSeconds", 0)
        if consumer["order"] == "fifo" and (int(batch) > FIFO_BATCH_MAX or window):
            yield f"{mapping}: a FIFO queue gives {batch} messages in {window} s to nobody"


def everything_is_encrypted(project: Project) -> Iterable[str]:
    for queue in project.stack.queues().values():
        if not queue.properties.get("SqsManagedSseEnabled") and not queue.properties.get("KmsMasterKeyId"):
            yield f"{queue} is not encrypted"
    for table in project.stack.tables().values():
        if not table.properties.get("SSESpecification", {}).get("SSEEnabled"):
            yield f"{table} is not encrypted"


def logs_are_kept_for_a_time(project: Project) -> Iterable[str]:
    groups = project.stack.named("AWS::Logs::LogGroup", "LogGroupName")
    for group in groups.values():
        if not group.properties.get("RetentionInDays"):
            yield f"{group} is kept for ever"
    for function in project.stack.functions().values():
        group = function.properties.get("LoggingConfig", {}).get("LogGroup")
        if group not in groups:
            yield f"{function} logs to {group}, which no template declares"


def loops_are_allowed_where_they_are_meant(project: Project) -> Iterable[str]:
    functions = project.stack.functions()
    meant = {one["name"] for one in project.topology["consumers"] if set(one["publishes"]) & set(one["events"])}
    for name, function in functions.items():
        allowed = function.properties.get("RecursiveLoop") == "Allow"
        if allowed != (name in meant):
            told = "feeds itself and would be stopped" if name in meant else "does not feed itself and may loop"
            yield f"{function} {told}"


def consumers_publish_what_they_say(project: Project) -> Iterable[str]:
    """An event is part of a record: whoever writes records publishes, and nobody else does."""
    for consumer in project.topology["consumers"]:
        calls = project.calls.get(f"{project.stack.prefix}-{consumer['name']}", {})
        written = {table for action in WRITES for table in calls.get(action, [])}
        writes = any(table.endswith(f"/{project.stack.prefix}-records") for table in written)
        if writes != bool(consumer["publishes"]):
            yield f"{consumer['name']} publishes {consumer['publishes']} and {'writes' if writes else 'never writes'} records"


def the_relay_sends_to_the_queues_of_the_topology(project: Project) -> Iterable[str]:
    topology = project.topology
    relay = project.stack.functions().get(topology["relay"])
    if relay is None:
        return
    queues = {consumer["queue"] for consumer in topology["consumers"]} | {topology["rejected_queue"]}
    expected = {project.stack.queue_arn(queue) for queue in queues}
    found = {resource for action, resource in allowed(project.stack, relay) if action == "sqs:SendMessage"}
    yield from (f"{relay} may not send to {queue}" for queue in sorted(expected - found))
    yield from (f"{relay} may send to {queue}, which no event goes to" for queue in sorted(found - expected))


def retention(queue: Resource) -> int:
    return int(queue.properties.get("MessageRetentionPeriod", 345_600))


RULES: list[Callable[[Project], Iterable[str]]] = [
    event_types_have_consumers,
    resources_are_those_of_the_topology,
    queues_have_one_enabled_mapping,
    dead_letters_are_kept_longer,
    dead_letters_come_from_one_queue,
    messages_are_tried_often_enough,
    messages_are_hidden_long_enough,
    failures_are_reported_one_by_one,
    concurrency_is_limited_by_the_mapping,
    claims_outlast_messages,
    fifo_queues_come_in_pairs,
    everything_is_encrypted,
    logs_are_kept_for_a_time,
    loops_are_allowed_where_they_are_meant,
    consumers_publish_what_they_say,
    the_relay_sends_to_the_queues_of_the_topology,
]
