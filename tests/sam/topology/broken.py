"""For each rule a project that breaks it and no other: the real one with one thing changed."""

import copy
from collections.abc import Callable

import permissions
import rules
from rules import Project
from transformed import Resource

BROKEN: list[tuple[Callable, Callable[[Project], None]]] = []


def breaks(rule: Callable):
    def add(mutation: Callable[[Project], None]):
        BROKEN.append((rule, mutation))
        return mutation

    return add


def queue(project: Project, name: str) -> dict:
    return project.stack.queues()[name].properties


def function(project: Project, name: str) -> dict:
    return project.stack.functions()[name].properties


def mapping(project: Project, name: str) -> dict:
    (one,) = project.mappings_of(name)
    return one.properties


def statements(project: Project, part: str) -> list[dict]:
    (role,) = [role for role in project.stack.of_type("AWS::IAM::Role") if role.part == part]
    return role.properties["Policies"][0]["PolicyDocument"]["Statement"]


def statement(project: Project, part: str, sid: str) -> dict:
    (one,) = [one for one in statements(project, part) if one["Sid"] == sid]
    return one


@breaks(rules.event_types_have_consumers)
def an_event_type_without_a_consumer(project: Project) -> None:
    project.topology["events"]["game_ended"] = []


@breaks(rules.event_types_have_consumers)
def a_consumer_of_what_is_not_for_it(project: Project) -> None:
    project.topology["consumers"][0]["events"].append("order_paid")


@breaks(rules.resources_are_those_of_the_topology)
def a_queue_that_no_code_knows(project: Project) -> None:
    properties = {**queue(project, "relay-rejected"), "QueueName": f"{project.stack.prefix}-more"}
    project.stack.resources.append(Resource("Tables", "More", "AWS::SQS::Queue", properties))


@breaks(rules.resources_are_those_of_the_topology)
def a_function_that_is_missing(project: Project) -> None:
    project.topology["functions"].append("sweeper")


@breaks(rules.resources_are_those_of_the_topology)
def a_table_that_no_code_knows(project: Project) -> None:
    properties = {**project.stack.tables()["views"].properties, "TableName": f"{project.stack.prefix}-more"}
    project.stack.resources.append(Resource("Tables", "More", "AWS::DynamoDB::Table", properties))


@breaks(rules.queues_have_one_enabled_mapping)
def a_mapping_that_is_switched_off(project: Project) -> None:
    mapping(project, "game-ended")["Enabled"] = False


@breaks(rules.queues_have_one_enabled_mapping)
def a_queue_with_two_mappings(project: Project) -> None:
    second = copy.deepcopy(project.mappings_of("game-ended")[0])
    project.stack.resources.append(Resource(second.part, "Second", second.type, second.properties))


@breaks(rules.dead_letters_are_kept_longer)
def dead_letters_that_go_first(project: Project) -> None:
    queue(project, "game-ended-dead-letters")["MessageRetentionPeriod"] = 345_600


@breaks(rules.dead_letters_are_kept_longer)
def dead_letters_in_somebody_elses_queue(project: Project) -> None:
    target = project.stack.queue_arn("activity-dead-letters")
    queue(project, "game-ended")["RedrivePolicy"]["deadLetterTargetArn"] = target


@breaks(rules.dead_letters_are_kept_longer)
def a_queue_that_gives_up_nothing(project: Project) -> None:
    del queue(project, "game-ended")["RedrivePolicy"]


@breaks(rules.dead_letters_come_from_one_queue)
def dead_letters_from_anywhere(project: Project) -> None:
    del queue(project, "game-ended-dead-letters")["RedriveAllowPolicy"]


@breaks(rules.messages_are_tried_often_enough)
def a_message_that_is_given_up_early(project: Project) -> None:
    queue(project, "game-ended")["RedrivePolicy"]["maxReceiveCount"] = 3


@breaks(rules.messages_are_tried_often_enough)
def a_webhook_that_has_no_time_to_recover(project: Project) -> None:
    queue(project, "notification-requested")["RedrivePolicy"]["maxReceiveCount"] = 20


@breaks(rules.messages_are_hidden_long_enough)
def a_message_that_comes_back_too_soon(project: Project) -> None:
    queue(project, "game-ended")["VisibilityTimeout"] = 180


@breaks(rules.failures_are_reported_one_by_one)
def a_failure_of_the_whole_batch(project: Project) -> None:
    del mapping(project, "game-ended")["FunctionResponseTypes"]


@breaks(rules.failures_are_reported_one_by_one)
def a_relay_that_fails_as_a_whole(project: Project) -> None:
    (stream,) = [one for one in project.stack.mappings() if ":dynamodb:" in one.properties["EventSourceArn"]]
    stream.properties["FunctionResponseTypes"] = []


@breaks(rules.concurrency_is_limited_by_the_mapping)
def any_number_of_instances(project: Project) -> None:
    del mapping(project, "game-ended")["ScalingConfig"]


@breaks(rules.concurrency_is_limited_by_the_mapping)
def more_instances_than_are_in_reserve(project: Project) -> None:
    function(project, "order-changed")["ReservedConcurrentExecutions"] = 10


@breaks(rules.claims_outlast_messages)
def a_claim_that_goes_before_its_event(project: Project) -> None:
    project.topology["claims"]["kept_seconds"] = project.topology["claims"]["event_age_seconds_max"]


@breaks(rules.claims_outlast_messages)
def an_age_gate_that_a_dead_letter_outlives(project: Project) -> None:
    project.topology["claims"]["event_age_seconds_max"] = 14 * 86_400


@breaks(rules.claims_outlast_messages)
def claims_that_never_expire(project: Project) -> None:
    del project.stack.tables()["ledger"].properties["TimeToLiveSpecification"]


@breaks(rules.fifo_queues_come_in_pairs)
def ordered_messages_without_order_when_dead(project: Project) -> None:
    queue(project, "order-changed-dead-letters.fifo")["FifoQueue"] = False


@breaks(rules.fifo_queues_come_in_pairs)
def a_window_that_a_fifo_queue_does_not_know(project: Project) -> None:
    mapping(project, "order-changed.fifo")["MaximumBatchingWindowInSeconds"] = 1


@breaks(rules.everything_is_encrypted)
def a_queue_in_the_clear(project: Project) -> None:
    queue(project, "relay-rejected")["SqsManagedSseEnabled"] = False


@breaks(rules.everything_is_encrypted)
def a_table_in_the_clear(project: Project) -> None:
    del project.stack.tables()["records"].properties["SSESpecification"]


@breaks(rules.logs_are_kept_for_a_time)
def logs_for_ever(project: Project) -> None:
    groups = project.stack.named("AWS::Logs::LogGroup", "LogGroupName")
    (group,) = [group for name, group in groups.items() if name.endswith("-game-ended")]
    del group.properties["RetentionInDays"]


@breaks(rules.loops_are_allowed_where_they_are_meant)
def a_loop_that_would_be_stopped(project: Project) -> None:
    del function(project, "fan-out")["RecursiveLoop"]


@breaks(rules.loops_are_allowed_where_they_are_meant)
def a_loop_that_nobody_means(project: Project) -> None:
    function(project, "game-ended")["RecursiveLoop"] = "Allow"


@breaks(rules.consumers_publish_what_they_say)
def a_consumer_that_publishes_without_a_record(project: Project) -> None:
    project.topology["consumers"][0]["publishes"] = ["order_paid"]


@breaks(rules.the_relay_sends_to_the_queues_of_the_topology)
def a_queue_that_the_relay_may_not_send_to(project: Project) -> None:
    statement(project, "OutboxRelay", "SendEvents")["Resource"].remove(project.stack.queue_arn("fan-out"))


@breaks(rules.the_relay_sends_to_the_queues_of_the_topology)
def a_queue_that_no_event_goes_to(project: Project) -> None:
    statement(project, "OutboxRelay", "SendEvents")["Resource"].append(project.stack.queue_arn("fan-out-dead-letters"))


@breaks(permissions.functions_may_do_what_they_do)
def a_permission_that_nothing_uses(project: Project) -> None:
    records = f"arn:aws:dynamodb:us-east-1:000000000000:table/{project.stack.prefix}-records"
    statements(project, "GameEnded").append(
        {"Sid": "Delete", "Effect": "Allow", "Action": "dynamodb:DeleteItem", "Resource": records}
    )


@breaks(permissions.functions_may_do_what_they_do)
def a_permission_on_everything(project: Project) -> None:
    statement(project, "GameEnded", "TakeMessages")["Resource"] = "*"


@breaks(permissions.functions_may_do_what_they_do)
def a_call_that_is_not_allowed(project: Project) -> None:
    statement(project, "GameEnded", "TakeMessages")["Action"].remove("sqs:ChangeMessageVisibility")


@breaks(permissions.functions_may_do_what_they_do)
def a_function_that_may_not_log(project: Project) -> None:
    statements(project, "GameEnded").remove(statement(project, "GameEnded", "WriteLogs"))


@breaks(permissions.functions_may_do_what_they_do)
def policies_that_the_templates_do_not_show(project: Project) -> None:
    (role,) = [role for role in project.stack.of_type("AWS::IAM::Role") if role.part == "GameEnded"]
    role.properties["ManagedPolicyArns"] = ["arn:aws:iam::aws:policy/AmazonDynamoDBFullAccess"]
