"""An OTLP receiver on loopback that keeps what it was sent: the raw bytes, and the spans as the official messages read
them.

For tests of what leaves a process. It needs `opentelemetry-proto`, which the development environment has and the
product does not; it answers as a collector does, and can be told to refuse, to wait or to hold its answers back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sentinel_rag.telemetry.tracer import PATH


@dataclass(frozen=True)
class ReceivedSpan:
    """One span: ids in hexadecimal, `parent_id` empty for a root, attributes as plain values."""

    name: str
    service: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    attributes: Mapping[str, Any]
    resource: Mapping[str, Any]
    failed: bool
    withheld: int
    seconds: float


@dataclass
class OtlpReceiver:
    """`url` is the endpoint for an exporter. While `held` is set, requests wait; `status` is what they are answered."""

    url: str = ""
    status: int = 200
    answer: bytes = b""
    bodies: list[bytes] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    held: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)
    """Set with the first request."""

    _changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def raw(self) -> bytes:
        """Every byte of every body so far."""
        return b"".join(self.bodies)

    def spans(self) -> list[ReceivedSpan]:
        """All spans so far, in the order of their export."""
        return [span for body in list(self.bodies) for span in read_request(body)]

    def wait_for(self, count: int, *, longest_s: float = 60.0) -> list[ReceivedSpan]:
        """The spans, once there are `count`. Raises TimeoutError."""
        return self.wait_until(lambda spans: len(spans) >= count, longest_s=longest_s)

    def wait_until(
        self, enough: Callable[[list[ReceivedSpan]], bool], *, longest_s: float = 60.0
    ) -> list[ReceivedSpan]:
        """The spans, once they are `enough`. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: enough(self.spans()), longest_s):
                raise TimeoutError(f"what came is not enough: {[span.name for span in self.spans()]}")
        return self.spans()

    def take(self, path: str, headers: Mapping[str, str], body: bytes) -> int:
        """Keep one request; the status to answer."""
        status = self.status
        self.asked.set()
        if self.held.is_set():
            self.released.wait(60)
        with self._changed:
            self.paths.append(path)
            self.headers.append(headers)
            if status == 200:
                self.bodies.append(body)
            self._changed.notify_all()
        return status


@contextmanager
def running_receiver() -> Iterator[OtlpReceiver]:
    """A receiver that serves for the length of the block."""
    receiver = OtlpReceiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = receiver.take(self.path, headers, body) if self.path.endswith(PATH) else 404
            self.send_response(status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(receiver.answer)))
            self.end_headers()
            self.wfile.write(receiver.answer)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.released.set()
        server.shutdown()
        server.server_close()
        thread.join(10)


def read_request(body: bytes) -> list[ReceivedSpan]:
    """The spans of an ExportTraceServiceRequest. Raises what the official library raises for bytes that are none."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    found: list[ReceivedSpan] = []
    for resource_spans in ExportTraceServiceRequest.FromString(body).resource_spans:
        about = {each.key: _value(each.value) for each in resource_spans.resource.attributes}
        for scope_spans in resource_spans.scope_spans:
            found += [
                ReceivedSpan(
                    name=span.name,
                    service=str(about.get("service.name", "")),
                    trace_id=span.trace_id.hex(),
                    span_id=span.span_id.hex(),
                    parent_id=span.parent_span_id.hex(),
                    kind=span.kind,
                    attributes={each.key: _value(each.value) for each in span.attributes},
                    resource=about,
                    failed=span.status.code == 2,
                    withheld=span.dropped_attributes_count,
                    seconds=(span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
                )
                for span in scope_spans.spans
            ]
    return found


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return tuple(_value(each) for each in value.array_value.values)
    return getattr(value, kind) if kind else None
