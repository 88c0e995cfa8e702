"""The routes of a session: opening and closing one, its calls, what a person's words name in it, its story, and its
hidden values.

An agent's key opens sessions for itself; a key with the scope `user` speaks for a signed-in person, opens clean ones
for its agent's key and is the only one that can name values or see hidden ones. Nothing here runs a tool. What a story
tells leaves arguments, labels and rules in the journal: a record may hold what the policy hides from this person. What
ends by itself in a session ends at any gateway of the state; labels stay, whatever is forgotten.

The body becomes a request to the gate, whose outcome becomes a response; what is refused before that is admission's.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.to_thread
import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sentinel_rag.audit import HandlesResolved, Journal, JournalEntry, RecordFilter, ValuesNamed
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.labels import Label
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.servers import ClientDisconnect, disconnect_of
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.admission import Authenticator, GatewayLimits, read_body, read_json_body
from sentinel_rag.gateway.catalogue import Catalogue
from sentinel_rag.gateway.flow import HandleReference, NoSuchHandle
from sentinel_rag.gateway.flow.judging import Violation
from sentinel_rag.gateway.flow.named_values import NamedValue, named_in
from sentinel_rag.gateway.flow.plans import PLAN, BadPlan, read_plan
from sentinel_rag.gateway.gate import Gate
from sentinel_rag.gateway.gate.call import CLOSED
from sentinel_rag.gateway.policy import Effect, Policies
from sentinel_rag.gateway.request_body import ExecuteRequest, MalformedBody, parse_execute
from sentinel_rag.gateway.responses import Outcome, RefusedRequest, Unread, json_response, outcome_response, problem
from sentinel_rag.gateway.store import (
    HandleStore,
    PlanRefused,
    Principal,
    Scope,
    Session,
    SessionStore,
    TooManySessions,
)
from sentinel_rag.gateway.telemetry import request_span, tell_status
from sentinel_rag.gateway.upstream import Upstream

MOST_RECORDS = 1_000
MOST_PAGES = 10
"""Pages of `Journal.back`, each of at most 20 000 records that are looked at."""

READ = "read"
ASKED = "approval_asked"
TOLD = frozenset({"intent", "refusal", ASKED, "approval_decided", "approval_lapsed"})
FIELDS = (
    *("seq", "kind", "audit_id", "at", "key_id", "tool", "requested_tool", "effect", "reason"),
    *("approval_id", "why", "decision", "actor", "comment", "state"),
)


@dataclass(frozen=True, slots=True)
class SessionStory:
    """Records in the form of the audit with `FIELDS` alone, oldest first. `whole` is False where there were more than
    was looked at; `head` is number and hash of the newest record of all."""

    records: tuple[dict[str, Any], ...]
    whole: bool
    head: dict[str, JsonValue]

    def to_dict(self) -> dict[str, Any]:
        return {"records": list(self.records), "whole": self.whole, "head": self.head}


async def story_of(journal: Journal, session_id: str) -> SessionStory:
    """What became of the calls of the session, back to its opening."""
    head = await journal.head()
    found: dict[int, JournalEntry] = {}
    before, opened = None, False
    for _ in range(MOST_PAGES):
        page = await journal.back(RecordFilter(session_id=session_id), before, MOST_RECORDS)
        found |= {entry.seq: entry for entry in page.entries}
        opened = any(entry.record.get("change") == "opened" for entry in page.entries)
        before = page.next_before
        if opened or before is None or len(found) >= MOST_RECORDS:
            break
    for asked in [entry.audit_id for entry in found.values() if entry.kind == ASKED]:
        found |= {entry.seq: entry for entry in await journal.find(asked)}  # a decision is in no session
    return SessionStory(
        tuple(_told(found[seq] for seq in sorted(found))),
        opened or before is None,
        {"seq": head.seq, "hash": head.digest.hex()},
    )


def _told(entries: Iterable[JournalEntry]) -> Iterable[dict[str, Any]]:
    for entry in entries:
        if entry.kind in TOLD and not (entry.kind == "intent" and entry.record.get("effect") == READ):
            shown = {name: entry.record[name] for name in FIELDS if name in entry.record}
            yield {"record": shown, "outcome": None if entry.outcome is None else entry.outcome.value}


WATCH_S = 900.0

_log = logging.getLogger(__name__)


class SessionUpkeep:
    """`end_unused` ends the standing sessions that nobody uses."""

    def __init__(self, end_unused: Callable[[], Awaitable[object]], handles: HandleStore, *, clock: Clock) -> None:
        self._end_unused = end_unused
        self._handles = handles
        self._clock = clock

    async def watch(self) -> None:
        """Look after them for as long as it is not cancelled."""
        while True:
            try:
                await self._end_unused()
                while await anyio.to_thread.run_sync(self._handles.forget_unused, self._clock()):
                    pass  # some at a time, so that calls come in between
            except Exception as error:  # a state that is away is back at the next time; nothing may end the watch
                _log.warning("sessions that nobody uses were not looked after: %s", error)
            await anyio.sleep(WATCH_S)


MAX_HANDLES = 500
"""Handles that one request may ask for."""

RETRY_SESSION_S = 3_600
"""When a key that has had too many sessions may find room again: an hour of a day has passed."""

USER = "user"


async def close_session(
    sessions: SessionStore, upstreams: Mapping[str, Upstream], session_id: str, key_id: str
) -> bool:
    """Close a session, and with it what it has at tool servers; False if it is not the key's, or a person opened it and
    the agent would close it: nobody takes a conversation from them."""
    session = await sessions.find(session_id, key_id)
    if session is None or session.user_key_id not in (None, key_id) or not await sessions.close(session_id, key_id):
        return False
    for upstream in upstreams.values():
        await upstream.end_session(principal=session.key_id, session_id=session_id)
    return True


class _Words(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: str
    chosen: str = ""


class _Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    steps: Any


class _Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    handles: list[str]


class SessionRoutes:
    """`new_id` makes audit ids."""

    def __init__(
        self,
        authenticator: Authenticator,
        sessions: SessionStore,
        handles: HandleStore,
        journal: Journal,
        upstreams: Mapping[str, Upstream],
        limits: GatewayLimits,
        new_id: Callable[[], str],
        policies: Policies,
    ) -> None:
        self._authenticator = authenticator
        self._sessions = sessions
        self._handles = handles
        self._journal = journal
        self._upstreams = upstreams
        self._limits = limits
        self._new_id = new_id
        self._policies = policies

    def routes(self) -> list[Route]:
        return [
            Route("/v1/sessions", self.open, methods=["POST"]),
            Route("/v1/sessions/{session_id}", self.show, methods=["GET"]),
            Route("/v1/sessions/{session_id}", self.close, methods=["DELETE"]),
            Route("/v1/sessions/{session_id}/records", self.records, methods=["GET"]),
            Route("/v1/sessions/{session_id}/words", self.words, methods=["POST"]),
            Route("/v1/sessions/{session_id}/plan", self.plan, methods=["POST"]),
            Route("/v1/sessions/{session_id}/resolve", self.resolve, methods=["POST"]),
        ]

    async def open(self, request: Request) -> Response:
        """A new session: for the caller's own key, or, with a person's key, a clean one for its agent."""
        principal = await self._authenticator.admit(request, Scope.EXECUTE, Scope.USER)
        if Scope.USER in principal.scopes:
            if principal.for_key is None:
                return problem(Reason.CONFLICT, "This key names no agent key for which it opens sessions.")
            opener, user_key_id = principal.for_key, principal.key_id
        else:
            opener, user_key_id = principal.key_id, None
        try:
            most = self._limits.sessions_per_key
            session = await self._sessions.open(opener, user_key_id=user_key_id, most=most)
        except TooManySessions as many:
            raise Unread(Reason.RATE_LIMITED, f"{many} {many.next_step}", retry_after_s=RETRY_SESSION_S) from None
        return json_response({"session_id": session.session_id, "context": session.context.to_dict()}, 201)

    async def show(self, request: Request) -> Response:
        """Context label, what raised it, and what the person's words named."""
        principal = await self._authenticator.admit(request, Scope.EXECUTE, Scope.USER)
        session = await self._session(request, principal)
        raised = await self._sessions.raises(session)
        body: dict[str, Any] = {
            "session_id": session.session_id,
            "context": session.context.to_dict(),
            "closed": session.closed,
            "raised_by": [each.to_dict() for each in raised],
        }
        if Scope.USER in principal.scopes:
            body["named"] = [
                {"kind": str(value.kind), "text": value.text, "by": by} for value, by in session.named.items()
            ]
        return json_response(body)

    async def close(self, request: Request) -> Response:
        principal = await self._authenticator.admit(request, Scope.EXECUTE, Scope.USER)
        session_id = request.path_params["session_id"]
        if not await close_session(self._sessions, self._upstreams, session_id, principal.key_id):
            return problem(Reason.NOT_FOUND, "There is no such session.")
        return Response(status_code=204)

    async def records(self, request: Request) -> Response:
        """What became of the calls of the person's own session, without their arguments."""
        principal = await self._authenticator.admit(request, Scope.USER)
        session = await self._session(request, principal, of_person=True)
        return json_response((await story_of(self._journal, session.session_id)).to_dict())

    async def words(self, request: Request) -> Response:
        """Take a person's own words, `{"text": ...}`; the answer lists what they name. `chosen` is the option that the
        surface had shown and that the words pick ("1"): whoever decides reads it, and it names nothing, since the agent
        wrote it."""
        principal = await self._authenticator.admit(request, Scope.USER)
        session = await self._session(request, principal, of_person=True)
        body = await read_body(request, self._limits, _Words)
        text, chosen = body.text, body.chosen
        named = sorted(named_in(text, self._policies.current), key=lambda value: (str(value.kind), value.text))
        await self._sessions.say(session, f"{text}: {chosen}" if chosen else text, self._policies.current.memory)
        await self._name(session, principal, named, USER)
        return json_response({"named": [{"kind": str(value.kind), "text": value.text} for value in named]})

    async def plan(self, request: Request) -> Response:
        """Take the plan that a person commits to, `{"steps": [{"tool": ..., "args": {...}}]}`, before the session has
        read anything: what it holds came from nowhere but the person and who planned for them."""
        principal = await self._authenticator.admit(request, Scope.USER)
        session = await self._session(request, principal, of_person=True)
        steps = (await read_body(request, self._limits, _Plan)).steps
        try:
            said = read_plan(steps, self._policies.current)
        except BadPlan as fault:
            return problem(Reason.INVALID_ARGUMENT, str(fault))
        await self._sessions.refresh(session)
        try:
            write = session.commit(said, PLAN)
        except PlanRefused as refused:
            return problem(Reason.CONFLICT, str(refused))
        try:
            await self._journal.append(self._named(session, principal, said, PLAN), alongside=write)
        except BaseException as fault:
            session.unname(said)  # another process took a plan, or nothing can be recorded: this one is none
            if isinstance(fault, PlanRefused):
                return problem(Reason.CONFLICT, str(fault))
            raise
        return json_response({"steps": len(said)})

    async def resolve(self, request: Request) -> Response:
        """The values of hidden parts, `{"handles": [...]}`, for a person whose clearance covers their labels."""
        principal = await self._authenticator.admit(request, Scope.USER)
        session = await self._session(request, principal, of_person=True)
        wanted = (await read_body(request, self._limits, _Wanted)).handles
        if len(wanted) > MAX_HANDLES:
            return problem(Reason.TOO_LARGE, f"At most {MAX_HANDLES} handles may be asked for at once.")
        shown: dict[str, Any] = {}
        labels: list[tuple[str, Label]] = []
        refused: list[str] = []
        references: dict[str, HandleReference] = {}
        for text in wanted:
            with suppress(NoSuchHandle):  # what is not there is left out of the answer
                references[text] = HandleReference.parse(text)
        kept = await self._handles.known(session.session_id, references.values())
        for text, reference in references.items():
            found = kept.get(reference)
            if found is None:
                continue
            if found.label.sensitivity > principal.clearance:
                refused.append(text)
            else:
                shown[text] = found.value
                labels.append((text, found.label))
        if shown or refused:
            await self._journal.append(
                HandlesResolved(
                    audit_id=self._new_id(),
                    key_id=principal.key_id,
                    session_id=session.session_id,
                    handles=tuple(labels),
                    refused=tuple(refused),
                )
            )
        return json_response({"values": msgspec.to_builtins(shown), "refused": refused})

    async def _session(self, request: Request, principal: Principal, *, of_person: bool = False) -> Session:
        """The session of the route. With `of_person` one that this key opened as a person's: a key that may execute too
        does not speak as the person in a session of its own."""
        session = await self._sessions.find(request.path_params["session_id"], principal.key_id)
        if session is None or (of_person and session.user_key_id != principal.key_id):
            raise RefusedRequest(problem(Reason.NOT_FOUND, "There is no such session."))
        return session

    async def _name(self, session: Session, principal: Principal, values: Iterable[NamedValue], by: str) -> None:
        fresh, write = session.name(values, by)
        if not fresh:
            return
        try:
            await self._journal.append(self._named(session, principal, fresh, by), alongside=write)
        except BaseException:
            session.unname(fresh)
            raise

    def _named(self, session: Session, principal: Principal, values: Iterable[NamedValue], by: str) -> ValuesNamed:
        return ValuesNamed(
            audit_id=self._new_id(),
            key_id=principal.key_id,
            session_id=session.session_id,
            source=by,
            values=tuple((str(value.kind), value.text) for value in values),
        )


Surveying = Callable[[], Awaitable[Catalogue]]
"""Asks which tools of the policy can be called now."""


@dataclass(frozen=True, slots=True)
class CallRoutes:
    """`survey` asks the tool servers. A call is counted by the gate, and here only where its body never gets there."""

    gate: Gate
    policies: Policies
    authenticator: Authenticator
    sessions: SessionStore
    limits: GatewayLimits
    survey: Surveying

    def execute_route(self) -> Route:
        """The route that is asked all day; the application also answers it by `fast_path`."""
        return Route("/v1/proxy-execute", self.execute, methods=["POST"])

    def routes(self) -> list[Route]:
        """All others."""
        return [
            Route("/v1/tools", self.tools, methods=["GET"]),
            Route("/v1/look", self.look, methods=["POST"]),
            Route("/v1/look", self.tools_to_look_with, methods=["GET"]),
        ]

    async def execute(self, request: Request) -> Response:
        principal = await self.authenticator.admit(request, Scope.EXECUTE, counts=False)
        return await self._called(request, principal, self.gate.execute)

    async def look(self, request: Request) -> Response:
        """A call of the person's own, which only reads, in a session that no agent's key enters."""
        principal = await self.authenticator.admit(request, Scope.USER, counts=False)
        return await self._called(request, principal, self.gate.look)

    async def _called(
        self,
        request: Request,
        principal: Principal,
        call: Callable[[Principal, ExecuteRequest, ClientDisconnect | None], Awaitable[Outcome]],
    ) -> Response:
        with request_span(request) as span:
            body = await read_json_body(request, self.limits)
            try:
                execute = parse_execute(body)
            except MalformedBody as fault:
                self.authenticator.rates.take(principal.key_id, principal.rate)
                outcome: Outcome = await self.gate.refuse_body(principal, str(fault))
            else:
                outcome = await call(principal, execute, disconnect_of(request.scope))
            response = outcome_response(outcome)
            tell_status(span, request.scope["route"].path, response.status_code)
            return response

    async def tools(self, request: Request) -> Response:
        """The tools that the key may call; with `session_id` also which of them this session refuses as a whole."""
        principal = await self.authenticator.admit(request, Scope.EXECUTE)
        session_id = request.query_params.get("session_id")
        if session_id is None:
            return await self._offered(tuple(Effect))
        session = await self.sessions.find(session_id, principal.key_id)
        # A person's key opens sessions, and only the agent's calls in them.
        if session is None or session.key_id != principal.key_id:
            return problem(Reason.NOT_FOUND, "There is no such session.")
        if session.closed:
            return problem(Reason.CONFLICT, CLOSED)
        offered = await self.offered(tuple(Effect))
        refused = await self.gate.refused_now(principal, session)
        tools = [{**tool, **_refusal(tool["name"], refused)} for tool in offered]
        return json_response({"tools": tools, "policy": self.policies.current.sha256})

    async def tools_to_look_with(self, request: Request) -> Response:
        await self.authenticator.admit(request, Scope.USER)
        return await self._offered((Effect.READ,))

    async def _offered(self, effects: Sequence[Effect]) -> Response:
        sha256 = self.policies.current.sha256
        return json_response({"tools": await self.offered(effects), "policy": sha256})

    async def offered(self, effects: Sequence[Effect]) -> list[dict[str, Any]]:
        """The tools with these effects that can be called now, in the catalogue's wire form."""
        catalogue = await self.survey()
        return [tool for tool in catalogue.offered if tool["effect"] in effects]


def _refusal(tool: str, refused: Mapping[str, tuple[Violation, ...]]) -> dict[str, Any]:
    violations = refused.get(tool)
    if not violations:
        return {"refused_now": False}
    first = violations[0]
    what = "The call" if not first.parameter else f"Its argument {first.parameter}"
    why = (
        f"This session, or another one of this agent, has read what is {_label(first.label)}. {what} may carry at "
        f"most what is {_label(first.accepts)}, so every call is refused."
    )
    return {"refused_now": True, "reason": Reason.SINK_LABEL.value, "why": why}


def _label(label: Label) -> str:
    return f"{label.sensitivity.name} and {label.integrity.name}"
