"""The guarantee: what a sink receives does not depend on data above what it accepts, but for the part of a call that an
exception in the journal names. 250 traces in `make test`, 2,000 in `make laws`, 10,000 in
`make bench`; see `sentinel_rag_testing.two_worlds` for
what one is."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from law_examples import examples
from sentinel_rag.contracts.labels import BOTTOM, Label
from sentinel_rag.gateway.flow import judging
from sentinel_rag.gateway.flow.named_values import Naming
from sentinel_rag.gateway.policy import AgentMemory, Policy, Remembers
from sentinel_rag.gateway.store import Session, SessionStore, open_state
from sentinel_rag_testing.named_choices import NAMED, is_plain, spelled
from sentinel_rag_testing.two_worlds import TraceVerdict, run_trace

TRACES = examples(2_000, 250)


def traces(folder: Path, seeds: range, *, sinks_accept_all: bool = False) -> list[TraceVerdict]:
    async def run() -> list[TraceVerdict]:
        with open_state(folder) as state:
            return [await run_trace(state, seed, sinks_accept_all=sinks_accept_all) for seed in seeds]

    return anyio.run(run)


@pytest.mark.slow
@pytest.mark.requirement("TAINT-1")
@pytest.mark.requirement("TAINT-2")
@pytest.mark.requirement("TAINT-3")
@pytest.mark.requirement("TAINT-4")
@pytest.mark.requirement("TAINT-5")
@pytest.mark.requirement("TAINT-6")
def test_no_sink_learns_what_it_must_not(tmp_path: Path) -> None:
    found = traces(tmp_path, range(TRACES))
    assert [verdict.leak for verdict in found if verdict.leak] == []
    # The traces say something: many name no exception, in many a call reaches a guarded place, in many one is denied.
    plain = [verdict for verdict in found if not verdict.excused]
    assert len(plain) > len(found) / 4
    assert sum(verdict.reached > 0 for verdict in plain) > len(plain) / 4
    assert sum(verdict.blocked > 0 for verdict in plain) > len(plain) / 3


def test_without_ceilings_the_same_traces_leak(tmp_path: Path) -> None:
    found = traces(tmp_path, range(100), sinks_accept_all=True)
    assert sum(bool(verdict.leak) for verdict in found) > 30


def leaks(folder: Path, seeds: Iterable[int]) -> list[int]:
    folder.mkdir()
    return [seed for seed in seeds for verdict in traces(folder, range(seed, seed + 1)) if verdict.leak]


def test_a_gate_that_takes_any_spelling_of_a_named_value_leaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Traces in which an agent tells a secret by how it spells what the user named: the law sees them where the gate
    does not tell spellings apart, and the gate as it is lets none through."""
    alone, paired = (46, 59, 79, 94), (599,)
    assert leaks(tmp_path / "as it is", alone + paired) == []

    def any_spelling(naming: Callable[..., Naming | None]) -> Callable[..., Naming | None]:
        def whole(*asked: Any) -> Naming | None:
            found = naming(*asked)
            return None if found is None else replace(found, whole=True)

        return whole

    for name in ("naming_of", "naming_together"):
        monkeypatch.setattr(judging, name, any_spelling(getattr(judging, name)))
    assert leaks(tmp_path / "any spelling of one value", alone)
    assert leaks(tmp_path / "any spelling of a pair", paired)


def test_a_gate_that_forgets_what_its_key_has_seen_elsewhere_leaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Traces in which an agent takes a secret from one person's session into another's, to a sink of which the policy
    says nothing: the memory label is the default."""
    seeds = (21, 31, 39, 43)
    assert leaks(tmp_path / "as it is", seeds) == []

    async def nothing(store: SessionStore, session: Session, remembers: Remembers) -> Label:
        return BOTTOM

    monkeypatch.setattr(SessionStore, "seen_elsewhere", nothing)
    monkeypatch.setattr(SessionStore, "confirm_seen", lambda *asked: lambda connection: None)
    assert leaks(tmp_path / "forgetful", seeds)


@pytest.mark.requirement("TAINT-7")
@pytest.mark.parametrize("memory", [AgentMemory.CONVERSATION, AgentMemory.PERSON])
def test_an_agent_that_is_attested_to_forget_and_does_not_leaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: AgentMemory
) -> None:
    """The law needs the attestation to be true: the agent of the traces remembers all of its sessions, another
    person's too."""
    forgets = Remembers(memory)
    monkeypatch.setattr(Policy, "remembers", lambda policy, key_id, key_name: forgets)
    assert leaks(tmp_path / "attested", (21, 31, 39, 43))


@pytest.mark.requirement("TAINT-7")
def test_a_memory_label_that_is_over_before_the_agents_memory_leaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SessionStore, "_since", lambda store, remembers=None: "9999-01-01T00:00:00.000000Z")
    assert leaks(tmp_path / "over", (21, 31, 39, 43))


def test_only_a_plain_spelling_of_what_was_named_is_excused() -> None:
    assert all(is_plain(text) for text in NAMED if "{" not in text)
    assert is_plain(["7", "ws-01"])
    assert is_plain("LUNCH IS READY NOW")
    for value in (
        "007",
        "Lunch  is ready now",
        "lUnch is reAdy now",
        " 7",
        "2026-11-14T12:01:09Z",
        "8",
        ["7", "7"],
        [],
    ):
        assert not is_plain(value)
    spellings = {spelled(random.Random(seed), "7", f"{seed:016x}") for seed in range(40)}
    assert "7" in spellings
    assert any(not is_plain(text) for text in spellings)
