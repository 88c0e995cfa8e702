"""Spans: what is told of one step of a call, and which of them the code that runs now belongs to.

`start_span` is all that the zones call. While no tracer was set it gives `NO_SPAN`, which does nothing, and no further
module of telemetry is loaded. What leaves the process is decided by `otlp`, whatever a span was told.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from dataclasses import dataclass
from enum import IntEnum
from types import TracebackType
from typing import Any, Self

# A traceparent that comes from outside is data. Only its three fields are read, anything unusual about it makes it no
# traceparent at all, and neither `tracestate` nor `baggage` is read or passed on, since both can carry any text.
_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_SAMPLED = 1


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A place in a trace: the trace, the span that is the parent of what follows, and whether it was recorded there."""

    trace_id: int
    span_id: int
    sampled: bool

    @property
    def traceparent(self) -> str:
        """The header's value, or the field of MCP's `_meta`."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{'01' if self.sampled else '00'}"


def read_traceparent(text: object) -> TraceContext | None:
    """The place that a traceparent names; None for anything that is not exactly one of version 00."""
    found = _TRACEPARENT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    trace_id, span_id = int(found[1], 16), int(found[2], 16)
    if trace_id == 0 or span_id == 0:
        return None
    return TraceContext(trace_id, span_id, bool(int(found[3], 16) & _SAMPLED))


# A caller can ask for less and never for more: a parent that was not recorded ends it here too (unless the sampler
# ignores parents), and one that was recorded is held against this process's own share all the same. So nobody who sends
# a traceparent switches recording on.
_RANDOM_BITS = 56
_RANDOM = (1 << _RANDOM_BITS) - 1


@dataclass(frozen=True, slots=True)
class Sampler:
    """`ratio` of all traces, 0 to 1; `by_parent`: not where the parent was not recorded."""

    ratio: float = 1.0
    by_parent: bool = True

    @classmethod
    def named(cls, name: str, ratio: float) -> Sampler:
        """The sampler that OTEL_TRACES_SAMPLER calls `name`; `ratio` counts for the two that take one."""
        share = {"always_on": 1.0, "always_off": 0.0, "traceidratio": ratio}[name.removeprefix("parentbased_")]
        return cls(share, name.startswith("parentbased_"))

    def takes(self, trace_id: int, parent: TraceContext | None) -> bool:
        """Whether a trace is recorded. The 56 lowest bits of an id are the random ones."""
        if self.by_parent and parent is not None and not parent.sampled:
            return False
        if self.ratio >= 1.0:
            return True
        return (trace_id & _RANDOM) >= round((1.0 - self.ratio) * (1 << _RANDOM_BITS))


Value = str | int | float | bool | tuple[str, ...]


class SpanKind(IntEnum):
    """What a span is to its parent; numbers of OTLP."""

    INTERNAL = 1
    SERVER = 2
    CLIENT = 3


class SharedAttributes:
    """Attributes that many spans share, such as a rule with its labels: written once and kept. Nothing of one call
    alone may stand in it, and whoever keeps such objects keeps few."""

    __slots__ = ("attributes", "withheld", "written")

    def __init__(self, attributes: Mapping[str, Value]) -> None:
        self.attributes = dict(attributes)
        self.written: bytes | None = None
        """The bytes of those that may be told, once an encoder has been asked."""

        self.withheld = 0


class Span:
    """One step under way. Use it in `with`, which makes it the current one; `recording` is False for `NO_SPAN`."""

    __slots__ = (
        "_finish",
        "_token",
        "attributes",
        "deferred",
        "ended_ns",
        "error",
        "kind",
        "name",
        "parent_id",
        "shared",
        "span_id",
        "started_ns",
        "trace_id",
    )
    recording = True

    def __init__(
        self, name: str, kind: SpanKind, trace_id: int, parent_id: int, span_id: int, finish: Callable[[Span], None]
    ) -> None:
        self.name = name
        self.kind = kind
        self.trace_id = trace_id
        self.parent_id = parent_id
        self.span_id = span_id
        self.attributes: dict[str, Value] = {}
        self.shared: tuple[SharedAttributes, ...] = ()
        self.deferred: list[tuple[Callable[..., None], tuple[Any, ...]]] | None = None
        self.error = ""
        self.started_ns = time.time_ns()
        self.ended_ns = 0
        self._finish = finish
        self._token: Token[Place] | None = None

    @property
    def context(self) -> TraceContext:
        return TraceContext(self.trace_id, self.span_id, sampled=True)

    def set(self, name: str, value: Value | None) -> None:
        """Tell an attribute; None tells nothing."""
        if value is not None:
            self.attributes[name] = value

    def update(self, attributes: Mapping[str, Value]) -> None:
        """Tell several attributes."""
        self.attributes.update(attributes)

    def share(self, told: SharedAttributes) -> None:
        """Tell attributes that are shared with other spans. One that the span is told itself goes before."""
        self.shared += (told,)

    def defer(self, tell: Callable[..., None], *values: Any) -> None:
        """Have `tell(span, *values)` called when the span is written, in the thread that sends it: what it tells costs
        the call nothing then. Hand over what is small, and never changed."""
        if self.deferred is None:
            self.deferred = []
        self.deferred.append((tell, values))

    def tell_deferred(self) -> None:
        """Do what was deferred, once."""
        deferred, self.deferred = self.deferred, None
        for tell, values in deferred or ():
            tell(self, *values)

    def fail(self, error_type: str) -> None:
        """The step did not do what it was for; `error_type` is a code, never a message."""
        self.error = error_type

    def end(self) -> None:
        """The step is over. A second call does nothing."""
        if not self.ended_ns:
            self.ended_ns = time.time_ns()
            self._finish(self)

    def __enter__(self) -> Self:
        self._token = _place.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            _place.reset(self._token)
            self._token = None
        if kind is not None and not self.error:
            self.error = kind.__name__
        self.end()


class _NoSpan:
    """A span that is not recorded. One object serves all."""

    __slots__ = ()
    recording = False

    def set(self, name: str, value: Value | None) -> None:
        pass

    def update(self, attributes: Mapping[str, Value]) -> None:
        pass

    def share(self, told: SharedAttributes) -> None:
        pass

    def defer(self, tell: Callable[..., None], *values: Any) -> None:
        pass

    def fail(self, error_type: str) -> None:
        pass

    def end(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


NO_SPAN = _NoSpan()
AnySpan = Span | _NoSpan
Place = Span | TraceContext | None
"""Where the running code stands: in a span of this process, below one of another, or nowhere."""

_place: ContextVar[Place] = ContextVar("sentinel_rag_place_in_trace", default=None)


class Tracer:
    """Makes spans and hands each that has ended to `finish`."""

    def __init__(self, sampler: Sampler, finish: Callable[[Span], None], *, trusts_callers: bool = True) -> None:
        """`trusts_callers`: spans belong to the trace that a caller names, whose ids are the caller's choice."""
        self.trusts_callers = trusts_callers
        self._sampler = sampler
        self._finish = finish
        self._bits = random.Random()  # noqa: S311  # ids tell spans apart and protect nothing

    def start(self, name: str, kind: SpanKind) -> AnySpan:
        """A span below the current place. Only a root decides; what is below an unrecorded span is not recorded."""
        place = _place.get()
        if isinstance(place, Span):
            return Span(name, kind, place.trace_id, place.span_id, self._new(64), self._finish)
        trace_id = self._new(128) if place is None else place.trace_id
        if not self._sampler.takes(trace_id, place):
            return _Unrecorded(TraceContext(trace_id, self._new(64), sampled=False))
        return Span(name, kind, trace_id, 0 if place is None else place.span_id, self._new(64), self._finish)

    def _new(self, bits: int) -> int:
        return self._bits.getrandbits(bits) or 1


class _Unrecorded(_NoSpan):
    """Below it nothing is recorded, and other zones are told so."""

    __slots__ = ("_context", "_token")

    def __init__(self, context: TraceContext) -> None:
        self._context = context
        self._token: Token[Place] | None = None

    def __enter__(self) -> Self:
        self._token = _place.set(self._context)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            _place.reset(self._token)
            self._token = None


_tracer: Tracer | None = None


def set_tracer(tracer: Tracer | None) -> None:
    """What makes spans in this process from now on; None: nothing does. Called once, at the start of a zone."""
    global _tracer
    _tracer = tracer


def tracing() -> bool:
    """Whether this process makes spans."""
    return _tracer is not None


def start_span(name: str, kind: SpanKind = SpanKind.INTERNAL, attributes: Mapping[str, Value] | None = None) -> AnySpan:
    """A span below the current place; end it by leaving its `with`, or by `end`."""
    if _tracer is None:
        return NO_SPAN
    span = _tracer.start(name, kind)
    if attributes and isinstance(span, Span):
        span.attributes.update(attributes)
    return span


def current_span() -> AnySpan:
    """The span that the running code belongs to; `NO_SPAN` outside of any."""
    place = _place.get()
    return place if isinstance(place, Span) else NO_SPAN


def traceparent() -> str | None:
    """What to send along with a request, as header or in MCP's `_meta`; None where there is nothing to tell."""
    if _tracer is None:
        return None
    place = _place.get()
    if place is None:
        return None
    if isinstance(place, Span):
        return "00-%032x-%016x-01" % (place.trace_id, place.span_id)  # noqa: UP031  # half the time of an f-string
    return place.traceparent


class continuing:  # used as a function is, and a generator in its place would take a microsecond more
    """Below it spans belong to the trace that `text`, a traceparent from outside, names. Anything else than a valid
    one changes nothing: outside of a trace the next span begins its own."""

    __slots__ = ("_place", "_token")

    def __init__(self, text: object) -> None:
        self._place = read_traceparent(text) if _tracer is not None and _tracer.trusts_callers else None
        self._token: Token[Place] | None = None

    def __enter__(self) -> None:
        if self._place is not None:
            self._token = _place.set(self._place)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            _place.reset(self._token)
            self._token = None
