"""How a check of answers does against a lying model: planted faults that it caught, true sentences that it touched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sentinel_rag.agent.grounding import EvidenceIndex, Grounded, ground
from sentinel_rag.agent.grounding.markdown_text import pieces_of
from sentinel_rag.testing.lying_model.answers import FAMILIES, FAULTS, LiarsAnswer, LyingModel
from sentinel_rag.testing.lying_model.estate import Estate


@dataclass(slots=True)
class Tally:
    """Counts of one class of answers, with the answers that went wrong."""

    right: Counter[str] = field(default_factory=Counter)
    total: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[str, LiarsAnswer, Grounded]] = field(default_factory=list)

    def share(self, name: str) -> str:
        """`caught/planted` of one kind."""
        return f"{self.right[name]}/{self.total[name]}"

    @property
    def percent(self) -> float:
        """What went right, of all kinds."""
        return 100 * sum(self.right.values()) / max(sum(self.total.values()), 1)


def answers(estate: Estate, seed: int, *, rounds: int, book: str = "first") -> Iterator[LiarsAnswer]:
    """True and lying answers over an estate."""
    for round_ in range(rounds):
        liar = LyingModel(estate, seed + round_, book=book)
        for family in FAMILIES:
            yield from liar.answers(family, "")
            for fault in FAULTS:
                yield from liar.answers(family, fault)
        yield from liar.negations(lie=False)
        yield from liar.negations(lie=True)
        yield from liar.fillers()


_EITHER_SIDE = ("wrong_incident", "wrong_number", "swapped_account")
"""Faults that tie a right value to a wrong thing: putting the value right makes the sentence as true."""


def caught(answer: LiarsAnswer, grounded: Grounded) -> bool:
    """True if the piece that holds the false words did not stay as it was."""
    if answer.fault in _EITHER_SIDE:
        return grounded.touched
    false = answer.false.lower()
    planted = [piece.text for piece in pieces_of(answer.text) if false in piece.text.lower()]
    kept = Counter(piece.text for piece in pieces_of(grounded.text))
    return bool(planted) and any(kept[text] < planted.count(text) for text in planted)


def measure(
    estates: Sequence[Estate], seed: int, *, rounds: int, held_out: bool | None = None, book: str = "first"
) -> dict[str, Tally]:
    """`faults` and `truths`, each by kind; `held_out` and `book` choose wordings."""
    faults, truths = Tally(), Tally()
    for estate in estates:
        index = EvidenceIndex(estate.zone)
        for run in estate.runs:
            index.add(run)
        for answer in answers(estate, seed, rounds=rounds, book=book):
            if held_out is not None and answer.held_out is not held_out:
                continue
            grounded = ground(answer.text, index, question=answer.question)
            if answer.fault:
                faults.total[answer.fault] += 1
                if caught(answer, grounded):
                    faults.right[answer.fault] += 1
                else:
                    faults.wrong.append((estate.name, answer, grounded))
            else:
                count = len(pieces_of(answer.text))
                changed = len(grounded.removals) + len(grounded.repairs)
                truths.total[answer.family] += count
                truths.right[answer.family] += count - min(changed, count)
                if changed:
                    truths.wrong.append((estate.name, answer, grounded))
    return {"faults": faults, "truths": truths}
