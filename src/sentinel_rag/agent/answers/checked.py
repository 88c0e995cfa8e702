"""What is told of a checked answer: sentences with their state, citations and marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sentinel_rag.agent.answers.comparing import Verdict
from sentinel_rag.agent.answers.evidence import Evidence
from sentinel_rag.agent.answers.facts import Facts, Source, plain_value
from sentinel_rag.agent.answers.markup import CellAt, Unit
from sentinel_rag.contracts.evidence import Citation, CitedBy, Mark, Sentence, SentenceState
from sentinel_rag.language.literals import Literal

MOST_SHOWN_REFS = 40
"""Citations that a checked sentence names."""
_ORDER = (
    SentenceState.CONTRADICTED,
    SentenceState.NOT_FOUND,
    SentenceState.SOURCE_GIVEN,
    SentenceState.VALUES_FOUND,
    SentenceState.OWN_WORDS,
)


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """An answer without its citations, and its sentences with their places in it.

    `written` are the units that the sentences were made of: they know their places in the answer as it was written.
    """

    text: str
    sentences: tuple[Sentence, ...]
    written: tuple[Unit, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Found:
    """The verdict on a unit, and who gave it its citations. `places` are the texts that verdicts were made of, with
    their start in the unit."""

    verdicts: tuple[tuple[int, Verdict], ...]
    cited_by: CitedBy
    literals: tuple[tuple[int, Literal], ...] = ()

    @property
    def worst(self) -> Verdict:
        return min((verdict for _, verdict in self.verdicts), key=lambda verdict: _ORDER.index(verdict.state))


def cited_share(checked: CheckedAnswer) -> float:
    """The part of the sentences about the environment to which the writer gave a citation; 1.0 where there are none.

    Under a third the writer gives no sources, which is said above the answer.
    """
    about = [sentence for sentence in checked.sentences if sentence.state is not SentenceState.OWN_WORDS]
    if not about:
        return 1.0
    cited = sum(sentence.cited_by in (CitedBy.WRITER, CitedBy.BLOCK) for sentence in about)
    return cited / len(about)


def checked_sentence(unit: Unit, found: Found, evidence: Evidence) -> Sentence:
    """A unit with its state, citations and marks."""
    worst = found.worst
    refs = dict.fromkeys(ref for _, verdict in found.verdicts for ref in verdict.refs)
    return Sentence(
        start=unit.start,
        end=unit.end,
        text=unit.text,
        state=worst.state,
        reason=worst.reason,
        citations=tuple(_citation(ref, evidence) for ref in list(refs)[:MOST_SHOWN_REFS]),
        marks=tuple(_marks(unit, found, evidence)),
        cited_by=found.cited_by,
    )


def _citation(ref: str, evidence: Evidence) -> Citation:
    name, _, rest = ref.partition(".")
    number = rest.partition(".")[0]
    result = evidence.result(name)
    facts = evidence.facts(f"{name}.{number}") if number else None
    shown = f"{name}.{number}" if number else name
    pointer = facts.row.pointer if facts is not None and facts.row is not None else ""
    return Citation(shown, name, "" if result is None else result.tool, pointer)


def _marks(unit: Unit, found: Found, evidence: Evidence) -> Iterator[Mark]:
    """Marks of the literals that were compared, in their order, none inside another."""
    made: dict[tuple[int, int], Mark] = {}
    for cell in unit.cells:
        made[cell.start, cell.end] = _cell_mark(cell, unit, evidence)
    for offset, verdict in found.verdicts:
        start = unit.start + offset
        if verdict.wrong is not None:
            literal, facts, column = verdict.wrong
            if facts.row is not None:
                value = plain_value(facts.row.cells[column])
                pointer = facts.row.cell_pointer(column)
                at = (start + literal.start, start + literal.end)
                made[at] = Mark(*at, False, facts.result.ref, pointer, value)
        for literal in verdict.missing:
            at = (start + literal.start, start + literal.end)
            made.setdefault(at, Mark(*at, False))
        for literal, held in verdict.support.items():
            at = (start + literal.start, start + literal.end)
            source = _source(literal, held, verdict, evidence)
            if source is not None:
                made.setdefault(at, Mark(*at, True, source.call_id, source.pointer, source.value))
            else:
                made.setdefault(at, Mark(*at, True))
    last = unit.start
    for start, end in sorted(made, key=lambda span: (span[0], -span[1])):
        if last <= start < end <= unit.end:
            yield made[start, end]
            last = end


def _source(literal: Literal, held: Sequence[Facts], verdict: Verdict, evidence: Evidence) -> Source | None:
    """The cell that holds a literal; of a whole result its total."""
    for facts in held[:3]:
        source = facts.source(literal)
        if source is not None:
            return source
    if not held:
        for ref in verdict.refs[:3]:
            whole = evidence.facts(ref.partition(".")[0])
            if whole is not None and whole.holds(literal):
                source = whole.source(literal)
                if source is not None:
                    return source
    return None


def _cell_mark(cell: CellAt, unit: Unit, evidence: Evidence) -> Mark:
    row_ref, _, column = cell.ref.rpartition(".")
    facts = evidence.facts(row_ref)
    if facts is None or facts.row is None or column not in facts.row.cells:
        return Mark(cell.start, cell.end, False)
    value = facts.row.cells[column]
    shown = unit.text[cell.start - unit.start : cell.end - unit.start]
    right = cell.filled or evidence.cell_says(cell.ref, shown)
    return Mark(cell.start, cell.end, right, facts.result.ref, facts.row.cell_pointer(column), plain_value(value))
