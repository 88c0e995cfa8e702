"""The check of an answer: each of its sentences is compared with what it cites and ends in one of five states.

Nothing is erased and nothing replaced. `check_answer` checks a whole answer; `GrowingAnswer` the same while it is
written, with the same outcome however the text was cut. Pure computation, linear in text and evidence, to be called in
a worker thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sentinel_rag.agent.answers.checked import MOST_SHOWN_REFS, CheckedAnswer, Found, checked_sentence, cited_share
from sentinel_rag.agent.answers.citing import against, automatic, own_words
from sentinel_rag.agent.answers.comparing import Verdict
from sentinel_rag.agent.answers.evidence import Evidence
from sentinel_rag.agent.answers.facts import ADDRESSES
from sentinel_rag.agent.answers.markup import Markup, Unit, UnitKind
from sentinel_rag.agent.answers.repair import repair_request, repaired
from sentinel_rag.agent.answers.sentence import Sentence
from sentinel_rag.contracts.evidence import CitedBy, SentenceState
from sentinel_rag.contracts.evidence import Sentence as CheckedSentence
from sentinel_rag.language.lexicon import CANONICAL, plain_words
from sentinel_rag.language.literals import Kind, Literal, key

__all__ = ["CheckedAnswer", "GrowingAnswer", "check_answer", "cited_share", "repair_request", "repaired"]

LONGEST_SENTENCE = 2_000
"""Characters; nothing longer that a person would read is one sentence."""
MOST_REFS = 200
AHEAD = 3
"""Sentences before and behind from which one of the same block may borrow a citation."""


def check_answer(raw: str, evidence: Evidence) -> CheckedAnswer:
    """An answer as its writer wrote it, checked. Linear in its length."""
    growing = GrowingAnswer(evidence)
    growing.add(raw)
    growing.end()
    return growing.checked


class GrowingAnswer:
    """An answer that is checked while it is written. Results that come later than the start are not seen."""

    def __init__(self, evidence: Evidence) -> None:
        evidence.update()
        self._evidence = evidence
        self._markup = Markup(evidence.cell_text)
        self._units: list[Unit] = []
        self._next = 0
        self._text: list[str] = []
        self._sentences: list[CheckedSentence] = []
        self._told: list[Unit] = []

    @property
    def checked(self) -> CheckedAnswer:
        """What was written and checked so far."""
        return CheckedAnswer("".join(self._text), tuple(self._sentences), tuple(self._told))

    def add(self, delta: str) -> tuple[str, tuple[CheckedSentence, ...]]:
        """What of the text can be shown now, and the sentences whose check has ended."""
        return self._take(*self._markup.add(delta), whole=False)

    def end(self) -> tuple[str, tuple[CheckedSentence, ...]]:
        """What is left."""
        return self._take(*self._markup.end(), whole=True)

    def _take(self, written: str, units: Sequence[Unit], *, whole: bool) -> tuple[str, tuple[CheckedSentence, ...]]:
        self._text.append(written)
        self._units.extend(units)
        ready = tuple(self._ready(whole=whole))
        self._sentences.extend(ready)
        return written, ready

    def _ready(self, *, whole: bool) -> Iterator[CheckedSentence]:
        """Sentences that need nothing that is still to come."""
        while self._next < len(self._units) and (whole or self._is_settled(self._next)):
            at = self._next
            self._next += 1
            unit = self._units[at]
            if any(letter.isalnum() for letter in unit.text):
                self._told.append(unit)
                yield checked_sentence(unit, _check(self._units, at, self._evidence), self._evidence)

    def _is_settled(self, at: int) -> bool:
        """A sentence with citations, or one whose neighbours are known."""
        unit = self._units[at]
        if unit.refs or unit.kind in (UnitKind.CODE, UnitKind.HEAD, UnitKind.HEADING) or len(self._units) > at + AHEAD:
            return True
        return self._markup.block != unit.block and not unit.text.endswith(":")


# -- one unit --------------------------------------------------------------------------------------------------------
def _check(units: Sequence[Unit], at: int, evidence: Evidence) -> Found:
    unit = units[at]
    if len(unit.text) > LONGEST_SENTENCE or sum(len(each.refs) for each in unit.cited) > MOST_REFS:
        reason = "it is too long to be compared as one sentence"
        return _single(Verdict(SentenceState.NOT_FOUND, reason, unit.refs[:MOST_SHOWN_REFS]), CitedBy.NOBODY)
    sentence = Sentence(unit.text, unit.kind, evidence)
    refs = (*unit.refs, *(ref for cell in unit.cells if (ref := cell.ref.rpartition(".")[0]) not in unit.refs))
    found = (
        _of_others(unit, sentence, refs, evidence)
        or _of_no_statement(unit)
        or _of_cells(unit, refs, evidence)
        or _of_parts(unit, evidence)
        or _of_citations(units, at, sentence, refs)
        or _of_own_words(sentence)
        or _of_neighbours(units, at, sentence)
        or _single(automatic(sentence), CitedBy.CHECK)
    )
    return replace(found, literals=tuple((0, literal) for literal in sentence.literals))


def _single(verdict: Verdict, cited_by: CitedBy) -> Found:
    return Found(((0, verdict),), cited_by if verdict.refs else CitedBy.NOBODY)


def _of_others(unit: Unit, sentence: Sentence, refs: Sequence[str], evidence: Evidence) -> Found | None:
    """Words or an address that an outsider wrote, told as if they were the writer's own."""
    where = evidence.words_of_others(sentence.runs(), sentence.length)
    if unit.kind is UnitKind.CODE:
        if not where:
            return None
        reason = f"these are words of {where} (text that others wrote)"
        return _single(Verdict(SentenceState.SOURCE_GIVEN, reason, (where,)), CitedBy.CHECK)
    by = CitedBy.WRITER
    if where:
        reason = f"these are words of {where} (text that others wrote): quote them"
        return _single(Verdict(SentenceState.NOT_FOUND, reason, tuple(refs)), by)
    for literal in sentence.literals:
        address = _address(literal)
        if address is None or (address.domain != "url" and refs):
            continue
        where = evidence.address_of_others(address)
        if where and not (literal.kind is Kind.TEXT and refs):
            reason = (
                f"“{literal.raw}” is an address out of {where} (text that others wrote): give it as code and cite it"
            )
            return _single(Verdict(SentenceState.NOT_FOUND, reason, tuple(refs)), by)
    return None


def _address(literal: Literal) -> Literal | None:
    """A literal that is an address, or a code span of nothing else."""
    if literal.kind is Kind.ID and literal.domain in ADDRESSES:
        return literal
    if literal.kind is Kind.TEXT and "://" in literal.raw and " " not in literal.raw.strip():
        return replace(literal, domain="url")
    return None


def _of_no_statement(unit: Unit) -> Found | None:
    if unit.kind in (UnitKind.HEAD, UnitKind.CODE):
        return _single(Verdict(SentenceState.OWN_WORDS), CitedBy.NOBODY)
    return None


def _of_cells(unit: Unit, refs: Sequence[str], evidence: Evidence) -> Found | None:
    """Holes and pointers: the cell must be there, and what a pointer shows must be in it."""
    for cell in unit.cells:
        right = evidence.cell_text(cell.ref)
        if right is None:
            return _single(Verdict(SentenceState.NOT_FOUND, f"there is no {cell.ref}", tuple(refs)), CitedBy.WRITER)
        shown = unit.text[cell.start - unit.start : cell.end - unit.start]
        if cell.filled or evidence.cell_says(cell.ref, shown):
            continue
        facts = evidence.facts(cell.ref.rpartition(".")[0])
        column = cell.ref.rpartition(".")[2]
        reason = f"{cell.ref} is {right}, not {shown}"
        if facts is None or not _are_comparable(shown, right):
            return _single(Verdict(SentenceState.NOT_FOUND, reason, tuple(refs)), CitedBy.WRITER)
        literal = Literal(Kind.TEXT, key(shown), shown, cell.start - unit.start, cell.end - unit.start)
        wrong = (literal, facts, column)
        return _single(Verdict(SentenceState.CONTRADICTED, reason, tuple(refs), wrong=wrong), CitedBy.WRITER)
    return None


def _are_comparable(shown: str, right: str) -> bool:
    """Whether both are states of one enumeration, or both bare numbers."""
    states = any(shown in values and right in values for values in CANONICAL.values())
    return states or (shown.strip().isdigit() and right.strip().isdigit())


def _of_parts(unit: Unit, evidence: Evidence) -> Found | None:
    """Several citations inside one sentence: each part is compared with its own; the worst is the sentence's."""
    if unit.cells:
        return None
    parts: list[tuple[int, str, tuple[str, ...]]] = []
    start = 0
    for citation in unit.cited:
        end = max(start, citation.at - unit.start)
        before = unit.text[start:end]
        if parts and not any(letter.isalnum() for letter in before):
            place, text, refs = parts[-1]
            parts[-1] = (place, text, (*refs, *citation.refs))
        else:
            parts.append((start, before, citation.refs))
        start = end
    if parts and any(letter.isalnum() for letter in unit.text[start:]):
        place, text, refs = parts[-1]
        parts[-1] = (place, unit.text[place:], refs)
    if len(parts) < 2:
        return None
    verdicts: list[tuple[int, Verdict]] = []
    for place, text, refs in parts:
        sentence = Sentence(text, unit.kind, evidence)
        verdict = _with_more(sentence, refs, unit.refs, Kind.NUMBER)
        listed = sentence.bag <= plain_words() and verdict.state is SentenceState.SOURCE_GIVEN
        if listed and verdicts and not verdict.missing:  # `124 is High [c1.1], and so is 108 [c1.8]`
            verdict = replace(verdict, state=verdicts[-1][1].state, reason=verdicts[-1][1].reason)
        verdicts.append((place, verdict))
    return Found(tuple(verdicts), CitedBy.WRITER)


def _with_more(sentence: Sentence, refs: Sequence[str], more: Sequence[str], kind: Kind) -> Verdict:
    """Against its own citations; where nothing but literals of one kind is missing, against more: `two` counts the rows
    of the whole sentence, `30 minutes later` begins at the sentence before."""
    verdict = against(sentence, refs)
    if verdict.missing and more and all(each.kind is kind for each in verdict.missing):
        wider = against(sentence, tuple(dict.fromkeys((*more, *refs))))
        if wider.state in (SentenceState.VALUES_FOUND, SentenceState.SOURCE_GIVEN):
            return replace(wider, refs=tuple(refs) if kind is Kind.NUMBER else wider.refs)
    return verdict


def _of_citations(units: Sequence[Unit], at: int, sentence: Sentence, refs: Sequence[str]) -> Found | None:
    if not refs:
        return None
    unit = units[at]
    before = next((each.refs for each in reversed(units[max(0, at - AHEAD) : at]) if each.refs), ())
    later = bool(sentence.has("after") | sentence.has("then"))
    verdict = _with_more(sentence, refs, before if later else (), Kind.DURATION)
    if unit.cells and verdict.state is SentenceState.SOURCE_GIVEN:
        verdict = replace(verdict, state=SentenceState.VALUES_FOUND, reason="")
    return _single(verdict, CitedBy.WRITER)


def _of_own_words(sentence: Sentence) -> Found | None:
    verdict = own_words(sentence)
    return None if verdict is None else _single(verdict, CitedBy.NOBODY)


def _of_neighbours(units: Sequence[Unit], at: int, sentence: Sentence) -> Found | None:
    """A citation of the same block: of the next sentence that has one, then of the one before."""
    unit = units[at]
    behind = (each for each in units[at + 1 : at + 1 + AHEAD] if each.refs)
    before = (each for each in reversed(units[max(0, at - AHEAD) : at]) if each.refs)
    after = next((each for each in behind if each.block == unit.block or unit.text.endswith(":")), None)
    for other in (after, next((each for each in before if each.block == unit.block), None)):
        if other is not None:
            verdict = against(sentence, other.refs)
            if verdict.state is SentenceState.VALUES_FOUND:
                return _single(verdict, CitedBy.BLOCK)
    return None
