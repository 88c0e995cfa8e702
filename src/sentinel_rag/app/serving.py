"""How a zone's process serves: on a socket that the supervisor opened, for as long as it lives, with an HTTP parser
that bounds what a connection may send before an application hears of it.

The configuration, secrets included, arrives as one JSON line on standard input, so that neither arguments nor
environment hold it. Standard input then stays open as the life line: its end means that the supervisor is gone.

The server reads a head of any size and waits for it for ever. Here a head is bounded in bytes and in time, and so are
what comes around a body (chunk sizes, trailers) and what still comes after the answer; a request that names a whole URL
or arrives over too many connections is refused, and a reader that takes nothing of its answer is dropped: what waits
for it is bounded in bytes by the transport, and here in time. The applications above have finer limits of their own.
Head and body of a short answer leave in one piece, so that its reader wakes once.
"""

from __future__ import annotations

import asyncio
import fcntl
import gc
import ipaddress
import json
import os
import socket
import struct
import sys
import termios
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from sentinel_rag.contracts.errors import Actor, ConfigurationError, SentinelError, UnavailableError, UsageError
from sentinel_rag.contracts.servers import ClientDisconnect
from sentinel_rag.telemetry import configure_logging

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from sentinel_rag.telemetry.metrics import Registry
    from sentinel_rag.telemetry.process import ProcessTelemetry


_telemetry: ProcessTelemetry | None = None


def metrics_registry() -> Registry | None:
    """Where this zone counts; None where nobody may read it."""
    return None if _telemetry is None else _telemetry.registry


def begin_zone(zone: str) -> dict[str, Any]:
    """Read the supervisor's configuration line and set up logging, and what else the zone is to tell.

    Raises SystemExit with a sentence if a person started this by hand.
    """
    gc.disable()  # what start-up makes stays, so looking for garbage in it is a tenth of start-up; see settle_memory
    line = sys.stdin.readline()
    try:
        configuration: dict[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        sys.exit("This module is started by the supervisor; run: sentinel up")
    threading.Thread(target=_end_with_supervisor, daemon=True, name="life-line").start()
    configure_logging(zone, configuration["log_level"])
    if configuration.get("telemetry") is not None:
        from sentinel_rag.telemetry.process import ProcessTelemetry

        global _telemetry
        _telemetry = ProcessTelemetry(zone, configuration["telemetry"])
    return configuration


def fail_to_start(error: SentinelError) -> NoReturn:
    """End this process with the reason as its last log line, in the form that `startup_error` reads back."""
    problems = error.problems if isinstance(error, ConfigurationError) else ()
    print(json.dumps({"startup_error": {**error.to_dict(), "problems": problems}}), file=sys.stderr, flush=True)
    sys.exit(1)


def startup_error(last_line: str) -> SentinelError | None:
    """The error that a zone ended with, from the last line of its log; None if it did not say."""
    try:
        data = json.loads(last_line)["startup_error"]
    except (ValueError, KeyError, TypeError):
        return None
    if data["code"] == ConfigurationError.code:
        return ConfigurationError(data["message"], problems=tuple(data["problems"]), next_step=data["next_step"])
    kind = UsageError if data["actor"] == Actor.USER else UnavailableError
    return kind(data["message"], next_step=data["next_step"], code=data["code"])


def give_notice(error: SentinelError) -> None:
    """Put what is wrong, and is no reason not to serve, into the log, in the form that `startup_notices` reads back."""
    print(json.dumps({"startup_notice": error.to_dict()}), file=sys.stderr, flush=True)


def startup_notices(log: str) -> list[SentinelError]:
    """The notices in the lines of a zone's log."""
    found: list[SentinelError] = []
    for line in log.splitlines():
        if line.startswith('{"startup_notice"'):
            data = json.loads(line)["startup_notice"]
            found.append(UnavailableError(data["message"], next_step=data["next_step"], code=data["code"]))
    return found


def _end_with_supervisor() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)  # the supervisor was killed: nobody is left to wait for a clean end


def check_reach(listener: socket.socket, *, tls: bool = False) -> None:
    """Raises UsageError for a socket that other machines reach, unless it speaks TLS: keys and answers travel on it."""
    address = ipaddress.ip_address(listener.getsockname()[0])
    if not (address.is_loopback or tls):
        raise UsageError(
            f"The address {address} can be reached by other machines, and this zone has no certificate.",
            next_step="Set SENTINEL_TLS_CERTIFICATE and SENTINEL_TLS_KEY, or listen on 127.0.0.1 and put a reverse "
            "proxy with TLS before it.",
        )


def settle_memory() -> None:
    """Tell the garbage collector that what start-up has made stays, and that requests come and go: it then looks at
    less, and less often. Nearly all that a request leaves behind is freed by reference counts anyway."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
    gc.enable()


def closing(app: ASGIApp, close: Callable[[], None]) -> ASGIApp:
    """`app`, with `close` done after its own shutdown and before the server hears of it: then the process may end."""
    import anyio.to_thread

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        async def last(message: Message) -> None:
            if message["type"] in ("lifespan.shutdown.complete", "lifespan.shutdown.failed"):
                await anyio.to_thread.run_sync(close)
            await send(message)

        await app(scope, receive, last if scope["type"] == "lifespan" else send)

    return wrapped


def serve(app: ASGIApp, descriptor: int, *, tls: Mapping[str, str] | None = None) -> None:
    """Serve until SIGTERM, Ctrl-C or the end of the supervisor. Blocks. `tls` names the files `certificate` and `key`.
    Raises UsageError as `check_reach` does, ConfigurationError for files that are no certificate and key."""
    import uvicorn

    listener = socket.socket(fileno=descriptor)
    check_reach(listener, tls=tls is not None)
    certificate = None
    if tls is not None:
        from sentinel_rag.app.tls import AnsweringAs, Certificate

        certificate = Certificate(Path(tls["certificate"]), Path(tls["key"]))
        app = AnsweringAs(app, certificate)
    if _telemetry is not None:
        app = closing(_telemetry.around(app), _telemetry.close)
    config = uvicorn.Config(
        app,
        http=BoundedHttp,
        log_config=None,  # the zone's own JSON lines take uvicorn's messages too
        access_log=False,
        proxy_headers=False,  # no caller chooses which client address the journal shows
        lifespan="on",
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=5,
    )
    config.load()
    if certificate is not None:
        config.ssl = certificate.context
        certificate.keep_renewed()
    settle_memory()
    uvicorn.Server(config).run(sockets=[listener])


HEAD_BYTES = 65_536
HEAD_SECONDS = 15.0
FRAMING_FACTOR = 16
"""Bytes around each byte of a body that a client may use: chunks of one byte need six."""
DRAIN_BYTES = 2_000_000
DRAIN_SECONDS = 10.0
CONNECTIONS = 1_000
READER_SECONDS = 30.0
"""How long a reader may take nothing of what waits for it. An answer of events goes on behind `Last-Event-ID`."""
_AT_ONCE = struct.pack("ii", 1, 0)
LARGE_BYTES = 65_536
"""So much of an answer leaves at once, and the transport can say that its reader is slow."""


class _OnePiece:
    """A transport that sends what is written in one turn of the loop together."""

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, closing: Callable[[], None]
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._closing = closing
        self._held: list[bytes] = []
        self._size = 0
        self.is_closing = transport.is_closing
        self.get_extra_info = transport.get_extra_info

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self._send)
        self._held.append(data)
        self._size += len(data)
        if self._size > LARGE_BYTES:
            self._send()

    def flush(self) -> None:
        """Send now what is held: nothing more comes with it."""
        self._send()

    def close(self) -> None:
        self._send()
        self._transport.close()
        self._closing()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._send()
        self._transport.set_protocol(protocol)

    def _send(self) -> None:
        if self._held:
            whole = b"".join(self._held)
            self._held.clear()
            self._size = 0
            if not self.is_closing():
                self._transport.write(whole)


def _in_kernel(descriptor: int) -> int:
    """Bytes that the kernel holds for the other side, so that a slow reader is told from a deaf one: the kernel takes
    more from us only once it is rid of much."""
    try:
        (size,) = struct.unpack("i", fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(4)))
    except OSError:  # a system that does not tell
        return 0
    return int(size)


class BoundedHttp(HttpToolsProtocol):
    """One connection. What passes a bound is answered in the gateway's form, if it can be, and ended."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        self._in_head = True
        self._around = 0
        self._surplus = 0
        self._fault = (HTTPStatus.BAD_REQUEST, "malformed_body", "This is not HTTP/1.1.")
        self._timer: asyncio.TimerHandle | None = None
        self._wire = transport
        self._departure = ClientDisconnect()
        self._reader: asyncio.TimerHandle | None = None
        super().connection_made(transport)
        self._one_piece = _OnePiece(transport, self.loop, self._watch_reader)
        self.transport = self._one_piece  # type: ignore[assignment]  # all of a transport that is used
        self._wait(HEAD_SECONDS)
        if len(self.connections) > CONNECTIONS:
            self._end(HTTPStatus.SERVICE_UNAVAILABLE, "overloaded", "Too many connections are open.")

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._leave_reader()
        super().connection_lost(exc)
        self._departure.tell()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        if not self._wire.is_closing():
            self._leave_reader()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._around += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._around > HEAD_BYTES:
            self._end(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "too_large", "The head of the request is too large.")
        elif self._in_head and self._around and self._timer is None:
            self._wait(HEAD_SECONDS)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._departure.put_into(self.scope)  # type: ignore[arg-type]  # a dictionary with typed keys

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # a trailer is no header: nothing above looks for it, and none may be smuggled in
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_waiting()
        if not self.url.startswith(b"/"):
            self._fault = (HTTPStatus.MISDIRECTED_REQUEST, "misdirected", "Send a path, not a whole URL.")
            raise ValueError("not a path")  # the parser stops, and the request is answered with the fault
        self._around = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._around = max(0, self._around - len(body) * FRAMING_FACTOR)
        if self.cycle.response_complete:
            self._surplus += len(body)
            if self._surplus > DRAIN_BYTES:
                self.transport.close()
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head = True
        self._around = self._surplus = 0
        self._stop_waiting()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._one_piece.flush()
        super().on_response_complete()
        if not self._in_head:  # the client still sends what nobody will read
            self._wait(DRAIN_SECONDS)

    def send_400_response(self, msg: str) -> None:
        self._end(*self._fault)

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(seconds, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch_reader(self) -> None:
        """From now on, while something waits for the reader, see that it takes some of it."""
        self._leave_reader()
        self._look_at_reader(None)

    def _look_at_reader(self, before: int | None) -> None:
        held, line = self._wire.get_write_buffer_size(), self._wire.get_extra_info("socket")
        if not held:
            return
        waits = held + _in_kernel(line.fileno())
        if waits == before:
            # Closed as usual, it would wait for the reader, here and in the kernel.
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            self._wire.abort()
        else:
            self._reader = self.loop.call_later(READER_SECONDS, self._look_at_reader, waits)

    def _leave_reader(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            self._reader = None

    def _too_slow(self) -> None:
        self._timer = None
        if self._in_head and self._answering():
            self._wait(HEAD_SECONDS)  # the next request waits for the answer to this one
        elif self._in_head and self._around:
            self._end(HTTPStatus.REQUEST_TIMEOUT, "malformed_body", "The head of the request did not arrive in time.")
        else:
            self.transport.close()

    def _answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request, whatever its type says
        return cycle is not None and not cycle.response_complete

    def _end(self, status: HTTPStatus, reason: str, detail: str) -> None:
        """Answer, if no other answer is under way, and close."""
        if not self._answering():
            body = json.dumps({"detail": detail, "status": "error", "reason": reason}).encode()
            head = (
                f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()
