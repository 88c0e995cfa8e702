"""Claims that one row cannot hold: all, only, none, the most, more, before. Each needs a complete result in which it is
counted, or a computed one, and is evaluated rather than believed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from sentinel_rag.agent.answers.comparing import NONE, Comparison, Rule, Verdict, not_found, source_given, within
from sentinel_rag.agent.answers.evidence import PRIMARY_TIMES, Facts, column_words
from sentinel_rag.agent.answers.markup import UnitKind
from sentinel_rag.agent.answers.results import Cell
from sentinel_rag.agent.answers.sentence import STATES
from sentinel_rag.contracts.evidence import SentenceState
from sentinel_rag.language.lexicon import everything, plain_words
from sentinel_rag.language.literals import Kind, Literal, Word, key, tokens

_NUMERIC = frozenset({Kind.NUMBER, Kind.PERCENT, Kind.DURATION})
_STEM = 5


def _is_evaluated(of: Comparison) -> bool:
    """A quotation claims nothing, and a computed result was evaluated already."""
    return of.sentence.quotes or bool(of.computed)


def _counted(of: Comparison, holds: bool) -> bool:
    """What was counted; a claim that holds says more than names."""
    of.evaluated = of.evaluated or holds
    return holds


@not_found
def universal(of: Comparison) -> str:
    """`all`, `each`, `both`."""
    after = _place_behind(of, "universal", "pairwise")
    if not after or _is_evaluated(of) or _counted(of, _holds_of_all_cited(of, after)):
        return ""
    return "it speaks of all of them: cite a complete result in which they can be counted, or a compute result"


def _holds_of_all_cited(of: Comparison, after: int) -> bool:
    plain = of.plain
    if len(plain) == 1 and not of.wholes and plain[0].row is not None and plain[0].row.kind in ("row", "incident"):
        return True  # an aggregate, which was counted by the tool
    pair = (of.sentence.has("pairwise") and len(plain) == 2) or (len(plain) >= 2 and not of.wholes)
    if _holds_of_all(of, plain if pair else of.universe(), after):
        return True
    # `all in SE`: a code that each of the rows has
    codes = [
        token for token in of.sentence.text[after:].replace(".", " ").split() if token.isupper() and len(token) > 1
    ]
    return bool(pair and codes) and all(f" {key(code)} " in facts.words for code in codes for facts in plain)


def _holds_of_all(of: Comparison, pool: Sequence[Facts], after: int) -> bool:
    """`All A are B`: B is the last label behind the word, the others choose the rows."""
    sentence = of.sentence
    if sentence.lexicon.columns["owner"] & sentence.bag and not sentence.anchors:
        nobody = any(each.domain == "owner" for each in of.literals) or bool(sentence.has("negative"))
        meant = of.among(pool, [each for each in sentence.labels if each.domain != "owner"])
        return bool(meant) and all(("owner" in facts.cells) is not nobody for facts in meant)
    spans = [each for each in of.literals if each.kind is Kind.MOMENT and each.start >= after]
    if len(spans) == 2 and sentence.has("between"):
        return bool(pool) and all(within(facts, spans[0].value, spans[1].value) for facts in pool)
    start, end = sentence.clause_start(after), sentence.clause_end(after)
    labels = [each for each in sentence.labels if start <= each.start < end]
    if not labels:  # `all of them, as of 9:00, are High`: the label stands in a later clause, or in the one before
        labels = [each for each in sentence.labels if each.start >= start] or list(sentence.labels)
    behind = [each for each in labels if each.start >= after]
    ahead = [each for each in labels if each.start < after and each.kind is not Kind.SPOKEN]
    if not pool or not labels:
        return False
    soft = (*STATES, Kind.MOMENT)
    chosen = [each for each in behind[:-1] if each.kind in soft and each.value != behind[-1].value]
    kept = of.among(pool, chosen)
    both = bool(ahead) and not any(each.kind in soft for each in behind)
    if ahead and not both:
        named = {facts.ref for each in ahead for facts in of.among(kept, [each])}
        kept = [facts for facts in kept if facts.ref in named] if named else kept
    claimed = [*behind[-1:], *(ahead if both else ())]
    return bool(kept) and bool(claimed) and len(of.among(kept, claimed)) == len(kept)


@not_found
def exclusive(of: Comparison) -> str:
    """`only`."""
    after = _place_behind(of, "exclusive", unless_number=True)
    if any(of.sentence.has("partial") & {word.text} for word in of.sentence.words_after(after, 2)):
        return ""
    if not after or _is_evaluated(of) or _counted(of, _holds_of_only(of, after)):
        return ""
    return "it speaks of the only one: cite the complete result that shows it"


def _holds_of_only(of: Comparison, after: int) -> bool:
    """`only A is B`: each row with B is A. `the only A is B`, `B is the only A`: each row with A is B."""
    rows = of.universe()
    labels = of.sentence.labels
    only_count = len(of.plain) == 1 and of.plain[0].row is not None and of.plain[0].row.kind == "row"
    if only_count and any(value == 1 and _is_amount(column, value) for column, value in of.plain[0].cells.items()):
        return True
    if len(of.plain) == 1 and any(each.start >= after and _is_all_of_a_list(of.plain[0], each) for each in labels):
        return True
    part, parents = of.sentence.part, [facts.result for facts in of.plain]
    if (
        part
        and parents
        and all(each.has_all_of(part) and len(of.evidence.rows_of(each, part)) == 1 for each in parents)
    ):
        return True
    ahead = [each for each in labels if each.start < after]
    behind = [each for each in labels if each.start >= after]
    if not rows or not behind:
        return False
    if _is_the_only(of, after):
        choosing, claimed = (behind[:-1], behind[-1:]) if len(behind) > 1 else (behind, ahead)
    else:
        choosing, claimed = [*ahead, *behind[1:]], behind[:1]
    kept = of.among(rows, [each for each in choosing if of.among(rows, [each])])
    return bool(kept) and bool(claimed) and len(of.among(kept, claimed)) == len(kept)


def _is_all_of_a_list(facts: Facts, literal: Literal) -> bool:
    """`only in incident 124`: the row lists it, and nothing beside it."""
    lists = (value for value in facts.cells.values() if isinstance(value, tuple) and len(value) == 1)
    return any(key(str(value[0])) == key(literal.raw) for value in lists)


def _is_the_only(of: Comparison, after: int) -> bool:
    """`the only`, `einzige`: the word belongs to what follows and limits it."""
    words = of.sentence.words_before(after, 2)
    lexicon = of.sentence.lexicon
    return bool(words) and (
        lexicon.has("sole", words[-1].text) or (len(words) > 1 and lexicon.has("article", words[0].text))
    )


@not_found
def negative(of: Comparison) -> str:
    """`no`, `none`, `nobody`."""
    if not of.sentence.has("negative") or _is_evaluated(of) or _holds_of_none(of):
        return ""
    after = _place_behind(of, "universal", "pairwise")
    if (after and _holds_of_all_cited(of, after)) or _is_empty_cell(of):
        return ""
    failed = next((whole.ref for whole in of.wholes if whole.problem), "")
    if failed:
        return f"{failed} failed: it shows neither that there is some nor that there is none"
    return "it says that there is none: cite a complete result that shows it"


def _is_empty_cell(of: Comparison) -> bool:
    """`none` that the row says itself, or as a whole cell of a table where the row has no value and others have one."""
    said = of.sentence.has("negative")
    if any(all(f" {word} " in facts.words for word in said) for facts in of.plain):
        return True
    cells = {key(cell) for cell in of.sentence.text.split("|")} if of.sentence.kind is UnitKind.ROW else set()
    if not said <= cells or len(of.plain) != 1 or of.plain[0].row is None:
        return False
    columns = {
        column for each in of.evidence.rows_of(of.plain[0].result, of.plain[0].row.kind) for column in each.cells
    }
    return bool(columns - set(of.plain[0].cells))


def _holds_of_none(of: Comparison) -> bool:
    if any(each.kind is Kind.SPOKEN and each.domain == "owner" for each in of.literals):
        return True
    if any(whole.complete and whole.coverage.get("rows_total") == 0 for whole in of.wholes):
        return True
    part = of.sentence.part
    if (
        part
        and of.wholes
        and all(whole.complete and part not in whole.kinds and "incident" in whole.kinds for whole in of.wholes)
    ):
        return True
    stems = {word[:_STEM] for word in of.sentence.bag} | ({part} if part else set())
    stems |= {"failu"} if of.sentence.has("failed") else set()
    counted = of.plain or of.universe(strict=True)
    if counted and all(_says_zero(facts, stems) for facts in counted):
        return True
    labels = [each for each in of.sentence.labels if each.kind is not Kind.MOMENT]
    rows = of.universe(strict=True)
    return _counted(of, bool(rows and labels) and not of.among(rows, labels, denied=True))


def _says_zero(facts: Facts, stems: set[str]) -> bool:
    """Whether a row has a zero in a column of what the sentence names, or as its only count."""
    for column, value in facts.cells.items():
        if value == 0 and not isinstance(value, bool):
            words = [word for word in column_words(column) if word not in ("count", "total")]
            if not words or any(word[:_STEM] in stems for word in words):
                return True
    return False


def extreme(of: Comparison) -> Verdict | None:
    """`oldest`, `most`; of the time of a cited row it is said that nobody compared it."""
    reason = _unproved_extreme(of)
    if not reason:
        return None
    timed = any(each.kind is Kind.MOMENT and of.support.get(each) for each in of.literals)
    timed = timed and _extreme_words(of) <= of.sentence.has("of_time") | of.sentence.has("majority")
    return of.verdict(SentenceState.SOURCE_GIVEN if timed else SentenceState.NOT_FOUND, reason)


def _unproved_extreme(of: Comparison) -> str:
    said = _extreme_words(of)
    if not said or _is_evaluated(of):
        return ""
    totals = {
        word for whole in of.wholes for total in whole.totals for piece in total.path for word in column_words(piece)
    }
    if said <= totals:
        return ""
    timed = [facts for each, held in of.support.items() if each.kind is Kind.MOMENT for facts in held[:1]]
    heads = [head for whole in of.wholes if (head := of.evidence.facts(whole.ref)) is not None]
    for facts in (*of.plain, *timed, *heads):
        columns = {word for column in facts.cells for word in column_words(column)}
        if any(f" {word} " in facts.words or word in columns for word in said) or _tells_when_seen(of, facts, said):
            return ""
    if _counted(of, _is_extreme(of, said) or (bool(of.sentence.has("majority")) and _is_majority(of))):
        return ""
    return f"“{min(said)}”: cite the complete result that it is chosen from"


def _tells_when_seen(of: Comparison, facts: Facts, said: set[str]) -> bool:
    """`por primera vez`: the time of a column that is named so, such as `first_seen`."""
    tables = (("first", "least"), ("oldest", "least"), ("last", "most"), ("newest", "most"))
    ends = [name for name, table in tables if said & of.sentence.has(table)]
    moments = [each.value for each in of.literals if each.kind is Kind.MOMENT]
    return any(
        any(name in column_words(column) for name in ends) and any(each.fits(at, of.evidence.zone) for each in moments)
        for column, at in facts.moments
    )


def _is_majority(of: Comparison) -> bool:
    """`most of them are A`: more than half of the rows are."""
    rows = of.universe()
    return bool(rows and of.sentence.labels) and 2 * len(of.among(rows, of.sentence.labels)) > len(rows)


def _is_extreme(of: Comparison, said: set[str]) -> bool:
    rows = of.universe()
    if not rows and len({(facts.result.ref, facts.row.kind if facts.row else "") for facts in of.plain}) == 1:
        parent = of.plain[0].result
        if of.plain[0].row is not None and parent.has_all_of(of.plain[0].row.kind):
            rows = of.evidence.rows_of(parent, of.plain[0].row.kind)
    if len(rows) < 2:
        return False
    sentence = of.sentence
    states = [each for each in of.literals if each.kind in STATES]
    pool = of.among(rows, states) or rows
    named = [each for each in sentence.labels if each.kind not in STATES]
    target = _of_clause(of, said) or [facts for label in named for facts in of.among(pool, [label])]
    there = {facts.ref for facts in pool}
    best: Callable[..., object] = min if said & sentence.has("least") else max
    of_time = said & sentence.has("of_time")
    for facts in target:
        if facts.ref not in there:
            continue
        for column, at in facts.moments if of_time else ():
            if _is_time_of(facts, column, of_time) and at == best(
                t for each in pool for name, t in each.moments if name == column
            ):
                return True
        for column in _columns_meant(of, facts) if said - of_time else ():
            if facts.cells[column] == best(_numbers_of(pool, column)):
                return True
    return False


def _of_clause(of: Comparison, said: set[str]) -> list[Facts]:
    """The cited rows that the clause of the extreme names; all of them where it names none."""
    sentence = of.sentence
    word = next(word for word in sentence.words if word.text in said)
    start, end = sentence.clause_start(word.start), sentence.clause_end(word.start)
    named = [each for each in sentence.anchors if start <= each.start < end]
    return [facts for facts in of.plain if any(of.held(each, facts) for each in named)] or of.plain


def _is_time_of(facts: Facts, column: str, said: frozenset[str] | set[str]) -> bool:
    """Whether a column tells when the thing happened, or is named by the very word (`last_seen`)."""
    own = facts.happened is not None and facts.happened[0] == column
    return own or (column in PRIMARY_TIMES and not said.isdisjoint(column_words(column)))


def _columns_meant(of: Comparison, facts: Facts) -> list[str]:
    """The columns with amounts that the sentence names; the first one where it names none."""
    amounts = [column for column, value in facts.cells.items() if _is_amount(column, value)]
    said = of.sentence.bag | {of.sentence.lexicon.things.get(word, "") for word in of.sentence.bag}
    said |= {str(each.value).casefold() for each in of.literals if each.kind in STATES}
    named = [
        column
        for column in amounts
        if any(word in said or everything().things.get(word, "-") in said for word in column_words(column))
    ]
    return named or amounts[:1]


def _is_amount(column: str, value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and "number" not in column


def _numbers_of(pool: Sequence[Facts], column: str) -> list[int | float]:
    found = (facts.cells.get(column) for facts in pool)
    return [value for value in found if isinstance(value, int | float) and not isinstance(value, bool)]


def _extreme_words(of: Comparison) -> set[str]:
    """Words for an extreme that choose something: not `at least three`, `the last 7 days`, `most of`."""
    found: set[str] = set()
    sentence = of.sentence
    lexicon = sentence.lexicon
    ordered = [word.text for word in sentence.words[-1:] if lexicon.has("of_time", word.text)]
    tail = {
        word.text for word in sentence.words[-3:-1] if lexicon.has("least", word.text) or lexicon.has("most", word.text)
    }
    if ordered and tail:
        return found  # `newest first` says how rows are ordered
    for at, word in enumerate(sentence.words):
        if not any(lexicon.has(table, word.text) for table in ("least", "most", "majority")):
            continue
        following = sentence.words[at + 1].text if at + 1 < len(sentence.words) else ""
        before = sentence.words[at - 1].text if at else ""
        if lexicon.has("part_of", following) and not any(
            each.text in lexicon.things for each in sentence.words[at + 2 : at + 5]
        ):
            continue  # `most of the kill chain`
        period = following in lexicon.time_units and lexicon.has("of_time", word.text)
        amount = period or following in lexicon.numbers
        number = any(
            each.kind in (Kind.DURATION, Kind.NUMBER)
            and each not in sentence.thing_numbers
            and 0 < each.start - word.end < 3
            for each in of.literals
        )
        stands_alone = sentence.text[word.end : word.end + 1] in (":", ",", ".", ")") and at < 2
        share = lexicon.has("over", word.text) and before == "at"
        if not (amount or number or stands_alone or share):
            found.add(word.text)
    return found


@not_found
def comparative(of: Comparison) -> str:
    """`more`, `fewer`, `rose`: both numbers are given, or a computed result is cited."""
    sentence = of.sentence
    more = _more(of) if not any(each.bound == ">" for each in of.literals) else frozenset()
    doubted = {word.text for word in sentence.words if not sentence.states(word)}
    said = {word for word in (sentence.has("comparative") | more) - doubted if not _bounds_a_number(of, word)}
    if not said or sentence.quotes:
        return ""
    if of.computed:
        return _wrong_direction(of)
    amounts = [each for each in of.literals if each.kind in (Kind.NUMBER, Kind.PERCENT)]
    if sum(each not in sentence.thing_numbers for each in amounts) < 2:
        return "it compares: cite a compute result, or give both numbers"
    return ""


def _more(of: Comparison) -> frozenset[str]:
    """`more` that compares; not the one of a superlative (`más antiguo`)."""
    sentence = of.sentence
    found = set()
    for at, word in enumerate(sentence.words):
        if sentence.lexicon.has("more", word.text):
            following = sentence.words[at + 1].text if at + 1 < len(sentence.words) else ""
            added = any(0 < word.start - each.end < 2 for each in of.literals if each.kind is Kind.NUMBER)  # `9 more`
            if not (added or sentence.lexicon.has("least", following) or sentence.lexicon.has("most", following)):
                found.add(word.text)
    return frozenset(found)


def _bounds_a_number(of: Comparison, said: str) -> bool:
    """`fewer than 4` bounds a number and compares nothing."""
    return of.sentence.lexicon.has("under", said) and any(
        each.bound == "<"
        and of.sentence.words_before(each.start, 3)
        and said in {w.text for w in of.sentence.words_before(each.start, 3)}
        for each in of.literals
    )


def _wrong_direction(of: Comparison) -> str:
    """`A has more than B` where the computed counts say otherwise."""
    counted: list[tuple[int, float]] = []
    for anchor in of.sentence.anchors:
        for facts in of.computed:
            count = facts.cells.get("count")
            if isinstance(count, int | float) and facts.holds(anchor):
                counted.append((anchor.start, float(count)))
    if len(counted) == 2 and of.sentence.has("more") and not counted[0][1] > counted[1][1]:
        return f"the compute result counts {counted[0][1]:g} and {counted[1][1]:g}"
    return ""


@not_found
def out_of_order(of: Comparison) -> str:
    """`A before B [a, b]`, `A, then B [a, b]`: the rows' times stand in the order that is told."""
    if len(of.plain) != 2 or of.computed or of.sentence.quotes or of.wholes:
        return ""
    rising = _tells_rising(of)
    homes = list(dict.fromkeys(_homes(of)))
    first, second = (of.plain[at] for at in homes) if len(homes) == 2 else of.plain
    if rising is None or not first.happened or not second.happened:
        return ""
    earlier = first.happened[1] < second.happened[1]
    if first.happened[1] == second.happened[1] or earlier is rising:
        return ""
    return f"{first.ref} is {'earlier' if earlier else 'later'} than {second.ref}"


def _tells_rising(of: Comparison) -> bool | None:
    """Whether what is told first happened first; None where the sentence does not say, or says it in several ways."""
    sentence = of.sentence
    said = [word for word in sentence.words if any(sentence.lexicon.has(each, word.text) for each in _ORDER_WORDS)]
    if (
        any(each.kind is Kind.MOMENT for each in of.literals)
        or sentence.has("possible")
        or not all(map(sentence.states, said))
    ):
        return None
    rising = {
        (sentence.lexicon.has("then", word.text) and not _than_follows(of, word))
        or sentence.lexicon.has("before", word.text) is not (word == sentence.words[0])
        for word in said
    }
    return rising.pop() if len(rising) == 1 else None


def _than_follows(of: Comparison, word: Word) -> bool:
    return any(of.sentence.lexicon.has("than", each.text) for each in of.sentence.words_after(word.start, 1))


_ORDER_WORDS = ("then", "before", "after")


@not_found
def order(of: Comparison) -> str:
    """`before`, `then`: both times are given, or the rows are cited in their order."""
    sentence = of.sentence
    first = sentence.words[0].text if sentence.words else ""
    goes_on = sentence.has("then") - {first}  # `Later on 27 November ...` tells no order
    said = goes_on or sentence.has("before") or sentence.has("after")
    if not said or len(of.plain) < 2 or of.computed or sentence.quotes:
        return ""
    if sum(1 for each in of.literals if each.kind is Kind.MOMENT) >= 2:
        return ""
    compared = _tells_rising(of) is not None and len(of.plain) == 2 and all(facts.happened for facts in of.plain)
    if compared:
        return ""  # by `out_of_order`
    if of.sentence.has("then") and _cited_in_order(of):
        return ""
    return "it tells an order of events: give both times, or cite a compute result"


def _homes(of: Comparison) -> list[int]:
    """The places of the cited rows that names of the sentence belong to, in the order of the names."""
    named: list[tuple[int, int]] = []
    for anchor in of.sentence.anchors:
        homes = [at for at, facts in enumerate(of.plain) if facts.holds(anchor)]
        if len(homes) == 1:
            named.append((anchor.start, homes[0]))
    return [home for _, home in sorted(named)]


def _cited_in_order(of: Comparison) -> bool:
    """`first A, then B`: each is named in the row cited at its place, and the rows stand in the order of time."""
    homes = _homes(of)
    times = [facts.happened[1] for facts in of.plain if facts.happened is not None]
    return len(homes) >= 2 and homes == sorted(homes) and len(times) == len(of.plain) and times == sorted(times)


def _place_behind(of: Comparison, *tables: str, unless_number: bool = False) -> int:
    """The place behind the first word of these tables that claims something; 0 for none."""
    sentence = of.sentence
    for at, word in enumerate(sentence.words):
        if not any(sentence.lexicon.has(table, word.text) for table in tables):
            continue
        close = [each for each in of.literals if 0 <= each.start - word.start < len(word.text) + 3]
        if any(each.kind is Kind.DURATION for each in close):
            continue
        if unless_number and (_is_counted(of, close) or _number_follows(of, sentence.words, at)):
            continue
        return word.start + 1
    return 0


def _is_counted(of: Comparison, close: Sequence[Literal]) -> bool:
    return any(each.kind in _NUMERIC and each not in of.sentence.thing_numbers for each in close)


def _number_follows(of: Comparison, words: Sequence[Word], at: int) -> bool:
    return at + 1 < len(words) and words[at + 1].text in of.sentence.lexicon.numbers


CLAIMS: tuple[Rule, ...] = (
    universal,
    exclusive,
    negative,
    extreme,
    comparative,
    order,
)


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
