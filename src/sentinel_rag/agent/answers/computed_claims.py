"""What a computed row, or a result without rows, proves: its outcome, and not what its writer asked for.

A writer may ask `compute` to count the rows whose title contains anything at all. That the words stand in the computed
row shows that they were asked for; what was found is the count beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sentinel_rag.agent.answers.comparing import NONE, Comparison, Rule, not_found, source_given
from sentinel_rag.agent.answers.facts import Facts
from sentinel_rag.agent.answers.results import Cell
from sentinel_rag.language.lexicon import plain_words
from sentinel_rag.language.literals import Kind, Literal, key, tokens

_CONDITIONS = ("where", "that", "unless")
_QUOTES = "“”„«»\"'`"


def _conditions(cells: Mapping[str, Cell]) -> str:
    return "; ".join(str(cells[name]) for name in _CONDITIONS if name in cells)


def _outcome(facts: Facts, of: Comparison) -> Facts:
    """The row without what was asked for: its conditions, and the cells that only repeat them."""
    assert facts.row is not None
    asked = _conditions(facts.cells)
    cells = {
        column: value
        for column, value in facts.cells.items()
        if column not in _CONDITIONS and not (asked and f"{column} " in asked and "extreme" not in facts.cells)
    }
    return of.evidence.facts_of(replace(facts.row, cells=cells), facts.result)


@not_found
def outcome_is_told(of: Comparison) -> str:
    """A sentence whose values all are conditions of a computation says nothing of what came of it."""
    for facts in of.computed:
        asked = _conditions(facts.cells)
        mine = [literal for literal, held in of.support.items() if facts in held]
        if not asked or not mine or any(facts not in held for held in of.support.values() if held):
            continue
        told = _outcome(facts, of)
        if any(told.holds(literal) for literal in mine) or _claims(of) or _says_one(of, facts):
            continue
        return f"{facts.ref} was asked for “{mine[0].raw.strip(_QUOTES)}”, which shows nothing: say what it found"
    return ""


def _claims(of: Comparison) -> bool:
    """Whether it says all or none, which other rules compare with the outcome."""
    return any(of.sentence.has(table) for table in ("universal", "negative", "not", "pairwise"))


def _says_one(of: Comparison, facts: Facts) -> bool:
    return facts.cells.get("count") == 1 and bool(of.sentence.has("one"))


def _counts(of: Comparison) -> Iterator[tuple[Facts, int, int]]:
    """Computed rows that the sentence is about, with their count and what it is a part of."""
    labels = [each for each in of.support if each.kind not in (Kind.NUMBER, Kind.PERCENT, Kind.DURATION)]
    for facts in of.computed:
        count, whole = facts.cells.get("count"), facts.cells.get("of")
        if not isinstance(count, int) or not isinstance(whole, int):
            continue
        if len(of.computed) == 1 or any(facts in of.support[each] for each in labels):
            yield facts, count, whole


@not_found
def counts_agree(of: Comparison) -> str:
    """`all` and `none` as they were counted; the number of rows with it is not the number of rows."""
    sentence = of.sentence
    if sentence.quotes:
        return ""
    told = [literal.number for literal in of.literals if literal.kind is Kind.NUMBER]
    shared = any(literal.kind is Kind.PERCENT for literal in of.literals)
    for facts, count, whole in _counts(of):
        denies = bool(sentence.has("negative")) and NONE not in facts.cells.values()
        wrong = (
            (bool(sentence.has("universal")) and not sentence.has("not") and not denies and count != whole)
            or (denies and count > 0 and count not in told and not shared and not _is_turned(facts))
            or (count == 0 and not denies and not sentence.has("not") and 0 not in told and not shared)
            or (whole in told and whole != count and count not in told and not shared and not _says_one(of, facts))
        )
        if wrong and not _has_another(of, told, facts):
            return f"{facts.ref} counts {count} of {whole}"
    return ""


def _has_another(of: Comparison, told: list[float], facts: Facts) -> bool:
    """Whether another computed row may be the one that the number is of."""
    return any(each is not facts and each.cells.get("count") in told for each in of.computed)


def _is_turned(facts: Facts) -> bool:
    """Whether a condition denies: that all lack something is what `none has` says."""
    return "unless" in facts.cells or NONE in facts.cells.values() or "is empty" in _conditions(facts.cells)


@not_found
def unless_is_denied(of: Comparison) -> str:
    """What rows were counted for not having is no value of theirs."""
    sentence = of.sentence
    if sentence.has("not") or sentence.has("negative"):
        return ""
    for facts in of.computed:
        denied = f" {key(str(facts.cells.get('unless', '')))} "
        told = _outcome(facts, of)
        for literal, held in of.support.items():
            mine = facts in held and not any(each is not facts for each in held) and not told.holds(literal)
            if mine and f" {key(str(literal.value))} " in denied and not sentence.negated(literal):
                return f"{facts.ref} tells of what is without “{literal.raw}”"
    return ""


@not_found
def none_of_all_that_was_asked(of: Comparison) -> str:
    """That no row fulfils several conditions together shows of none of them alone that no row does."""
    for facts in of.computed:
        parts = _conditions(facts.cells).split("; ")
        if facts.cells.get("count") != 0 or len(parts) < 2 or not of.sentence.has("negative"):
            continue
        for part in parts:
            words = tokens(part)
            if words[-1:] != ["empty"] and words and f" {words[-1]} " not in of.sentence.key:
                return f"{facts.ref} counts none with “{part}”, which the sentence leaves out"
    return ""


@not_found
def holds_as_said(of: Comparison) -> str:
    """A row that says whether something holds for all, none or any is believed, and for nothing else."""
    sentence = of.sentence
    universal = bool(sentence.has("universal") or sentence.has("exclusive") or sentence.has("pairwise"))
    negative = bool(sentence.has("negative"))
    for facts in of.computed:
        holds = facts.cells.get("holds")
        if not isinstance(holds, bool) or not (universal or negative) or sentence.has("not"):
            continue
        asked = facts.result.arguments.get("op")
        if not holds and asked == "any" and negative and not universal:
            continue  # none is what it found
        if not holds:
            return f"{facts.ref} says that it does not hold"
        if asked == "none" and universal and not negative and not _is_turned(facts):
            return f"{facts.ref} says that it holds for none"
        if asked == "all" and negative and not universal and not _is_turned(facts):
            return f"{facts.ref} says that it holds for all"
        if asked == "any" and (universal or negative):
            return f"{facts.ref} says that it holds for some"
    return ""


@not_found
def change_runs_forward(of: Comparison) -> str:
    """`from 1 to 8` is not `from 8 to 1`."""
    if not of.sentence.has("from") or not of.sentence.has("to"):
        return ""
    for facts in of.computed:
        ends = [facts.cells.get(name) for name in ("from", "to")]
        places = [_place(of, end) for end in ends]
        if places[0] is not None and places[1] is not None and places[1] < places[0]:
            return f"{facts.ref} goes from {ends[0]} to {ends[1]}"
    return ""


def _place(of: Comparison, end: Cell | None) -> int | None:
    if not isinstance(end, int | float):
        return None
    found: Iterator[Literal] = (each for each in of.literals if each.kind is Kind.NUMBER and each.number == end)
    return next((each.start for each in found), None)


@source_given
def nothing_was_found(of: Comparison) -> str:
    """A result without a row holds what was asked for; a sentence that denies nothing says it of no row, unless it
    speaks of the window or of the table alone."""
    told = [literal.number for literal in of.literals if literal.kind is Kind.NUMBER]
    if of.rows or of.sentence.has("negative") or of.sentence.has("not") or 0 in told:
        return ""
    empty = of.wholes and all(not (each.rows or each.totals or each.problem or each.writes) for each in of.wholes)
    return f"{of.wholes[0].ref} holds no row" if empty and not _is_of_the_head(of) else ""


def _is_of_the_head(of: Comparison) -> bool:
    """`Window: from 9:00 to 10:00`, `the table holds rows`: times of one of both, and no other thing is spoken of."""
    head, sentence = of.evidence.facts(of.wholes[0].ref), of.sentence
    assert head is not None
    told = {
        "window" if name == "window" else "table"
        for name, at in head.moments
        if any(each.kind is Kind.MOMENT and each.value.fits(at, of.evidence.zone) for each in of.literals)
    } | {"table" for each in of.literals if each.kind is not Kind.MOMENT}
    tables = key(str(of.wholes[0].coverage.get("tables")))
    inside = {word.text for each in of.literals for word in sentence.words if each.start <= word.start < each.end}
    words = sentence.bag - inside - sentence.has("head") - sentence.has("before") - plain_words() - set(tables.split())
    things = [each for each in of.literals if each.kind not in (Kind.MOMENT, Kind.NUMBER)]
    return len(told) == 1 and not words and all(f" {each.value} " in f" {tables} " for each in things)


COMPUTED_CLAIMS: tuple[Rule, ...] = (
    holds_as_said,
    counts_agree,
    none_of_all_that_was_asked,
    unless_is_denied,
    change_runs_forward,
    outcome_is_told,
    nothing_was_found,
)
