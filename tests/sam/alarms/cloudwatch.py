"""CloudWatch, as far as alarms go: metrics by the minute, statistics over periods, and the state of an alarm
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html,
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html)."""

import math
import re
from collections import defaultdict
from dataclasses import dataclass, field

from .metric_math import Fill, evaluate

COMPARISONS = {
    "GreaterThanThreshold": lambda value, threshold: value > threshold,
    "GreaterThanOrEqualToThreshold": lambda value, threshold: value >= threshold,
    "LessThanThreshold": lambda value, threshold: value < threshold,
    "LessThanOrEqualToThreshold": lambda value, threshold: value <= threshold,
}
# Of samples with the number of times that each occurred.
STATISTICS = {
    "Sum": lambda samples: sum(value * times for value, times in samples),
    "Maximum": lambda samples: max(value for value, _ in samples),
    "Minimum": lambda samples: min(value for value, _ in samples),
    "SampleCount": lambda samples: sum(times for _, times in samples),
}
RULE = re.compile(r'\s*(ALARM\("(?P<alarm>[^"]+)"\)|(?P<word>AND|OR|NOT|\(|\)))')


@dataclass(frozen=True)
class Metric:
    """A metric: namespace, name, and the dimensions that tell it from others of the name."""

    namespace: str
    name: str
    dimensions: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Behaviour:
    """What AWS does not say, or changes: a state that depends on it is not to be relied on."""

    fill: Fill
    # Periods that are looked at beyond those evaluated, for real data to take the place of missing.
    further_periods: int


# The extremes of what is imaginable.
BEHAVIOURS = [Behaviour(fill, further) for fill in Fill for further in (0, 3)]


@dataclass
class Metrics:
    """Samples by metric and minute, each with the number of times that it occurred."""

    samples: dict[Metric, dict[int, list[tuple[float, int]]]] = field(default_factory=lambda: defaultdict(dict))
    known: dict[tuple, float | None] = field(default_factory=dict)

    def put(self, metric: Metric, minute: int, sample: float, times: int = 1) -> None:
        if times:
            self.samples[metric].setdefault(minute, []).append((sample, times))
            self.known.clear()

    def with_samples(self, metric: Metric, samples: dict[int, float | None]) -> "Metrics":
        """Returns the same metrics, but for the samples of one of them at some minutes; None is no sample."""
        own = dict(self.samples.get(metric, {}))
        for minute, sample in samples.items():
            own.pop(minute, None)
            if sample is not None:
                own[minute] = [(sample, 1)]
        return Metrics(defaultdict(dict, self.samples | {metric: own}))

    def statistic(self, metric: Metric, statistic: str, begin: int, end: int) -> float | None:
        """Returns the statistic of a period, or None where it has no data. The end is not part of it."""
        period = (metric, statistic, begin, end)
        if period not in self.known:
            own = self.samples.get(metric, {})
            samples = [sample for minute in range(begin, end) for sample in own.get(minute, ())]
            self.known[period] = statistic_of(samples, statistic) if samples else None
        return self.known[period]


def statistic_of(samples: list[tuple[float, int]], statistic: str) -> float:
    if statistic in STATISTICS:
        return float(STATISTICS[statistic](samples))
    percentile = re.fullmatch(r"p(\d{1,2}(?:\.\d+)?)", statistic)
    if not percentile:
        raise ValueError(f"{statistic}: a statistic that is not known here")
    rank = max(1, math.ceil(float(percentile[1]) / 100 * STATISTICS["SampleCount"](samples)))
    for value, times in sorted(samples):
        rank -= times
        if rank <= 0:
            break
    return float(value)


def metrics_of(alarm: dict) -> list[Metric]:
    """Returns all metrics that an alarm is about."""
    if "MetricName" in alarm:
        return [metric_of(alarm)]
    return [metric_of(query["MetricStat"]["Metric"]) for query in alarm["Metrics"] if "MetricStat" in query]


def metric_of(properties: dict) -> Metric:
    dimensions = [(dimension["Name"], dimension["Value"]) for dimension in properties.get("Dimensions", [])]
    return Metric(properties["Namespace"], properties["MetricName"], frozenset(dimensions))


def state(alarm: dict, metrics: Metrics, now: int, behaviour: Behaviour) -> str:
    """Returns the state of a metric alarm at a minute, with windows that slide, as they do by default."""
    evaluated = alarm["EvaluationPeriods"]
    values = points(alarm, metrics, now, evaluated + behaviour.further_periods, behaviour.fill)
    breaches = COMPARISONS[alarm["ComparisonOperator"]]
    existing = [breaches(value, alarm["Threshold"]) for value in values if value is not None][-evaluated:]
    missing = evaluated - len(existing)
    treatment = alarm.get("TreatMissingData", "missing")
    if missing and treatment == "missing" and not existing:
        return "INSUFFICIENT_DATA"
    breaching = sum(existing) + (missing if treatment == "breaching" else 0)
    return "ALARM" if breaching >= alarm.get("DatapointsToAlarm", evaluated) else "OK"


def points(alarm: dict, metrics: Metrics, now: int, periods: int, fill: Fill) -> list[float | None]:
    """Returns the values that are compared with the threshold, the oldest first."""
    if "MetricName" in alarm:
        statistic = alarm.get("Statistic") or alarm["ExtendedStatistic"]
        return series(metrics, metric_of(alarm), statistic, alarm["Period"], now, periods)
    queries = [query for query in alarm["Metrics"] if "MetricStat" in query]
    known = {
        query["Id"]: series(
            metrics,
            metric_of(query["MetricStat"]["Metric"]),
            query["MetricStat"]["Stat"],
            query["MetricStat"]["Period"],
            now,
            periods,
        )
        for query in queries
    }
    (result,) = [query for query in alarm["Metrics"] if query.get("ReturnData", True)]
    return evaluate(result["Expression"], known, fill) if "Expression" in result else known[result["Id"]]


def series(metrics: Metrics, metric: Metric, statistic: str, period: int, now: int, periods: int) -> list[float | None]:
    minutes, remainder = divmod(period, 60)
    if remainder:
        raise ValueError(f"a period of {period} s is no number of minutes")
    ends = [now - minutes * back for back in reversed(range(periods))]
    return [metrics.statistic(metric, statistic, end - minutes, end) for end in ends]


def children(rule: str) -> set[str]:
    """Returns the alarms that a composite alarm's rule names."""
    return {match["alarm"] for match in RULE.finditer(rule) if match["alarm"]}


def holds(rule: str, ringing: set[str]) -> bool:
    """Evaluates a composite alarm's rule, given the alarms that are in the state ALARM."""
    words, position = [], 0
    while position < len(rule.rstrip()):
        match = RULE.match(rule, position)
        if not match:
            raise ValueError(f"{rule[position:]!r}: no part of an alarm rule that is known here")
        words.append(str(match["alarm"] in ringing) if match["alarm"] else match["word"].lower())
        position = match.end()
    # Nothing but True, False, and, or, not and parentheses; NOT, AND and OR bind as they do in Python.
    return eval(" ".join(words), {"__builtins__": {}})
