"""A lean MCP client over a child process: one JSON message a line on its standard input and output, in both eras.

Each principal's session has a process of its own, so that nothing a server keeps in memory crosses from one to another;
only a server that is declared to be without state is shared. A call is sent once, and never again.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import anyio.to_thread

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.gateway.upstream.child_guard import Guard
from sentinel_rag.gateway.upstream.mcp_messages import (
    NoList,
    UpstreamProtocol,
    all_pages,
    call_message,
    initialize,
    initialized,
    request,
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
    unusable,
)
from sentinel_rag.gateway.upstream.stdio_child import KILL_AFTER_S, Answer, Child, Launch
from sentinel_rag.gateway.upstream.tool_result import reply_of
from sentinel_rag.telemetry import traceparent

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
