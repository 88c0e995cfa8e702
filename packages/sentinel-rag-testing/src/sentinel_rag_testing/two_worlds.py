"""Non-interference, tried out: one hijacked agent in two worlds that differ only in what a sink must not learn.

A trace is a random policy, a random program of an agent that does its best to leak, and two worlds whose data differ
only where the label is above a chosen ceiling. The agent keeps sessions ready and goes from one to another, of one
person or of two, asks for parts of hidden values, reads what a server of others says of its tools, and may see the
policy change; a person's words, records they named and a plan name values. Days pass; what it knows it takes along into
the next session, and only after a silence longer than its memory it has forgotten everything. Both run through the real
gate, store and journal; the calls that reach places of that ceiling must be the same in both, but for what
`named_choices` takes away (the exceptions that the guarantee names). Everything follows from the seed.

The agent sees what an agent sees (bodies and status codes) and builds each argument from a hash of all it remembers, so
one bit that reaches it reaches the sinks, if the gate lets it. What is not tried: how long a call takes, a tool server
that lies, a tool that fails or succeeds by a secret, two sessions that persons opened where each sink says
`across_sessions: false`, a session to which an agent goes back although it has forgotten it (whether a call is denied
there tells how high its label rose); and the allow or deny bit of a call that carries a hidden value above the ceiling:
whether it ran may hang on that value's type, but not what its other arguments say.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import msgspec

from sentinel_rag.contracts.labels import BOTTOM, Integrity, Label, Sensitivity, join_all
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode
from sentinel_rag.gateway.admission import GatewayLimits, RateLimiter
from sentinel_rag.gateway.approvals import ApprovalVerdict, Decider, DecisionRefused
from sentinel_rag.gateway.catalogue import survey
from sentinel_rag.gateway.flow.named_values import named_in
from sentinel_rag.gateway.flow.plans import PLAN, SLOT, read_plan
from sentinel_rag.gateway.gate import Gate, Stores
from sentinel_rag.gateway.pins import Pins
from sentinel_rag.gateway.policy import Policies, Policy, ToolPolicy, parse_policy
from sentinel_rag.gateway.policy.conditions import TypeName, named_argument
from sentinel_rag.gateway.policy.model import decide, parse_pointer
from sentinel_rag.gateway.request_body import CanonicalArguments, ExecuteRequest
from sentinel_rag.gateway.responses import Completed, DeniedCall, NotCompleted, Outcome
from sentinel_rag.gateway.store import Principal, Scope, Session, State, new_audit_id, open_state
from sentinel_rag.gateway.store.sessions import REMEMBERED
from sentinel_rag.gateway.upstream import Returned, ToolFailed, Upstream, UpstreamCall, UpstreamReply, UpstreamTool
from sentinel_rag.gateway.upstream.mcp_messages import OTHER_CONTENT
from sentinel_rag_testing.named_choices import (
    NAMED,
    RECORDS,
    USER_WORDS,
    SentCall,
    Shown,
    first_difference_of_declassified,
    named_as,
    recorded,
    shown_calls,
    spelled,
)
from sentinel_rag_testing.random_policies import LINKED, OTHERS, PARAMETERS, SERVER, RandomPolicy, random_policy

RESTED = REMEMBERED * 2 / 3
"""After so long a person begins anew."""
JUMPS = (timedelta(hours=3), timedelta(days=2), RESTED, REMEMBERED * 2)
"""How long nothing happens between two steps: the last is longer than an agent remembers what it does not repeat, and
so are two of those before it together."""


class Covers(StrEnum):
    """What a trace can tell about beyond one conversation."""

    CONVERSATIONS = "several conversations of one person"
    PERSONS = "several persons of one agent"
    LISTS = "tool lists and descriptions of others"
    DAYS = "days between reading and sending"
    HORIZON = "time beyond the horizon"
    HANDED_ON = "what an agent repeats in newer conversations until then"


@dataclass(frozen=True, slots=True)
class TraceVerdict:
    """What a trace showed. `leak` describes the first difference at the ceiling that no exception explains; `excused`
    tells that the journal names an exception for a part of some call; `reached` counts the calls at places of the
    ceiling and `blocked` those that were denied."""

    leak: str
    excused: bool
    reached: int
    blocked: int
    covers: frozenset[Covers] = frozenset()


class TraceClock:
    """Stands still but for the jumps of a trace."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self._now

    def jump(self, by: timedelta) -> None:
        self._now += by


@dataclass(frozen=True, slots=True)
class OthersServer:
    """A server of others in a world: what it says of its tools is its own, above a ceiling that trusts nobody."""

    world: World

    async def call(self, call: UpstreamCall) -> UpstreamReply:
        return await self.world.call(call)

    async def list_tools(self, *, timeout_s: float) -> tuple[UpstreamTool, ...]:
        says = "" if OTHERS_SAY.flows_to(self.world.ceiling) else self.world.variant
        schema = {
            "type": "object",
            "description": says,
            "properties": {name: {"type": kind, "description": says} for name, kind in PARAMETERS.items()},
        }
        served = [tool.name for tool in self.world.policy.tools.values() if tool.server == OTHERS]
        return tuple(UpstreamTool(name, f"Says {says}.", schema) for name in served)

    def on_tools_changed(self, listener: Any) -> None:
        """The tools never change."""

    async def end_session(self, *, principal: str, session_id: str) -> None:
        """Nothing is kept for a session."""

    async def aclose(self) -> None:
        """Nothing is open."""


OTHERS_SAY = Label(Sensitivity.LOW, Integrity.UNTRUSTED)
"""What a server of others says of itself."""


@dataclass(slots=True)
class World:
    """An upstream whose tools answer from secrets. `variant` changes exactly the data above `ceiling`."""

    policy: Policy
    promised: Mapping[str, frozenset[str]]
    ceiling: Label
    variant: str
    seed: int
    step: int = 0
    sent: list[SentCall] = field(default_factory=list)
    store: dict[str, list[str]] = field(default_factory=dict)

    async def call(self, call: UpstreamCall) -> UpstreamReply:
        tool, arguments = call.tool, call.arguments
        await anyio.lowlevel.checkpoint()
        self.sent.append(
            SentCall(self.step, tool, dict(arguments.value), self.promised.get(tool, frozenset()), arguments.sha256)
        )
        policy = self.policy.tools[tool]
        if policy.writes:
            self.store.setdefault("store", []).append(arguments.sha256)
        answer = _Answer(self, policy, arguments)
        if answer.digest("fails", BOTTOM)[0] == "0":
            message = answer.digest("message", policy.fields.whole())
            return ToolFailed(QueryError(code=QueryErrorCode.INTERNAL, message=message))
        result = answer.value()
        return Returned(msgspec.json.encode(result), result, row_labels=answer.told)

    async def list_tools(self, *, timeout_s: float) -> tuple[UpstreamTool, ...]:
        return ()

    def on_tools_changed(self, listener: Any) -> None:
        """The tools never change."""

    async def end_session(self, *, principal: str, session_id: str) -> None:
        """Nothing is kept for a session."""

    async def aclose(self) -> None:
        """Nothing is open."""


class _Answer:
    """What a tool answers to one call. Each part depends on the arguments, on what was written before it is read, and
    on this world's secret if the label that policy, rule and row give the part is above the ceiling. `told` are the
    labels that it tells of its rows: the same in both worlds, and sometimes none although the policy expects them."""

    def __init__(self, world: World, tool: ToolPolicy, arguments: CanonicalArguments) -> None:
        self._world = world
        self._tool = tool
        # Whether values are named the tool cannot know: its answer is a secret only if it is one either way.
        attested = [named_argument(name) for name, parameter in tool.parameters.items() if parameter.attest]
        self._rules = [
            decide(tool, {**arguments.value, **dict.fromkeys(attested, named)}).rule_id for named in (True, False)
        ]
        self._seen = arguments.sha256 + ("".join(world.store.get("store", ())) if tool.reads else "")
        self._row_labels: tuple[Label, ...] = (BOTTOM, BOTTOM)
        self.told: tuple[Label, ...] | None = None
        if tool.row_labels is not None:
            self._row_labels = (self._any_label("row 0"), self._any_label("row 1"))
            self.told = self._row_labels if self.digest("tells", BOTTOM)[0] < "e" else None

    def digest(self, place: str, label: Label) -> str:
        """A text of this part, in hex."""
        world = self._world
        labels = [label.join(self._tool.rule_label(rule)) for rule in self._rules]
        secret = "" if any(each.flows_to(world.ceiling) for each in labels) else world.variant
        return hashlib.sha256(f"{world.seed}|{self._tool.name}|{place}|{self._seen}|{secret}".encode()).hexdigest()

    def value(self) -> Any:
        """An object with every leaf, sometimes with content blocks beside it that may repeat all of it."""
        rows = [
            {name: self._leaf(f"/rows/*/{name}", row=place) for name in "abc"} for place in range(len(self._row_labels))
        ]
        deep = {"x": {"y": self._leaf("/deep/x/y")}, "z": self._leaf("/deep/z")}
        result = {"kind": self._leaf("/kind"), "rows": rows, "deep": deep}
        if self.digest("beside", BOTTOM)[0] < "6":
            text = self.digest("text", join_all([self._tool.fields.whole(), *self._row_labels]))
            result[OTHER_CONTENT] = [{"type": "text", "text": text}]
        return result

    def _any_label(self, place: str) -> Label:
        digest = self.digest(place, BOTTOM)
        return Label(Sensitivity(int(digest[0], 16) % len(Sensitivity)), Integrity(int(digest[1], 16) % len(Integrity)))

    def _leaf(self, pointer: str, row: int | None = None) -> Any:
        """A text, a number, or something with parts; which of them, and which parts it has, is part of the secret."""
        path = tuple("0" if part == "*" else part for part in parse_pointer(pointer))
        label = self._tool.fields.label_at(path)
        if row is not None:
            label, pointer = label.join(self._row_labels[row]), f"{pointer} of row {row}"
        digest, kind = self.digest(pointer, label), self.digest(f"{pointer} kind", label)[0]
        if kind < ("7" if pointer.startswith("/rows") else "3"):
            texts = RECORDS if pointer.startswith(("/rows/*/b", "/kind")) else NAMED
            return texts[int(digest[:4], 16) % len(texts)]
        if kind < "8":
            return digest
        if kind < "a":
            return int(digest[:4], 16)
        part = int(digest[1], 16) % 2
        return {"ab"[part]: digest} if kind < "d" else [digest] * part


RunTrace = Callable[[int], Awaitable[TraceVerdict]]
"""Runs the trace of a seed in both worlds."""


@contextmanager
def open_traces(folder: Path, *, sinks_accept_all: bool = False, memory: timedelta = REMEMBERED) -> Iterator[RunTrace]:
    """A gateway's state in which traces run. For controls, which have to leak, `sinks_accept_all` switches the ceilings
    off, and `memory` is how long the gateway takes an agent to remember, which remembers `REMEMBERED` all the same."""
    clock = TraceClock()
    with open_state(folder, clock=clock, memory=memory) as state:
        yield partial(_run_trace, state, clock, sinks_accept_all)


async def _run_trace(state: State, clock: TraceClock, sinks_accept_all: bool, seed: int) -> TraceVerdict:
    rng = random.Random(seed)  # noqa: S311  # reproducible, not secret
    several_persons = rng.random() < 0.3  # then the sinks have to say that they count what the key's sessions have seen
    of_others = rng.choice(("", "", "source0", "sink0"))
    policy = partial(
        random_policy,
        rng,
        sinks_accept_all=sinks_accept_all,
        across_sessions=several_persons,
        of_others=of_others,
    )
    first = _load(policy())
    # In some traces another policy comes into force in the middle, about the same ceiling.
    second = _load(policy(ceiling=first.generated.ceiling)) if rng.random() < 0.2 else first
    program = rng.randrange(2**32)
    persons = rng.choice((1, 2)) if several_persons else 0
    runs = [await _run(state, clock, (first, second), seed, variant, program, persons) for variant in ("one", "two")]
    cut = first_difference_of_declassified(*((run.world.sent, run.records) for run in runs))
    one, two = (_projection(run, cut, carrying=False) for run in runs)
    difference = _first_difference(one, two) or _first_difference_of_pairs(
        *(_projection(run, cut, carrying=True) for run in runs)
    )
    leak = ""
    if difference:
        texts = "\n".join(dict.fromkeys((first.generated.text, second.generated.text)))
        leak = f"seed {seed}, ceiling {first.generated.ceiling}: {difference}\n{texts}"
    covers = runs[0].covers | ({Covers.LISTS} if of_others else frozenset())
    return TraceVerdict(leak, any(run.excused for run in runs), len(one), runs[0].denied, covers)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A policy, and for each tool the parameters that accept no more than the ceiling of the trace."""

    generated: RandomPolicy
    policy: Policy
    guarded: Mapping[str, frozenset[str]]


def _load(generated: RandomPolicy) -> _Loaded:
    guarded = {
        tool: frozenset(name for name, accepts in promised.items() if accepts.flows_to(generated.ceiling))
        for tool, promised in generated.promised.items()
    }
    return _Loaded(generated, parse_policy(generated.text), guarded)


def _projection(run: _Run, cut: int | None, *, carrying: bool) -> list[Shown]:
    """The calls that carry a hidden value above the ceiling in another argument, or those that do not."""
    ceiling = run.world.ceiling
    chosen = [each for each in recorded(run.world.sent, run.records) if _carries(each[1], ceiling) is carrying]
    return shown_calls(chosen, ceiling, cut)


def _first_difference(one: list[Shown], two: list[Shown]) -> str:
    if one == two:
        return ""
    for left, right in zip(one, two, strict=False):
        if left != right:
            return f"{left} != {right}"
    return f"{len(one)} calls != {len(two)} calls"


def _first_difference_of_pairs(one: list[Shown], two: list[Shown]) -> str:
    """Of calls that need not run in both worlds: what those that did say differently."""
    ran = [Counter((step, tool) for step, tool, _ in found) for found in (one, two)]
    both = {place for place in ran[0] if ran[0][place] == ran[1][place]}
    return _first_difference(*([shown for shown in found if shown[:2] in both] for found in (one, two)))


@dataclass(frozen=True, slots=True)
class _Run:
    """One world after the program; `excused` if an exception was used, `denied` counts the denied calls;
    `records` are the intents."""

    world: World
    excused: bool
    denied: int
    records: tuple[Mapping[str, Any], ...]
    covers: frozenset[Covers]


@dataclass(slots=True)
class _Changing:
    """`Policies` of which another may come into force."""

    current: Policy


async def _run(
    state: State,
    clock: TraceClock,
    loaded: tuple[_Loaded, _Loaded],
    seed: int,
    variant: str,
    program: int,
    persons: int,
) -> _Run:
    """The agent's program through the gate, in one world; the second policy comes into force in the middle. With
    `persons` some of the agent's other sessions are opened by persons too, and by so many."""
    world = World(loaded[0].policy, loaded[0].guarded, loaded[0].generated.ceiling, variant, seed)
    policies = _Changing(world.policy)
    upstreams: dict[str, Upstream] = {SERVER: world, OTHERS: OthersServer(world)}
    # What another trace wrote is not in this world's store.
    await state.database.run(lambda connection: connection.execute("DELETE FROM resource_label"))
    pins = Pins(policies, upstreams, state.database, state.journal)
    gate = Gate(
        policies=policies,
        stores=Stores(state.sessions, state.handles, state.resources, state.approvals, state.journal),
        upstreams=upstreams,
        limits=GatewayLimits(),
        rates=RateLimiter(lambda: 0.0),
        pins=pins,
        new_id=new_audit_id,
        clock=clock,
    )
    rng = random.Random(program)  # noqa: S311  # the same program in both worlds
    principal = Principal(f"agent-{seed}-{variant}-{rng.randrange(2**20)}", frozenset({Scope.EXECUTE}))
    head = await state.journal.head()

    sessions: list[str] = []
    openers: list[str | None] = []
    covers: set[Covers] = set()

    async def open_session(by_person: float) -> Session:
        person = ("person", "another")[len(openers) % max(persons, 1)]
        openers.append(person if rng.random() < by_person else None)
        session = await state.sessions.open(principal.key_id, user_key_id=openers[-1])
        sessions.append(session.session_id)
        if session.user_key_id is not None and rng.random() < 0.8:
            _, write = session.name(named_in(USER_WORDS, policies.current), "user")
            await state.database.run(write)
        return session

    session = await open_session(0.9 if persons else 0.7)
    by_other_persons = 0.9 if persons else 0.0
    plan = _plan(rng) if session.user_key_id is not None and rng.random() < 0.4 else []
    if plan:
        _, write = session.name(read_plan(plan, world.policy), PLAN)
        await state.database.run(write)
    agent = _Agent(policies, session.session_id, plan)
    agent.remember(msgspec.json.encode((await survey(policies.current, upstreams, pins)).offered))
    if rng.random() < 0.3:  # one kept ready
        await open_session(by_other_persons)
    denied = 0
    known_for = timedelta(0)  # since what it knows was new, and it has not been silent for as long as it remembers
    steps = rng.randint(4, 9)
    for step in range(steps):
        world.step = step
        if step == steps // 2:
            policies.current, world.policy, world.promised = loaded[1].policy, loaded[1].policy, loaded[1].guarded
        choices = [rng.randrange(2**32) for _ in range(rng.choice((1, 1, 1, 2)))]
        requests = [agent.request(choice) for choice in choices]
        outcomes: dict[int, Outcome] = {}

        async def ask(index: int, request: ExecuteRequest, outcomes: dict[int, Outcome] = outcomes) -> None:
            outcomes[index] = await gate.execute(principal, request)

        async with anyio.create_task_group() as group:
            for index, request in enumerate(requests):
                group.start_soon(ask, index, request)
        human = rng.random()
        for index in sorted(outcomes):
            outcome = outcomes[index]
            agent.look(outcome)
            denied += isinstance(outcome, DeniedCall)
            if isinstance(outcome, DeniedCall) and outcome.approval_id is not None and human < 0.3:
                with suppress(DecisionRefused):  # two equal calls of one step wait for one decision
                    await state.approvals.decide(outcome.approval_id, ApprovalVerdict.APPROVE, Decider("human"))
                    agent.look(await gate.execute(principal, requests[index]))
        if rng.random() < 0.3:
            by = rng.choice(JUMPS)
            clock.jump(by)
            covers.add(Covers.DAYS if by < REMEMBERED else Covers.HORIZON)
            known_for = known_for + by if by < REMEMBERED else timedelta(0)
            covers.update((Covers.HANDED_ON,) if persons and known_for > REMEMBERED else ())
            # A new conversation, to which the agent brings all that it has not forgotten.
            if by > REMEMBERED or (persons and by == RESTED):
                sessions.clear()
                if by > REMEMBERED:
                    agent.forget()
                agent.session_id = (await open_session(by_other_persons)).session_id
        turn = rng.random()
        if turn < 0.1:
            agent.session_id = (await open_session(by_other_persons)).session_id
        elif turn < 0.3:
            agent.session_id = rng.choice(sessions)
        elif turn < 0.33 and len(sessions) > 1:
            sessions.remove(agent.session_id)
            await state.sessions.close(agent.session_id, principal.key_id)
            agent.session_id = sessions[0]
    entries = await state.journal.read(head.seq, 1_000)
    excused = any(_is_exception(entry.record, principal.key_id) for entry in entries)
    records = tuple(
        e.record for e in entries if e.record["kind"] == "intent" and e.record["key_id"] == principal.key_id
    )
    # The next world's server of others is another one, which nobody has met.
    await state.database.run(lambda connection: connection.execute("DELETE FROM pin"))
    if len(openers) > 1 and None not in openers:
        covers.add(Covers.CONVERSATIONS if len({*openers}) == 1 else Covers.PERSONS)
    return _Run(world, excused, denied, records, frozenset(covers))


def _plan(rng: random.Random) -> list[dict[str, Any]]:
    """A read, and a call of a sink with a choice from what it read, a text that the person wrote, or a free slot."""
    by: dict[str, str] = rng.choice(({"starts_with": "L"}, {"starts_with": "rec"}))
    choice = {"of": 0, "rows": "/rows", "at": rng.choice(("/a", "/b")), "take": "/b", **by}
    slots: list[Any] = [{SLOT: choice}, {SLOT: {}}, "planned text"]
    return [
        {"tool": "source0", "args": {"p": "alpha"}},
        {"tool": "sink0", "args": {"p": rng.choice(slots[::2]), "q": rng.choice(slots)}},
    ]


def _carries(record: Mapping[str, Any], ceiling: Label) -> bool:
    handles = (record.get("flow") or {}).get("handles", {}) if record["kind"] == "intent" else {}
    return any(not Label.from_dict(entry["label"]).flows_to(ceiling) for entry in handles.values())


def _is_exception(record: Mapping[str, Any], key_id: str) -> bool:
    if record.get("key_id") != key_id or record["kind"] != "intent":
        return False
    flow = record.get("flow") or {}
    return bool(record.get("approval_id") or flow.get("named") or flow.get("declassified"))


class _Agent:
    """Hijacked: every choice is a function of the program and of all that it remembers."""

    def __init__(self, policies: Policies, session_id: str, plan: list[dict[str, Any]]) -> None:
        self._policies = policies
        self._plan = plan
        self._seen = hashlib.sha256()
        self.session_id = session_id
        self.handles: list[str] = []

    def remember(self, told: bytes) -> None:
        self._seen.update(told)

    def forget(self) -> None:
        self._seen = hashlib.sha256()
        self.handles = []

    def look(self, outcome: Outcome) -> None:
        match outcome:
            case Completed(encoded, _):
                self.remember(encoded)
                self._collect(json.loads(encoded))
            case DeniedCall(deny):
                self.remember(repr((deny.reason, deny.rule_id)).encode())
            case NotCompleted(reason, detail):
                self.remember(repr((reason, detail)).encode())

    def request(self, choice: int) -> ExecuteRequest:
        view = self._seen.hexdigest()
        leaky = random.Random(f"{choice}|{view}")  # noqa: S311
        steady = random.Random(choice)  # noqa: S311
        # Half of the choices are the program's own, so that calls reach the sinks at all in both worlds.
        pick = leaky if steady.random() < 0.4 else steady
        if self._plan and pick.random() < 0.6:
            step = pick.choice(self._plan)
            filled = {
                name: leaky.choice((*RECORDS, self._argument(leaky, view))) if isinstance(value, dict) else value
                for name, value in step["args"].items()
            }
            return ExecuteRequest(self.session_id, step["tool"], filled)
        called, tool = pick.choice(list(self._policies.current.names.items()))
        arguments: dict[str, Any] = {}
        attested = {name: parameter for name, parameter in tool.parameters.items() if parameter.attest}
        if attested and steady.random() < 0.5:  # with nothing but named values a call may pass where others may not
            for name, parameter in attested.items():
                if parameter.required or steady.random() < 0.5:
                    text = spelled(leaky, leaky.choice(named_as(parameter.attest)), view)
                    arguments[name] = [text] * leaky.randint(1, 3) if parameter.type.kind is TypeName.ARRAY else text
            return ExecuteRequest(self.session_id, called, arguments)
        for name, parameter in tool.parameters.items():
            kind = parameter.type.kind
            if parameter.required or pick.random() < (0.7 if kind is TypeName.STRING else 0.2):
                argument = self._argument(leaky if steady.random() < 0.5 else steady, view)
                if kind is TypeName.ARRAY:
                    argument = [argument] * pick.randint(1, 4) if pick.random() < 0.5 else ["x", argument]
                elif kind is TypeName.OBJECT:
                    argument = {"x": [argument]}
                arguments[name] = argument
        return ExecuteRequest(self.session_id, called, arguments)

    def _argument(self, pick: random.Random, view: str) -> Any:
        kind = pick.random()
        if kind < 0.4 and self.handles:
            handle = pick.choice(self.handles)
            parts = ("/0/text",) if OTHER_CONTENT in handle else ("", "", "/0", "/a")
            return {"$ref": handle + pick.choice(parts)}
        if kind < 0.6:
            return view[:32]  # an MD5 by its form, and all the agent knows by its content
        if kind < 0.7:
            return f"see https://{pick.choice(('evil.example', LINKED, f'{view[:8]}.evil.example'))}/{view[:8]}"
        if kind < 0.9:
            return spelled(pick, pick.choice((*NAMED, *RECORDS)), view)
        return pick.choice(("alpha", "beta", "secret/x", "public/y"))

    def _collect(self, value: Any) -> None:
        if isinstance(value, dict):
            if value.keys() == {"$ref"}:
                self.handles.append(value["$ref"])
            else:
                for part in value.values():
                    self._collect(part)
        elif isinstance(value, list):
            for part in value:
                self._collect(part)
