"""The routes for people who look after the gateway: its journal, its pinned tools, its policy, people's keys, and
changes of stores that surfaces make.

Pinned definitions are shown whole: whoever accepts one has to be able to read what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

import anyio.to_thread
import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sentinel_rag.audit import Journal, JournalEntry, StoreChanged
from sentinel_rag.audit.reader import MAX_PAGE, RecordFilter
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.admission import Authenticator, GatewayLimits, read_body
from sentinel_rag.gateway.pins import Definition, NotWaiting, Pin, Pins
from sentinel_rag.gateway.policy import Policies
from sentinel_rag.gateway.policy.loading import PolicyBook, RefusedFile
from sentinel_rag.gateway.responses import RefusedRequest, json_response, problem, problem_body
from sentinel_rag.gateway.store import KeyStore, Principal, Scope
from sentinel_rag.gateway.store.keys import RUN_KEY_IDS, KeyInfo

DEFAULT_PAGE = 100
MAX_WANTED = 200


@dataclass(frozen=True, slots=True)
class AuditRoutes:
    """What is on record, as it stands there; nothing is changed here."""

    authenticator: Authenticator
    journal: Journal
    keys: KeyStore

    def routes(self) -> list[Route]:
        return [
            Route("/v1/audit", self.page, methods=["GET"]),
            Route("/v1/audit/{audit_id}", self.record, methods=["GET"]),
        ]

    async def page(self, request: Request) -> Response:
        await self.authenticator.admit(request, Scope.AUDIT)
        after = _whole_number(request, "after", 0, 2**62)
        limit = _whole_number(request, "limit", DEFAULT_PAGE, MAX_PAGE)
        if "before" in request.query_params:
            before = _whole_number(request, "before", 0, 2**62) or None
            wanted = _wanted(request)
            if person := request.query_params.get("person"):
                keys = frozenset({person, *(each.key_id for each in self.keys.list() if each.name == person)})
                # Its own words for the agent are of the key, what the agent did then is of the session alone.
                sessions = await self.journal.sessions_of(keys, before)
                wanted = replace(wanted, keys=keys, sessions=sessions)
            found = await self.journal.back(wanted, before, limit)
            return json_response({**self._told(found.entries), "next_before": found.next_before})
        entries = await self.journal.read(after, limit)
        last = entries[-1].seq if entries else after
        return json_response({**self._told(entries), "next_after": last})

    async def record(self, request: Request) -> Response:
        await self.authenticator.admit(request, Scope.AUDIT)
        entries = await self.journal.find(request.path_params["audit_id"])
        if not entries:
            return problem(Reason.NOT_FOUND, "There is no record with this id.")
        return json_response(self._told(entries))

    def _told(self, entries: Sequence[JournalEntry]) -> JsonObject:
        ids = {str(entry.record.get(name)) for entry in entries for name in ("key_id", "requested_by")}
        names = {key_id: name for key_id in sorted(ids) if (name := self.keys.name_of(key_id))}
        return {"records": [entry.to_dict() for entry in entries], "names": names}


def _wanted(request: Request) -> RecordFilter:
    """What is asked for of the journal. Raises Refusal for a text that no record holds."""
    given = {name: request.query_params.get(name) for name in ("kind", "tool", "session_id", "incident", "person")}
    for name, text in given.items():
        if text is not None and not 1 <= len(text) <= MAX_WANTED:
            raise RefusedRequest(problem(Reason.INVALID_ARGUMENT, f"{name} must have 1 to {MAX_WANTED} characters."))
    session_id, incident = given["session_id"], given["incident"]
    return RecordFilter(kind=given["kind"], tool=given["tool"], session_id=session_id, incident=incident)


def _whole_number(request: Request, name: str, default: int, largest: int) -> int:
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= largest):
        raise RefusedRequest(problem(Reason.INVALID_ARGUMENT, f"{name} must be a whole number from 0 to {largest}."))
    return int(text)


class _AcceptedPin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sha256: str


class PinRoutes:
    """`GET /v1/pins` and `POST /v1/pins/{server}/{tool}` with `{"sha256": ...}`."""

    def __init__(self, authenticator: Authenticator, pins: Pins, limits: GatewayLimits) -> None:
        self._authenticator = authenticator
        self._pins = pins
        self._limits = limits

    def routes(self) -> list[Route]:
        return [
            Route("/v1/pins", self.all, methods=["GET"]),
            Route("/v1/pins/{server}/{tool}", self.accept, methods=["POST"]),
        ]

    async def all(self, request: Request) -> Response:
        await self._authenticator.admit(request, Scope.ADMIN)
        return json_response({"pins": [wire_form(pin) for pin in self._pins.all()]})

    async def accept(self, request: Request) -> Response:
        principal = await self._authenticator.admit(request, Scope.ADMIN)
        sha256 = (await read_body(request, self._limits, _AcceptedPin)).sha256
        server, tool = request.path_params["server"], request.path_params["tool"]
        try:
            pin = await self._pins.accept(server, tool, sha256, key_id=principal.key_id)
        except NotWaiting as fault:
            return problem(Reason.CONFLICT, f"{fault} {fault.next_step}")
        return json_response(wire_form(pin))


PERSONAL = frozenset({Scope.USER, Scope.APPROVE, Scope.AUDIT, Scope.ADMIN})
"""The scopes of people; the key of an agent is made where the gateway runs."""


class _KeyTerms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    scopes: frozenset[Scope]
    clearance: Literal["LOW", "MEDIUM", "HIGH"]
    readers: tuple[str, ...]
    replaces: str | None


class KeyRoutes:
    """`POST /v1/keys`, `POST /v1/keys/{key_id}/rotate` and `DELETE /v1/keys/{key_id}`: the keys of people's accounts.

    Nobody gives more than they have, nor changes a key that has more: they may end it. So no key made or taken over
    here raises anybody's rights. The one exception is the key of a run: whoever holds it owns this gateway's files.
    """

    def __init__(self, authenticator: Authenticator, keys: KeyStore, limits: GatewayLimits) -> None:
        self._authenticator = authenticator
        self._keys = keys
        self._limits = limits

    def routes(self) -> list[Route]:
        return [
            Route("/v1/keys", self.create, methods=["POST"]),
            Route("/v1/keys/{key_id}/rotate", self.rotate, methods=["POST"]),
            Route("/v1/keys/{key_id}", self.revoke, methods=["DELETE"]),
        ]

    async def create(self, request: Request) -> Response:
        """A new key, in the place of the key `replaces` where there is one."""
        principal = await self._authenticator.admit(request, Scope.ADMIN)
        wanted = await read_body(request, self._limits, _KeyTerms)
        clearance, user = Sensitivity[wanted.clearance], Scope.USER in wanted.scopes
        self._within(principal, wanted.scopes, clearance, wanted.readers)
        replaced = None if wanted.replaces is None else self._personal(wanted.replaces)
        if replaced is not None:  # else an account above the giver is lowered first, and then taken over
            self._within(principal, replaced.scopes, replaced.clearance, replaced.readers)
        make = partial(
            self._keys.create,
            wanted.scopes,
            name=wanted.name if replaced is None else replaced.name,
            clearance=clearance,
            for_key=(principal.for_key or RUN_KEY_IDS[0]) if user else None,
            readers=wanted.readers if user else (),
            unique_name=replaced is None,
        )
        try:
            text, info = await self._change(make, principal)
        except UsageError as fault:
            return problem(Reason.INVALID_ARGUMENT, f"{fault} {fault.next_step}")
        if replaced is not None:  # only now: terms that are refused leave the old key as it was
            await self._change(partial(self._keys.revoke, replaced.key_id), principal)
        return json_response({"key": text, "key_id": info.key_id}, 201)

    async def rotate(self, request: Request) -> Response:
        principal = await self._authenticator.admit(request, Scope.ADMIN)
        found = self._personal(request.path_params["key_id"])
        self._within(principal, found.scopes, found.clearance, found.readers)
        made = await self._change(partial(self._keys.rotate, found.key_id), principal)
        if made is None:
            return problem(Reason.CONFLICT, "This key has ended; an ended key does not come back.")
        return json_response({"key": made[0], "key_id": found.key_id})

    async def revoke(self, request: Request) -> Response:
        principal = await self._authenticator.admit(request, Scope.ADMIN)
        found = self._personal(request.path_params["key_id"])
        await self._change(partial(self._keys.revoke, found.key_id), principal)
        return Response(status_code=204)

    async def _change(self, change: Callable[..., Any], principal: Principal) -> Any:
        """Change a key in the name of whoever asks; it is on record then."""
        done = await anyio.to_thread.run_sync(partial(change, by=principal.name or principal.key_id))
        await self._authenticator.key_journal.catch_up()
        return done

    def _personal(self, key_id: str) -> KeyInfo:
        """The key of that id, of a person. Raises Refusal."""
        found = self._keys.find(key_id)
        if found is None or not found.scopes <= PERSONAL:
            raise RefusedRequest(problem(Reason.NOT_FOUND, "There is no such key of a person."))
        return found

    def _within(
        self, giver: Principal, scopes: Collection[Scope], clearance: Sensitivity, readers: Collection[str]
    ) -> None:
        """Raise Refusal for terms that `giver` may not give."""
        wrong: list[str] = sorted(set(scopes) - PERSONAL)
        if self._keys.find(giver.key_id) is not None:  # a key of the run is stored nowhere
            wrong = sorted(set(scopes) - (giver.scopes & PERSONAL))
            if Scope.USER in scopes and clearance > giver.clearance:
                wrong.append(f"clearance {clearance.name}")
            wrong += [f"group {name}" for name in sorted(set(readers) - giver.readers)]
        if wrong:
            detail = f"Nobody gives or changes what they do not have themselves: {', '.join(wrong)}."
            raise RefusedRequest(problem(Reason.MISSING_SCOPE, detail))


class _StoreChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    store: Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
    change: Literal["put", "removed", "imported", "read"]
    name: Annotated[str, msgspec.Meta(max_length=2_000)]
    state: Literal["asked", "done", "refused"]
    bytes: Annotated[int, msgspec.Meta(ge=0)] | None
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")] | None
    audit_id: Annotated[str, msgspec.Meta(pattern="^[0-9A-Za-z-]{1,64}$")] | None


def store_change_routes(
    journal: Journal, authenticator: Authenticator, limits: GatewayLimits, new_id: Callable[[], str]
) -> list[Route]:
    """`POST /v1/store-changes`: what a surface changes in a store for an admin, on record before it is done. The
    gateway knows no store, and records what the holder of the key says."""

    async def record(request: Request) -> Response:
        principal = await authenticator.admit(request, Scope.ADMIN)
        told = await read_body(request, limits, _StoreChange)
        given = {**msgspec.structs.asdict(told), "audit_id": told.audit_id or new_id()}
        await journal.append(StoreChanged(key_id=principal.key_id, **given))
        return json_response({"audit_id": given["audit_id"]}, 201)

    return [Route("/v1/store-changes", record, methods=["POST"])]


def wire_form(pin: Pin) -> JsonObject:
    """`state` is `pinned` or `quarantined`; `waiting` is there for the latter. `vouched`: the agent is shown the words
    of the accepted definition."""
    return {
        "server": pin.server,
        "tool": pin.tool,
        "state": "pinned" if pin.waiting is None else "quarantined",
        "vouched": pin.vouched,
        "accepted": _definition(pin.accepted),
        "waiting": None if pin.waiting is None else _definition(pin.waiting),
    }


def _definition(definition: Definition) -> JsonObject:
    return {"sha256": definition.sha256, "definition": definition.document}


def policy_routes(policies: Policies, authenticator: Authenticator) -> list[Route]:
    """`GET /v1/policy` and `POST /v1/policy/reload`, both for the scope `admin`. Fixed policies are never reloaded."""

    async def show(request: Request) -> Response:
        await authenticator.admit(request, Scope.ADMIN)
        text = policies.text if isinstance(policies, PolicyBook) else None
        return json_response({**_state(policies), "text": text})

    async def reload(request: Request) -> Response:
        principal = await authenticator.admit(request, Scope.ADMIN)
        if not isinstance(policies, PolicyBook):
            return json_response({"status": "unchanged", **_state(policies)})
        done = await policies.reload(principal.key_id)
        if done.refused is not None:
            detail = "The policy file was not loaded; the last good policy stays in force."
            return json_response({**problem_body(Reason.INVALID_ARGUMENT, detail), **_state(policies)}, 422)
        return json_response({"status": "loaded" if done.changed else "unchanged", **_state(policies)})

    return [
        Route("/v1/policy", show, methods=["GET"]),
        Route("/v1/policy/reload", reload, methods=["POST"]),
    ]


def _state(policies: Policies) -> dict[str, Any]:
    book = policies if isinstance(policies, PolicyBook) else None
    refused = None if book is None else book.refused
    return {
        "policy": policies.current.sha256,
        "source": policies.current.source,
        "loaded_at": None if book is None else format_time(book.loaded_at),
        "refused": None if refused is None else _refused(refused),
    }


def _refused(refused: RefusedFile) -> dict[str, Any]:
    return {"sha256": refused.sha256, "problems": list(refused.problems), "at": format_time(refused.at)}
