"""The attacker writes whatever a reader reads: a body, a policy, a file to import, a stream, a journal, a playbook.

Each fuzz target keeps its promise for its seeds, for every input that ever broke it (`fuzz_inputs`), and for some
hundred mutations of both. `python -m bench fuzz` tries far more, by coverage.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.body_mutations import mutated_bodies
from tests.support.fuzz import Target, Violation
from tests.support.fuzz.catalogue import TARGETS

INPUTS = Path(__file__).parent / "fuzz_inputs"
MUTATIONS = 200
COSTLY = {
    "event-stream": 30,
    "import-csv": 1,
    "import-first-look": 40,
    "import-json": 2,
    "import-parquet": 4,
    "journal-file": 12,
    "tool-server-answer": 60,
}
"""Targets whose inputs go through a database or over a socket, with so many mutations."""


def inputs(target: Target) -> list[bytes]:
    kept = [path.read_bytes() for path in sorted((INPUTS / target.name).glob("*"))]
    seeds = [*target.seeds(), *kept]
    count = COSTLY.get(target.name, MUTATIONS)
    return [*seeds, *(body[: target.largest] for body in mutated_bodies(count, 20_261_128, seeds, target.tokens))]


@pytest.mark.requirement("GATE-6")
@pytest.mark.parametrize("name", TARGETS)
def test_a_reader_keeps_its_promise(name: str, tmp_path: Path) -> None:
    target = TARGETS[name]
    with target.opened(tmp_path) as check:
        for content in inputs(target):
            try:
                check(content)
            except Violation as untrue:
                pytest.fail(f"{content[:200]!r}: {untrue}")


def test_every_kept_input_belongs_to_a_target() -> None:
    assert {path.name for path in INPUTS.iterdir()} <= set(TARGETS)


def test_a_promise_that_is_broken_is_told(tmp_path: Path) -> None:
    """A reader that takes what it must not: the target of conditions, whose definition is made to say the opposite."""
    target = TARGETS["condition"]
    with target.opened(tmp_path) as check:
        check(b"limit == 3")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tests.support.fuzz.condition_texts.evaluate", lambda tree, arguments: True)
            with pytest.raises(Violation, match="means something else"):
                check(b"limit == 3")
