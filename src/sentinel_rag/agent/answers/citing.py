"""What a sentence cites, or could: compared with given rows (`against`), own words without a citation (`own_words`), or
the rows that hold all of it (`automatic`)."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.agent.answers.comparing import Comparison, Verdict, compare
from sentinel_rag.agent.answers.facts import Facts
from sentinel_rag.agent.answers.markup import UnitKind
from sentinel_rag.agent.answers.results import Result
from sentinel_rag.agent.answers.rules import RULES
from sentinel_rag.agent.answers.sentence import STATES, STRONG_NAMES, Sentence
from sentinel_rag.contracts.evidence import SentenceState
from sentinel_rag.language.literals import Kind, Literal, key

MOST_TRIED = 40
"""Rows that are tried for a sentence without a citation."""
MOST_ROWS_OF_A_COVER = 4
_NOT_STRONG_ALONE = frozenset({"tech", "codeword", "host", "file", "cve"})
"""Forms of ids that are knowledge of the trade unless a result holds them."""
_SHORTEST_NOTE = 3
"""Words; a sentence of more is a note of a result where the note begins so."""
_DEED = "it claims a deed: only the result of a call that changes something can hold it"


def against(sentence: Sentence, refs: Sequence[str]) -> Verdict:
    """A sentence compared with what it cites."""
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
    if sentence.own_deed and not any(each.writes for each in (*wholes, *(row.result for row in rows))):
        return Verdict(SentenceState.NOT_FOUND, _DEED, tuple(refs))
    return compare(Comparison(sentence, rows, wholes, refs), RULES)


def own_words(sentence: Sentence) -> Verdict | None:
    """Own words without a citation: nothing of the workspace, or only names of things that exist."""
    evidence = sentence.evidence
    if sentence.own_deed:
        return Verdict(SentenceState.NOT_FOUND, _DEED)
    strong = [literal for literal in sentence.literals if _is_strong(literal, sentence)]
    bold = sentence.text.startswith("**") and sentence.text.endswith("**")
    if sentence.kind is UnitKind.HEADING or bold:
        strong = [literal for literal in strong if literal.kind not in STATES and literal.kind is not Kind.MOMENT]
    if not strong:
        return Verdict(SentenceState.OWN_WORDS)
    advice = _is_advice(sentence)
    if advice:
        strong = [literal for literal in strong if literal.kind not in (*STATES, Kind.PERCENT, Kind.DURATION)]
    names = [literal for literal in strong if literal.kind in STRONG_NAMES or literal in sentence.thing_numbers]
    if len(names) < len(strong) or not all(evidence.holders(literal) for literal in names):
        return None
    bound = len({sentence.sort(literal) for literal in names}) > 1 and not advice
    return None if bound else Verdict(SentenceState.OWN_WORDS)


def _is_advice(sentence: Sentence) -> bool:
    """Whether it says what may or should be, or what the writer thinks."""
    return any(sentence.has(table) for table in ("possible", "i", "opinion")) or sentence.text.rstrip().endswith(
        ("?", ":")
    )


def _is_strong(literal: Literal, sentence: Sentence) -> bool:
    """Whether a literal says something of the workspace."""
    evidence = sentence.evidence
    match literal.kind:
        case Kind.NUMBER:
            if literal not in sentence.thing_numbers and not sentence.counted(literal):
                return False
        case Kind.SPOKEN:
            return False
        case Kind.DURATION | Kind.PERCENT:
            return any(each.kind in STRONG_NAMES | {Kind.MOMENT} for each in sentence.literals)
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


def automatic(sentence: Sentence) -> Verdict:
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
