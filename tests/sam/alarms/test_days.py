"""Each alarm is in the right state on the day that goes well, the day that falls silent, the day with a queue that nobody reads,
the night without users, and on the day on which what it is there for comes about."""

import unittest

from . import declared
from .cloudwatch import BEHAVIOURS, Metric, Metrics, holds, state
from .days import DAY, HOUR, Day, of_no_users
from .declared import HEALTH, Consumer, consumers, of_api, of_function, of_queue, own
from .templates import PREFIX, stack

NOON = 12 * HOUR
ALARMS = declared.alarms(stack())
COMPOSITES = declared.composites(stack())


def ringing(metrics: Metrics, now: int) -> set[str]:
    """Returns the alarms that ring at a minute. Whatever AWS does where it does not say, they have to be the same."""
    found = {
        frozenset(name for name, alarm in ALARMS.items() if state(alarm, metrics, now, behaviour) == "ALARM")
        for behaviour in BEHAVIOURS
    }
    if len(found) != 1:
        raise AssertionError(f"the states depend on what AWS does not say: {set.union(*map(set, found))}")
    alarms = set(found.pop())
    composites = dict(COMPOSITES)
    while composites:
        ready = [name for name, one in composites.items() if not declared.children(one["AlarmRule"]) & composites.keys()]
        alarms |= {name for name in ready if holds(composites.pop(name)["AlarmRule"], alarms)}
    return {name.removeprefix(f"{PREFIX}-") for name in alarms}


def first_minute(metrics: Metrics, alarm: str, minutes: range) -> int | None:
    """Returns the first minute at which an alarm rings, at the latest that any behaviour makes it."""
    full = f"{PREFIX}-{alarm}"
    for minute in minutes:
        if all(state(ALARMS[full], metrics, minute, behaviour) == "ALARM" for behaviour in BEHAVIOURS):
            return minute
    return None


class Days(unittest.TestCase):
    def quiet(self, metrics: Metrics, minutes: range) -> None:
        for minute in minutes:
            self.assertEqual(ringing(metrics, minute), set(), f"minute {minute}")

    def test_on_a_good_day_nothing_rings(self):
        self.quiet(Day().metrics(), range(HOUR, 2 * DAY - HOUR, 31))

    def test_in_a_night_without_users_nothing_rings(self):
        metrics = Day(begin=DAY - 2 * HOUR).metrics()
        self.quiet(metrics, range(DAY + HOUR - 20, DAY + 6 * HOUR + 20, 7))

    def test_a_stack_that_never_has_users_is_quiet(self):
        self.quiet(of_no_users(8 * HOUR), range(20, 8 * HOUR, 11))

    def test_on_a_silent_day_every_canary_is_missed_and_nothing_else_is_wrong(self):
        metrics = Day(begin=NOON - 2 * HOUR, dead_from=NOON).metrics()
        self.quiet(metrics, range(NOON - 5, NOON + 10))
        expected = {f"{consumer.name}-canary" for consumer in consumers()} | {"silence", "health"}
        for minute in [NOON + 20, NOON + HOUR, NOON + 11 * HOUR]:
            self.assertEqual(ringing(metrics, minute), expected)

    def test_a_relay_that_stops_is_noticed_at_night_too(self):
        metrics = Day(begin=DAY, end=DAY + 4 * HOUR, relay_stopped_from=DAY + 3 * HOUR).metrics()
        expected = {f"{consumer.name}-canary" for consumer in consumers()} | {"silence", "health"}
        self.assertEqual(ringing(metrics, DAY + 3 * HOUR + 20), expected)

    def test_a_queue_that_nobody_reads_rings_and_no_other_does(self):
        for consumer in consumers():
            with self.subTest(consumer=consumer.name):
                metrics = Day(begin=NOON - 60, unsubscribed=consumer, unsubscribed_from=NOON, end=NOON + HOUR).metrics()
                kinds = {"silence", "delay", "health"}
                name = consumer.name
                self.assertEqual(ringing(metrics, NOON + 10), set())
                self.assertEqual(ringing(metrics, NOON + 40), {f"{name}-silence", f"{name}-canary", f"{name}-age"} | kinds)
                for alarm in (f"{name}-silence", f"{name}-canary"):
                    first = first_minute(metrics, alarm, range(NOON, NOON + HOUR))
                    self.assertIn(first, range(NOON + 10, NOON + 21), alarm)

    def test_a_queue_that_nobody_reads_at_night_is_missed_by_its_canary(self):
        consumer = consumers()[0]
        began = DAY + 2 * HOUR
        day = Day(begin=DAY, end=DAY + 7 * HOUR, unsubscribed=consumer, unsubscribed_from=began)
        metrics = day.metrics()
        expected = {f"{consumer.name}-canary", f"{consumer.name}-age", "silence", "delay", "health"}
        self.assertEqual(ringing(metrics, began + 25), expected)
        # With the users come events that nobody takes.
        self.assertIn(f"{consumer.name}-silence", ringing(metrics, DAY + 6 * HOUR + 15))

    def test_a_consumer_that_has_never_run_is_missed_although_it_has_no_metrics(self):
        consumer = consumers()[-1]
        metrics = Day(begin=6 * HOUR, unsubscribed=consumer, unsubscribed_from=0, end=9 * HOUR).metrics()
        self.assertLessEqual({f"{consumer.name}-silence", f"{consumer.name}-canary"}, ringing(metrics, 8 * HOUR))

    def test_a_consumer_that_gives_everything_back_is_silent_while_its_canaries_arrive(self):
        for consumer in consumers():
            metrics = Day(begin=NOON - 60, stuck=consumer, stuck_from=NOON, end=NOON + HOUR).metrics()
            expected = {f"{consumer.name}-silence", f"{consumer.name}-age", "silence", "delay", "health"}
            self.assertEqual(ringing(metrics, NOON + 40), expected)

    def test_an_event_that_is_processed_a_minute_later_is_never_silent(self):
        name = consumers()[0].name
        for sent in range(0, 6):
            metrics = of_no_users(2 * HOUR)
            for minute in (HOUR + sent, HOUR + sent + 5, HOUR + sent + 10):
                metrics.put(own("Published", name), minute, 1.0)
                metrics.put(own("Processed", name), minute, 0.0)
                metrics.put(own("Processed", name), minute + 1, 1.0)
            self.quiet(metrics, range(HOUR, HOUR + 40))

    def test_one_canary_that_is_late_or_lost_wakes_nobody(self):
        metrics = of_no_users(3 * HOUR)
        for consumer in consumers():
            late = {HOUR: None, HOUR + 5: None, HOUR + 9: 1.0}
            metrics = metrics.with_samples(own("CanaryArrived", consumer.name), late)
        self.quiet(metrics, range(HOUR - 5, HOUR + 40))


class Disturbances(unittest.TestCase):
    """What each of the other alarms is there for."""

    GOOD = Day(begin=NOON - HOUR, end=NOON + HOUR).metrics()

    def rings(self, metric: Metric, value: float, expected: set[str], minutes: range = range(NOON - 30, NOON + 30), at=NOON):
        metrics = self.GOOD.with_samples(metric, dict.fromkeys(minutes, value))
        self.assertEqual(ringing(metrics, at), expected)

    def latency(self, slow_ms: dict[range, float], expected: set[str], **day) -> None:
        self.assertEqual(ringing(Day(begin=NOON - HOUR, end=NOON + HOUR, slow_ms=slow_ms, **day).metrics(), NOON), expected)

    def test_one_dead_letter_is_enough(self):
        for consumer in consumers():
            depth = of_queue("ApproximateNumberOfMessagesVisible", consumer.dead_letters)
            self.rings(depth, 1.0, {f"{consumer.name}-dead-letters", "aside", "health"})

    def test_one_record_that_the_relay_rejects_is_enough(self):
        depth = of_queue("ApproximateNumberOfMessagesVisible", "relay-rejected")
        self.rings(depth, 1.0, {"relay-rejected", "aside", "health"})

    def test_a_backlog_of_more_than_15_minutes(self):
        for consumer in consumers():
            age = of_queue("ApproximateAgeOfOldestMessage", consumer.queue)
            self.rings(age, 1_000.0, {f"{consumer.name}-age", "delay", "health"})
            self.rings(age, 800.0, set())

    def test_a_relay_more_than_15_minutes_behind(self):
        age = of_function("IteratorAge", "outbox-relay")
        self.rings(age, 1_000_000.0, {"outbox-relay-iterator-age", "delay", "health"})
        self.rings(age, 800_000.0, set())

    def test_functions_that_fail_or_are_throttled_again_and_again(self):
        for name in [*(consumer.name for consumer in consumers()), "outbox-relay", "api", "canary"]:
            for metric, alarm in (("Errors", "errors"), ("Throttles", "throttles")):
                self.rings(of_function(metric, name), 1.0, {f"{name}-{alarm}", "failure", "health"})

    def test_a_gap_that_was_waited_for_in_vain_also_if_the_metric_comes_late(self):
        for consumer in consumers():
            if consumer.order == "standard":
                continue
            alarm = f"{consumer.name}-gap-unresolved"
            for minute in range(NOON + 1, NOON + 5):
                unresolved = own("Unresolved", consumer.name)
                self.rings(unresolved, 1.0, {alarm, "aside", "health"}, range(NOON, NOON + 1), at=minute)

    def test_one_request_in_fifty_that_takes_too_long(self):
        always = range(NOON - HOUR, NOON + HOUR)
        self.latency({always: 400.0}, {"api-latency", "requests", "health"})
        self.latency({always: 290.0}, set())
        # Ten minutes of it are no reason to get up.
        self.latency({range(NOON - 10, NOON): 400.0}, set())

    def test_a_few_slow_requests_in_a_night_are_not_a_hundredth(self):
        self.latency({range(0, DAY): 3_000.0}, set(), requests=19)


class Availability(unittest.TestCase):
    """Of 100,000 requests 50 may fail."""

    def rings(self, failing: dict[range, float], minute: int, **day) -> set[str]:
        return ringing(Day(begin=6 * HOUR, end=DAY, failing=failing, **day).metrics(), minute) - {"requests", "health"}

    def test_an_outage_rings_within_minutes_and_stops_ringing_within_minutes(self):
        outage = {range(NOON, NOON + 20): 0.2}
        self.assertEqual(self.rings(outage, NOON), set())
        self.assertIn("api-burn-fast", self.rings(outage, NOON + 5))
        self.assertIn("api-burn-fast", self.rings(outage, NOON + 20))
        # The long window remembers it, the short one says that it is over.
        over = self.rings(outage, NOON + 30)
        self.assertIn("api-burn-fast-1h", over)
        self.assertNotIn("api-burn-fast", over)

    def test_a_failure_that_smoulders_rings_slowly(self):
        smouldering = {range(NOON, DAY): 0.004}
        self.assertNotIn("api-burn-slow", self.rings(smouldering, NOON + 60))
        later = self.rings(smouldering, NOON + 6 * HOUR)
        self.assertIn("api-burn-slow", later)
        self.assertNotIn("api-burn-fast", later)

    def test_what_is_allowed_rings_never(self):
        self.assertEqual(self.rings({range(0, DAY): 0.0005}, NOON + 6 * HOUR, requests=4_000), set())

    def test_a_few_requests_that_fail_in_a_night_are_no_outage(self):
        metrics = of_no_users(DAY)
        for minute, failed in [(120, 1.0), (121, 0.0), (125, 1.0), (126, 0.0)]:
            metrics.put(of_api("Count"), minute, 1.0)
            metrics.put(of_api("5xx"), minute, failed)
            metrics.put(of_api("Latency"), minute, 900.0)
        for minute in range(115, 12 * HOUR, 17):
            self.assertEqual(ringing(metrics, minute), set())


class Composition(unittest.TestCase):
    def test_every_alarm_alone_makes_the_health_alarm_ring_but_for_halves(self):
        for name in ALARMS:
            expected = "api-burn-" not in name
            found = {name}
            for kind in [*COMPOSITES.keys() - {HEALTH}] * 2 + [HEALTH]:
                if holds(COMPOSITES[kind]["AlarmRule"], found):
                    found.add(kind)
            self.assertEqual(HEALTH in found, expected, name)
