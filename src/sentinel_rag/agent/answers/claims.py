"""Claims that one row cannot hold: all, only, none, the most, more, before. Each needs a complete result in which it is
counted, or a computed one, and is evaluated rather than believed.

Of a computed row its outcome is believed, and not what its writer asked for: that a title was asked for shows nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from sentinel_rag.agent.answers.comparing import (
    NONE,
    STEM,
    Comparison,
    Rule,
    Verdict,
    is_later,
    not_found,
    source_given,
)
from sentinel_rag.agent.answers.facts import PRIMARY_TIMES, Facts, column_words
from sentinel_rag.agent.answers.markup import UnitKind
from sentinel_rag.agent.answers.results import Cell, Result
from sentinel_rag.agent.answers.sentence import STATES, STRONG_NAMES, ReadSentence
from sentinel_rag.contracts.evidence import SentenceState
from sentinel_rag.language.lexicon import date_names, everything, plain_words
from sentinel_rag.language.literals import Kind, Literal, Word, key, tokens

_NUMERIC = frozenset({Kind.NUMBER, Kind.PERCENT, Kind.DURATION})
_CELLS, _PIECES = re.compile(r"\|"), re.compile(r"[|,;:]")
_LIMITS = (Kind.STATE, Kind.MOMENT)
_TEXTS = ("comment", "hit", "passage")
_CLOSE = 12
"""Characters between `only` and what it limits."""


def _counted(of: Comparison, holds: bool) -> bool:
    """What was counted; a claim that holds says more than names."""
    of.evaluated = of.evaluated or holds
    return holds


def _is_evaluated(of: Comparison) -> bool:
    """A quotation claims nothing, and a computed result was evaluated already."""
    return of.sentence.quotes or bool(of.computed)


def _place_behind(of: Comparison, *tables: str, unless_number: bool = False) -> int:
    """The place behind the first word of these tables that claims something; 0 for none."""
    sentence = of.sentence
    denied = sentence.words[-1:] if sentence.has("negative") else ()  # `there is none at all`
    for word in sentence.words:
        if not sentence.says(word, *tables) or word in denied or _is_at_all(of, word):
            continue
        close = [each for each in of.literals if 0 <= each.start - word.start < len(word.text) + 3]
        counts = any(each.kind in _NUMERIC and each not in sentence.thing_numbers for each in close)
        counts = counts or any(each.text in sentence.lexicon.numbers for each in sentence.words_after(word.start, 1))
        if not (any(each.kind is Kind.DURATION for each in close) or (unless_number and counts)):
            return word.start + 1
    return 0


def _is_at_all(of: Comparison, word: Word) -> bool:
    """`nothing at all`, `64 % of all incidents`: it stresses a denial, or says what a part is of."""
    before = of.sentence.words_before(word.start, 1)
    part = (
        of.sentence.of_kind(Kind.NUMBER, Kind.PERCENT) and before and of.sentence.lexicon.has("part_of", before[0].text)
    )
    return bool(before) and (of.sentence.says(before[0], "stress") or bool(part))


# -- all and only ----------------------------------------------------------------------------------------------------
def universal(of: Comparison) -> Verdict | None:
    """`all`, `each`, `both`: where they are said to have a state, the rows of the complete result are looked at."""
    after = _place_behind(of, "universal", "pairwise")
    if not after or _is_evaluated(of):
        return None
    if not of.wholes:
        return _uncounted(of, of.sentence.words_after(after - 2, 1)[0].text)
    total = next((each for each in of.sentence.of_kind(Kind.NUMBER) if 0 < each.start - after < _CLOSE), None)
    if total is not None and not of.sentence.labels and any(of.is_total(total, whole) for whole in of.wholes):
        return None  # `all 47 alerts`
    labels = [each for each in of.sentence.clause_labels(after) if each not in of.sentence.thing_numbers]
    if of.sentence.lexicon.columns["owner"] & of.sentence.bag:
        chosen = of.among(of.universe(), [each for each in labels if each.domain != "owner"])
        nobody = any(each.domain == "owner" for each in labels) or bool(of.sentence.has("negative"))
        held = [facts for facts in chosen if ("owner" in facts.cells) is not nobody]
    else:
        plain = labels and all(each.kind in (Kind.STATE, Kind.ID) for each in labels)
        chosen = of.among(of.universe(), labels[:-1]) if plain else []
        held = of.among(chosen, labels[-1:])
    return _looked_at(of, after, chosen, next((facts for facts in chosen if facts not in held), None))


def exclusive(of: Comparison) -> Verdict | None:
    """`only`: where a thing is said to have a state alone, so too."""
    after = _place_behind(of, "exclusive", unless_number=True)
    following = of.sentence.words_after(after, 2)  # `only partly`, `only until 16:00`
    partly = any(of.sentence.says(word, "partial") for word in following)
    partly = partly or any(of.sentence.says(word, "until") for word in following[:1])
    if not after or partly or _is_evaluated(of):
        return None
    if not of.wholes and any(0 <= each.start - after < _CLOSE for each in of.sentence.of_kind(*_LIMITS)):
        return None  # `is only Medium`, `came only on 23 Nov`
    labels = of.sentence.labels
    states = [each for each in labels if each.kind is Kind.STATE]
    names = [each for each in of.sentence.anchors if each not in states]
    plain = states and names and all(each in states or each in names for each in labels)
    rows = of.universe() if plain else []
    chosen = of.among(rows, states)
    others = (facts for facts in chosen if not any(_names(of, each, facts) for each in names))
    named = (facts for facts in rows if facts not in chosen and any(_names(of, each, facts) for each in names))
    return _looked_at(of, after, chosen, next(chain(others, named), None))


def _looked_at(of: Comparison, after: int, rows: Sequence[Facts], other: Facts | None) -> Verdict | None:
    """What is said of all of these rows, where it is not true of `other`; without rows nothing was counted."""
    if other is not None:
        return of.verdict(SentenceState.NOT_FOUND, f"{other.ref} shows one of which it is not true")
    return None if _counted(of, bool(rows)) else _uncounted(of, of.sentence.words_after(after - 2, 1)[0].text)


def _uncounted(of: Comparison, word: str) -> Verdict:
    return of.verdict(SentenceState.SOURCE_GIVEN, f"“{word}” was not counted")


def _names(of: Comparison, literal: Literal, facts: Facts) -> bool:
    """Whether a literal names the thing of a row, rather than standing in one of its texts."""
    numbered = literal in of.sentence.thing_numbers
    return literal.number in facts.named_numbers if numbered else of.held(literal, facts)


# -- none ------------------------------------------------------------------------------------------------------------
def negative(of: Comparison) -> Verdict | None:
    """`no`, `none`, `nobody`: shown by a complete result without such a row; not by one that is cut or failed, and not
    where a cited row is one."""
    said = [word for word in of.sentence.words if of.sentence.says(word, "negative")]
    if not said or _is_evaluated(of) or _holds_of_none(of) or _is_empty_cell(of):
        return None
    if of.support and all(word.end > of.sentence.unshown for word in said):
        told = "it tells what nothing that was read shows; that was not compared"
        return of.verdict(SentenceState.SOURCE_GIVEN, told)
    cut = next((whole for whole in of.wholes if not whole.complete and not _counts_tables(whole)), None)
    if cut is not None and not of.rows:
        return of.verdict(SentenceState.NOT_FOUND, f"{cut.ref} is not complete: it cannot show that there is none")
    labels = of.sentence.clause_labels(said[0].start)
    asked = " ".join(of.evidence.whole(whole).asked for whole in of.wholes)
    plain = labels and all(each.kind is Kind.STATE or f" {key(str(each.value))} " in asked for each in labels)
    plain = plain and not of.sentence.has("except")  # `on no machine but wks-sal-01`
    rows = of.universe(strict=True) if plain and of.sentence.kind is not UnitKind.ROW else []
    held = of.among([facts for facts in rows if facts.kind not in _TEXTS], labels, denied=True)
    if held:
        return of.verdict(SentenceState.NOT_FOUND, f"{held[0].ref} shows one")
    return _uncounted(of, said[0].text)


def _counts_tables(whole: Result) -> bool:
    """Whether it is a search, which counts the rows of each table, however few of them it shows."""
    return any(total.path[0] == "by_table" for total in whole.totals)


@not_found
def no_other(of: Comparison) -> str:
    """`in no incident other than 128`: the result was asked for what is named, and no row of another thing holds it."""
    sentence = of.sentence
    names = [each for each in sentence.anchors if each.kind in STRONG_NAMES]
    other = [word for word in sentence.words if sentence.says(word, "others")]
    beside = {
        each.text
        for word in other
        for each in (*sentence.words_before(word.start, 1), *sentence.words_after(word.start, 1))
    }
    of_records = {sentence.lexicon.things.get(word, "") for word in beside} & {"alert", "incident"}
    if not (names and of_records and sentence.has("negative", "not")) or of.computed:
        return ""
    for whole in of.wholes:
        asked = f" {key(' '.join(_asked(whole.arguments)))} "
        if asked.strip() and not any(f" {key(each.raw)} " in asked for each in names):
            return f"{whole.ref} was asked for something else than “{names[0].raw}”"
        rows = of.among([facts for facts in of.evidence.rows_of(whole) if facts.is_thing], names)
        those = [facts for facts in rows if not any(of.held(each, facts) for each in sentence.thing_numbers)]
        if sentence.thing_numbers and those:
            return f"{those[0].ref} holds “{names[0].raw}” too"
    return ""


def _asked(arguments: Mapping[str, object]) -> Iterator[str]:
    """What a call chose rows by; not its form, its window and its limit."""
    for name, value in arguments.items():
        if isinstance(value, Mapping):
            yield from _asked(value)
        elif isinstance(value, str) and name not in _FORM_OF_CALL:
            yield value


_FORM_OF_CALL = frozenset({"template", "detail", "kind", "time_window", "start_time", "end_time", "sort", "order"})


def _is_empty_cell(of: Comparison) -> bool:
    """`none` that the row says itself, or as a whole cell of a table where the row has no value and others have one."""
    said = of.sentence.has("negative")
    if _counted(of, of.tells_empty) or any(all(f" {word} " in facts.words for word in said) for facts in of.plain):
        return True
    row = of.sentence.kind is UnitKind.ROW
    if not said & {key(cell) for cell in (_CELLS if row else _PIECES).split(of.sentence.text)} or not of.plain:
        return False
    first = of.plain[0]
    columns = {column for each in of.evidence.rows_of(first.result, first.kind) for column in each.cells}
    return bool(first.empty) or (row and not columns <= first.cells.keys())


def _holds_of_none(of: Comparison) -> bool:
    part, rows = of.sentence.part, of.universe(strict=True)
    if _are_neighbours(of) or _counted(of, _is_none_beyond(of)):
        return True
    if any(each.domain == "owner" for each in of.sentence.of_kind(Kind.SPOKEN)):
        return True
    if any(whole.complete and whole.coverage.get("rows_total") == 0 for whole in of.wholes):
        return True
    stems = {word[:STEM] for word in of.sentence.bag} | ({part} if part else set())
    stems |= {"failu"} if of.sentence.has("failed") else set()
    counted = of.plain or rows
    if counted and all(_says_zero(facts, stems) for facts in counted):
        return True
    others = of.sentence.has("others") and of.wholes and all(whole.complete for whole in of.wholes)
    if others and all(len(of.evidence.rows_of(whole)) <= 1 for whole in of.wholes):
        return _counted(of, True)  # `there is no further alert`
    asked = " ".join(of.evidence.whole(whole).asked for whole in of.wholes)
    labels = [each for each in of.sentence.labels if each.kind is not Kind.MOMENT]
    told = [each for each in labels if f" {key(str(each.value))} " not in asked]  # what was asked for is not denied
    held = bool(rows and told) and not of.among(rows, labels, denied=True)
    return _counted(of, held) or _is_said_of_none(of, rows)


def _are_neighbours(of: Comparison) -> bool:
    """`none; the rows before and after are 15:27 and 17:35`: both times are told, and no row of the complete result
    lies between the two."""
    told = {facts.ref for each, held in of.support.items() if each.kind is Kind.MOMENT for facts in held}
    if len(of.plain) != 2 or of.wholes or told != of.cited:
        return False
    first, last = of.plain
    parent, rows = first.result, of.evidence.rows_of(first.result, first.kind)
    near = first in rows and last in rows and abs(rows.index(first) - rows.index(last)) == 1
    return parent is last.result and parent.complete and near


def _is_none_beyond(of: Comparison) -> bool:
    """`no row is newer than 05:00`, `after 09:51, nothing`: of a complete result that is cited, or whose newest row is,
    nothing that the sentence names happened later."""
    sentence, rows = of.sentence, of.universe(strict=True)
    parents = {facts.result.ref: facts.result for facts in (*of.plain, *rows)}
    if not rows and len(parents) == 1 and of.plain[0].result.complete:
        rows = of.evidence.rows_of(of.plain[0].result, of.plain[0].kind)
    asked = " ".join(of.evidence.whole(result).asked for result in parents.values())
    told = [each for each in sentence.labels if each.kind is not Kind.MOMENT]
    rows = of.among(rows, [each for each in told if f" {key(str(each.value))} " not in asked])
    times = [facts.happened[1] for facts in rows if facts.happened]
    ends = [each for each in sentence.of_kind(Kind.MOMENT) if _ends_what_is_denied(sentence, each)]
    if len(ends) != 1 or not times or len(times) < len(rows):
        return False
    newest = max(times)
    cited = of.wholes or any(facts.happened and facts.happened[1] == newest for facts in of.plain)
    end = ends[0].value
    return bool(cited) and (end.fits(newest, of.evidence.zone) or (end.day is not None and not is_later(newest, end)))


def _ends_what_is_denied(sentence: ReadSentence, moment: Literal) -> bool:
    """Whether `after` or `newer than` stands before a time, and a denial in its clause or in the one that it opens."""
    before = sentence.words_before(moment.start, 2)
    after = sentence.clause_end(moment.start)
    opens = sentence.clause_start(moment.start) == 0
    denies = [
        word for word in sentence.words if sentence.says(word, "negative") and word.start <= sentence.clause_end(after)
    ]
    inside = [word for word in denies if opens or word.start >= sentence.clause_start(moment.start)]
    return bool(inside) and any(sentence.says(word, "after", "newer") for word in before)


def _is_said_of_none(of: Comparison, rows: Sequence[Facts]) -> bool:
    """`they hold no operating system`: what is denied is a word of no cell and no column of the complete results,
    though rows may say it with another."""
    sentence = of.sentence
    denied = [
        each.text[:STEM]
        for word in sentence.words
        if sentence.says(word, "absent")
        for each in sentence.words_after(word.start, 1)
        if each.text not in plain_words() and each.text not in sentence.lexicon.things
    ]
    of.uncounted = bool(rows and denied) and not any(facts.says(each) for facts in rows for each in denied)
    return of.uncounted


def _says_zero(facts: Facts, stems: set[str]) -> bool:
    """Whether a row has a zero in a column of what the sentence names, or as its only count."""
    for column, value in facts.amounts.items():
        words = [word for word in column_words(column) if word not in ("count", "total")]
        if value == 0 and (not words or any(word[:STEM] in stems for word in words)):
            return True
    return False


# -- the most and more ------------------------------------------------------------------------------------------------
def extreme(of: Comparison) -> Verdict | None:
    """`oldest`, `most`: chosen from a computed grouping, it is the best of its rows."""
    said = _extreme_words(of)
    parts = [facts for facts in of.computed if len(of.evidence.all_rows(facts.result)) > max(1, len(of.computed))]
    if said and parts and not of.sentence.quotes and not any(_is_best_part(of, facts, said) for facts in parts):
        reason = f"“{min(said)}”: {parts[0].ref} is not that one of {parts[0].result.ref}"
        return of.verdict(SentenceState.NOT_FOUND, reason)
    if not said or _is_evaluated(of) or _is_told_extreme(of, said):
        return None
    held = [(_is_extreme(of, {word}), _is_most(of, word)) for word in said]
    proved = all(True in each for each in held)
    timed = any(each.kind is Kind.MOMENT and found for each, found in of.support.items())
    if not proved and any(False in each for each in held) and not (timed and said <= of.sentence.has("of_time")):
        return of.verdict(SentenceState.NOT_FOUND, f"“{min(said)}” is another one, by what it is chosen from")
    return None if _counted(of, proved) else _uncounted(of, min(said))


def _is_most(of: Comparison, word: str) -> bool | None:
    """Whether more than half of the rows hold what is said of most; None where that is no plain state."""
    rows, labels = of.universe(), of.sentence.labels
    plain = word in of.sentence.has("majority") and rows and labels and all(each.kind in STATES for each in labels)
    return 2 * len(of.among(rows, labels)) > len(rows) if plain else None


def _is_best_part(of: Comparison, facts: Facts, said: set[str]) -> bool:
    """Whether a row of a grouping has the most or the least in one of its columns, or is the first or last of them."""
    rows = of.evidence.all_rows(facts.result)
    if said & of.sentence.has("of_time") or facts.ref in (rows[0].ref, rows[-1].ref):
        return True
    best: Callable[..., object] = min if said & of.sentence.has("least") else max
    for column, value in facts.amounts.items():
        values = {each.amounts[column] for each in rows if column in each.amounts}
        if len(values) > 1 and value == best(values):
            return True
    return False


def _is_told_extreme(of: Comparison, said: set[str]) -> bool:
    """Whether a total or a row says so itself."""
    totals = [piece for whole in of.wholes for total in whole.totals for piece in total.path]
    if said <= {word for piece in totals for word in column_words(piece)}:
        return True
    timed = [facts for each, held in of.support.items() if each.kind is Kind.MOMENT for facts in held[:1]]
    return any(
        any(f" {word} " in facts.words or word in facts.column_names for word in said)
        or _tells_when_seen(of, facts, said)
        for facts in (*of.plain, *timed, *map(of.evidence.whole, of.wholes))
    )


def _tells_when_seen(of: Comparison, facts: Facts, said: set[str]) -> bool:
    """`por primera vez`: the time of a column that is named so, such as `first_seen`."""
    tables = (("first", "least"), ("oldest", "least"), ("last", "most"), ("newest", "most"))
    ends = [name for name, table in tables if said & of.sentence.has(table)]
    moments = [each.value for each in of.sentence.of_kind(Kind.MOMENT)]
    return any(
        any(name in column_words(column) for name in ends) and any(each.fits(at, of.evidence.zone) for each in moments)
        for column, at in facts.moments
    )


def _is_extreme(of: Comparison, said: set[str]) -> bool | None:
    """Whether a row that is named has the most or the least of a column that is meant; None where neither is plain."""
    rows = of.universe()
    if not rows and len({(facts.result.ref, facts.kind) for facts in of.plain}) == 1:
        parent, kind = of.plain[0].result, of.plain[0].kind
        rows = of.evidence.rows_of(parent, kind) if kind and parent.has_all_of(kind) else []
    if len(rows) < 2:
        return None
    sentence = of.sentence
    pool = of.among(rows, sentence.of_kind(*STATES)) or rows
    place = next(word.start for word in sentence.words if word.text in said)
    labels = sentence.clause_labels(place) or sentence.labels
    named = [each for each in labels if each.kind not in STATES]
    target = _of_clause(of, said) or [facts for label in named for facts in of.among(pool, [label])]
    there = {facts.ref for facts in pool}
    best: Callable[..., object] = min if said & sentence.has("least") else max
    of_time = said & sentence.has("of_time")
    compared = False
    for facts in target:
        if facts.ref not in there:
            continue
        for column, at in facts.moments if of_time else ():
            times = (time for each in pool for name, time in each.moments if name == column)
            if _is_time_of(facts, column, of_time):
                if at == best(times):
                    return True
                compared = True
        told = {each.number for each in sentence.inside(place, sentence.of_kind(Kind.NUMBER))}
        meant = [*_columns_meant(of, facts), *(column for column, value in facts.amounts.items() if value in told)]
        for column in meant if said - of_time else ():
            if facts.cells[column] == best(each.amounts[column] for each in pool if column in each.amounts):
                return True
            compared = True
    return False if compared else None


def _of_clause(of: Comparison, said: set[str]) -> list[Facts]:
    """The cited rows that the clause of the extreme names; all of them where it names none."""
    word = next(word for word in of.sentence.words if word.text in said)
    named = of.sentence.inside(word.start, of.sentence.anchors)
    return [facts for facts in of.plain if any(of.held(each, facts) for each in named)] or of.plain


def _is_time_of(facts: Facts, column: str, said: frozenset[str] | set[str]) -> bool:
    """Whether a column tells when the thing happened, or is named by the very word (`last_seen`)."""
    own = facts.happened is not None and facts.happened[0] == column
    return own or (column in PRIMARY_TIMES and not said.isdisjoint(column_words(column)))


def _columns_meant(of: Comparison, facts: Facts) -> list[str]:
    """The columns with amounts that the sentence names; the first one where it names none."""
    said = of.sentence.bag | {of.sentence.lexicon.things.get(word, "") for word in of.sentence.bag}
    said |= {str(each.value).casefold() for each in of.sentence.of_kind(*STATES)}
    named = [
        column
        for column in facts.amounts
        if any(word in said or everything().things.get(word, "-") in said for word in column_words(column))
    ]
    return named or list(facts.amounts)[:1]


def _is_beyond_all(sentence: ReadSentence) -> bool:
    """`more often than any other`."""
    others = (sentence.words_before(word.start, 2) for word in sentence.words if sentence.says(word, "others"))
    return any(sentence.says(each, "than") for words in others for each in words)


def _extreme_words(of: Comparison) -> set[str]:
    """Words for an extreme that choose something: not `at least three`, `the last 7 days`, `most of`."""
    sentence, lexicon, words = of.sentence, of.sentence.lexicon, of.sentence.words
    ends = [word for word in words[-3:-1] if sentence.says(word, "least", "most")]
    if ends and sentence.says(words[-1], "of_time"):
        return set()  # `newest first` says how rows are ordered
    more = [word for word in words if sentence.says(word, "more") and sentence.states(word)]
    found = {word.text for word in more if _is_beyond_all(sentence)}
    for at, word in enumerate(words):
        if not sentence.says(word, "least", "most", "majority"):
            continue
        following = words[at + 1].text if at + 1 < len(words) else ""
        period = (following in lexicon.time_units or following in date_names()) and sentence.says(word, "of_time")
        bid = sentence.bids_with(word) and sentence.says(word, "of_time")  # `ask Grace first`
        number = any(
            each not in sentence.thing_numbers and 0 < each.start - word.end < 3
            for each in sentence.of_kind(Kind.DURATION, Kind.NUMBER)
        )
        ranks = bool(following) and sentence.says(word, "of_time") and lexicon.has("ranks", following)
        stands_alone = sentence.text[word.end : word.end + 1] in (":", ",", ".", ")") and at < 2
        share = (words[at - 1].text if at else "", word.text) in lexicon.at_least
        listed = sentence.says(word, "least") and any(sentence.says(each, "second") for each in words[at + 1 :])
        if not (period or bid or listed or following in lexicon.numbers or number or stands_alone or share or ranks):
            found.add(word.text)
    return found


def comparative(of: Comparison) -> Verdict | None:
    """`more`, `fewer`, `rose`: both numbers are given, or a computed result is cited."""
    sentence = of.sentence
    said = sentence.has("comparative") | (
        set() if any(each.bound.startswith(">") for each in of.literals) else _more(of)
    )
    stated = next((word.text for word in sentence.words if word.text in said and sentence.states(word)), "")
    bounds = any(each.bound == "<" for each in of.literals)  # `fewer than 4` compares nothing
    amounts = [each for each in sentence.of_kind(Kind.NUMBER, Kind.PERCENT) if each not in sentence.thing_numbers]
    return _uncounted(of, stated) if stated and not bounds and not _is_evaluated(of) and len(amounts) < 2 else None


def _more(of: Comparison) -> set[str]:
    """`more` that compares; not the one of a superlative (`más antiguo`)."""
    sentence, found = of.sentence, set()
    for word in sentence.words:
        if sentence.says(word, "more"):
            superlative = _is_beyond_all(sentence) or any(
                sentence.says(each, "least", "most") for each in sentence.words_after(word.start, 1)
            )
            added = any(0 < word.start - each.end < 2 for each in sentence.of_kind(Kind.NUMBER))  # `9 more`
            than, *one = (each.text for each in (*sentence.words_after(word.start, 2), word))
            bound = (word.text, than) in sentence.lexicon.more_than and sentence.lexicon.has("one", one[0])
            if not (added or superlative or bound):  # `more than one` is a bound
                found.add(word.text)
    return found


@not_found
def change_of_other_sign(of: Comparison) -> str:
    """`rose` of a computed change that fell."""
    fewer = of.sentence.has("comparative") & of.sentence.has("under")
    rises, falls = (
        any(
            (of.sentence.says(word, table) or word.text in also) and of.sentence.states(word)
            for word in of.sentence.words
        )
        for table, also in (("rises", frozenset()), ("falls", fewer))
    )
    for facts in of.computed if rises is not falls else ():
        change = facts.amounts.get("difference", 0) if facts.result.arguments.get("op") == "change" else 0
        if change and (change > 0) is falls:
            return f"{facts.ref} goes from {facts.cells['from']} to {facts.cells['to']}"
    return ""


# -- in which order ---------------------------------------------------------------------------------------------------
@not_found
def out_of_order(of: Comparison) -> str:
    """`A before B [a, b]`, `A, then B [a, b]`: the times of the rows that are named stand in the order that is told."""
    pair = of.plain if not of.computed else _ends_of_duration(of)
    spoken = any(each.quoted_by != "`" for each in of.sentence.of_kind(Kind.TEXT))
    if len(pair) != 2 or spoken or of.wholes:
        return ""
    rising = _tells_rising(of)
    homes = list(dict.fromkeys(_homes(of, pair)))
    homes = homes if len(homes) == 2 else _homes_of_words(of, pair)
    if rising is None or len(homes) != 2:
        return ""
    first, second = (pair[at] for at in homes)
    if not first.happened or not second.happened:
        return ""
    a, b = first.happened[1], second.happened[1]
    return f"{first.ref} is {'earlier' if a < b else 'later'} than {second.ref}" if a != b and (a < b) != rising else ""


def _ends_of_duration(of: Comparison) -> list[Facts]:
    """The rows between which the one computed duration lies."""
    refs = [str(of.computed[0].cells.get(name, "")) for name in ("first", "last")] if len(of.computed) == 1 else []
    found = (of.evidence.facts(ref.rpartition(".")[0]) for ref in refs)
    return [facts for facts in found if facts is not None]


def _tells_rising(of: Comparison) -> bool | None:
    """Whether what is told first happened first; None where the sentence does not say, or says it in several ways."""
    sentence = of.sentence
    said = [
        word
        for word in sentence.words
        if sentence.says(word, "then", "before", "after") or (sentence.says(word, "older") and _than_follows(of, word))
    ]
    if sentence.of_kind(Kind.MOMENT) or not all(map(sentence.states, said)):
        return None
    if any(_opens_with_length(sentence, word) for word in said):
        return None  # `72 minutes after the dump`: what came then was told before
    rising = {
        ((sentence.says(word, "then") or _is_after_that(of, word)) and not _than_follows(of, word))
        or sentence.says(word, "before", "older") is not (word == sentence.words[0])
        for word in said
    }
    return rising.pop() if len(rising) == 1 else None


def _opens_with_length(sentence: ReadSentence, word: Word) -> bool:
    """Whether nothing but a length of time stands before a word."""
    lexicon, before = sentence.lexicon, sentence.words_before(word.start, STEM)
    units = [each.text in lexicon.time_units for each in before]
    soft = (lexicon.numbers, lexicon.fractions, lexicon.time_units, plain_words())
    told = [each for each in before if not any(each.text in table for table in soft)]
    opens = len(before) < STEM and all(sentence.says(each, "about", "one", "half") for each in told)
    return units[-1:] == [True] and opens


def _is_after_that(of: Comparison, word: Word) -> bool:
    """`after that`, `y después lo cerró`: what follows comes later."""
    sentence, following = of.sentence, of.sentence.words_after(word.start, 1)
    adverb = sentence.says(word, "after_alone")
    if following:
        alone = adverb and not sentence.says(following[0], "after_what")
    else:
        alone = adverb or not any(0 < each.start - word.end < 3 for each in of.literals)  # `after 116`
    ends = alone or len(sentence.inside(word.start, sentence.words_after(word.start, 2))) < 2
    return sentence.says(word, "after") and (
        alone or (ends and bool(following) and sentence.says(following[0], "after_that"))
    )


def _than_follows(of: Comparison, word: Word) -> bool:
    return any(of.sentence.says(each, "than") for each in of.sentence.words_after(word.start, 1))


def order(of: Comparison) -> Verdict | None:
    """`before`, `then`: both times are given, or the rows are cited in their order."""
    sentence = of.sentence
    opens = {word.text for word in sentence.words[:1]}  # `Later on 27 November ...` tells no order
    said = sentence.has("then") - opens or sentence.has("before", "after")
    if not said or len(of.plain) < 2 or of.computed or sentence.quotes or len(sentence.of_kind(Kind.MOMENT)) >= 2:
        return None
    if _tells_rising(of) is not None and len(of.plain) == 2 and all(facts.happened for facts in of.plain):
        return None  # compared by `out_of_order`
    return of.verdict(SentenceState.SOURCE_GIVEN, "it tells an order of events, which was not compared")


def _homes(of: Comparison, rows: Sequence[Facts]) -> list[int]:
    """The places of the rows that names of the sentence belong to, in the order of the names."""
    held = [
        [at for at, facts in enumerate(rows) if facts.holds(anchor)]
        for anchor in sorted(of.sentence.anchors, key=lambda each: each.start)
    ]
    return [places[0] for places in held if len(places) == 1]


def _homes_of_words(of: Comparison, rows: Sequence[Facts]) -> list[int]:
    """The places of two rows that ordinary words of the sentence belong to: `closed` and `ownership` of two events.

    Where all belong to one, the other is what stands on the other side of `before`, or in the clause of `then`.
    """
    found: list[tuple[int, int]] = []
    for word in of.sentence.words:
        stem = f" {word.text[:STEM]}" if len(word.text) >= STEM and word.text not in plain_words() else ""
        places = [at for at, facts in enumerate(rows) if stem and stem in facts.words]
        found += [(word.start, places[0])] if len(places) == 1 else ()
    homes = list(dict.fromkeys(place for _, place in found))
    hinges = [word for word in of.sentence.words[1:] if of.sentence.says(word, "then", "before", "after", "older")]
    if len(homes) == 1 and len(hinges) == 1:
        adverb = of.sentence.says(hinges[0], "then") or _is_after_that(of, hinges[0])
        divide = of.sentence.clause_start(hinges[0].start) if adverb else hinges[0].start
        sides = {start >= divide for start, _ in found} if divide else set()
        other = 1 - homes[0]
        homes = [other, *homes] if sides == {True} else [*homes, other] if sides == {False} else homes
    return homes


# -- what a computed row proves --------------------------------------------------------------------------------------
_CONDITIONS = ("where", "that", "unless")
_QUOTES = "“”„«»\"'`"


def _conditions(cells: Mapping[str, Cell]) -> str:
    return "; ".join(str(cells[name]) for name in _CONDITIONS if name in cells)


def _outcome(facts: Facts, of: Comparison) -> Facts:
    """The row without what was asked for: its conditions, and the cells that only repeat them."""
    assert facts.row is not None
    asked = _conditions(facts.cells) if "extreme" not in facts.cells else ""
    left_out = {*_CONDITIONS, *(column for column in facts.cells if f"{column} " in asked)}
    cells = {column: value for column, value in facts.cells.items() if column not in left_out}
    return of.evidence.facts_of(replace(facts.row, cells=cells), facts.result)


@not_found
def length_is_told(of: Comparison) -> str:
    """A time that was made of a length is no time of a row: the sentence says the length."""
    made = [facts for facts in of.computed if "plus" in facts.cells and not of.sentence.of_kind(Kind.DURATION)]
    return f"{made[0].ref} adds {made[0].cells['plus']}, which the sentence leaves out" if made else ""


@source_given
def outcome_is_told(of: Comparison) -> str:
    """A sentence whose values all are conditions of a computation says nothing of what came of it."""
    claims = of.sentence.has("universal", "negative", "not", "pairwise")  # compared with the outcome by other rules
    for facts in of.computed if not claims else ():
        mine = [literal for literal, held in of.support.items() if facts in held]
        elsewhere = any(facts not in held for held in of.support.values() if held)
        if not mine or elsewhere or not _conditions(facts.cells) or _says_one(of, facts):
            continue
        told = _outcome(facts, of)
        if not any(told.holds(literal) for literal in mine):
            return f"{facts.ref} was asked for “{mine[0].raw.strip(_QUOTES)}”, which shows nothing: say what it found"
    return ""


def _says_one(of: Comparison, facts: Facts) -> bool:
    return facts.cells.get("count") == 1 and bool(of.sentence.has("one"))


def _counts(of: Comparison) -> Iterator[tuple[Facts, int, int]]:
    """Computed rows that the sentence is about, with their count and what it is a part of."""
    labels = [each for each in of.support if each.kind not in _NUMERIC]
    for facts in of.computed:
        count, whole = facts.cells.get("count"), facts.cells.get("of")
        about = len(of.computed) == 1 or any(facts in of.support[each] for each in labels)
        if about and isinstance(count, int) and isinstance(whole, int):
            yield facts, count, whole


@not_found
def counts_agree(of: Comparison) -> str:
    """`all` and `none` as they were counted; the number of rows with it is not the number of rows."""
    sentence = of.sentence
    told = {literal.number for literal in sentence.of_kind(Kind.NUMBER)}
    all_of, not_ = bool(sentence.has("universal")), bool(sentence.has("not"))
    silent = sentence.quotes or (all_of and sentence.has("negative"))  # `all by A, none by B`
    counts = [] if silent else list(_counts(of))
    parts = sum(count for _, count, _ in counts)
    for facts, count, whole in counts:
        none_of = bool(sentence.has("negative")) and NONE not in facts.cells.values()
        given = count in told or bool(sentence.of_kind(Kind.PERCENT))
        wrong = (
            (all_of and not not_ and not none_of and count != whole)
            or (none_of and count > 0 and not given and not _is_turned(facts))
            or (count == 0 and not none_of and not not_ and not given)
            or (
                whole in told and whole not in (count, parts) and not (given or none_of or not_ or _says_one(of, facts))
            )
        )
        # Another computed row may be the one that the number is of
        if wrong and not any(each is not facts and each.cells.get("count") in told for each in of.computed):
            return f"{facts.ref} counts {count} of {whole}"
    return ""


def _is_turned(facts: Facts) -> bool:
    """Whether a condition denies: that all lack something is what `none has` says."""
    return "unless" in facts.cells or NONE in facts.cells.values() or "is empty" in _conditions(facts.cells)


@not_found
def unless_is_denied(of: Comparison) -> str:
    """What rows were counted for not having is no value of theirs."""
    for facts in of.computed if not of.sentence.has("not", "negative") else ():
        denied = f" {key(str(facts.cells.get('unless', '')))} "
        told = _outcome(facts, of)
        for literal, held in of.support.items():
            mine = {each.ref for each in held} == {facts.ref} and f" {key(str(literal.value))} " in denied
            if mine and not told.holds(literal) and not of.sentence.negated(literal):
                return f"{facts.ref} tells of what is without “{literal.raw}”"
    return ""


@not_found
def none_of_all_that_was_asked(of: Comparison) -> str:
    """That no row fulfils several conditions together shows of none of them alone that no row does."""
    for facts in of.computed if of.sentence.has("negative") else ():
        parts = _conditions(facts.cells).split("; ")
        for part in parts if facts.cells.get("count") == 0 and len(parts) > 1 else ():
            words = tokens(part)
            if words[-1:] != ["empty"] and words and f" {words[-1]} " not in of.sentence.key:
                return f"{facts.ref} counts none with “{part}”, which the sentence leaves out"
    return ""


@not_found
def holds_as_said(of: Comparison) -> str:
    """A row that says whether something holds for all, none or any is believed, and for nothing else."""
    universal, negative = (
        bool(of.sentence.has(*tables)) for tables in (("universal", "exclusive", "pairwise"), ("negative",))
    )
    for facts in of.computed if (universal or negative) and not of.sentence.has("not") else ():
        holds, asked = facts.cells.get("holds"), facts.result.arguments.get("op")
        none_found = asked == "any" and negative and not universal
        if not isinstance(holds, bool) or (not holds and none_found):
            continue
        if not holds:
            return f"{facts.ref} says that it does not hold"
        straight = universal is not negative and not _is_turned(facts)
        if asked == "any" or (straight and asked == ("none" if universal else "all")):
            return f"{facts.ref} says that it holds for {'some' if asked == 'any' else asked}"
    return ""


@source_given
def nothing_was_found(of: Comparison) -> str:
    """A result without a row holds what was asked for; a sentence that denies nothing says it of no row, unless it
    speaks of the window or of the table alone."""
    denies = of.sentence.has("negative", "not") or any(each.number == 0 for each in of.sentence.of_kind(Kind.NUMBER))
    empty = of.wholes and all(not (each.rows or each.totals or each.problem or each.writes) for each in of.wholes)
    return f"{of.wholes[0].ref} holds no row" if empty and not (of.rows or denies or _is_of_the_head(of)) else ""


def _is_of_the_head(of: Comparison) -> bool:
    """`Window: from 9:00 to 10:00`, `the table holds rows`: times of one of both, and no other thing is spoken of."""
    head, sentence = of.evidence.whole(of.wholes[0]), of.sentence
    told = {
        "window" if name == "window" else "table"
        for name, at in head.moments
        if any(each.value.fits(at, of.evidence.zone) for each in sentence.of_kind(Kind.MOMENT))
    } | {"table" for each in of.literals if each.kind is not Kind.MOMENT}
    tables = key(str(of.wholes[0].coverage.get("tables")))
    inside = {word.text for each in of.literals for word in sentence.words if each.start <= word.start < each.end}
    words = sentence.bag - inside - sentence.has("head", "before", "span") - plain_words() - set(tables.split())
    things = [each for each in of.literals if each.kind not in (Kind.MOMENT, Kind.NUMBER)]
    return len(told) == 1 and not words and all(f" {each.value} " in f" {tables} " for each in things)


COMPUTED_CLAIMS: tuple[Rule, ...] = (
    holds_as_said,
    counts_agree,
    none_of_all_that_was_asked,
    unless_is_denied,
    change_of_other_sign,
    length_is_told,
    outcome_is_told,
    nothing_was_found,
)
CLAIMS: tuple[Rule, ...] = (universal, exclusive, no_other, negative, extreme, comparative, order)
