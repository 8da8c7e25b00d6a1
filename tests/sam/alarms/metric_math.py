"""CloudWatch's metric math, as much of it as the alarms use: numbers, time series, arithmetic, comparisons, AND, OR, IF, FILL
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html). Anything else is an error.

A time series is a list with a value for each period, the oldest first; None is a period without data.
"""

import re
from enum import Enum

TOKEN = re.compile(r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<operator>&&|\|\||==|!=|<=|>=|[-+*/<>(),]))")
ARITHMETIC = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b if b else None}
COMPARISONS = {
    "==": lambda a, b: float(a == b),
    "!=": lambda a, b: float(a != b),
    "<": lambda a, b: float(a < b),
    "<=": lambda a, b: float(a <= b),
    ">": lambda a, b: float(a > b),
    ">=": lambda a, b: float(a >= b),
}
AND, OR = ("AND", "&&"), ("OR", "||")


class MathError(Exception):
    """An expression that CloudWatch, or this evaluator, does not take."""


class Fill(Enum):
    """What FILL makes of a metric that has no data in any period. AWS does not say, so nothing may depend on it."""

    EMPTY_TOO = "a series of the value"
    ONLY_GAPS = "a series without data"


def evaluate(expression: str, metrics: dict[str, list], fill: Fill) -> list:
    """Evaluates an expression that has a time series for its value."""
    value = Evaluator(tokens(expression), metrics, fill).whole()
    if not isinstance(value, list):
        raise MathError(f"{expression}: the value is a number, no time series")
    return value


def names(expression: str) -> set[str]:
    """Returns the ids of the metrics that an expression is about: they begin with a small letter."""
    return {text for kind, text in tokens(expression) if kind == "name" and text[0].islower()}


def tokens(expression: str) -> list[tuple[str, str]]:
    found, position = [], 0
    while position < len(expression.rstrip()):
        match = TOKEN.match(expression, position)
        if not match:
            raise MathError(f"{expression[position:]!r}: no token of metric math")
        found.append((match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return found


class Evaluator:
    def __init__(self, tokens: list[tuple[str, str]], metrics: dict[str, list], fill: Fill):
        self.tokens = tokens
        self.metrics = metrics
        self.fill = fill
        self.position = 0

    def whole(self):
        value = self.either()
        if self.position < len(self.tokens):
            raise MathError(f"{self.tokens[self.position][1]!r} is one too many")
        return value

    def either(self):
        return self.left_to_right(self.both, {word: lambda a, b: float(bool(a) or bool(b)) for word in OR})

    def both(self):
        return self.left_to_right(self.comparison, {word: lambda a, b: float(bool(a) and bool(b)) for word in AND})

    def comparison(self):
        return self.left_to_right(self.sum, COMPARISONS)

    def sum(self):
        return self.left_to_right(self.product, {name: ARITHMETIC[name] for name in "+-"})

    def product(self):
        return self.left_to_right(self.operand, {name: ARITHMETIC[name] for name in "*/"})

    def left_to_right(self, operand, operators: dict):
        value = operand()
        while self.position < len(self.tokens) and self.tokens[self.position][1] in operators:
            operator = operators[self.take()[1]]
            value = pointwise(operator, value, operand())
        return value

    def operand(self):
        kind, text = self.take()
        if kind == "number":
            return float(text)
        if text == "(":
            value = self.either()
            self.expect(")")
            return value
        if kind != "name":
            raise MathError(f"{text!r} stands where a value should")
        if text in self.metrics:
            return self.metrics[text]
        if text not in ("IF", "FILL"):
            raise MathError(f"{text}: no metric of the alarm and no function that is known here")
        self.expect("(")
        arguments = [self.either()]
        while self.tokens[self.position][1] == ",":
            self.take()
            arguments.append(self.either())
        self.expect(")")
        return self.called(text, arguments)

    def called(self, function: str, arguments: list):
        if function == "IF":
            condition, then, otherwise = arguments
            chosen = lambda truth, one, other: one if truth else other
            return pointwise_lazily(chosen, condition, then, otherwise)
        series, value = arguments
        if not isinstance(series, list) or isinstance(value, list):
            raise MathError("FILL takes a time series and a number")
        if self.fill is Fill.ONLY_GAPS and all(point is None for point in series):
            return series
        return [value if point is None else point for point in series]

    def take(self) -> tuple[str, str]:
        if self.position == len(self.tokens):
            raise MathError("the expression ends too early")
        self.position += 1
        return self.tokens[self.position - 1]

    def expect(self, text: str) -> None:
        found = self.take()[1]
        if found != text:
            raise MathError(f"{found!r} stands where {text!r} should")


def pointwise(operator, one, other):
    """Applies an operator period by period. Where one of the two has no data, there is no result."""
    if not isinstance(one, list) and not isinstance(other, list):
        return operator(one, other)
    pairs = zip(*spread(one, other))
    return [None if None in pair else operator(*pair) for pair in pairs]


def pointwise_lazily(choice, condition, then, otherwise):
    """Chooses period by period. Only the condition and what it chooses need data."""
    if not isinstance(condition, list):
        raise MathError("IF takes a time series for its condition")
    triples = zip(*spread(condition, then, otherwise))
    return [None if triple[0] is None else choice(*triple) for triple in triples]


def spread(*values) -> list[list]:
    """Makes numbers time series of the length that the others have."""
    length = max(len(value) for value in values if isinstance(value, list))
    return [value if isinstance(value, list) else [value] * length for value in values]
