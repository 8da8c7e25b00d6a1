"""The stack has the alarms that the topology asks for, on metrics that somebody writes; and what is wrong with alarms is
found."""

import json
import re
import unittest

from . import declared
from .cloudwatch import metrics_of
from .metric_math import Fill, evaluate, names
from .templates import PREFIX, Resource, stack


class Declared(unittest.TestCase):
    def test_the_alarms_are_as_they_have_to_be(self):
        self.assertEqual(declared.findings(stack()), [])

    def test_every_expression_is_one_that_is_understood_and_uses_all_its_metrics(self):
        for name, alarm in declared.alarms(stack()).items():
            for query in alarm.get("Metrics", []):
                if "Expression" in query:
                    others = {other["Id"] for other in alarm["Metrics"]} - {query["Id"]}
                    self.assertEqual(names(query["Expression"]), others, name)
                    evaluate(query["Expression"], {other: [None, 1.0] for other in others}, Fill.EMPTY_TOO)

    def test_the_dashboard_shows_metrics_that_somebody_writes(self):
        (dashboard,) = [resource for resource in stack() if resource.type == "AWS::CloudWatch::Dashboard"]
        written = {metric.name for metric in declared.measured(stack())}
        text = dashboard.properties["DashboardBody"]
        shown = set()
        for widget in json.loads(text)["widgets"]:
            for line in widget["properties"].get("metrics", []):
                shown |= names_of(line)
        self.assertGreater(len(shown), 10)
        self.assertEqual(shown - written, set())
        alarms = {arn.rpartition(":")[2] for widget in json.loads(text)["widgets"] for arn in widget["properties"].get("alarms", [])}
        self.assertLessEqual(alarms, declared.composites(stack()).keys())


def names_of(line: list) -> set[str]:
    """Returns the metrics that a line of a widget shows."""
    if isinstance(line[0], dict):
        found = re.findall(r'MetricName=(?:"(\w+)"|\(([^)]*)\))', line[0]["expression"])
        return {name for one, several in found for name in [one, *re.findall(r'"(\w+)"', several)] if name}
    return set() if line[0] == "..." else {line[1]}


class Broken(unittest.TestCase):
    """Every rule has a stack that it rejects."""

    def check(self, change, *parts: str) -> None:
        """Changes resources of the stack, or removes those that become None, and expects findings with these parts."""
        broken = tuple(found for found in map(change, stack()) if found is not None)
        found = declared.findings(broken)
        for part in parts:
            self.assertTrue(any(part in finding for finding in found), f"{part!r} is not in {found}")

    def changed(self, alarm: str, **properties):
        def change(resource: Resource) -> Resource | None:
            if resource.properties.get("AlarmName") != f"{PREFIX}-{alarm}":
                return resource
            kept = {name: value for name, value in (resource.properties | properties).items() if value is not None}
            return Resource(resource.part, resource.logical_id, resource.type, kept)

        return change

    def test_a_consumer_without_an_alarm(self):
        for consumer in declared.consumers():
            for kind in ("silence", "canary", "age", "dead-letters", "errors", "throttles"):
                name = f"{PREFIX}-{consumer.name}-{kind}"
                without = lambda resource: None if resource.properties.get("AlarmName") == name else resource
                self.check(without, f"{name}: there is no such alarm", f"names {name}, which there is not")

    def test_a_consumer_that_the_topology_does_not_know(self):
        def change(resource: Resource) -> Resource:
            if resource.part != "activity":
                return resource
            text = json.dumps(resource.properties).replace("activity", "new-one")
            return Resource("new-one", resource.logical_id, resource.type, json.loads(text))

        self.check(change, "new-one-silence: an alarm that nobody asks for", "health does not hear of it", "activity-canary: there is no")

    def test_a_metric_that_nobody_writes(self):
        self.check(self.changed("order-changed-gap-unresolved", MetricName="GapUnresolved"), "gap-unresolved: nobody writes")
        self.check(self.changed("order-changed-gap-unresolved", Namespace="other"), "gap-unresolved: nobody writes")
        self.check(self.changed("order-changed-gap-unresolved", Dimensions=[]), "gap-unresolved: nobody writes")
        lost = [{"Name": "QueueName", "Value": f"{PREFIX}-activity-dead"}]
        self.check(self.changed("activity-dead-letters", Dimensions=lost), "activity-dead-letters: nobody writes")

    def test_an_alarm_about_another_consumer(self):
        other = [{"Name": "QueueName", "Value": f"{PREFIX}-fan-out"}]
        self.check(self.changed("activity-age", Dimensions=other), "activity-age: is about")

    def test_an_alarm_that_tells_nobody(self):
        self.check(self.changed("activity-age", AlarmActions=None), "activity-age: notifies None")
        self.check(self.changed("health", AlarmActions=None), "health: notifies None")
        self.check(self.changed("api-burn-fast-5m", AlarmActions=["x"]), "api-burn-fast-5m: notifies")

    def test_a_kind_that_leaves_an_alarm_out_or_is_left_out(self):
        self.check(self.changed("requests", AlarmRule=f'ALARM("{PREFIX}-api-latency")'), "api-burn-slow: ", "api-burn-fast-5m: ")
        self.check(self.changed("health", AlarmRule=f'ALARM("{PREFIX}-silence")'), "aside: ", "activity-dead-letters: ")

    def test_more_alarms_than_one_rule_takes(self):
        rule = " OR ".join(f'ALARM("{PREFIX}-{number}")' for number in range(101))
        self.check(self.changed("requests", AlarmRule=rule), "requests: 101 alarms")

    def test_windows_that_cloudwatch_does_not_take(self):
        self.check(self.changed("activity-age", EvaluationPeriods=2_000), "activity-age: periods")

    def test_the_metrics_of_an_alarm_are_found_in_both_forms(self):
        alarms = declared.alarms(stack())
        self.assertEqual(len(metrics_of(alarms[f"{PREFIX}-activity-silence"])), 2)
        self.assertEqual(len(metrics_of(alarms[f"{PREFIX}-activity-age"])), 1)
