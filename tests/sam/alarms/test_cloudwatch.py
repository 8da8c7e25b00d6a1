"""The evaluator does what AWS documents."""

import unittest

from .cloudwatch import Behaviour, Metric, Metrics, children, holds, state
from .metric_math import Fill, MathError, evaluate

METRIC = Metric("N", "M", frozenset())


class Expressions(unittest.TestCase):
    def check(self, expression: str, expected: list, fill: Fill = Fill.EMPTY_TOO, **metrics: list) -> None:
        self.assertEqual(evaluate(expression, metrics, fill), expected, expression)

    def test_operators_bind_as_usual(self):
        self.check("a + 2 * a", [3, 6], a=[1, 2])
        self.check("(a + 2) * a", [3, 8], a=[1, 2])
        self.check("8 - a - 1", [6, 5], a=[1, 2])
        self.check("a > 1 AND a < 4 OR a == 9", [0, 1, 1], a=[1, 2, 9])
        self.check("a >= 2 && a <= 2 || a != a", [0, 1], a=[1, 2])

    def test_where_one_side_has_no_data_there_is_no_result(self):
        self.check("a / b", [None, None, 2], a=[1, None, 4], b=[None, 1, 2])

    def test_a_division_by_zero_is_no_data(self):
        self.check("a / b", [None, 0], a=[1, 0], b=[0, 1])

    def test_a_choice_needs_the_condition_and_what_it_chooses(self):
        self.check("IF(a > 1, b, 7)", [7, None, 5, None], a=[1, 2, 2, None], b=[None, None, 5, 5])

    def test_gaps_are_filled_and_what_is_unknown_of_aws_is_a_parameter(self):
        self.check("FILL(a, 0)", [1, 0], a=[1, None])
        self.check("FILL(a, 0)", [0, 0], a=[None, None])
        self.check("FILL(a, 0)", [None, None], Fill.ONLY_GAPS, a=[None, None])
        self.check("FILL(a, 0)", [1, 0], Fill.ONLY_GAPS, a=[1, None])

    def test_what_is_not_known_is_an_error(self):
        for expression in ["RATE(a)", "a +", "a ? 1", "b", "(a", "a a", "IF(1, a, a)", "FILL(1, a)", "1 + 1"]:
            with self.assertRaises(MathError, msg=expression):
                evaluate(expression, {"a": [1.0]}, Fill.EMPTY_TOO)


class States(unittest.TestCase):
    """The tables of "Configuring how CloudWatch alarms treat missing data": five periods are looked at, three evaluated."""

    def check(self, points: str, datapoints: int, missing: str, breaching: str, not_breaching: str) -> None:
        metrics = Metrics()
        for minute, point in enumerate(points.split()):
            if point != "-":
                metrics.put(METRIC, minute, 1.0 if point == "X" else 0.0)
        treatments = {"missing": missing, "breaching": breaching, "notBreaching": not_breaching}
        for treatment, expected in treatments.items():
            alarm = {
                "Namespace": "N", "MetricName": "M", "Statistic": "Sum", "Period": 60, "EvaluationPeriods": 3,
                "DatapointsToAlarm": datapoints, "Threshold": 0, "ComparisonOperator": "GreaterThanThreshold",
                "TreatMissingData": treatment,
            }
            found = state(alarm, metrics, 5, Behaviour(Fill.EMPTY_TOO, 2))
            self.assertEqual(found, expected, f"{points}, {datapoints} of 3, {treatment}")

    def test_three_of_three(self):
        self.check("0 - X - X", 3, "OK", "OK", "OK")
        self.check("- - - - 0", 3, "OK", "OK", "OK")
        self.check("- - - - -", 3, "INSUFFICIENT_DATA", "ALARM", "OK")
        self.check("0 X X - X", 3, "ALARM", "ALARM", "ALARM")

    def test_two_of_three(self):
        self.check("0 - X - X", 2, "ALARM", "ALARM", "ALARM")
        self.check("0 0 X 0 X", 2, "ALARM", "ALARM", "ALARM")
        self.check("0 - X - -", 2, "OK", "ALARM", "OK")
        self.check("- - - - 0", 2, "OK", "ALARM", "OK")

    def test_percentiles_are_samples(self):
        metrics = Metrics()
        for sample in range(1, 101):
            metrics.put(METRIC, 0, float(sample), times=2)
        for statistic, expected in [("p99", 99), ("p50", 50), ("p99.9", 100), ("Maximum", 100), ("Minimum", 1), ("SampleCount", 200)]:
            self.assertEqual(metrics.statistic(METRIC, statistic, 0, 1), expected)
        self.assertIsNone(metrics.statistic(METRIC, "p99", 1, 2))


class Rules(unittest.TestCase):
    def test_a_rule_says_which_alarms_it_is_about_and_whether_it_holds(self):
        rule = 'ALARM("a") AND (ALARM("b") OR NOT ALARM("c"))'
        self.assertEqual(children(rule), {"a", "b", "c"})
        self.assertTrue(holds(rule, {"a"}))
        self.assertFalse(holds(rule, {"a", "c"}))
        self.assertTrue(holds(rule, {"a", "b", "c"}))
        with self.assertRaises(ValueError):
            holds('OK("a")', set())
