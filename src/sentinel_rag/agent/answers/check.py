"""The check of an answer: each of its sentences is compared with what it cites and ends in one of five states.

Nothing is erased and nothing replaced. `check_answer` checks a whole answer; `GrowingAnswer` the same while it is
written, with the same outcome however the text was cut. Pure computation, linear in text and evidence, to be called in
a worker thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import takewhile
from typing import Any

from sentinel_rag.agent.answers.comparing import Comparison, Verdict, compare
from sentinel_rag.agent.answers.evidence import ADDRESSES, ReadResults
from sentinel_rag.agent.answers.facts import Facts, Source
from sentinel_rag.agent.answers.markup import CellAt, Markup, Unit, UnitKind, sentence_spans
from sentinel_rag.agent.answers.results import Result
from sentinel_rag.agent.answers.rules import RULES
from sentinel_rag.agent.answers.sentence import STATES, STRONG_NAMES, ReadSentence
from sentinel_rag.agent.instruction_text import reads_like_instruction
from sentinel_rag.contracts.evidence import Citation, CitedBy, Mark, SentenceState
from sentinel_rag.contracts.evidence import Sentence as CheckedSentence
from sentinel_rag.language.lexicon import CANONICAL, everything, plain_words
from sentinel_rag.language.literals import Kind, Literal, key
from sentinel_rag.language.text import toml_beside

MOST_SHOWN_REFS = 40
"""Citations that a checked sentence names."""
WEAK = 1 / 3
"""The share of statements with a source below which a writer gives few."""
FEWEST_JUDGED = 3
"""Statements about the environment, below which nothing is said of their sources."""
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
    sentences: tuple[CheckedSentence, ...]
    written: tuple[Unit, ...] = field(default=(), compare=False, repr=False)
    rules: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """For each sentence the rule that gave its reason."""

    def told_in(self, language: str) -> CheckedAnswer:
        """The same with its reasons as their reader needs them: notes in a language that has words for them, else the
        reasons without what only the writer can act on."""
        words = _notes().get(language)
        if words is None:
            return replace(self, sentences=tuple(replace(each, reason=_read(each.reason)) for each in self.sentences))
        pairs = zip(self.sentences, self.rules, strict=True)
        sentences = tuple(replace(each, reason=_note(each, rule, words)) for each, rule in pairs)
        return replace(self, sentences=sentences)


@dataclass(frozen=True, slots=True)
class UnitVerdicts:
    """The verdict on a unit, and who gave it its citations. `places` are the texts that verdicts were made of, with
    their start in the unit."""

    verdicts: tuple[tuple[int, Verdict], ...]
    cited_by: CitedBy

    @property
    def worst(self) -> Verdict:
        return min((verdict for _, verdict in self.verdicts), key=lambda verdict: _ORDER.index(verdict.state))


_REFS = re.compile(r"\bc\d+(?:\.\d+)?(?:(?:, | and )c\d+(?:\.\d+)?)*\b(?: gives\b)?")


def _read(reason: str) -> str:
    """A reason for a person, who sees no references: `the source shows severity High, not Medium`."""
    return "; ".join(map(_read_one, reason.split("; "))) if reason else ""


def _read_one(reason: str) -> str:
    for pattern, text in _note_data()["reader"]:
        reason = re.sub(pattern, text, reason)
    found = list(_REFS.finditer(reason))
    if len(found) != 1:  # what stands between two of them says which is which
        return reason
    words = "the source shows" if found[0][0].endswith("gives") else "the source"
    return f"{reason[: found[0].start()]}{words}{reason[found[0].end() :]}"


def _note_data() -> Mapping[str, Any]:
    return toml_beside(__package__, "notes.toml")


@cache
def _notes() -> Mapping[str, Mapping[str, str]]:
    """The notes of each language by rule."""
    data = {name: told for name, told in _note_data().items() if name != "reader"}
    kinds = {rule: kind for kind, rules in data.pop("kinds").items() for rule in rules}
    return {name: {**told, **{rule: told[kind] for rule, kind in kinds.items()}} for name, told in data.items()}


def _note(sentence: CheckedSentence, rule: str, words: Mapping[str, str]) -> str:
    """The reason of a sentence as a note; what is not found and was not cited has no source."""
    if not sentence.reason:
        return ""
    missing = [
        f"“{sentence.text[mark.start - sentence.start : mark.end - sentence.start]}”"
        for mark in sentence.marks
        if not mark.found
    ]
    uncited = sentence.state is SentenceState.NOT_FOUND and not sentence.citations
    default = "uncited" if uncited else "beside" if sentence.state is SentenceState.SOURCE_GIVEN else "differs"
    if rule == "not_there" and not missing:
        rule = "unsaid"
    return words[rule or default].format(", ".join(missing[:3]))


def cited_share(checked: CheckedAnswer) -> float:
    """The part of the sentences about the environment to which the writer gave a citation; 1.0 where there are none."""
    about = _about(checked)
    if not about:
        return 1.0
    cited = sum(sentence.cited_by in (CitedBy.WRITER, CitedBy.BLOCK) for sentence in about)
    return cited / len(about)


def gives_few_sources(checked: CheckedAnswer) -> bool:
    """Whether the writer cites so little that it is asked for its sources, and its reader told."""
    return len(_about(checked)) >= FEWEST_JUDGED and cited_share(checked) < WEAK


def _about(checked: CheckedAnswer) -> list[CheckedSentence]:
    return [sentence for sentence in checked.sentences if sentence.state is not SentenceState.OWN_WORDS]


def checked_sentence(unit: Unit, found: UnitVerdicts, evidence: ReadResults) -> CheckedSentence:
    """A unit with its state, citations and marks."""
    worst = found.worst
    refs = dict.fromkeys(ref for _, verdict in found.verdicts for ref in verdict.refs)
    return CheckedSentence(
        start=unit.start,
        end=unit.end,
        text=unit.text,
        state=worst.state,
        reason=worst.reason,
        citations=tuple(_citation(ref, unit, evidence) for ref in list(refs)[:MOST_SHOWN_REFS]),
        marks=tuple(_marks(unit, found, evidence)),
        cited_by=found.cited_by,
    )


def _citation(ref: str, unit: Unit, evidence: ReadResults) -> Citation:
    at = tuple(dict.fromkeys(each.at for each in unit.cited if ref in each.refs))
    name, _, rest = ref.partition(".")
    number = rest.partition(".")[0]
    result = evidence.result(name)
    facts = evidence.facts(f"{name}.{number}") if number else None
    shown = f"{name}.{number}" if number else name
    pointer = facts.row.pointer if facts is not None and facts.row is not None else ""
    return Citation(shown, name, "" if result is None else result.tool, pointer, at)


def _marks(unit: Unit, found: UnitVerdicts, evidence: ReadResults) -> Iterator[Mark]:
    """Marks of the literals that were compared, in their order, none inside another."""
    made: dict[tuple[int, int], Mark] = {}
    for cell in unit.cells:
        made[cell.start, cell.end] = _cell_mark(cell, unit, evidence)
    for offset, verdict in found.verdicts:
        told: list[tuple[Literal, bool, Source | None]] = [(literal, False, None) for literal in verdict.missing]
        if verdict.wrong is not None:
            literal, facts, column = verdict.wrong
            told.insert(0, (literal, False, facts.cell(column)))
        told += [
            (literal, True, _source(literal, held, verdict, evidence)) for literal, held in verdict.support.items()
        ]
        for literal, right, source in told:
            at = (unit.start + offset + literal.start, unit.start + offset + literal.end)
            source = source or Source("", "", None)
            made.setdefault(at, Mark(*at, right, source.call_id, source.pointer, source.value))
    last = unit.start
    for start, end in sorted(made, key=lambda span: (span[0], -span[1])):
        if last <= start < end <= unit.end:
            yield made[start, end]
            last = end


def _source(literal: Literal, held: Sequence[Facts], verdict: Verdict, evidence: ReadResults) -> Source | None:
    """The cell that holds a literal; of a whole result its total."""
    wholes = [] if held else [evidence.facts(ref.partition(".")[0]) for ref in verdict.refs[:3]]
    holding = held[:3] or [whole for whole in wholes if whole is not None and whole.holds(literal)]
    return next((source for facts in holding if (source := facts.source(literal)) is not None), None)


def _cell_mark(cell: CellAt, unit: Unit, evidence: ReadResults) -> Mark:
    row_ref, _, column = cell.ref.rpartition(".")
    facts = evidence.facts(row_ref)
    if facts is None or facts.row is None or column not in facts.row.cells:
        return Mark(cell.start, cell.end, False)
    shown = unit.text[cell.start - unit.start : cell.end - unit.start]
    right = cell.filled or evidence.cell_says(cell.ref, shown)
    source = facts.cell(column)
    return Mark(cell.start, cell.end, right, source.call_id, source.pointer, source.value)


LONGEST_SENTENCE = 2_000
"""Characters; nothing longer that a person would read is one sentence."""
MOST_REFS = 200
_NO_STATEMENT = (UnitKind.HEAD, UnitKind.CODE)
AHEAD = 8
"""Sentences before and behind from which one may borrow a citation."""


def check_answer(raw: str, evidence: ReadResults) -> CheckedAnswer:
    """An answer as its writer wrote it, checked. Linear in its length."""
    growing = GrowingAnswer(evidence)
    growing.add(raw)
    growing.end()
    return growing.checked


class GrowingAnswer:
    """An answer that is checked while it is written. Results that come later than the start are not seen."""

    def __init__(self, evidence: ReadResults) -> None:
        evidence.update()
        self._evidence = evidence
        self._markup = Markup(evidence.cell_text)
        self._units: list[Unit] = []
        self._advice = _Advice()
        self._advises: list[bool] = []
        self._next = 0
        self._text: list[str] = []
        self._sentences: list[CheckedSentence] = []
        self._told: list[Unit] = []
        self._rules: list[str] = []

    @property
    def checked(self) -> CheckedAnswer:
        """What was written and checked so far."""
        return CheckedAnswer("".join(self._text), tuple(self._sentences), tuple(self._told), tuple(self._rules))

    def add(self, delta: str) -> tuple[str, tuple[CheckedSentence, ...]]:
        """What of the text can be shown now, and the sentences whose check has ended."""
        return self._take(*self._markup.add(delta), whole=False)

    def end(self) -> tuple[str, tuple[CheckedSentence, ...]]:
        """What is left."""
        return self._take(*self._markup.end(), whole=True)

    def _take(self, written: str, units: Sequence[Unit], *, whole: bool) -> tuple[str, tuple[CheckedSentence, ...]]:
        self._text.append(written)
        self._units.extend(units)
        self._advises.extend(map(self._advice.take, units))
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
                found = _check(self._units, at, self._evidence, advises=self._advises[at])
                self._rules.append(found.worst.rule)
                yield checked_sentence(unit, found, self._evidence)

    def _is_settled(self, at: int) -> bool:
        """A sentence with citations, or one whose neighbours are known."""
        unit = self._units[at]
        if unit.refs or unit.kind in (UnitKind.CODE, UnitKind.HEAD, UnitKind.HEADING) or len(self._units) > at + AHEAD:
            return True
        ended = len(_following(self._units, at)) < len(self._units) - at - 1
        return ended or (unit.kind not in _OPENING and self._markup.block != unit.block)


class _Advice:
    """Which units are the writer's judgement or advice: a paragraph from `My judgement:` on, and the items below such a
    heading or line."""

    def __init__(self) -> None:
        self._block = -1
        self._heading = self._lead = self._introduces = False

    def take(self, unit: Unit) -> bool:
        """Whether this unit is; units come in their order."""
        text = unit.text.strip("*_ ")
        title = unit.kind is UnitKind.HEADING or (unit.kind is UnitKind.PROSE and unit.text.strip().endswith("**"))
        label = text if title and len(text) < _LONGEST_LABEL else text[:_LONGEST_LABEL].partition(":")[0]
        words = key(label) if ":" in text[:_LONGEST_LABEL] or title else ""
        claims = everything().claims
        opens = key(label.partition(",")[0]) if words else ""  # `Next, from the server itself: ...`
        says = not claims["opinion"].isdisjoint(words.split()) or bool({words, opens} & claims["advice"])
        says = says or any(f" {phrase} " in f" {words} " for phrase in claims["advice"] if " " in phrase or title)
        if title:
            self._heading, self._lead, self._introduces = says, False, False
        elif unit.kind is UnitKind.PROSE:
            self._lead = says or (self._lead and unit.block == self._block)
            self._introduces = self._lead and text.endswith(":")
        elif unit.kind is UnitKind.ITEM:
            self._lead = says or self._introduces or (self._lead and unit.block == self._block)
        else:
            return False
        self._block = unit.block
        return self._lead or self._heading


# -- one unit --------------------------------------------------------------------------------------------------------
def _check(units: Sequence[Unit], at: int, evidence: ReadResults, *, advises: bool) -> UnitVerdicts:
    unit = units[at]
    if len(unit.text) > LONGEST_SENTENCE or sum(len(each.refs) for each in unit.cited) > MOST_REFS:
        reason = "it is too long to be compared as one sentence"
        return _single(Verdict(SentenceState.NOT_FOUND, reason, unit.refs[:MOST_SHOWN_REFS]), CitedBy.NOBODY)
    sentence = ReadSentence(unit.text, unit.kind, evidence, advises=advises)
    refs = (*unit.refs, *(ref for cell in unit.cells if (ref := cell.ref.rpartition(".")[0]) not in unit.refs))
    found = (
        _of_others(unit, sentence, refs, evidence)
        or (_single(Verdict(SentenceState.OWN_WORDS), CitedBy.NOBODY) if unit.kind in _NO_STATEMENT else None)
        or _of_cells(unit, refs, evidence)
        or _of_parts(units, at, evidence, advises=advises)
        or _of_citations(units, at, sentence, refs)
        or _of_own_words(sentence)
        or _of_neighbours(units, at, sentence)
        or _of_rows_or_advice(sentence)
    )
    return _of_demands(found, sentence)


def _of_demands(found: UnitVerdicts, sentence: ReadSentence) -> UnitVerdicts:
    """What an outsider's text asks for is never shown as found or as the writer's own."""
    where = sentence.evidence.demand_of_others(sentence.demands) if sentence.kind is not UnitKind.CODE else ""
    if not where or found.worst.state not in (SentenceState.VALUES_FOUND, SentenceState.OWN_WORDS):
        return found
    worst = found.worst
    support = [pair for _, verdict in found.verdicts for pair in verdict.support.items()]
    states = [(each, held) for each, held in support if each.kind is Kind.STATE]
    if states and all(any(facts.states.get(each.domain) == each.value for facts in held) for each, held in states):
        return found  # the row itself is Closed
    reason = f"{where} (text that others wrote) asks for this"
    verdict = replace(
        worst, state=SentenceState.SOURCE_GIVEN, reason=reason, refs=worst.refs or (where,), rule="theirs"
    )
    by = CitedBy.CHECK if found.cited_by is CitedBy.NOBODY else found.cited_by
    return UnitVerdicts((*found.verdicts, (0, verdict)), by)


def _single(verdict: Verdict, cited_by: CitedBy) -> UnitVerdicts:
    return UnitVerdicts(((0, verdict),), cited_by if verdict.refs else CitedBy.NOBODY)


def _of_others(unit: Unit, sentence: ReadSentence, refs: Sequence[str], evidence: ReadResults) -> UnitVerdicts | None:
    """Words or an address that an outsider wrote, told as if they were the writer's own."""
    where = evidence.words_of_others(sentence.runs(), sentence.length)
    if unit.kind is UnitKind.CODE:
        if not where:
            return None
        reason = f"these are words of {where} (text that others wrote)"
        return _single(Verdict(SentenceState.SOURCE_GIVEN, reason, (where,), rule="theirs"), CitedBy.CHECK)
    by = CitedBy.WRITER
    own = where and refs and where not in refs
    if where and not (own and against(sentence, refs).state is SentenceState.VALUES_FOUND):
        # What a raw row shows may sound like what an alert says of it: then it is that row's.
        # An alert's description told in its words, of its row that is cited, is no more than a source; never a demand.
        row = evidence.facts(where) if where in refs and not sentence.demands else None
        told = row is not None and row.kind == "alert" and not reads_like_instruction(unit.text)
        reason = f"these are words of {where} (text that others wrote){'' if told else ': quote them'}"
        state = SentenceState.SOURCE_GIVEN if told else SentenceState.NOT_FOUND
        return _single(Verdict(state, reason, tuple(refs), rule="theirs"), by)
    for literal in sentence.literals:
        address = _address(literal)
        if address is None or (address.domain != "url" and refs):
            continue
        where = evidence.address_of_others(address)
        if where and not (literal.kind is Kind.TEXT and refs):
            reason = (
                f"“{literal.raw}” is an address out of {where} (text that others wrote): give it as code and cite it"
            )
            return _single(Verdict(SentenceState.NOT_FOUND, reason, tuple(refs), rule="theirs"), by)
    return None


def _address(literal: Literal) -> Literal | None:
    """A literal that is an address, or a code span of nothing else."""
    if literal.kind is Kind.ID and literal.domain in ADDRESSES:
        return literal
    if literal.kind is Kind.TEXT and "://" in literal.raw and " " not in literal.raw.strip():
        return replace(literal, domain="url")
    return None


def _of_cells(unit: Unit, refs: Sequence[str], evidence: ReadResults) -> UnitVerdicts | None:
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


def _of_parts(units: Sequence[Unit], at: int, evidence: ReadResults, *, advises: bool) -> UnitVerdicts | None:
    """Several citations inside one sentence: each part is compared with its own; the worst is the sentence's. So are
    the cells of a table's row, and those without a citation with all of the row's."""
    unit, near = units[at], _near(units, at)
    around = (*(ref for each in unit.cited for ref in (each.refs[0], each.refs[-1])), *near)
    if unit.cells or not unit.cited:
        return None
    row = unit.kind is UnitKind.ROW
    parts, rest = _parts_of_cells(unit, evidence) if row else (_cited_parts(unit, 0, len(unit.text)), "")
    if len(parts) + bool(rest) < 2 and (not row or rest == unit.text):
        return None
    verdicts: list[tuple[int, Verdict]] = []
    for place, text, refs in [*parts, *([(0, rest, unit.refs)] if rest else [])]:
        bids = text is rest and not rest.partition("|")[0].strip()  # the first cell says what to do
        sentence = ReadSentence(text, unit.kind, evidence, advises=advises or bids)
        verdict = against(sentence, refs, around)
        bare = sentence.literals and all(each.kind is Kind.NUMBER for each in sentence.literals)
        if place and (bare if row else verdict.missing and all(each.kind is Kind.NUMBER for each in verdict.missing)):
            told = _in_context(unit, place, text, refs, evidence, around)
            verdict, place = (told, 0) if row or not told.missing else (verdict, place)
        known = frozenset(str(each.value) for _, before in verdicts for each in before.support)
        verdict = _with_more(verdict, sentence, refs, unit.refs, (*unit.refs, *near), known)
        if verdict.state is SentenceState.NOT_FOUND and not verdict.missing:  # `Neither address [a] is among them [b]`
            whole = against(ReadSentence(unit.text, unit.kind, evidence, advises=advises), unit.refs)
            verdict = whole if whole.state in (SentenceState.VALUES_FOUND, SentenceState.SOURCE_GIVEN) else verdict
        listed = sentence.bag <= plain_words() or text is rest
        if listed and verdict.state is SentenceState.SOURCE_GIVEN and verdicts and not verdict.missing:
            # `124 is High [c1.1], and so is 108 [c1.8]`
            verdict = replace(verdict, state=verdicts[-1][1].state, reason=verdicts[-1][1].reason)
        verdicts.append((place, verdict))
    return UnitVerdicts(tuple(verdicts), CitedBy.WRITER) if verdicts else None


_Part = tuple[int, str, tuple[str, ...]]
"""Where a part of a unit begins, its text, and what it cites."""


def _cited_parts(unit: Unit, start: int, end: int) -> list[_Part]:
    """The parts of a stretch of a unit, each up to its citation, the last one to the end."""
    text, parts = unit.text[:end], list[_Part]()
    for citation in unit.cited:
        at = citation.at - unit.start
        if start <= at <= end or (at > end == len(unit.text) and unit.kind is not UnitKind.ROW):
            if parts and unit.kind is not UnitKind.HEADING:  # what follows up to a full stop belongs to the one before
                ends = [end for _, end in sentence_spans(text[:at], start)][:-1]
                place, told, refs = parts[-1]
                if ends and _has_words(text[start : ends[-1]]):
                    parts[-1] = (place, text[place : ends[-1]], refs)
                    start = ends[-1]
            before = text[start : max(start, at)]
            if parts and not _has_words(before):
                place, told, refs = parts[-1]
                parts[-1] = (place, told, (*refs, *citation.refs))
            else:
                parts.append((start, before, citation.refs))
            start = max(start, at)
    if parts and _has_words(text[start:]):
        place, _, refs = parts[-1]
        parts[-1] = (place, text[place:], refs)
    return parts


def _parts_of_cells(unit: Unit, evidence: ReadResults) -> tuple[list[_Part], str]:
    """The parts of the cells of a row that cite something, and the rest of the row, without what it bids to do; all of
    it is rest where one place is cited."""
    parts: list[_Part] = []
    rest, at = unit.text, 0
    for cell in unit.text.split("|"):
        end = at + len(cell)
        cited = _cited_parts(unit, at, end)
        told = cited if _has_words(cell) else []
        if told or (not cited and _is_to_do(ReadSentence(cell, unit.kind, evidence))):
            rest = rest[:at] + " " * len(cell) + rest[end:]
        parts += told
        at = end + 1
    if len(unit.cited) == 1:
        for place, text, _ in parts:
            rest = rest[:place] + text + rest[place + len(text) :]
        return [], rest
    return parts, rest if _has_words(rest) else ""


def _in_context(
    unit: Unit, place: int, text: str, refs: Sequence[str], evidence: ReadResults, near: Sequence[str]
) -> Verdict:
    """A part with what stands before it, which says what its numbers count: in a table the first cell of the row, else
    all of the sentence."""
    ahead = unit.text[:place]
    if unit.kind is UnitKind.ROW:
        label = ahead.partition("|")[0]
        ahead = f"{label}|{' ' * (place - len(label) - 1)}" if len(label) < place else ""
    whole = ReadSentence(ahead + text, unit.kind, evidence)
    said = frozenset(each for each in whole.literals if each.start < place)
    return against(whole, refs, near, granted=said)


def _has_words(text: str) -> bool:
    return any(letter.isalnum() for letter in text)


def _is_to_do(cell: ReadSentence) -> bool:
    """Whether a cell asks for something, and speaks of what some row holds."""
    strong = (each for each in cell.literals if _is_strong(each, cell))
    return cell.asks and all(_is_free_in_advice(each, cell, advises=True) for each in strong)


def _with_more(
    verdict: Verdict,
    sentence: ReadSentence,
    refs: Sequence[str],
    unit_refs: Sequence[str],
    near: Sequence[str],
    known: frozenset[str] = frozenset(),
) -> Verdict:
    """What was found by its own citations, and more: a number may count the rows of the whole sentence; what else is
    missing is granted where it needs no citation of its own, and then no more than a source was given. `known` is what
    parts of the sentence before it were found to say."""
    missing, evidence = verdict.missing, sentence.evidence
    others = [facts for ref in unit_refs if ref not in refs and (facts := evidence.facts(ref))]
    measures = (Kind.NUMBER, Kind.DURATION, Kind.MOMENT)
    counts = all(each.kind in measures and not any(facts.holds(each) for facts in others) for each in missing)
    if unit_refs and missing and counts:
        wider = against(sentence, tuple(dict.fromkeys((*unit_refs, *refs))), near)
        if wider.state in (SentenceState.VALUES_FOUND, SentenceState.SOURCE_GIVEN):
            return replace(wider, refs=tuple(refs))
    if not missing or verdict.state is not SentenceState.NOT_FOUND:
        return verdict
    reasons = {each: reason for each in missing if (reason := _needs_none(each, sentence, verdict, near, known))}
    if len(reasons) < len(missing) or (_ADVICE in reasons.values() and _is_known_otherwise(sentence)):
        return verdict
    rest = against(sentence, refs, near, granted=frozenset(missing))
    if rest.state is SentenceState.VALUES_FOUND or rest.state is SentenceState.SOURCE_GIVEN:
        return replace(rest, state=SentenceState.SOURCE_GIVEN, reason="; ".join(dict.fromkeys(reasons.values())))
    return verdict


def _needs_none(
    literal: Literal, sentence: ReadSentence, verdict: Verdict, near: Sequence[str], known: frozenset[str]
) -> str:
    """Why a literal that stands nowhere in what is cited needs no citation: it is free in advice, the person said it,
    a sentence before cites it, or a name stands beside one that the cited rows hold. Empty where it needs one."""
    evidence = sentence.evidence
    if (sentence.advises or sentence.bids_with(literal)) and _is_free_in_advice(literal, sentence, advises=True):
        return _ADVICE
    if literal.start > sentence.unshown:
        return _UNSHOWN
    if _counts_what_is_told(literal, sentence):
        return f"“{literal.raw}” was not counted"
    if literal.kind in (Kind.MOMENT, Kind.DURATION) and evidence.was_said(literal):
        return f"“{literal.raw}” is what was asked about"
    if literal.kind in STRONG_NAMES and str(literal.value) in known:
        return f"“{literal.raw}” stands in what it cites before"
    where = _row_beside(literal, sentence, verdict, known)
    if literal in sentence.thing_numbers:
        told = {each.number for each in verdict.support if each in sentence.thing_numbers}
        beside = all(facts.named_numbers <= told for facts in _rows_cited(verdict, evidence))
        near = (*near, *_rows_of_thing(literal, sentence, verdict))
    else:
        beside = any(each.kind is literal.kind and each not in sentence.thing_numbers for each in verdict.support)
    if not where and beside and literal.kind in (Kind.MOMENT, Kind.NUMBER):  # the cited rows have one of their own
        where = next((ref for ref in near if (facts := evidence.facts(ref)) and facts.row and facts.holds(literal)), "")
    return f"“{literal.raw}” stands in {where}, which it does not cite" if where else ""


def _counts_what_is_told(literal: Literal, sentence: ReadSentence) -> bool:
    """`seven other hosts`, `the last three that I read`, `half the story`: a small count in words, of what no row is
    called."""
    if not literal.raw.isalpha() or literal in sentence.thing_numbers:
        return False
    behind = sentence.inside(literal.start, sentence.words_after(literal.start, 1))
    others = any(sentence.says(word, "others") for word in behind)
    bare = not sentence.counted(literal) and all(word.text in plain_words() for word in behind)
    told = literal.kind is Kind.NUMBER and literal.number >= 2 and (others or bare)
    return literal.kind is Kind.PERCENT or (told and not any(sentence.says(word, "part_of") for word in behind))


def _rows_of_thing(literal: Literal, sentence: ReadSentence, verdict: Verdict) -> list[str]:
    """Rows of a thing that a sentence names by number beside what it cites, and says no state of: those that hold a
    name of the sentence too, all of them where no name was found."""
    stated = any(each.kind in STATES for each in sentence.inside(literal.start, sentence.literals))
    if stated or len(verdict.missing) > 1 or not (verdict.support or sentence.is_label(literal)):
        return []
    names = [sentence.evidence.holders(each) for each in verdict.support if each.kind in STRONG_NAMES]
    own = sentence.evidence.holders(literal)
    return sorted(own & frozenset().union(*names) if names else own)


def _rows_cited(verdict: Verdict, evidence: ReadResults) -> list[Facts]:
    return [facts for ref in verdict.refs[:MOST_TRIED] for facts in evidence.rows_at(ref)[:MOST_TRIED]]


def _row_beside(literal: Literal, sentence: ReadSentence, verdict: Verdict, known: frozenset[str]) -> str:
    """A row in which a name stands beside one that the cited rows hold, or in the dossier of a cited incident: of a
    label any such row, of another name one of another sort of thing than the cited rows tell of, or, of the number of
    an incident, where the sentence names theirs too (`the account of 102 is used in 124`)."""
    evidence = sentence.evidence
    label, numbered = sentence.is_label(literal), literal in sentence.thing_numbers
    if literal.kind is Kind.STATE and not label:
        return _row_of_state(literal, sentence, verdict)
    if not label and literal.kind not in STRONG_NAMES and not numbered:
        return ""
    named = [each for each, held in verdict.support.items() if held and each in sentence.anchors]
    if numbered and not label:
        named = [each for each in named if each in sentence.of_kind(*STRONG_NAMES)]
    elif not numbered:
        named += [each for each in verdict.support if each.kind is Kind.MOMENT and each.value.minute is not None]
    cited = _rows_cited(verdict, evidence)
    addresses = sorted({address for facts in cited for address in facts.addresses})[:MOST_TRIED]
    known_by = [Literal(Kind.ID, key(each), each, 0, 0, domain="ip") for each in addresses if not numbered]
    beside = evidence.heads_of(verdict.refs).union(
        evidence.dossier_of(cited), *map(evidence.holders, (*named, *known_by))
    )
    there = evidence.holders(literal) & beside
    if label or not there:
        return min(there, default="")
    holding = filter(None, map(evidence.facts, sorted(evidence.holders(literal))[:MOST_TRIED]))
    sorts = frozenset(sort for facts in holding for sort in facts.sorts_of(literal) if sort)
    others = [each for each in verdict.support if not literal.start <= each.start < literal.end]
    said = [*known, *(str(each.value) for each in others)]
    numbers = {each.number for each in others if each in sentence.thing_numbers}
    return "" if not sorts or any(facts.tells_other(sorts, said, numbers) for facts in cited) else min(there)


def _row_of_state(literal: Literal, sentence: ReadSentence, verdict: Verdict) -> str:
    """The row of the one incident that the sentence names, with a state of which the cited rows say nothing."""
    numbers = {each.number for each in verdict.support if each in sentence.thing_numbers}
    cited = _rows_cited(verdict, sentence.evidence)
    if len(numbers) != 1 or sentence.negated(literal) or any(literal.domain in facts.states for facts in cited):
        return ""
    found = filter(None, map(sentence.evidence.facts, sorted(sentence.evidence.holders(literal))))
    own = (facts for facts in found if facts.kind == "incident" and numbers <= facts.named_numbers)
    return next((facts.ref for facts in own if facts.states.get(literal.domain) == literal.value), "")


def _of_citations(units: Sequence[Unit], at: int, sentence: ReadSentence, refs: Sequence[str]) -> UnitVerdicts | None:
    if not refs:
        return None
    unit = units[at]
    near = _near(units, at)
    verdict = _with_more(against(sentence, refs, near), sentence, refs, (), near)
    if unit.cells and verdict.state is SentenceState.SOURCE_GIVEN:
        verdict = replace(verdict, state=SentenceState.VALUES_FOUND, reason="")
    return _single(verdict, CitedBy.WRITER)


def _near(units: Sequence[Unit], at: int) -> tuple[str, ...]:
    """What the sentences before cite, the nearest first."""
    before = reversed(units[max(0, at - AHEAD) : at])
    return tuple(dict.fromkeys(ref for unit in before for ref in unit.refs[:MOST_SHOWN_REFS]))


def _of_own_words(sentence: ReadSentence) -> UnitVerdicts | None:
    verdict = own_words(sentence, advises=sentence.bids)
    return None if verdict is None else _single(verdict, CitedBy.NOBODY)


def _of_rows_or_advice(sentence: ReadSentence) -> UnitVerdicts:
    """The rows that hold it; without any, what judges, advises, or tells how far was read, is own words."""
    verdict = automatic(sentence)
    told = (*sentence.anchors, *sentence.of_kind(Kind.MOMENT))
    free = sentence.advises or sentence.reading or all(each.start > sentence.unshown for each in sentence.literals)
    free = free or (bool(told) and all(map(sentence.bids_with, told)))
    found = own_words(sentence, advises=True) if free and verdict.state is SentenceState.NOT_FOUND else None
    return _single(found or verdict, CitedBy.CHECK)


_OPENING = (UnitKind.PROSE, UnitKind.HEADING)
_LISTED = (UnitKind.ITEM, UnitKind.ROW, UnitKind.HEAD)


def _following(units: Sequence[Unit], at: int) -> list[Unit]:
    """The units behind one that belong to it: of its block, of the list or the table that it opens, and behind a colon
    what comes next."""
    unit = units[at]

    def belongs(each: Unit) -> bool:
        opened = unit.kind in _OPENING and each.kind in _LISTED
        return each.block == unit.block or opened or unit.text.endswith(":")

    return list(takewhile(belongs, units[at + 1 : at + 1 + AHEAD]))


def _of_neighbours(units: Sequence[Unit], at: int, sentence: ReadSentence) -> UnitVerdicts | None:
    """Citations of the same block: of the next sentence that has some, of the one before, of all that follow together:
    what opens a list or a table tells what its lines bear out."""
    unit = units[at]
    before = [each for each in units[max(0, at - AHEAD) : at] if each.block == unit.block]
    behind, last = ([each.refs for each in side if each.refs] for side in (_following(units, at), reversed(before)))
    inside = [each.refs for each in _following(units, at) if each.refs and each.block == unit.block]
    every = tuple(dict.fromkeys(ref for refs in behind for ref in refs))
    for refs in (*(inside or behind)[:1], *last[:1], every[:MOST_REFS]):
        verdict = against(sentence, refs, borrowed=True)
        if refs and verdict.state is SentenceState.VALUES_FOUND:
            return _single(verdict, CitedBy.BLOCK)
    return None


# -- what a sentence cites, or could ------------------------------------------------------------------------------
_LONGEST_LABEL = 60
"""Characters of a heading, or before a colon."""
MOST_TRIED = 40
"""Rows that are tried for a sentence without a citation."""
MOST_ROWS_OF_A_COVER = 4
_NOT_STRONG_ALONE = frozenset({"tech", "codeword", "host", "file", "cve"})
"""Forms of ids that are knowledge of the trade unless a result holds them."""
_SHORTEST_NOTE = 3
"""Words; a sentence of more is a note of a result where the note begins so."""
_ADVICE = "advice: what it speaks of exists, and more was not compared"
_UNSHOWN = "it tells what nothing that was read shows; that was not compared"
_DEED = "it claims a deed: only the result of a call that changes something can hold it"


def against(
    sentence: ReadSentence,
    refs: Sequence[str],
    near: Sequence[str] = (),
    *,
    granted: frozenset[Literal] = frozenset(),
    borrowed: bool = False,
) -> Verdict:
    """A sentence compared with what it cites. From a row `near` by a length of time may begin; literals that are
    `granted` need not stand there."""
    evidence = sentence.evidence
    rows: list[Facts] = []
    wholes: list[Result] = []
    for ref in dict.fromkeys(refs):
        name, _, rest = ref.partition(".")
        number = rest.partition(".")[0]
        result = evidence.result(name)
        row = evidence.facts(f"{name}.{number}") if number else None
        if result is None or (number and row is None):
            return Verdict(SentenceState.NOT_FOUND, f"there is no {ref}", tuple(refs))
        if row is not None:
            rows.append(row)
        elif result.computed:
            rows.extend(evidence.all_rows(result))
            if not result.rows:
                wholes.append(result)
        else:
            wholes.append(result)
            if len(result.rows) == 1:
                rows.extend(evidence.all_rows(result))
    notes = [f" {key(note)} " for whole in wholes for note in whole.notes]
    said = [key(text) for text in (sentence.text, sentence.text.partition(": ")[2])]
    if any(note.startswith(f" {text} ") for note in notes for text in said if len(text.split()) > _SHORTEST_NOTE):
        return Verdict(SentenceState.VALUES_FOUND, "", tuple(refs))
    told = sentence.has("we") and (rows or wholes)  # `we closed 14` of rows that are closed is a team's
    if sentence.own_deed and not told and not any(each.writes for each in (*wholes, *(row.result for row in rows))):
        return Verdict(SentenceState.NOT_FOUND, _DEED, tuple(refs), rule="deed")
    return compare(Comparison(sentence, rows, wholes, refs, near, granted, borrowed), RULES)


def own_words(sentence: ReadSentence, *, advises: bool = False) -> Verdict | None:
    """Own words without a citation: nothing of the workspace, or only names of things that exist; of judgement and
    advice (`advises`) what no row says otherwise, too."""
    evidence = sentence.evidence
    if sentence.own_deed:
        return Verdict(SentenceState.NOT_FOUND, _DEED, rule="deed")
    seen = [each for each in sentence.literals if not advises or each.start < sentence.unshown]
    strong = [literal for literal in seen if _is_strong(literal, sentence)]
    bold = sentence.text.startswith("**") and sentence.text.endswith("**")
    if sentence.kind is UnitKind.HEADING or bold:
        strong = [literal for literal in strong if literal.kind not in STATES and literal.kind is not Kind.MOMENT]
    soft = (Kind.NUMBER, Kind.PERCENT, Kind.DURATION, Kind.MOMENT)
    unread = sentence.has("possible") and all(
        each.kind in soft and each not in sentence.thing_numbers for each in strong
    )
    if unread or not strong:
        return Verdict(SentenceState.OWN_WORDS)  # `Two versions would be normal` speaks of nothing that was read
    advice = advises or _is_advice(sentence)
    if advice and not (sentence.advises and _is_known_otherwise(sentence)):
        strong = [literal for literal in strong if not _is_free_in_advice(literal, sentence, advises=advises)]
    names = [literal for literal in strong if literal.kind in STRONG_NAMES or literal in sentence.thing_numbers]
    if len(names) < len(strong) or not all(evidence.holders(literal) for literal in names):
        return None
    bound = len({sentence.sort(literal) for literal in names}) > 1 and not advice
    return None if bound else Verdict(SentenceState.OWN_WORDS)


def _is_advice(sentence: ReadSentence) -> bool:
    """Whether it says what may or should be, or what the writer thinks."""
    asks = sentence.text.rstrip("*_ ").endswith(("?", ":"))
    return asks or bool(sentence.has("possible", "i", "we", "opinion"))


def _is_free_in_advice(literal: Literal, sentence: ReadSentence, *, advises: bool) -> bool:
    """What advice and judgement may say of a thing: a state, a share, a count, a time that some row has."""
    if literal.kind is Kind.NUMBER and literal not in sentence.thing_numbers:
        return advises
    if literal.kind is Kind.MOMENT and (sentence.bids or sentence.reading or sentence.text.rstrip("*_ ").endswith("?")):
        return True  # `look at 18:00 to 20:10`, `was he there at 18:00?`, `I read up to 1 December`
    if literal.kind in (Kind.MOMENT, Kind.NUMBER, *STRONG_NAMES):
        return advises and bool(sentence.evidence.holders(literal))
    return literal.kind in (*STATES, Kind.PERCENT, Kind.DURATION)


def _is_known_otherwise(sentence: ReadSentence) -> bool:
    """`My judgement: 124 is Low`, where each row of 124 says High. A proposal (`set it to Low`) is none."""
    proposes = sentence.bids or sentence.supposes or sentence.has("possible", "i", "we")
    if proposes or sentence.text.rstrip().endswith("?"):
        return False
    evidence = sentence.evidence
    named = [evidence.holders(literal) for literal in sentence.anchors]
    rows = [facts for ref in frozenset.intersection(*named) if (facts := evidence.facts(ref))] if named else []
    for state in sentence.of_kind(Kind.STATE):
        told = {facts.states[state.domain] for facts in rows if facts.is_thing and state.domain in facts.states}
        if told and state.value not in told and not sentence.negated(state):
            return True
    return False


def _is_strong(literal: Literal, sentence: ReadSentence) -> bool:
    """Whether a literal says something of the workspace."""
    evidence = sentence.evidence
    match literal.kind:
        case Kind.NUMBER:
            if literal not in sentence.thing_numbers and not sentence.counted(literal):
                return False
        case Kind.SPOKEN:
            return False
        case Kind.MOMENT if evidence.is_now(literal.value, sentence.of_kind(Kind.DURATION)):
            return False
        case Kind.DURATION | Kind.PERCENT:
            length = sentence.of_kind(Kind.DURATION)
            return any(
                each.kind in STRONG_NAMES or (each.kind is Kind.MOMENT and not evidence.is_now(each.value, length))
                for each in sentence.literals
            )
        case Kind.STATE:
            return any(
                each.kind in STRONG_NAMES or each in sentence.thing_numbers or sentence.counted(each)
                for each in sentence.literals
            )
        case Kind.ID if literal.domain in _NOT_STRONG_ALONE and not evidence.holders(literal):
            return False
        case Kind.TEXT if not evidence.holders(literal):
            return False
    return not (evidence.was_said(literal) and not evidence.holders(literal))


def automatic(sentence: ReadSentence) -> Verdict:
    """A sentence without a citation, given the one row or the smallest set of rows that holds all its literals."""
    evidence = sentence.evidence
    names = STRONG_NAMES | {Kind.MOMENT}
    wanted = [each for each in sentence.literals if each.kind in names or each in sentence.thing_numbers]
    if not wanted:
        return Verdict(SentenceState.NOT_FOUND, "it cites nothing, and has no name or time to find a row by")
    held = {literal: evidence.holders(literal) for literal in wanted}
    lost = next((each for each in wanted if not held[each] and each.kind is not Kind.MOMENT), None)
    if lost is not None:
        reason = f"it cites nothing, and “{lost.raw}” stands in no result"
        return Verdict(SentenceState.NOT_FOUND, reason, missing=(lost,))
    filled = [rows for rows in held.values() if rows]
    common = frozenset.intersection(*filled) if filled else frozenset()
    others = [evidence.holders(each) for each in sentence.literals if each not in held][:MOST_TRIED]
    best = sorted(common, key=lambda ref: (-sum(ref in rows for rows in others), ref))
    sets = [[ref] for ref in best[:MOST_TRIED]] if common else [_cover(held)]
    for refs in sets:
        verdict = against(sentence, refs)
        if refs and verdict.state is SentenceState.VALUES_FOUND:
            return verdict
    return Verdict(SentenceState.NOT_FOUND, "it cites nothing, and no row holds all of it")


def _cover(held: dict[Literal, frozenset[str]]) -> list[str]:
    """A few rows that hold all literals together, each time the row that holds the most."""
    left = {literal for literal, refs in held.items() if refs}
    chosen: list[str] = []
    while left and len(chosen) < MOST_ROWS_OF_A_COVER:
        counts: dict[str, int] = {}
        for literal in left:
            for ref in held[literal]:
                counts[ref] = counts.get(ref, 0) + 1
        best = max(counts, key=lambda ref: (counts[ref], ref))
        chosen.append(best)
        left = {literal for literal in left if best not in held[literal]}
    return chosen
