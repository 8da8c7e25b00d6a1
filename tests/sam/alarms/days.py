"""Days of the stack as its metrics show them, minute by minute. Minute 0 is midnight; users come from six in the morning until
one at night."""

from dataclasses import dataclass, field

from .cloudwatch import Metrics
from .declared import Consumer, consumers, of_api, of_function, of_queue, own, topology

HOUR = 60
DAY = 24 * HOUR
MORNING, NIGHT = 6 * HOUR, 25 * HOUR
CANARY_EVERY = 5
NEVER = 10 * DAY


@dataclass
class Day:
    """What happens. Everything that is not said goes well."""

    # From when until when; there is nothing from before.
    begin: int = 0
    end: int = 2 * DAY
    # Requests a minute while there are users; half of them publish an event for every consumer.
    requests: int = 600
    # Whether anybody is there at a minute.
    users: range = range(MORNING, NIGHT)
    # From then on, nothing at all is heard.
    dead_from: int = NEVER
    # From then on, the relay is not invoked.
    relay_stopped_from: int = NEVER
    # From then on, nothing takes messages from this consumer's queue.
    unsubscribed: Consumer | None = None
    unsubscribed_from: int = NEVER
    # From then on, this consumer gives every record back but canaries.
    stuck: Consumer | None = None
    stuck_from: int = NEVER
    # Part of the requests that fail here, by minute; and how long one in fifty takes.
    failing: dict[range, float] = field(default_factory=dict)
    slow_ms: dict[range, float] = field(default_factory=dict)

    def metrics(self) -> Metrics:
        metrics, rejected = Metrics(), topology()["rejected_queue"]
        for minute in range(self.begin, min(self.end, self.dead_from)):
            self.ask(metrics, minute)
            relayed = minute < self.relay_stopped_from
            if relayed:
                metrics.put(of_function("IteratorAge", "outbox-relay"), minute, 300.0)
            self.run(metrics, "canary", minute, minute % CANARY_EVERY == 0)
            self.run(metrics, "outbox-relay", minute, relayed)
            for consumer in consumers():
                self.consume(metrics, consumer, minute, relayed)
            metrics.put(of_queue("ApproximateNumberOfMessagesVisible", rejected), minute, 0.0)
        return metrics

    def busy(self, minute: int) -> bool:
        return any(minute + day in self.users for day in (0, DAY, -DAY))

    def ask(self, metrics: Metrics, minute: int) -> None:
        if not self.busy(minute):
            return
        self.run(metrics, "api", minute, True)
        failed = round(self.requests * during(self.failing, minute, 0.0))
        # One failure in 10,000 is nothing out of the ordinary.
        failed = max(failed, int(minute * self.requests % 10_000 < self.requests and self.requests > 1))
        slow = max(1, self.requests // 50)
        metrics.put(of_api("Count"), minute, 1.0, self.requests)
        metrics.put(of_api("5xx"), minute, 1.0, failed)
        metrics.put(of_api("5xx"), minute, 0.0, self.requests - failed)
        latency = during(self.slow_ms, minute, 180.0)
        metrics.put(of_api("Latency"), minute, latency, slow)
        metrics.put(of_api("Latency"), minute, 20.0, self.requests - slow)

    def consume(self, metrics: Metrics, consumer: Consumer, minute: int, relayed: bool) -> None:
        name = consumer.name
        subscribed = consumer != self.unsubscribed or minute < self.unsubscribed_from
        stuck = consumer == self.stuck and minute >= self.stuck_from
        canary = relayed and minute % CANARY_EVERY == 0
        events = self.requests // 2 if relayed and self.busy(minute) else 0
        if events:
            metrics.put(own("Published", name), minute, float(events))
            # The relay says so of its own share.
            metrics.put(own("Processed", name), minute, 0.0)
        if subscribed and (events or canary):
            metrics.put(own("Processed", name), minute, 0.0 if stuck else float(events))
            self.run(metrics, name, minute, True)
            if canary:
                metrics.put(own("CanaryArrived", name), minute, 1.0)
        waiting_since = self.stuck_from if stuck else self.unsubscribed_from
        # The queue of a consumer that is gone gets canaries even at night.
        age = 2.0 if subscribed and not stuck else 60.0 * (minute - waiting_since)
        metrics.put(of_queue("ApproximateAgeOfOldestMessage", consumer.queue), minute, age)
        metrics.put(of_queue("ApproximateNumberOfMessagesVisible", consumer.dead_letters), minute, 0.0)

    def run(self, metrics: Metrics, function: str, minute: int, invoked: bool) -> None:
        if invoked:
            # Somewhere something fails once in an hour, and nobody needs to know.
            metrics.put(of_function("Errors", function), minute, float(minute % HOUR == 7))
            metrics.put(of_function("Throttles", function), minute, 0.0)


def of_no_users(end: int) -> Metrics:
    """Returns the metrics of a time in which nobody is there and all goes well."""
    return Day(users=range(0), end=end).metrics()


def during(values: dict[range, float], minute: int, otherwise: float) -> float:
    return next((value for minutes, value in values.items() if minute in minutes), otherwise)
