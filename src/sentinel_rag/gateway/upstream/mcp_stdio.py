"""A lean MCP client over a child process: one JSON message a line on its standard input and output, in both protocol
versions.

Each principal's session has a process of its own, so that nothing a server keeps in memory crosses from one to another;
only a server that is declared to be without state is shared. A call is sent once, and never again.

Callbacks of the event loop, no task: answers find their call by id, requests of the server are refused, whatever is no
JSON-RPC is noise up to a limit. The process is the head of its own group, and the group ends with it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import signal
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from weakref import WeakValueDictionary

import anyio.to_thread
import msgspec

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.gateway.upstream.child_guard import Guard, end_group
from sentinel_rag.gateway.upstream.mcp_messages import (
    Message,
    NoList,
    UpstreamProtocol,
    all_pages,
    call_message,
    cancelled,
    initialize,
    initialized,
    refusal_of,
    reply_of,
    request,
    says_tools_changed,
    speaks_stateless,
)
from sentinel_rag.gateway.upstream.port import (
    Owner,
    ServerCredentials,
    Unanswered,
    UpstreamCall,
    UpstreamReply,
    UpstreamTool,
    away,
    busy,
    timed_out,
    too_large,
    unusable,
)
from sentinel_rag.telemetry import traceparent

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
        self._transport = cast("asyncio.SubprocessTransport", transport)
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
        cast("asyncio.WriteTransport", stdin).write(body + b"\n")
        return True


PROBE_S = 5.0
"""How long a server may think about `server/discover`; older ones may not answer what they do not know."""

START_S = 60.0
"""How long a process may take until it serves. Who waited less leaves, and the next one waits for the same process."""

UNSUPPORTED_VERSION = -32022
LOG_BYTES, LOG_WINDOW_S = 256_000, 3_600.0
MAX_LOG_LINE = 2_000

_NOBODY: Owner = ("", "")
"""The owner of the process that lists tools, and of a shared one; no caller can be it."""

_NOT_READY = away("The tool server ended before it was ready.", may_have_run=False)

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Start:
    """A process that has not agreed on the protocol yet, and what it was asked so far; `began` is the loop's time."""

    child: Child
    began: float
    discover: tuple[int, Answer] | None = None
    initialize: Answer | None = None


class McpStdioUpstream:
    """The MCP server that `launch` starts; `name` stands in the log only.

    At most `max_children` processes live at once, and one that was idle for `idle_s` ends. `secrets` are values of the
    environment that may not come back in a result, an error or a log line. Belongs to the event loop of its first use.
    """

    def __init__(
        self,
        launch: Launch,
        *,
        name: str = "",
        secrets: Iterable[str] = (),
        era: UpstreamProtocol | None = None,
        shared: bool = False,
        max_result_bytes: int = 8_000_000,
        max_children: int = 32,
        idle_s: float = 300.0,
    ) -> None:
        self._launch = launch
        self._name = name
        self._credentials = ServerCredentials(secrets)
        self._era = era
        self._shared = shared
        self._max_result_bytes = max_result_bytes
        self._max_children = max_children
        self._idle_s = idle_s
        self._ids = itertools.count(1)
        self._children: OrderedDict[Owner, Child] = OrderedDict()
        self._begun: dict[Owner, _Start] = {}
        self._ending: set[Child] = set()
        self._starting = 0
        self._opening: WeakValueDictionary[Owner, asyncio.Lock] = WeakValueDictionary()
        self._guard = Guard()
        self._tools_changed: Callable[[], None] = lambda: None
        self._log_left, self._log_since = LOG_BYTES, float("-inf")

    async def call(self, call: UpstreamCall) -> UpstreamReply:
        """See `Upstream.call`."""
        owner = _NOBODY if self._shared else call.owner
        request_id = next(self._ids)
        child: Child | None = None
        try:
            async with asyncio.timeout(call.timeout_s):
                found = await self._child(owner)
                if isinstance(found, Unanswered):
                    return found
                child = found
                place = traceparent()
                beside = None if place is None else {"traceparent": place}
                answer = await child.ask(
                    call_message(child.era, request_id, call.tool, call.arguments.encoded, beside=beside)
                )
        except TimeoutError:
            return timed_out(call.timeout_s, may_have_run=child is not None)
        finally:
            if child is not None:
                child.give_up(request_id)  # nothing to give up where the answer came
                self._rest(owner, child)
        return answer if isinstance(answer, Unanswered) else self._credentials.hidden_in(reply_of(answer))

    async def list_tools(self, *, timeout_s: float) -> tuple[UpstreamTool, ...]:
        """See `Upstream.list_tools`."""
        child: Child | None = None
        try:
            async with asyncio.timeout(timeout_s):
                found = await self._child(_NOBODY)
                if isinstance(found, Child):
                    child = found
                    return await self._list_tools(child)
                reason = found.error.message
        except (TimeoutError, NoList) as error:
            reason = str(error) or "It did not answer in time."
        finally:
            if child is not None:
                self._rest(_NOBODY, child)
        raise UnavailableError(
            f"A tool server did not list its tools. {reason}", next_step="Check that the tool server runs."
        )

    def on_tools_changed(self, listener: Callable[[], None]) -> None:
        """See `Upstream.on_tools_changed`."""
        self._tools_changed = listener

    async def end_session(self, *, principal: str, session_id: str) -> None:
        """See `Upstream.end_session`. Calls of that session that still run keep their process until they end."""
        owner = (principal, session_id)
        child = self._children.get(owner)
        if child is not None:
            self._retire(owner, child)
        self._abandon(owner)

    async def aclose(self) -> None:
        """End every process, for certain."""
        children = [*self._children.values(), *(start.child for start in self._begun.values()), *self._ending]
        self._children.clear()
        self._begun.clear()
        for child in children:
            child.end()
        try:
            async with asyncio.timeout(KILL_AFTER_S + 1):
                for child in children:
                    await child.exited.wait()
        except TimeoutError:
            pass  # the guard kills what is left
        finally:
            await anyio.to_thread.run_sync(self._guard.close)
            for child in children:
                child.close()
        self._ending.clear()

    async def _list_tools(self, child: Child) -> tuple[UpstreamTool, ...]:
        async def ask(params: dict[str, Any]) -> Any:
            message = request(child.era, next(self._ids), "tools/list", params)
            try:
                answer = await child.ask(message)
            finally:
                assert message.request_id is not None
                child.give_up(message.request_id)
            if isinstance(answer, Unanswered):
                raise NoList(answer.error.message)
            return answer

        return await all_pages(ask)

    async def _child(self, owner: Owner) -> Child | Unanswered:
        """The process of an owner, started on first use and after one that ended or hangs."""
        async with self._opening.setdefault(owner, asyncio.Lock()):
            child = self._children.get(owner)
            if child is not None and child.usable and await child.is_alive():
                self._children.move_to_end(owner)
                if child.idle_timer is not None:
                    child.idle_timer.cancel()
                return child
            if child is not None:
                self._retire(owner, child)
            begun = self._begun.pop(owner, None)
            if begun is None and not self._room():
                return busy()
            self._starting += 1
            try:
                opened = await self._open(owner, begun)
            finally:
                self._starting -= 1
            if isinstance(opened, Child):
                self._children[owner] = opened
            return opened

    async def _open(self, owner: Owner, begun: _Start | None) -> Child | Unanswered:
        """A process that has agreed on the protocol: the one that was `begun`, or a new one."""
        while True:
            try:
                start = begun or await self._start()
            except OSError as error:
                _log.warning("tool server %s: cannot be started: %s", self._name, error.strerror)
                return away("The tool server cannot be started.", may_have_run=False)
            begun = None
            if start.child.idle_timer is not None:
                start.child.idle_timer.cancel()
            asked = self._era
            try:
                fault = await self._agree(start)
            except asyncio.CancelledError:  # whoever waited has left
                self._keep_starting(owner, start)
                raise
            except BaseException:
                self._end(start.child)
                raise
            if fault is None:
                return start.child
            self._end(start.child)
            if asked is self._era:
                return fault

    async def _start(self) -> _Start:
        child = self._new_child()
        await child.start(self._launch)
        return _Start(child, asyncio.get_running_loop().time())

    def _keep_starting(self, owner: Owner, start: _Start) -> None:
        """Leave a slow process its time: one that was begun anew for each caller would never serve."""
        loop = asyncio.get_running_loop()
        left = start.began + START_S - loop.time()
        if start.child.usable and left > 0:
            self._begun[owner] = start
            start.child.idle_timer = loop.call_later(left, self._abandon, owner)
        else:
            self._end(start.child)

    def _abandon(self, owner: Owner) -> None:
        start = self._begun.pop(owner, None)
        if start is not None:
            self._end(start.child)

    def _new_child(self) -> Child:
        return Child(
            max_bytes=self._max_result_bytes,
            ids=self._ids,
            log=self._keep,
            tools_changed=lambda: self._tools_changed(),
            guard=self._guard,
        )

    async def _agree(self, start: _Start) -> Unanswered | None:
        """None once the process serves. Goes on where it was left, so nothing is asked twice."""
        child, era = start.child, self._era
        if era is None:
            era = await self._era_of(start)
        if start.discover is not None:
            child.forget(start.discover[0])
        if not child.usable:
            if self._era is None:
                self._era = UpstreamProtocol.SESSIONS  # it may have died of the question: a fresh one is not asked
            return _NOT_READY
        if era is UpstreamProtocol.SESSIONS:
            if start.initialize is None:
                start.initialize = child.ask(initialize(next(self._ids)))
            answer = await asyncio.shield(start.initialize)
            if isinstance(answer, Unanswered):
                return _NOT_READY
            if "error" in answer:
                error = answer["error"]
                if not (isinstance(error, dict) and error.get("code") == UNSUPPORTED_VERSION):
                    return unusable("The tool server did not open a session.", may_have_run=False)
                era = UpstreamProtocol.STATELESS  # its answer to the first question came too late
            else:
                child.notify(initialized())
        self._era = child.era = era
        return None

    async def _era_of(self, start: _Start) -> UpstreamProtocol:
        if start.discover is None:
            request_id = next(self._ids)
            start.discover = (
                request_id,
                start.child.ask(request(UpstreamProtocol.STATELESS, request_id, "server/discover", {})),
            )
        try:
            async with asyncio.timeout_at(start.began + PROBE_S):
                return (
                    UpstreamProtocol.STATELESS
                    if speaks_stateless(await asyncio.shield(start.discover[1]))
                    else UpstreamProtocol.SESSIONS
                )
        except TimeoutError:
            return UpstreamProtocol.SESSIONS

    def _room(self) -> bool:
        """Whether a further process may start; the one that was idle longest gives way."""
        if len(self._children) + len(self._begun) + self._starting < self._max_children:
            return True
        for owner, child in self._children.items():
            if not child.busy:
                self._retire(owner, child)
                return True
        for owner in self._begun:  # nobody waits for it
            self._abandon(owner)
            return True
        return False

    def _retire(self, owner: Owner, child: Child) -> None:
        """No further call for this process; it ends when its last one has."""
        if self._children.get(owner) is child:
            del self._children[owner]
        child.usable = False
        if not child.busy:
            self._end(child)

    def _rest(self, owner: Owner, child: Child) -> None:
        """A call of this process has ended."""
        if child.busy:
            return
        if child.usable:
            if child.idle_timer is not None:
                child.idle_timer.cancel()
            child.idle_timer = asyncio.get_running_loop().call_later(self._idle_s, self._retire, owner, child)
        else:
            self._retire(owner, child)

    def _end(self, child: Child) -> None:
        self._ending = {one for one in self._ending if not one.exited.is_set()}
        self._ending.add(child)
        child.end()

    def _keep(self, text: str) -> None:
        """Put what a process prints into the zone's log, within a budget that it cannot pass."""
        now = asyncio.get_running_loop().time()
        if now - self._log_since > LOG_WINDOW_S:
            self._log_left, self._log_since = LOG_BYTES, now
        for line in self._credentials.text(text).splitlines():
            if self._log_left <= 0:
                return
            self._log_left -= len(line) + 1
            if line.strip():
                _log.info("tool server %s: %s", self._name, line[:MAX_LOG_LINE])
            if self._log_left <= 0:
                _log.warning("tool server %s prints too much; nothing more of it is kept for now", self._name)
