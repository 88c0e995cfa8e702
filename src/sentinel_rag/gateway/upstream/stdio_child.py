"""One process of a tool server and the JSON lines between it and us.

Callbacks of the event loop, no task: answers find their call by id, requests of the server are refused, whatever is no
JSON-RPC is noise up to a limit. The process is the head of its own group, and the group ends with it.
"""

from __future__ import annotations

import asyncio
import itertools
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import msgspec

from sentinel_rag.gateway.upstream.child_guard import Guard, end_group
from sentinel_rag.gateway.upstream.mcp_messages import (
    Message,
    UpstreamProtocol,
    cancelled,
    refusal_of,
    request,
    says_tools_changed,
)
from sentinel_rag.gateway.upstream.port import Unanswered, away, too_large, unusable

MAX_NOISE_BYTES = 64_000
"""What a process may print beside JSON-RPC: banners, and prints that somebody forgot."""

TERMINATE_AFTER_S, KILL_AFTER_S = 0.5, 2.0
"""After its input was closed a process may end by itself, then it is asked to, then it is made to."""

CLOSE_AFTER_S = 1.0
"""When the pipes of a process that has ended are let go, in case a stranger holds their other end."""

SIGN_OF_LIFE_S = 1.0
"""How long a process that did not answer a call may take to answer a ping before the next call gets a fresh one."""

Answer = asyncio.Future[dict[str, Any] | Unanswered]
"""What a request gets: the server's message, or why there is none. It never fails."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How to start the server: an absolute program with its arguments, the whole environment, the working folder."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)  # it holds secrets
    folder: Path


class Child(asyncio.SubprocessProtocol):
    """A started process. `usable` turns false for good once it cannot be trusted with a further call."""

    def __init__(
        self,
        *,
        max_bytes: int,
        ids: itertools.count[int],
        log: Callable[[str], None],
        tools_changed: Callable[[], None],
        guard: Guard,
    ) -> None:
        self.era = UpstreamProtocol.SESSIONS
        self.usable = True
        self.idle_timer: asyncio.TimerHandle | None = None
        self.exited = asyncio.Event()
        self._max_bytes = max_bytes
        self._ids = ids
        self._log = log
        self._tools_changed = tools_changed
        self._guard = guard
        self._loop = asyncio.get_running_loop()
        self._pending: dict[int, Answer] = {}
        self._received = bytearray()
        self._scanned = 0
        self._noise = 0
        self._spoke = asyncio.Event()
        self._spoke.set()
        self._transport: asyncio.SubprocessTransport | None = None
        self._timers: list[asyncio.TimerHandle] = []

    async def start(self, launch: Launch) -> None:
        """Start the process. Raises OSError."""
        launch.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        await self._loop.subprocess_exec(
            lambda: self,
            *launch.command,
            env=dict(launch.environment),
            cwd=launch.folder,
            start_new_session=True,
        )

    @property
    def busy(self) -> bool:
        """True while a call waits for its answer."""
        return bool(self._pending)

    async def is_alive(self) -> bool:
        """Whether a further call may be given to it. After a call was given up it is waited for a sign of life."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SIGN_OF_LIFE_S):
                await self._spoke.wait()
        return self.usable and self._spoke.is_set()

    def ask(self, message: Message) -> Answer:
        """Send a request, once."""
        assert message.request_id is not None
        waiting: Answer = self._loop.create_future()
        if self._write(message.body):
            self._pending[message.request_id] = waiting
        else:
            waiting.set_result(away("The tool server has ended.", may_have_run=False))
        return waiting

    def notify(self, message: Message) -> None:
        self._write(message.body)

    def give_up(self, request_id: int) -> None:
        """Nobody waits for that answer any more: say so, and ask for a sign of life."""
        if self._pending.pop(request_id, None) is not None:
            self._spoke.clear()
            self._write(cancelled(self.era, request_id).body)
            sign = "ping" if self.era is UpstreamProtocol.SESSIONS else "server/discover"
            self._write(request(self.era, next(self._ids), sign, {}).body)

    def forget(self, request_id: int) -> None:
        """Nobody waits for that answer any more, and the server need not know."""
        self._pending.pop(request_id, None)

    def end(self) -> None:
        """Begin to end the process; calls in flight lose their answer. Idempotent."""
        self.usable = False
        if self.idle_timer is not None:
            self.idle_timer.cancel()
        if self._timers or self._transport is None or self.exited.is_set():
            return
        stdin = self._transport.get_pipe_transport(0)
        if stdin is not None:
            stdin.close()
        group = self._transport.get_pid()
        self._timers = [
            self._loop.call_later(TERMINATE_AFTER_S, end_group, group, signal.SIGTERM),
            self._loop.call_later(KILL_AFTER_S, end_group, group, signal.SIGKILL),
        ]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self._guard.watch(self._transport.get_pid())

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._log(data.decode(errors="replace"))
            return
        self._received += data
        while (end := self._received.find(b"\n", self._scanned)) >= 0:
            line = bytes(self._received[:end])
            del self._received[: end + 1]
            self._scanned = 0
            if len(line) > self._max_bytes:
                self._fail(too_large(self._max_bytes, may_have_run=True))
            elif line.strip():
                self._hear(line)
        self._scanned = len(self._received)
        if self._scanned > self._max_bytes:
            self._received.clear()
            self._scanned = 0
            self._fail(too_large(self._max_bytes, may_have_run=True))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self._lose_all(away("The tool server ended during the call.", may_have_run=True))
        if fd in (0, 1):
            self.end()

    def process_exited(self) -> None:
        assert self._transport is not None
        self.usable = False
        group = self._transport.get_pid()
        end_group(group, signal.SIGKILL)  # whatever it has started ends with it
        self._guard.release(group)
        for timer in self._timers:
            timer.cancel()
        self._loop.call_later(CLOSE_AFTER_S, self.close)  # what it wrote last is read before that
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose_all(away("The tool server ended during the call.", may_have_run=True))
        self.close()

    def close(self) -> None:
        """Let go of the pipes of a process that has exited, also where a stranger still holds their other end."""
        if self._transport is not None:
            self._transport.close()

    def _hear(self, line: bytes) -> None:
        if not line.lstrip().startswith(b"{"):
            self._ignore(line)
            return
        try:
            document = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            self._fail(unusable("The tool server's answer is not JSON."))
            return
        self._spoke.set()
        if "result" in document or "error" in document:
            self._answer(document)
        elif says_tools_changed(document):
            self._tools_changed()
        elif (refusal := refusal_of(document)) is not None:
            self._write(refusal)
        elif "method" not in document:
            self._ignore(line)

    def _answer(self, document: dict[str, Any]) -> None:
        request_id = document.get("id")
        if request_id is None and len(self._pending) == 1:  # an error about a message whose id could not be read
            request_id = next(iter(self._pending))
        if isinstance(request_id, int) and not isinstance(request_id, bool):
            waiting = self._pending.pop(request_id, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(document)

    def _ignore(self, line: bytes) -> None:
        self._noise += len(line)
        self._log(line.decode(errors="replace"))
        if self._noise > MAX_NOISE_BYTES:
            self._fail(unusable("The tool server prints something other than MCP messages."))

    def _fail(self, reply: Unanswered) -> None:
        """What comes after cannot be trusted: all calls end with `reply`, and so does the process."""
        self._lose_all(reply)
        self.end()

    def _lose_all(self, reply: Unanswered) -> None:
        pending, self._pending = self._pending, {}
        for waiting in pending.values():
            if not waiting.done():
                waiting.set_result(reply)

    def _write(self, body: bytes) -> bool:
        stdin = None if self._transport is None else self._transport.get_pipe_transport(0)
        if stdin is None or stdin.is_closing():
            return False
        cast(asyncio.WriteTransport, stdin).write(body + b"\n")
        return True
