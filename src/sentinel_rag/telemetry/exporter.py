"""Sends spans to an OTLP collector over HTTP, from a thread of its own.

Whoever ends a span only puts it into a bounded queue: a collector that is slow or away costs spans, which are counted,
and never a call its time. What was not sent when the process ends gets a short last try.

Spans are written many at a time: code that has just run is several times as fast as the same code amid a call.
"""

from __future__ import annotations

import http.client
import logging
import ssl
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from sentinel_rag.telemetry.otlp import SpanEncoder, rejected_spans
from sentinel_rag.telemetry.spans import Span

PATH: Final = "/v1/traces"
MAX_QUEUED: Final = 4_096
MAX_BATCH: Final = 512
WRITTEN_AT_ONCE: Final = 32
WAIT_S: Final = 5.0
"""How long a span waits for others, unless the exporter is told otherwise."""

LAST_TRY_S: Final = 2.0
_RETRIED = (429, 502, 503, 504)
_WAITS_S = (0.5, 2.0, 5.0)
_MAX_ANSWER = 65_536

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Collector:
    """Where spans go: the collector's base URL, to which the path of OTLP is added, headers of each request, seconds
    that one may take, and a file of certificates to trust beside the system's."""

    endpoint: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = 10.0
    certificate: str | None = None


@dataclass(slots=True)
class Counts:
    """What became of spans so far."""

    exported: int = 0
    dropped: int = 0
    """Not taken into the queue, because it was full."""

    failed: int = 0
    """The collector did not take them."""


class ExportRefused(Exception):
    """The collector answered with a status that is no success; `again` tells whether it may be asked again."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the collector answered {status}")
        self.status = status
        self.again = status in _RETRIED


class CollectorConnection:
    """One kept-alive connection, made when it is needed. Not for several threads at once."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        address = urlsplit(collector.endpoint)
        self._secure = address.scheme == "https"
        self._host, self._port = address.hostname or "", address.port
        self._path = address.path.rstrip("/") + PATH
        self._headers = {"Content-Type": "application/x-protobuf", **collector.headers}
        self._connection: http.client.HTTPConnection | None = None

    def post(self, body: bytes) -> bytes:
        """Send one export; the answer's body. Raises Refused, OSError or http.client.HTTPException."""
        kept = self._connection is not None
        try:
            return self._post(body)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            if not kept:
                raise
            return self._post(body)  # it had ended the idle connection

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _post(self, body: bytes) -> bytes:
        if self._connection is None:
            self._connection = self._connect()
        try:
            self._connection.request("POST", self._path, body, self._headers)
            response = self._connection.getresponse()
            answer = response.read(_MAX_ANSWER)
            if response.read(1):
                raise http.client.HTTPException("a long answer")
        except BaseException:
            self.close()
            raise
        if not 200 <= response.status < 300:
            raise ExportRefused(response.status)
        return answer

    def _connect(self) -> http.client.HTTPConnection:
        timeout = self._collector.timeout_s
        if not self._secure:
            return http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        context = ssl.create_default_context()
        if self._collector.certificate is not None:
            context.load_verify_locations(self._collector.certificate)
        return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=context)


class SpanExporter:
    """Give `take` to a `Tracer`. `close` it at the end of the process."""

    def __init__(
        self, collector: Collector, encoder: SpanEncoder, *, max_queued: int = MAX_QUEUED, wait_s: float = WAIT_S
    ) -> None:
        self.counts = Counts()
        self._connection = CollectorConnection(collector)
        self._encoder = encoder
        self._max_queued = max_queued
        self._wait_s = wait_s
        self._queue: deque[Span] = deque()
        self._wake = threading.Event()
        self._ending = threading.Event()
        self._healthy = True
        self._thread = threading.Thread(target=self._run, name="spans", daemon=True)
        self._thread.start()

    @property
    def queued(self) -> int:
        return len(self._queue)

    def take(self, span: Span) -> None:
        """Have a span sent, some time. Never waits and never raises."""
        if len(self._queue) >= self._max_queued:
            self.counts.dropped += 1
            return
        self._queue.append(span)
        if len(self._queue) == MAX_BATCH:
            self._wake.set()

    def close(self) -> None:
        """Send what is left within `LAST_TRY_S`. Idempotent."""
        self._ending.set()
        self._wake.set()
        self._thread.join(LAST_TRY_S)

    def _run(self) -> None:
        while True:
            self._wake.wait(self._wait_s)
            self._wake.clear()
            while self._queue:
                self._send(self._written(min(len(self._queue), MAX_BATCH)))
            if self._ending.is_set():
                self._connection.close()
                return

    def _written(self, count: int) -> list[bytes]:
        """The next spans of the queue. Between a few of them the event loop may have the interpreter back."""
        batch: list[bytes] = []
        for number in range(count):
            try:
                batch.append(self._encoder.span(self._queue.popleft()))
            except Exception:  # one that cannot be written may not end this thread
                self.counts.failed += 1
                _log.exception("a span could not be written")
            if number % WRITTEN_AT_ONCE == WRITTEN_AT_ONCE - 1:
                time.sleep(0)
        return batch

    def _send(self, batch: list[bytes]) -> None:
        """One batch, with further tries while the collector says, or shows, that it will come back."""
        if not batch:
            return
        body = self._encoder.request(batch)
        for wait in (*_WAITS_S, None):
            try:
                rejected = min(rejected_spans(self._connection.post(body)), len(batch))
            except (ExportRefused, OSError, http.client.HTTPException, ValueError) as fault:
                again = fault.again if isinstance(fault, ExportRefused) else True
                if self._healthy:  # once, until it is back
                    self._healthy = False
                    _log.warning("the collector does not take spans (%s)", _reason(fault))
                if not again or wait is None or self._ending.wait(wait):
                    self.counts.failed += len(batch)
                    return
            else:
                if not self._healthy:
                    self._healthy = True
                    _log.warning("the collector takes spans again")
                self.counts.exported += len(batch) - rejected
                self.counts.failed += rejected
                return


def _reason(fault: Exception) -> str:
    return str(fault) if isinstance(fault, ExportRefused) else type(fault).__name__
