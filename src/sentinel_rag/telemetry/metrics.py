"""Counts of one process in the text format of Prometheus (0.0.4), without a library: counters, gauges, histograms.

Each metric names its labels and says how many series it may have; what comes beyond is counted under `other`, so that
nobody who chooses a label's value can fill the memory. Values are read and written by one event loop's thread.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MAX_SERIES = 200
OTHER = "other"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""The upper bounds of histograms of seconds."""

_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class Series:
    """The label values that a metric has seen: at most `MAX_SERIES` of them, and `other`."""

    def __init__(self, name: str, help: str, labels: Sequence[str], *, most: int = MAX_SERIES) -> None:
        self.name = name
        self.help = help
        self._labels = tuple(labels)
        self._most = most

    def _key(self, known: dict[tuple[str, ...], object], values: tuple[str, ...]) -> tuple[str, ...]:
        if values in known or len(known) < self._most:
            return values
        return (OTHER,) * len(values)

    def _text(self, values: tuple[str, ...], suffix: str = "", more: str = "") -> str:
        pairs = [f'{label}="{value.translate(_ESCAPES)}"' for label, value in zip(self._labels, values, strict=True)]
        inside = ",".join([*pairs, *([more] if more else [])])
        return f"{self.name}{suffix}{{{inside}}}" if inside else f"{self.name}{suffix}"


class Counter(Series):
    """How often something happened. The name ends in `_total`."""

    kind = "counter"

    def __init__(self, name: str, help: str, labels: Sequence[str] = (), *, most: int = MAX_SERIES) -> None:
        super().__init__(name, help, labels, most=most)
        self._values: dict[tuple[str, ...], float] = {} if labels else {(): 0.0}

    def add(self, *values: str, by: float = 1.0) -> None:
        """`values` in the order of the labels."""
        if values not in self._values:
            values = self._key(self._values, values)  # type: ignore[arg-type]  # only its keys are looked at
            self._values.setdefault(values, 0.0)
        self._values[values] += by

    def lines(self) -> Iterable[str]:
        return (f"{self._text(values)} {_number(value)}" for values, value in sorted(self._values.items()))


class Histogram(Series):
    """How long something took, in seconds."""

    kind = "histogram"

    def __init__(
        self,
        name: str,
        help: str,
        labels: Sequence[str] = (),
        *,
        bounds: Sequence[float] = SECONDS,
        most: int = MAX_SERIES,
    ) -> None:
        super().__init__(name, help, labels, most=most)
        self._bounds = tuple(bounds)
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}

    def observe(self, seconds: float, *values: str) -> None:
        if values not in self._counts:
            values = self._key(self._counts, values)  # type: ignore[arg-type]  # only its keys are looked at
            self._counts.setdefault(values, [0] * (len(self._bounds) + 1))
            self._sums.setdefault(values, 0.0)
        self._counts[values][bisect_left(self._bounds, seconds)] += 1
        self._sums[values] += seconds

    def lines(self) -> Iterable[str]:
        for values, counts in sorted(self._counts.items()):
            sofar = 0
            for bound, count in zip((*self._bounds, math.inf), counts, strict=True):
                sofar += count
                within = f'le="{_number(bound)}"'
                yield f"{self._text(values, '_bucket', within)} {sofar}"
            yield f"{self._text(values, '_sum')} {_number(self._sums[values])}"
            yield f"{self._text(values, '_count')} {sofar}"


class Gauge(Series):
    """What is so now, asked when somebody looks: `read` gives the value of each series."""

    kind = "gauge"

    def __init__(
        self,
        name: str,
        help: str,
        read: Callable[[], Iterable[tuple[tuple[str, ...], float]]],
        labels: Sequence[str] = (),
        *,
        kind: str = "gauge",
    ) -> None:
        super().__init__(name, help, labels)
        self.kind = kind
        self._read = read

    def lines(self) -> Iterable[str]:
        return (f"{self._text(values)} {_number(value)}" for values, value in self._read())


Metric = Counter | Histogram | Gauge


class Registry:
    """The metrics of one process, each name once."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}
        self.before_reading: list[Callable[[], Awaitable[None]]] = []
        """Awaited before the metrics are read: what has to be asked for first."""

        self.before_text: list[Callable[[], None]] = []
        """Called then: what was heard and is not counted yet."""

    @property
    def names(self) -> Mapping[str, str]:
        """The kind of each metric by its name."""
        return {metric.name: metric.kind for metric in self._metrics.values()}

    def add(self, *metrics: Metric) -> None:
        """Raises ValueError for a name that is taken."""
        for metric in metrics:
            if metric.name in self._metrics:
                raise ValueError(f"there is a metric {metric.name} already")
            self._metrics[metric.name] = metric

    def text(self) -> str:
        """Everything, as Prometheus reads it."""
        for count in self.before_text:
            count()
        parts: list[str] = []
        for metric in self._metrics.values():
            help = metric.help.replace("\\", r"\\").replace("\n", r"\n")
            parts += [f"# HELP {metric.name} {help}", f"# TYPE {metric.name} {metric.kind}", *metric.lines()]
        return "\n".join(parts) + "\n"


def _number(value: float) -> str:
    if value == math.inf:
        return "+Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


_began: ContextVar[float | None] = ContextVar("sentinel_rag_request_began", default=None)


def set_request_began(moment: float) -> None:
    """`moment` of `time.perf_counter`, for this task and those that it starts."""
    _began.set(moment)


def request_began() -> float | None:
    """The moment; None outside of a request that is counted."""
    return _began.get()
