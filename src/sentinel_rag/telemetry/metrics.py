"""Counts of one process for Prometheus: counters, gauges and histograms of its client library.

Each metric names its labels and says how many series it may have; what comes beyond is counted under `other`, so that
nobody who chooses a label's value can fill the memory.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Generic, TypeVar

import prometheus_client
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.registry import Collector

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
MAX_SERIES = 200
OTHER = "other"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""The upper bounds of histograms of seconds."""

prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]  # a series more each, which nobody reads

_Metric = TypeVar("_Metric", bound=MetricWrapperBase)


class _Bounded(Generic[_Metric]):
    """A metric with at most `MAX_SERIES` series, and `other`."""

    def __init__(self, metric: _Metric, labels: Sequence[str]) -> None:
        self.metric = metric
        self._series: dict[tuple[str, ...], _Metric] = {} if labels else {(): metric}

    def _of(self, values: tuple[str, ...]) -> _Metric:
        """The series of these values, in the order of the labels."""
        found = self._series.get(values)
        if found is None:
            if len(self._series) >= MAX_SERIES:
                values = (OTHER,) * len(values)
            found = self._series[values] = self.metric.labels(*values)
        return found


class Counter(_Bounded[prometheus_client.Counter]):
    """How often something happened. The name ends in `_total`."""

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        super().__init__(prometheus_client.Counter(name, help, labels, registry=None), labels)

    def add(self, *values: str, by: float = 1.0) -> None:
        """`values` in the order of the labels."""
        self._of(values).inc(by)


class Histogram(_Bounded[prometheus_client.Histogram]):
    """How long something took, in seconds."""

    def __init__(self, name: str, help: str, labels: Sequence[str] = (), *, bounds: Sequence[float] = SECONDS) -> None:
        super().__init__(prometheus_client.Histogram(name, help, labels, registry=None, buckets=bounds), labels)

    def observe(self, seconds: float, *values: str) -> None:
        """`values` in the order of the labels."""
        self._of(values).observe(seconds)


class Gauge(Collector):
    """What is so now, asked when somebody looks: `read` gives the value of each series."""

    def __init__(
        self,
        name: str,
        help: str,
        read: Callable[[], Iterable[tuple[tuple[str, ...], float]]],
        labels: Sequence[str] = (),
        *,
        counts: bool = False,
    ) -> None:
        """`counts`: its values only rise, and the name ends in `_total`."""
        self._family = CounterMetricFamily if counts else GaugeMetricFamily
        self._about = (name, help)
        self._labels = labels
        self._read = read

    def collect(self) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
        """See `Collector.collect`."""
        family = self._family(*self._about, labels=self._labels)
        for values, value in self._read():
            family.add_metric(values, value)
        yield family

    def describe(self) -> Iterable[CounterMetricFamily | GaugeMetricFamily]:
        """The name alone, which the registry keeps from being taken again."""
        yield self._family(*self._about, labels=self._labels)


class Registry(CollectorRegistry):
    """The metrics of one process, each name once."""

    def __init__(self) -> None:
        super().__init__()
        self.before_reading: list[Callable[[], Awaitable[None]]] = []
        """Awaited before the metrics are read: what has to be asked for first."""

    def add(self, *metrics: Counter | Histogram | Gauge) -> None:
        """Raises ValueError for a name that is taken."""
        for metric in metrics:
            self.register(metric if isinstance(metric, Gauge) else metric.metric)

    def text(self) -> str:
        """Everything, as Prometheus reads it."""
        return generate_latest(self).decode()


_began: ContextVar[float | None] = ContextVar("sentinel_rag_request_began", default=None)


def set_request_began(moment: float) -> None:
    """`moment` of `time.perf_counter`, for this task and those that it starts."""
    _began.set(moment)


def request_began() -> float | None:
    """The moment; None outside of a request that is counted."""
    return _began.get()
