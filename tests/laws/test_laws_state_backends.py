"""Two gateways do the same things on one state in files and on one in PostgreSQL, and see the same at every step."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.postgres_state import EmptyStates

from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.gateway.approvals import ApprovalSpent, ApprovalVerdict, Decider, DecisionRefused, Waiting
from sentinel_rag.gateway.approvals.binding import ApprovalQuestion, Binding
from sentinel_rag.gateway.flow import HandleReference, Hidden, NoSuchHandle
from sentinel_rag.gateway.flow.named_values import NamedValue
from sentinel_rag.gateway.policy.model import ValueKind
from sentinel_rag.gateway.store import ContextMoved, Session, SessionClosed, State, next_result, open_state

NOW = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
EMPTY_SHA256 = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
labels = st.builds(Label, st.sampled_from(Sensitivity), st.sampled_from(Integrity))
steps = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from(
            ("raise", "name", "hide", "find", "resource", "confirm", "ask", "decide", "use", "close", "stand", "leave")
        ),
        st.integers(0, 2),
        labels,
    ),
    min_size=4,
    max_size=14,
)
EXPECTED = (ContextMoved, SessionClosed, NoSuchHandle, ApprovalSpent, DecisionRefused)


@dataclass
class Site:
    """Two gateways over one state, and what one run on it has opened."""

    gateways: tuple[State, State]
    run: str = ""
    approvals: list[str] = field(default_factory=list)
    stood: list[str] = field(default_factory=list)

    async def session(self, at: int, which: int) -> Session:
        """The first is an agent's own, the others were opened by a person."""
        found = await self.gateways[at].sessions.claim(
            f"{self.run}-{which}", f"{self.run}-agent", user_key_id=f"{self.run}-person" if which else None
        )
        assert found is not None
        return found

    def binding(self, which: int, label: Label) -> Binding:
        return Binding(
            key_id=f"{self.run}-agent",
            session_id=f"{self.run}-{which}",
            tool="isolate",
            arguments_sha256=EMPTY_SHA256,
            argument_labels={},
            context=label,
            rule_id="r",
            policy_sha256="p",
            schema_sha256=None,
        )

    async def do(self, at: int, what: str, which: int, label: Label) -> Any:
        state = self.gateways[at]
        if what == "raise":
            session = await self.session(at, which)
            await state.database.run(session.raise_to(label, audit_id="a", tool="t", now=NOW))
            return session.context, [raised.label for raised in await state.sessions.raises(session)]
        if what == "name":
            session = await self.session(at, which)
            fresh, write = session.name([NamedValue(ValueKind.HOST, f"ws-{label.sensitivity.value}\x00")], "user")
            await state.database.run(write)
            return len(fresh)
        if what == "hide":
            session = await self.session(at, which)
            result = await state.database.run(lambda connection: next_result(connection, session.session_id))
            reference = HandleReference(result, ("a",))
            await state.database.run(state.handles.keep(session.session_id, [Hidden(reference, b"7", label)]))
            found = await state.handles.resolve(session.session_id, [reference])
            return result, [(each.value, each.label) for each in found.values()]
        if what == "find":
            session = await self.session(at, which)
            news = await state.sessions.refresh(session)
            return news, session.context, session.closed, sorted(value.text for value in session.named)
        if what == "resource":
            await state.database.run(state.resources.raise_to([f"{self.run}/{which}"], label))
            return await state.resources.of([f"{self.run}/*"])
        if what == "confirm":
            await state.database.run(state.resources.confirm([f"{self.run}/{which}"], label))
            return await state.resources.of([f"{self.run}/{which}"])
        if what == "close":
            return await state.sessions.close(f"{self.run}-{which}", f"{self.run}-agent")
        if what == "stand":
            person = f"{self.run}-person" if label.integrity is Integrity.UNTRUSTED else None
            stands, before = await state.standing.enter(f"{self.run}-agent", user_key_id=person)
            if stands.session_id not in self.stood:
                self.stood.append(stands.session_id)
            ended = None if before is None else await state.sessions.close(before.session_id, f"{self.run}-agent")
            return self.stood.index(stands.session_id), stands.context, stands.user_key_id is None, ended
        if what == "leave":
            return bool(self.stood) and await state.sessions.close(self.stood[-1], f"{self.run}-agent")
        return await self.approval(state, what, which, label)

    async def approval(self, state: State, what: str, which: int, label: Label) -> Any:
        binding = self.binding(which, label)
        if what == "ask":
            question = ApprovalQuestion(
                effect="write", server="s", description="", condition="", taint_level="LOW", why="x", arguments={},
                violations=(), raised_by=(), approvers=(),
            )  # fmt: skip
            answer = await state.approvals.request(binding, question)
            if not isinstance(answer, Waiting):
                return None
            asked = answer.approval_id
            if asked not in self.approvals:
                self.approvals.append(asked)
            return self.approvals.index(asked)
        if not self.approvals:
            return "none yet"
        chosen = self.approvals[which % len(self.approvals)]
        if what == "decide":
            verdict = ApprovalVerdict.APPROVE if label.integrity is Integrity.TRUSTED else ApprovalVerdict.DENY
            return (await state.approvals.decide(chosen, verdict, Decider("ana", "ana"))).state
        shown = await state.approvals.find(chosen)
        assert shown is not None
        await state.database.run(state.approvals.consume(chosen, shown.binding))
        return "used"


@pytest.fixture(scope="module")
def sites(postgres_states: EmptyStates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Site]]:
    folder = tmp_path_factory.mktemp("files")
    place = postgres_states.place(tmp_path_factory.mktemp("database"))
    with ExitStack() as stack:
        files = [stack.enter_context(open_state(folder, clock=lambda: NOW)) for _ in range(2)]
        database = [stack.enter_context(open_state(place.folder, clock=lambda: NOW, postgres=place)) for _ in range(2)]
        yield Site((files[0], files[1])), Site((database[0], database[1]))


async def seen(site: Site, run: str, doing: list[tuple[int, str, int, Label]]) -> list[Any]:
    site.run, site.approvals, site.stood = run, [], []
    told: list[Any] = []
    for at, what, which, label in doing:
        try:
            told.append(await site.do(at, what, which, label))
        except EXPECTED as error:
            told.append(type(error))
    return told


runs = itertools.count()


@pytest.mark.requirement("OPS-5")
@settings(max_examples=25)
@given(doing=steps)
def test_files_and_postgresql_tell_the_same(sites: tuple[Site, Site], doing: list[tuple[int, str, int, Label]]) -> None:
    run = f"run-{next(runs)}"
    on_files, in_database = (anyio.run(seen, site, run, doing) for site in sites)
    assert in_database == on_files
