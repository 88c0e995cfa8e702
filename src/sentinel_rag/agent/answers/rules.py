"""The rules of the check: what a sentence says and the cited rows do not, what stands there and does not belong
together, what was found but proves no more than a source. Each is a function of a comparison; `RULES` orders them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby, pairwise

from sentinel_rag.agent.answers.claims import CLAIMS, COMPUTED_CLAIMS, out_of_order
from sentinel_rag.agent.answers.comparing import Comparison, Rule, Verdict, column_thing, not_found, source_given
from sentinel_rag.agent.answers.evidence import Facts, column_words, near
from sentinel_rag.agent.answers.markup import UnitKind
from sentinel_rag.agent.answers.sentence import DOMAINS
from sentinel_rag.contracts.evidence import SentenceState
from sentinel_rag.language.lexicon import concept_starts, fold, plain_words, words_in
from sentinel_rag.language.literals import Kind, Literal, key

_STATISTICS = ("mean", "median", "longest")
MOST_STATES = 5


# -- rules: what was not found ---------------------------------------------------------------------------------------
def differs(of: Comparison) -> Verdict | None:
    """The cited cell says otherwise: one value, in a column that is certain."""
    for literal in of.missing:
        wrong = _other_state(of, literal) or _other_owner(of, literal)
        if wrong is not None:
            facts, column = wrong
            shown = facts.cells[column]
            reason = f"{facts.ref} gives {_spoken_column(column)} {shown}, not {literal.raw}"
            return Verdict(
                SentenceState.CONTRADICTED, reason, of.refs, of.support, tuple(of.missing), (literal, facts, column)
            )
    return None


def _other_state(of: Comparison, literal: Literal) -> tuple[Facts, str] | None:
    if literal.kind is not Kind.STATE or not of.rows or literal.domain not in DOMAINS:
        return None
    if sum(1 for each in of.literals if each.domain == literal.domain) > 1 or not _is_plain_statement(of, literal):
        return None
    right = {facts.states.get(literal.domain) for facts in of.rows}
    negated = of.sentence.negated(literal)
    if len(right) != 1 or None in right or (literal.value in right) is not negated:
        return None
    return of.rows[0], next(column for column in of.rows[0].cells if column.casefold() == literal.domain)


def _other_owner(of: Comparison, literal: Literal) -> tuple[Facts, str] | None:
    if literal.kind is not Kind.NAME or len(of.rows) != 1 or "owner" not in of.rows[0].states:
        return None
    sentence = of.sentence
    beside = [*reversed(sentence.words_before(literal.start, 4)), *sentence.words_after(literal.end - 1, 1)]
    said = next((word for word in beside if word.text not in plain_words()), None)
    if said is None or said.text not in sentence.lexicon.columns["owner"] or sentence.negated(literal):
        return None
    if not _is_plain_statement(of, literal) or key(of.rows[0].states["owner"]) == literal.value:
        return None
    return of.rows[0], next(column for column in of.rows[0].cells if column.casefold() == "owner")


def _is_plain_statement(of: Comparison, literal: Literal) -> bool:
    """Whether the sentence says no more than what the row is now: it neither compares, nor tells of a change or of the
    past, nor advises, nor speaks of another thing. Where in doubt, it is not."""
    sentence = of.sentence
    if of.wholes or sentence.quotes or sentence.text.rstrip().endswith("?"):
        return False
    if any(sentence.has(table) for table in _DOUBTFUL) or any(each.kind is Kind.MOMENT for each in of.literals):
        return False
    if any(each is not literal and each not in of.support for each in sentence.anchors):
        return False
    kinds = {facts.row.kind for facts in of.rows if facts.row is not None}
    things = {sentence.lexicon.things[word.text] for word in sentence.words if word.text in sentence.lexicon.things}
    return things <= (kinds | {"incident"} if kinds == {"incident"} else kinds | {"other"})


_DOUBTFUL = (
    "possible", "past", "comparative", "more", "over", "under", "least", "most", "before", "after", "then", "exclusive",
    "between", "acts", "outcomes",
)  # fmt: skip


def _spoken_column(column: str) -> str:
    return " ".join(column_words(column)) or column


def not_there(of: Comparison) -> Verdict | None:
    """A literal stands nowhere in what is cited."""
    if not of.missing:
        return None
    told = ", ".join(f"“{literal.raw}”" for literal in of.missing[:3])
    failed = next((whole.ref for whole in of.wholes if whole.problem), "")
    if failed:
        return of.verdict(SentenceState.NOT_FOUND, f"{failed} failed: {told} cannot come from it")
    verb = "does" if len(of.missing) == 1 else "do"
    return of.verdict(SentenceState.NOT_FOUND, f"{told} {verb} not stand in {', '.join(of.refs[:4])}")


def only_failed(of: Comparison) -> Verdict | None:
    """A failed or refused call may be cited for saying that it failed."""
    if of.wholes and all(whole.problem for whole in of.wholes) and not of.rows:
        return of.verdict(SentenceState.SOURCE_GIVEN, f"{of.wholes[0].ref} gave no result")
    return None


def nothing_to_compare(of: Comparison) -> Verdict | None:
    soft = all(literal.kind is Kind.SPOKEN for literal in of.support) and not of.sentence.anchors
    owned = of.sentence.has("universal") and of.sentence.lexicon.columns["owner"] & of.sentence.bag
    if not of.missing and (not of.support or (soft and not of.wholes)) and not (owned and of.wholes):
        return of.verdict(SentenceState.SOURCE_GIVEN, "nothing in it can be compared")
    return None


# -- rules: what does not belong together ----------------------------------------------------------------------------
@not_found
def state_of_each_row(of: Comparison) -> str:
    """Each cited row has one of the states that the sentence names."""
    rows = [facts for facts in of.plain if facts.row is not None and facts.row.kind in ("incident", "alert")]
    if len(rows) < 2:
        return ""
    for domain in DOMAINS:
        named = {each.value for each in of.literals if each.kind is Kind.STATE and each.domain == domain}
        if any(of.sentence.negated(each) for each in of.literals if each.domain == domain):
            continue
        for facts in _rows_of_one(of, domain) or rows:
            if named and facts.states.get(domain) and facts.states[domain] not in named:
                return f"{facts.ref} gives {domain} {facts.states[domain]}"
    return ""


def _rows_of_one(of: Comparison, domain: str) -> list[Facts]:
    """`124 came before 125, which is New`: a state behind a comma is said of the name before it."""
    states = [each for each in of.literals if each.kind is Kind.STATE and each.domain == domain]
    before = [each for each in of.sentence.anchors if states and each.start < states[0].start]
    if len(states) != 1 or len(before) < 2 or of.sentence.has("universal") or of.sentence.has("pairwise"):
        return []
    between = of.sentence.text[before[-1].end : states[0].start]
    return of.support.get(before[-1], []) if between.lstrip("*_").startswith(",") else []


@not_found
def named_column(of: Comparison) -> str:
    """A sentence that says `on average` or `first seen` has the value of that column."""
    columns = of.sentence.lexicon.columns
    for facts in of.rows[:2] if len(of.rows) <= 2 else ():
        for column, value in facts.cells.items():
            if not isinstance(value, int | float | str) or isinstance(value, bool):
                continue
            words = column_words(column)
            phrase = " ".join(words)
            said = any(name in words and columns[name] & of.sentence.bag for name in _STATISTICS) or (
                words[-1:] == ["seen"] and f" {phrase} " in of.sentence.key
            )
            if said and not _value_stands(of, facts, column):
                return f"{facts.ref} gives {phrase} {value}"
    return ""


def _value_stands(of: Comparison, facts: Facts, column: str) -> bool:
    """Whether a number, duration or time of the sentence is the one of a column."""
    for literal in of.literals:
        match literal.kind:
            case Kind.NUMBER:
                values = [number for number, names in facts.numbers.items() if column in names]
                if any(near(literal, number) or round(number, 1) == literal.number for number in values):
                    return True
            case Kind.DURATION:
                if any(name == column and near(literal, each / literal.unit) for name, each in facts.durations):
                    return True
            case Kind.MOMENT:
                if any(name == column and literal.value.fits(at, of.evidence.zone) for name, at in facts.moments):
                    return True
    return False


@not_found
def one_of_several(of: Comparison) -> str:
    """`has one alert` of a row that counts another number of them."""
    sentence = of.sentence
    if len(of.plain) != 1 or of.wholes:
        return ""
    for word, thing in pairwise(sentence.words):
        kind = sentence.lexicon.things.get(thing.text, "other")
        if not sentence.lexicon.has("one", word.text) or kind == "other" or thing.start - word.end > 2:
            continue
        for column, value in of.plain[0].cells.items():
            if isinstance(value, int) and not isinstance(value, bool) and column_thing(column) == kind and value == 0:
                return f"{of.plain[0].ref} gives {_spoken_column(column)} {value}"
    return ""


_CLIENTS = frozenset({"address", "ipaddress", "clientip", "calleripaddress", "workstationname"})
_DEVICES = frozenset({"computer", "devicename", "host"})


@not_found
def roles(of: Comparison) -> str:
    """What comes from is not the row's destination, what goes to not its source."""
    for facts in of.rows:
        columns = {key(str(value)): column for column, value in facts.cells.items() if isinstance(value, str)}
        names = {"".join(column_words(column)) for column in facts.cells}
        client = not any(name.startswith(("dest", "remote", "to", "target")) for name in names) and names & _CLIENTS
        runs = "processcommandline" in names  # what a process does to another device, it does from its own
        for literal in of.literals:
            column = columns.get(str(literal.value)) if literal.kind is Kind.ID else None
            before = of.sentence.words_before(literal.start, 1)
            if column is None or not before or literal.start - before[0].end > 3:
                continue
            low, word = column.casefold(), before[0].text
            flat = low.replace("_", "")
            outward = low.startswith(("dest", "remote", "to_", "target")) or bool(client and flat in _DEVICES)
            inward = low.startswith(("source", "from_", "src")) or bool(client and flat in _CLIENTS)
            inward = inward or (runs and flat in _DEVICES)
            lexicon = of.sentence.lexicon
            if (lexicon.has("from", word) and not lexicon.has("to", word) and outward) or (
                lexicon.has("to", word) and not lexicon.has("from", word) and inward
            ):
                return f"{literal.raw} is the {_spoken_column(column)} of {facts.ref}"
    return ""


@not_found
def belong_together(of: Comparison) -> str:
    """A literal that stands only in rows of which the sentence says nothing else is not about them."""
    soft = (Kind.SPOKEN, Kind.NUMBER, Kind.DURATION, Kind.PERCENT)
    moments = [each for each in of.literals if each.kind is Kind.MOMENT]
    spans = len(moments) > 1 and bool(of.sentence.has("between"))
    placed = {
        literal: {facts.ref for facts in held}
        for literal, held in of.support.items()
        if held
        and (literal.kind not in soft or literal in of.sentence.thing_numbers)
        and not (spans and literal.kind is Kind.MOMENT)
    }
    if len({of.sentence.sort(literal) for literal in placed}) < 2:
        return ""
    for literal, mine in placed.items():
        start = of.sentence.clause_start(literal.start)
        others = [
            theirs
            for other, theirs in placed.items()
            if other.value != literal.value
            and (mine & of.cited or theirs & of.cited or of.sentence.clause_start(other.start) == start)
        ]
        if others and not any(mine & theirs for theirs in others):
            return f"“{literal.raw}” stands in {min(mine)}, which holds nothing else of the sentence"
    return ""


@not_found
def crosswise(of: Comparison) -> str:
    """Two results cited at the end, two numbers: each comes from the result at its place."""
    if len(of.wholes) < 2 or of.computed:
        return ""
    homes: list[int] = []
    wholes = of.wholes
    for literal in of.literals:
        if literal.kind is Kind.NUMBER and literal in of.support:
            mine = []
            for at, whole in enumerate(wholes):
                if Comparison(of.sentence, (), (whole,), of.refs).is_total(literal, whole):
                    mine.append(at)
            if len(mine) == 1:
                homes.append(mine[0])
    return (
        "the numbers and the results stand crosswise: put each citation behind its number"
        if homes != sorted(homes)
        else ""
    )


@not_found
def turned_round(of: Comparison) -> str:
    """`from High to Medium` where the row's text has it the other way round."""
    if not (of.sentence.has("from") or of.sentence.has("to")):
        return ""
    states = [each for each in of.literals if each.kind is Kind.STATE]
    for first, second in pairwise(states[:MOST_STATES]):
        timed = next((each for each in of.literals if each.kind is Kind.MOMENT and each.start > second.end), None)
        rows = of.rows if len(of.rows) == 1 or timed is None else of.support.get(timed, [])
        if len(rows) == 1 and first.domain == second.domain and first.value != second.value:
            places = [rows[0].words.find(f" {fold(str(each.value))} ") for each in (first, second)]
            if min(places) >= 0 and places[0] > places[1]:
                return f"{rows[0].ref} has it the other way round"
    return ""


def _result_code(of: Comparison) -> str:
    """The result code of the one cited row, where the sentence does not give it; empty for none."""
    if of.sentence.quotes or of.wholes or of.computed or len(of.plain) != 1:
        return ""
    code = next((str(value) for name, value in of.plain[0].cells.items() if name.casefold() == "resulttype"), "")
    return "" if any(code in (str(each.value), each.raw) for each in of.literals) else code


@not_found
def result_code(of: Comparison) -> str:
    """A row whose result code tells of a failure is no success, and the other way round."""
    code, failed, succeeded = _result_code(of), of.sentence.has("failed"), of.sentence.has("succeeded")
    denied = of.sentence.has("not") or of.sentence.has("negative")
    if not code or denied or bool(failed) is bool(succeeded) or (code == "0") is bool(succeeded):
        return ""
    return f"{of.plain[0].ref} gives result type {code}, which is no {'failure' if failed else 'success'}"


@source_given
def failure_untold(of: Comparison) -> str:
    """What is told of a row as if it had come about, where its result code tells of a failure."""
    code = _result_code(of)
    told = any(of.sentence.has(table) for table in ("failed", "tried", "not", "negative"))
    return "" if code in ("", "0") or told else f"{of.plain[0].ref} gives result type {code}, which is no success"


@not_found
def outcome_counts(of: Comparison) -> str:
    """`28 failures` of a row that counts 28 successes; a failure of one that counts none."""
    sentence = of.sentence
    if sentence.quotes or of.wholes or len(of.plain) != 1 or of.computed:
        return ""
    numbers = [each for each in of.literals if each.kind is Kind.NUMBER]
    for stem, table in (("fail", "failed"), ("success", "succeeded")):
        counts = [value for name, value in of.plain[0].cells.items() if name.casefold().startswith(stem)]
        if len(counts) != 1 or not isinstance(counts[0], int | float) or not sentence.has(table):
            continue
        denied = sentence.has("not") or sentence.has("negative") or any(each.number == 0 for each in numbers)
        if counts[0] == 0 and not denied:
            return f"{of.plain[0].ref} counts 0 of them"
        for literal in numbers:
            beside = (*sentence.words_before(literal.start, 1), *sentence.words_after(literal.start, 1))
            said = any(sentence.lexicon.has(table, word.text) for word in beside)
            if said and literal in of.support and literal.number != counts[0]:
                return f"{of.plain[0].ref} gives {counts[0]:g}, not {literal.raw}"
    return ""


@not_found
def each_beside_its_name(of: Comparison) -> str:
    """Of several rows cited together, numbers come in the order of the names that they belong to."""
    if of.wholes or len(of.rows) < 2:
        return ""

    def homes(literals: Iterable[Literal]) -> list[str]:
        held = [[facts.ref for facts in of.rows if facts.holds(each)] for each in literals]
        return [ref for ref, _ in groupby(refs[0] for refs in held if len(refs) == 1)]

    names = homes(of.sentence.anchors)
    numeric = (Kind.NUMBER, Kind.PERCENT, Kind.DURATION)
    numbers = homes(each for each in of.literals if each.kind in numeric and each not in of.sentence.thing_numbers)
    if len(names) < 2 or names == numbers or sorted(names) != sorted(numbers):
        return ""
    return f"the numbers of {' and '.join(dict.fromkeys(names))} stand beside the name of the other"


@not_found
def state_beside_its_thing(of: Comparison) -> str:
    """Of two states and two names, each state stands beside a name of its row."""
    anchors = [each for each in of.sentence.anchors if of.support.get(each)]
    for domain in DOMAINS:
        states = [
            each for each in of.literals if each.kind is Kind.STATE and each.domain == domain and of.support.get(each)
        ]
        if len({each.value for each in states}) < 2 or len(anchors) < 2:
            continue
        for state in states:
            before = max(
                (each for each in anchors if each.start < state.start), key=lambda each: each.start, default=None
            )
            after = min(
                (each for each in anchors if each.start > state.start), key=lambda each: each.start, default=None
            )
            mine = {facts.ref for facts in of.support[state]}
            beside = [each for each in (before, after) if each is not None]
            if not any(mine & {facts.ref for facts in of.support[each]} for each in beside):
                return f"“{state.raw}” does not stand beside “{beside[0].raw}”"
    return ""


# -- rules: found, and yet no more than a source ---------------------------------------------------------------------
@source_given
def names_only(of: Comparison) -> str:
    """Nothing but names was compared."""
    return "" if telling(of) else "the names stand there; what is said of them was not compared"


def telling(of: Comparison, *, without_states: bool = False) -> bool:
    """Whether more than names was compared."""
    literals, sentence = of.literals, of.sentence
    if of.evaluated:
        return True
    for literal in literals:
        held = {facts.ref for facts in of.support.get(literal, ())}
        if literal in sentence.thing_numbers or literal.kind in (Kind.ID, Kind.NAME, Kind.SPOKEN):
            continue
        if without_states and literal.kind is Kind.STATE:
            continue
        if literal.kind in (Kind.STATE, Kind.MOMENT) and not (of.cited & held) and len(literals) < 2:
            continue
        alone = len(literals) < 4 and not any(each.kind in (Kind.STATE, Kind.MOMENT, Kind.PERCENT) for each in literals)
        if literal.kind is Kind.NUMBER and not held and not sentence.counted(literal) and alone:
            continue
        if literal.kind is Kind.MOMENT and literal.value.hour is None and not sentence.anchors:
            continue
        return True
    anchors = sentence.anchors
    if len({each.value for each in anchors}) >= 2 and len({sentence.sort(each) for each in anchors}) >= 2:
        return True
    if anchors and any(each in of.support for each in literals if each.kind is Kind.SPOKEN):
        return True
    if len(of.rows) == 1 and anchors and _names_its_column(of):
        return True
    listed = sentence.kind in (UnitKind.ITEM, UnitKind.ROW)
    return bool(anchors) and listed and sum(len(each.raw) for each in anchors) * 2 >= len(sentence.text)


def _names_its_column(of: Comparison) -> bool:
    """`the owner is Åsa Öberg`: the sentence says the column of the cell that holds the name."""
    for column, value in of.rows[0].cells.items():
        said = {*column_words(column), *of.sentence.lexicon.columns.get(column.casefold(), ())}
        if said & of.sentence.bag:
            text = f" {key(str(value))} "
            if any(f" {each.value} " in text for each in of.sentence.anchors):
                return True
    return False


@source_given
def unheard_state(of: Comparison) -> str:
    """A word for a state that the one cited row does not have may mean something else."""
    if of.unheard and len(of.rows) == 1 and not telling(of, without_states=True):
        return f"“{of.unheard}” was not compared"
    return ""


@source_given
def judgement(of: Comparison) -> str:
    """A word of judgement stands in the row, or is the writer's own."""
    said = of.sentence.has("judgements")
    if said and not _row_says(of, [word[:6] for word in said]):
        return f"“{min(said)}” is a judgement"
    return ""


STRICT_CONCEPTS = frozenset(
    words_in(
        "reset revoke isolate disable delete reimage restore inform escalate quarantine "
        "download upload confirm unlock stop prevent approve pay reopen expire steal"
    )
)
"""Acts and outcomes that rows tell by their word, if they tell them at all."""


@not_found
def unsaid(of: Comparison) -> str:
    """An outcome that the sentence states and no cited row says."""
    sentence = of.sentence
    if sentence.quotes or sentence.text.rstrip().endswith("?") or not (of.rows or of.wholes):
        return ""
    for word in sentence.words:
        concept = sentence.lexicon.concepts.get(word.text, "")
        if concept not in STRICT_CONCEPTS or not sentence.states(word) or _row_says(of, concept_starts(concept)):
            continue
        return f"no cited row says “{word.text}”"
    return ""


@source_given
def outcome(of: Comparison) -> str:
    """An act or an outcome stands in the row, in its own words."""
    sentence = of.sentence
    if sentence.quotes or any(whole.writes for whole in of.wholes):
        return ""
    concepts = sentence.lexicon.concepts
    totals = {each.start for each, held in of.support.items() if each.kind is Kind.STATE and not held}
    acts = [word for word in sentence.words if word.text in concepts and word.start not in totals]
    said = {word.text: concepts[word.text] for word in acts}
    spoken = any(each.kind is Kind.SPOKEN for each in of.literals)
    for word, concept in said.items():
        starts = concept_starts(concept)
        if (spoken and sentence.lexicon.has("acts", word)) or _row_says(of, starts, quoted=False):
            continue
        if _row_says(of, starts):
            return f"only text that others wrote says “{word}”"
        return f"no cited row says “{word}”"
    written = of.rows and all(facts.row is not None and facts.row.kind in ("comment", "hit") for facts in of.rows)
    if (
        any(sentence.lexicon.has("acts", word) for word in said)
        and written
        and not any(each.kind is Kind.STATE for each in of.literals)
    ):
        return "somebody wrote that; no record of the deed was read"
    return ""


def _row_says(of: Comparison, starts: Iterable[str], *, quoted: bool = True) -> bool:
    """Whether a cited row, or a row of a cited result, has a word that begins as one of these."""
    return any(facts.says(start, quoted=quoted) for facts in of.rows for start in starts) or any(
        of.evidence.says(whole, start, quoted=quoted) for whole in of.wholes for start in starts
    )


RULES: tuple[Rule, ...] = (
    differs,
    not_there,
    only_failed,
    unsaid,
    out_of_order,
    nothing_to_compare,
    state_of_each_row,
    named_column,
    one_of_several,
    roles,
    belong_together,
    crosswise,
    turned_round,
    each_beside_its_name,
    result_code,
    outcome_counts,
    state_beside_its_thing,
    *COMPUTED_CLAIMS,
    *CLAIMS,
    names_only,
    unheard_state,
    judgement,
    outcome,
    failure_untold,
)
"""Asked in this order; the first that speaks decides, and where none does the values were found."""
