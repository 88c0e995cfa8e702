"""The guarantee: what a sink receives does not depend on data above what it accepts, but for the part of a call that an
exception in the journal names. 250 traces in `make test`, 2,000 in `make laws`, 10,000 in
`make bench`; see `sentinel_rag_testing.two_worlds` for
what one is."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from bench.bench_noninterference import CONTROLS, GUARDED, Control, run_part, speaking

from law_examples import examples
from sentinel_rag.gateway.flow import judging
from sentinel_rag.gateway.flow.named_values import Naming
from sentinel_rag_testing.named_choices import NAMED, is_plain, spelled
from sentinel_rag_testing.two_worlds import Covers

TRACES = examples(2_000, 100)


def leaks(seeds: Sequence[int], control: Control = GUARDED) -> list[int]:
    return [seed for seed, verdict in speaking(control, run_part(control, seeds)) if verdict.leak]


@pytest.mark.slow
@pytest.mark.requirement("TAINT-1")
@pytest.mark.requirement("TAINT-2")
@pytest.mark.requirement("TAINT-3")
@pytest.mark.requirement("TAINT-4")
@pytest.mark.requirement("TAINT-5")
@pytest.mark.requirement("TAINT-6")
def test_no_sink_learns_what_it_must_not() -> None:
    found = [verdict for _, verdict in run_part(GUARDED, range(TRACES))]
    assert [verdict.leak for verdict in found if verdict.leak] == []
    # The traces say something: many name no exception, in many a call reaches a guarded place, in many one is denied.
    plain = [verdict for verdict in found if not verdict.excused]
    assert len(plain) > len(found) / 4
    assert sum(verdict.reached > 0 for verdict in plain) > len(plain) / 4
    assert sum(verdict.blocked > 0 for verdict in plain) > len(plain) / 3
    assert {each for verdict in found for each in verdict.covers} == set(Covers)


SEEDS = {
    "without_ceilings": range(20),
    "without_the_memory_of_conversations": (51, 80, 102),
    "without_the_memory_of_other_persons": (31, 57, 59),
    "with_lists_that_nobody_accepted": (5, 9, 18),
    "with_a_horizon_of_a_day": (4, 28, 119),
    "without_what_is_handed_on": (377, 404),
    "without_the_use_by_refused_calls": (377, 404),
}


@pytest.mark.requirement("TAINT-7")
@pytest.mark.parametrize("name", CONTROLS)
def test_the_traces_leak_without_each_mechanism_and_not_with_it(name: str) -> None:
    """An agent takes a secret from one conversation of its person into the next, or to another person's, reads what a
    server of others says of its tools, waits for two days, takes what it knows along for months: the law needs what
    stops it, and an operator who attests of an agent that it forgets needs to be right."""
    assert len(leaks(SEEDS[name], CONTROLS[name])) > len(SEEDS[name]) / 3
    assert leaks(SEEDS[name]) == []


def test_a_gate_that_takes_any_spelling_of_a_named_value_leaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traces in which an agent tells a secret by how it spells what the user named: the law sees them where the gate
    does not tell spellings apart, and the gate as it is lets none through."""
    alone, paired = (35, 83, 96), (58,)
    assert leaks(alone + paired) == []

    def any_spelling(naming: Callable[..., Naming | None]) -> Callable[..., Naming | None]:
        def whole(*asked: Any) -> Naming | None:
            found = naming(*asked)
            return None if found is None else replace(found, whole=True)

        return whole

    for name in ("naming_of", "naming_together"):
        monkeypatch.setattr(judging, name, any_spelling(getattr(judging, name)))
    assert leaks(alone)
    assert leaks(paired)


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
