"""Spans: what is told of one step of a call, and which of them the code that runs now belongs to.

`start_span` is all that the zones call. While no tracer was set it gives `NO_SPAN`, which does nothing, and neither
OpenTelemetry nor a further module of telemetry is loaded. What leaves the process is decided by `allowed`, whatever a
span was told.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from types import TracebackType
from typing import Protocol, Self

Value = str | int | float | bool | tuple[str, ...]


class SpanKind(Enum):
    """What a span is to its parent; the names of OpenTelemetry."""

    INTERNAL = "INTERNAL"
    SERVER = "SERVER"
    CLIENT = "CLIENT"


class Span:
    """One step under way, of which nothing is told. Use it in `with`, which makes it the current one."""

    name = ""

    @property
    def recording(self) -> bool:
        """Whether what it is told goes anywhere."""
        return False

    @property
    def traceparent(self) -> str | None:
        """Its place in a trace, as the header of W3C and the field of MCP's `_meta` say it."""
        return None

    def set(self, name: str, value: Value | None) -> None:
        """Tell an attribute; None tells nothing."""

    def update(self, attributes: Mapping[str, Value]) -> None:
        """Tell several attributes."""

    def rename(self, name: str) -> None:
        """Call it otherwise than it was begun."""

    def fail(self, error_type: str) -> None:
        """The step did not do what it was for; `error_type` is a code, never a message."""

    def end(self) -> None:
        """The step is over. A second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()


NO_SPAN = Span()


class Tracer(Protocol):
    """What makes spans; `SdkTracer` does."""

    def start(self, name: str, kind: SpanKind) -> Span: ...

    def current(self) -> Span: ...

    def traceparent(self) -> str | None: ...

    def continuing(self, text: object) -> AbstractContextManager[object]: ...


_tracer: Tracer | None = None


def set_tracer(tracer: Tracer | None) -> None:
    """What makes spans in this process from now on; None: nothing does. Called once, at the start of a zone."""
    global _tracer
    _tracer = tracer


def tracing() -> bool:
    """Whether this process makes spans."""
    return _tracer is not None


def start_span(name: str, kind: SpanKind = SpanKind.INTERNAL) -> Span:
    """A span below the current place; end it by leaving its `with`, or by `end`."""
    return NO_SPAN if _tracer is None else _tracer.start(name, kind)


def current_span() -> Span:
    """The span that the running code belongs to; `NO_SPAN` outside of any."""
    return NO_SPAN if _tracer is None else _tracer.current()


def traceparent() -> str | None:
    """What to send along with a request, as header or in MCP's `_meta`; None where there is nothing to tell."""
    return None if _tracer is None else _tracer.traceparent()


def continuing(text: object) -> AbstractContextManager[object]:
    """Below it spans belong to the trace that `text`, a traceparent from outside, names. Anything else than a valid
    one changes nothing: outside of a trace the next span begins its own."""
    return nullcontext() if _tracer is None else _tracer.continuing(text)
