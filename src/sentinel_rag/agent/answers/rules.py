"""The rules of the check: what a sentence says and the cited rows do not, what stands there and does not belong
together, what was found but proves no more than a source. Each is a function of a comparison; `RULES` orders them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise

from sentinel_rag.agent.answers.claims import CLAIMS, COMPUTED_CLAIMS, out_of_order
from sentinel_rag.agent.answers.comparing import STEM, Comparison, Rule, Verdict, not_found, source_given
from sentinel_rag.agent.answers.facts import OPEN_STATES, Facts, column_words
from sentinel_rag.agent.answers.markup import UnitKind
from sentinel_rag.agent.answers.sentence import DOMAINS
from sentinel_rag.contracts.evidence import SentenceState
from sentinel_rag.language.lexicon import concept_starts, fold, plain_words, words_in
from sentinel_rag.language.literals import Kind, Literal, key

MOST_STATES = 5
_LONGEST_LABEL = 60
MOST_CODES = 200
"""Rows of a whole result whose codes are looked at."""


# -- rules: what was not found ---------------------------------------------------------------------------------------
def differs(of: Comparison) -> Verdict | None:
    """The cited cell says otherwise: one value, in a column that is certain."""
    for literal in of.missing:
        column = _other_state(of, literal) or _other_owner(of, literal)
        if column and _is_plain_statement(of, literal):
            facts = of.rows[0]
            reason = f"{facts.ref} gives {_spoken_column(column)} {facts.cells[column]}, not {literal.raw}"
            return of.verdict(SentenceState.CONTRADICTED, reason, (literal, facts, column))
    return None


def _other_state(of: Comparison, literal: Literal) -> str:
    """The column of the state that all cited rows have, and the sentence says another."""
    domain = literal.domain
    if (
        literal.kind is not Kind.STATE
        or domain not in DOMAINS
        or sum(each.domain == domain for each in of.literals) > 1
    ):
        return ""
    right = {facts.states.get(domain) for facts in of.rows}
    if len(right) != 1 or None in right or (literal.value in right) is not of.sentence.negated(literal):
        return ""
    return _column_of(of.rows[0], domain)


def _other_owner(of: Comparison, literal: Literal) -> str:
    """The column of the owner of the one cited row, if the sentence calls somebody else that."""
    if literal.kind is not Kind.NAME or len(of.rows) != 1 or "owner" not in of.rows[0].states:
        return ""
    sentence = of.sentence
    beside = [*reversed(sentence.words_before(literal.start, 4)), *sentence.words_after(literal.end - 1, 1)]
    said = next((word for word in beside if word.text not in plain_words()), None)
    if said is None or said.text not in sentence.lexicon.columns["owner"] or sentence.negated(literal):
        return ""
    return "" if key(of.rows[0].states["owner"]) == literal.value else _column_of(of.rows[0], "owner")


def _column_of(facts: Facts, domain: str) -> str:
    return next(column for column in facts.cells if column.casefold() == domain)


def _is_plain_statement(of: Comparison, literal: Literal) -> bool:
    """Whether the sentence says no more than what the row is now: it neither compares, nor tells of a change or of the
    past, nor advises, nor speaks of another thing. Where in doubt, it is not."""
    sentence = of.sentence
    if of.wholes or sentence.quotes or _asks(of) or sentence.has(*_DOUBTFUL) or sentence.of_kind(Kind.MOMENT):
        return False
    if any(each is not literal and each not in of.support for each in sentence.anchors):
        return False
    kinds = {facts.kind for facts in of.rows}
    things = {sentence.lexicon.things[word.text] for word in sentence.words if word.text in sentence.lexicon.things}
    return things <= (kinds | {"incident"} if kinds == {"incident"} else kinds | {"other"})


_DOUBTFUL = (
    "possible", "past", "comparative", "more", "over", "under", "least", "most", "before", "after", "then", "exclusive",
    "between", "acts", "outcomes", "negative",
)  # fmt: skip


def _asks(of: Comparison) -> bool:
    return of.sentence.text.rstrip().endswith("?")


def _spoken_column(column: str) -> str:
    return " ".join(column_words(column)) or column


@not_found
def not_there(of: Comparison) -> str:
    """A literal stands nowhere in what is cited."""
    if not of.missing:
        return ""
    told = ", ".join(f"“{literal.raw}”" for literal in of.missing[:3])
    if of.failed:
        return f"{of.failed} failed: {told} cannot come from it"
    return f"{told} {'does' if len(of.missing) == 1 else 'do'} not stand in {', '.join(of.refs[:4])}"


@not_found
def unclear_name(of: Comparison) -> str:
    """Nothing is absent from a call whose name may be one of several others, none of which was read. Whoever names one
    of these tells what to ask for."""
    whole = next((whole for whole in of.wholes if whole.unclear), None)
    if whole is None or of.rows:
        return ""
    named = (literal for literal in of.support if literal.kind in (Kind.NAME, Kind.ID))
    if any(key(literal.raw) != key(whole.unclear) for literal in named):
        return ""
    denied = any(of.sentence.says(word, sense) for word in of.sentence.words for sense in ("negative", "not"))
    zero = any(literal.kind is Kind.NUMBER and literal.value == 0 for literal in of.literals)
    return f"{whole.ref} read no name like “{whole.unclear}”, of which there are several" if denied or zero else ""


@source_given
def only_failed(of: Comparison) -> str:
    """A failed or refused call may be cited for saying that it failed."""
    failed = of.wholes and all(whole.problem for whole in of.wholes) and not of.rows
    return f"{of.wholes[0].ref} gave no result" if failed else ""


@source_given
def nothing_to_compare(of: Comparison) -> str:
    """No literal, or only words that may mean a state."""
    soft = not of.sentence.anchors and not of.wholes and all(literal.kind is Kind.SPOKEN for literal in of.support)
    owned = of.wholes and of.sentence.has("universal") and of.sentence.lexicon.columns["owner"] & of.sentence.bag
    compared = of.missing or owned or of.tells_empty
    return "nothing in it can be compared" if (soft or not of.support) and not compared else ""


# -- rules: what does not belong together ----------------------------------------------------------------------------
@not_found
def state_of_each_row(of: Comparison) -> str:
    """Each cited row has one of the states that the sentence names."""
    rows = [facts for facts in of.plain if facts.is_thing]
    classified = {each.value for each in of.sentence.of_kind(Kind.STATE) if each.domain == "classification"}
    for domain in DOMAINS if len(rows) > 1 else ():
        named = {
            value
            for each in of.sentence.of_kind(Kind.STATE)
            if each.domain == domain and not _is_of_incident(of, each)
            for value in of.sentence.reach(each)
        }
        denied = of.sentence.has("negative")  # `neither of them was closed as TruePositive`
        if not named or denied or any(of.sentence.negated(each) for each in of.literals if each.domain == domain):
            continue
        for facts in _rows_of_one(of, domain) or _rows_of_incidents(of, domain, named) or rows:
            how = domain == "status" and facts.states.get("classification")  # `119 FalsePositive, 111 Active`
            if facts.states.get(domain) and facts.states[domain] not in named and how not in classified:
                return f"{facts.ref} gives {domain} {facts.states[domain]}"
    return ""


def _is_of_incident(of: Comparison, literal: Literal) -> bool:
    """`| 124 (High) | its alerts |`: the label of a row tells the state of the incident, not of the alerts that are
    cited behind it."""
    sentence = of.sentence
    before = [each for each in sentence.anchors if each.end <= literal.start]
    if not before or not sentence.is_label(literal) or before[-1] not in sentence.thing_numbers:
        return False
    if sentence.text[before[-1].end : literal.start].strip(" (,*_"):
        return False
    rows = map(of.evidence.facts, of.evidence.holders(before[-1]))
    own = [facts for facts in rows if facts is not None and facts.kind == "incident"]
    own = [facts for facts in own if before[-1].number in facts.named_numbers]
    return bool(own) and all(facts.states.get(literal.domain) == literal.value for facts in own)


def _rows_of_one(of: Comparison, domain: str) -> list[Facts]:
    """`124 came before 125, which is New`: a state behind a comma is said of the name before it."""
    states = [each for each in of.sentence.of_kind(Kind.STATE) if each.domain == domain]
    before = [each for each in of.sentence.anchors if states and each.start < states[0].start]
    if len(states) != 1 or len(before) < 2 or of.sentence.has("universal", "pairwise"):
        return []
    between = of.sentence.text[before[-1].end : states[0].start]
    return of.support.get(before[-1], []) if between.lstrip("*_").startswith(",") else []


def _rows_of_incidents(of: Comparison, domain: str, named: set[str]) -> list[Facts]:
    """`124, which is High, has that address too`: the rows of the incidents that the sentence names, where they have
    all states that it tells and it speaks of no alert; what else is cited bears out the rest."""
    numbers = {each.number for each in of.sentence.thing_numbers}
    own = [facts for facts in of.plain if facts.kind == "incident" and facts.named_numbers & numbers]
    return own if of.sentence.part != "alert" and named <= {facts.states.get(domain) for facts in own} else []


_CLIENTS = frozenset({"address", "ipaddress", "clientip", "calleripaddress", "workstationname"})
_DEVICES = frozenset({"computer", "devicename", "host"})
_OUTWARD, _INWARD = ("dest", "remote", "to_", "target", "recipient"), ("source", "from_", "src", "sender")
_DESTINATIONS = ("dest", "remote", "to", "target")
_DOERS = ("initiatingprocess", "parentprocess", "creatorprocess", "parentimage")
_DENIED, _ALLOWED = ("den", "block", "drop", "reject"), ("allow", "accept", "permit", "pass")
_OUTCOMES = ("action", "outcome", "result")
_OPPOSITES = (
    ("denied", _DENIED, "allowed"), ("allowed", _ALLOWED, "denied"), ("failed", ("fail",), "succeeded"),
    ("succeeded", ("succe",), "failed"),
)  # fmt: skip
"""Words for an outcome, how columns and actions of it begin, and words for the opposite."""


@not_found
def roles(of: Comparison) -> str:
    """What comes from is not the row's destination, what goes to not its source."""
    sentence = of.sentence
    for literal in sentence.of_kind(Kind.ID, Kind.NAME):
        before = [
            word
            for word in sentence.words_before(literal.start, 1)
            if not sentence.text[word.end : literal.start].strip(" `*_")  # not `meldete sich dort an (10.20.0.26)`
        ]
        comes, goes = (any(sentence.says(word, table) for word in before) for table in ("from", "to"))
        for facts in of.rows if comes is not goes else ():
            column = _columns_by_value(facts).get(str(literal.value), "")
            if (_is_outward(facts, column) if comes else _is_inward(facts, column)) and _tells_of(of, facts, literal):
                return f"{literal.raw} is the {_spoken_column(column)} of {facts.ref}"
    return ""


@not_found
def first_or_last(of: Comparison) -> str:
    """`until 23 November` of a row that first saw it then and last saw it later; `since` of what it saw last."""
    for literal in of.sentence.of_kind(Kind.MOMENT):
        before = of.sentence.words_before(literal.start, 2)
        ends, begins = (any(of.sentence.says(word, table) for word in before) for table in ("until", "since"))
        begins = begins and not of.sentence.has("negative")  # `no alert since 24 November`
        wrong, right = ("first", "last") if ends else ("last", "first")
        for facts in of.support.get(literal, ())[:1] if ends is not begins else ():
            named = [name for name, at in facts.moments if literal.value.fits(at, of.evidence.zone)]
            columns = {" ".join(column_words(name)) for name, _ in facts.moments}
            others = [
                " ".join(column_words(name)).replace(wrong, right) for name in named
            ]  # of `last seen` `first seen`
            if others and all(wrong in column_words(name) for name in named) and columns.issuperset(others):
                return f"{facts.ref} gives it as {_spoken_column(named[0])}"
    return ""


@not_found
def first_of_the_cited(of: Comparison) -> str:
    """`28 in the first week` of a row that is not the first of those that are cited."""
    times = {facts.ref: facts.happened[1] for facts in of.plain if facts.happened}
    for literal in of.sentence.of_kind(Kind.NUMBER) if len(times) > 1 and not of.wholes else ():
        homes = [facts.ref for facts in of.support.get(literal, ()) if facts.ref in times]
        behind = of.sentence.inside(literal.start, of.sentence.words_after(literal.start, 3))
        for table, end in (("least", min), ("most", max)):
            said = any(of.sentence.says(word, table) and of.sentence.says(word, "of_time") for word in behind)
            if said and len(homes) == 1 and times[homes[0]] != end(times.values()):
                return f"{homes[0]} is not the {'first' if end is min else 'last'} of the cited rows"
    return ""


@not_found
def done_by_another(of: Comparison) -> str:
    """`Åsa took it over herself`, where the row's text ends with who did it, and that is not who is named."""
    named = of.sentence.of_kind(Kind.ID, Kind.NAME)  # else a pronoun says it of who was named before
    for facts in of.plain if named and of.sentence.has("self") else ():
        who = facts.cells.get("event", "") if facts.kind == "event" else ""
        _, by, doer = str(who).rpartition(" by ")
        if by and not any(f" {each.value} " in f" {key(doer)} " for each in of.sentence.anchors):
            return f"{facts.ref} was done by {doer}"
    return ""


def _tells_of(of: Comparison, facts: Facts, literal: Literal) -> bool:
    """Whether a row holds something else of the clause of a literal, if there is something else."""
    beside = [each for each in of.sentence.inside(literal.start, of.literals) if each is not literal]
    return not beside or any(facts.holds(each) for each in beside)


def _is_outward(facts: Facts, column: str) -> bool:
    low = column.casefold()
    return low.startswith(_OUTWARD) or (low.replace("_", "") in _DEVICES and _has_client(facts))


def _is_inward(facts: Facts, column: str) -> bool:
    low = column.casefold()
    flat = low.replace("_", "")
    runs = flat in _DEVICES and "processcommandline" in _names(facts)  # a process acts from its own device
    return low.startswith(_INWARD) or (flat in _CLIENTS and _has_client(facts)) or runs


def _names(facts: Facts) -> set[str]:
    return {column.casefold().replace("_", "") for column in facts.cells}


def _has_client(facts: Facts) -> bool:
    """Whether the row names one who came, and no destination."""
    names = _names(facts)
    several = "foundin" in names  # rows of a search over all tables: an address of either side
    return not names.isdisjoint(_CLIENTS) and not (several or any(name.startswith(_DESTINATIONS) for name in names))


def _columns_by_value(facts: Facts) -> dict[str, str]:
    """Columns by the key of their text."""
    return {key(str(value)): column for column, value in facts.cells.items() if isinstance(value, str)}


@not_found
def doers(of: Comparison) -> str:
    """`A started B` of a row in which B started A."""
    sentence = of.sentence
    if not sentence.has("starts"):
        return ""
    for facts in of.plain:
        columns = _columns_by_value(facts)
        named = [
            (literal, columns[str(literal.value)].casefold().replace("_", "").startswith(_DOERS))
            for literal in sentence.of_kind(Kind.ID)
            if "name" in columns.get(str(literal.value), "").casefold()
            or "image" in columns.get(str(literal.value), "")
        ]
        for (first, does), (second, is_doer) in pairwise(named):
            before = sentence.words_before(second.start, 1)
            turned = any(sentence.says(word, "by") and second.start - word.end <= 3 for word in before)
            end = sentence.clause_end(second.start) if turned else second.start  # `wurde von B gestartet`
            between = (word for word in sentence.words if first.end <= word.start < end)
            started = any(sentence.says(word, "starts") for word in between)
            if started and does is not is_doer and does is turned:
                return f"{facts.ref} has it the other way round"
    return ""


@not_found
def opposite_outcome(of: Comparison) -> str:
    """What is told as allowed of a row that counts it as denied, or whose action denied it; and the other way round."""
    sentence, facts = of.sentence, of.alone
    if facts is None or sentence.has("not", "negative"):
        return ""
    actions = [key(str(value)) for name, value in facts.cells.items() if name.casefold().endswith(_OUTCOMES)]
    for said, starts, opposite in _OPPOSITES:
        if not sentence.has(opposite) or sentence.has(said):
            continue
        if any(action.startswith(starts) for action in actions):
            return f"{facts.ref} gives {actions[0]}"
        told = next(word for word in sentence.words if sentence.says(word, opposite))
        for literal in sentence.inside(told.start, sentence.of_kind(Kind.NUMBER)):
            columns = facts.numbers.get(literal.number, ()) if literal in of.support else ()
            if columns and all(column.casefold().startswith(starts) for column in columns):
                return f"{facts.ref} gives {literal.raw} as {_spoken_column(min(columns))}"
    return ""


def _home(facts: Facts) -> str:
    """The row; of an entity its incident's dossier, in which all are together."""
    dossier = facts.row is not None and "/entities/" in facts.row.pointer
    return f"{facts.result.ref} {facts.row.pointer.partition('/entities/')[0]}" if dossier and facts.row else facts.ref


@not_found
def belong_together(of: Comparison) -> str:
    """A literal that stands only in rows of which the sentence says nothing else is not about them."""
    soft = [Kind.SPOKEN, Kind.NUMBER, Kind.DURATION, Kind.PERCENT]
    apart = any(each.kind is Kind.DURATION and not held for each, held in of.support.items())  # between two rows
    if apart or (len(of.sentence.of_kind(Kind.MOMENT)) > 1 and of.sentence.has("between")):
        soft.append(Kind.MOMENT)
    placed = {
        literal: {_home(facts) for facts in (*held, *_held_in_wholes(of, literal))}
        for literal, held in of.support.items()
        if held
        and not any(facts.computed for facts in held)
        and (literal.kind not in soft or literal in of.sentence.thing_numbers)
    }
    cited = {_home(facts) for facts in of.rows}
    if len({of.sentence.sort(literal) for literal in placed}) < 2 or _are_of_one_sort(of, placed):
        return ""
    sized = {each: {_home(facts) for facts in held} for each, held in of.support.items() if each.unit != 1.0 and held}
    for whole in of.wholes:  # a result that was asked for 127 is about it
        homes = {home for mine in placed.values() for home in mine if home.split()[0].partition(".")[0] == whole.ref}
        about = of.evidence.whole(whole).named_numbers
        placed |= {
            each: placed[each] | homes for each in of.sentence.thing_numbers & placed.keys() if each.number in about
        }
    for literal, mine in placed.items():
        start = of.sentence.clause_start(literal.start)
        others = [
            theirs
            for other, theirs in (*placed.items(), *sized.items())
            if other.value != literal.value
            and (mine & cited or theirs & cited or of.sentence.clause_start(other.start) == start)
        ]
        told = _is_told(of, literal) or _was_asked_for_another(of, literal) or _has_address_of_another(of, literal)
        if others and not told and not any(mine & theirs for theirs in others):
            return f"“{literal.raw}” stands in {min(mine)}, which holds nothing else of the sentence"
    return ""


def _is_told(of: Comparison, literal: Literal) -> bool:
    """`it made connections until 21:28`: the cited row of a time, or of a name, has words of its clause, in a cell or,
    of a time, as a column."""
    words = of.sentence.inside(literal.start, of.sentence.words)
    words = tuple(word for word in words if not literal.start <= word.start < literal.end)
    stems = {word.text[:STEM] for word in words if len(word.text) >= STEM and word.text not in plain_words()}
    if literal.kind is Kind.MOMENT:
        return any(facts.says(stem, quoted=False) for facts in of.support[literal] for stem in stems)
    named = literal not in of.sentence.thing_numbers and not of.borrowed
    cited = [facts for facts in of.support[literal] if facts.ref in of.cited and named]
    return any(sum(f" {stem}" in facts.words for stem in stems) >= FEWEST_TOLD for facts in cited)


FEWEST_TOLD = 2
"""Words of a clause that a row must have for a name in it to be told of that row."""


def _was_asked_for_another(of: Comparison, literal: Literal) -> bool:
    """Whether the rows of a literal came of a call that was asked for another name of the sentence."""
    asked = {of.evidence.whole(facts.result).asked for facts in of.support[literal]}
    names = {str(each.value) for each in of.sentence.of_kind(Kind.ID, Kind.NAME) if each.value != literal.value}
    names |= {of.evidence.names.aliases.get(name, name) for name in names}
    return any(f" {name} " in each for each in asked for name in names)


def _has_address_of_another(of: Comparison, literal: Literal) -> bool:
    """`srv-1 sent 4 GB [the traffic of 10.0.0.5, the row with 10.0.0.5 of srv-1]`: the row of a name has the address of
    another cited row."""
    mine = {address for facts in of.support[literal] for address in facts.addresses}
    others = (facts for facts in of.plain if facts not in of.support[literal])
    return literal.kind in (Kind.ID, Kind.NAME) and any(not mine.isdisjoint(facts.addresses) for facts in others)


def _held_in_wholes(of: Comparison, literal: Literal) -> Iterator[Facts]:
    """The rows of cited results that hold a literal, where rows are cited beside them."""
    for whole in of.wholes if of.rows else ():
        yield from of.evidence.holding(literal, whole)


def _are_of_one_sort(of: Comparison, literals: Iterable[Literal]) -> bool:
    """Whether all names are of one sort in their rows (accounts, however they are written): a list of them."""
    sorts = [{sort for facts in of.support[each] for sort in facts.sorts_of(each)} for each in literals]
    return bool(set.intersection(*sorts) - {"", "number"})


@not_found
def crosswise(of: Comparison) -> str:
    """Two results cited at the end, two numbers: each comes from the result at its place."""
    homes: list[int] = []
    listed = of.sentence.kind is UnitKind.ROW  # its columns have an order of their own
    for literal in (
        of.sentence.of_kind(Kind.NUMBER) if len(of.wholes) > 1 and not (of.computed or listed or of.borrowed) else ()
    ):
        if any(of.sentence.says(word, "part_of") for word in of.sentence.words_after(literal.start, 1)):
            continue  # `three of the five`
        alone = (Comparison(of.sentence, (), (whole,), of.refs).is_total(literal, whole) for whole in of.wholes)
        mine = [at for at, holds in enumerate(alone) if holds]
        homes += mine if len(mine) == 1 and literal in of.support else ()
    crossed = homes != sorted(homes)
    return "the numbers and the results stand crosswise: put each citation behind its number" if crossed else ""


@not_found
def turned_round(of: Comparison) -> str:
    """`from High to Medium` where the row's text has it the other way round."""
    states = of.sentence.of_kind(Kind.STATE)[:MOST_STATES] if of.sentence.has("from", "to") else ()
    for first, second in pairwise(states):
        timed = next((each for each in of.sentence.of_kind(Kind.MOMENT) if each.start > second.end), None)
        rows = of.rows if len(of.rows) == 1 or timed is None else of.support.get(timed, [])
        if len(rows) == 1 and first.domain == second.domain and first.value != second.value:
            places = [rows[0].words.find(f" {fold(str(each.value))} ") for each in (first, second)]
            if min(places) >= 0 and places[0] > places[1]:
                return f"{rows[0].ref} has it the other way round"
    return ""


def _result_code(of: Comparison) -> str:
    """The result code of the one cited row, where the sentence does not give it; empty for none."""
    if of.alone is None:
        return ""
    code = next((str(value) for name, value in of.alone.cells.items() if name.casefold() == "resulttype"), "")
    return "" if any(code in (str(each.value), each.raw) for each in of.literals) else code


@not_found
def result_code(of: Comparison) -> str:
    """A row whose result code tells of a failure is no success, and the other way round."""
    code, failed, succeeded = _result_code(of), of.sentence.has("failed"), of.sentence.has("succeeded")
    denied = of.sentence.has("not", "negative")
    if not code or denied or bool(failed) is bool(succeeded) or (code == "0") is bool(succeeded):
        return ""
    return f"{of.plain[0].ref} gives result type {code}, which is no {'failure' if failed else 'success'}"


@source_given
def failure_untold(of: Comparison) -> str:
    """What is told of a row as if it had come about, where its result code tells of a failure."""
    code, told = _result_code(of), of.sentence.has("failed", "tried", "not", "negative")
    return "" if code in ("", "0") or told else f"{of.plain[0].ref} gives result type {code}, which is no success"


@not_found
def outcome_counts(of: Comparison) -> str:
    """A failure of a row, or of a whole, that counts none."""
    sentence, facts = of.sentence, of.alone
    numbers = sentence.of_kind(Kind.NUMBER)
    for total in of.wholes[0].totals if len(of.wholes) == 1 else ():
        behind = [word for each in numbers if each.number for word in sentence.words_after(each.start, 1)]
        before = [word for each in numbers if each.number == 0 for word in sentence.words_before(each.start, 1)]
        if (
            total.value == 0
            and total.path[-1].casefold().startswith("fail")
            and any(sentence.says(word, "failed") for word in behind)
            and not any(sentence.says(word, "failed") for word in before)  # "SignIns 179, Failures 0"
        ):
            return f"{of.wholes[0].ref} counts 0 of them"
    if sentence.quotes or facts is None:
        return ""
    for stem, table in (("fail", "failed"), ("success", "succeeded")):
        counts = [value for name, value in facts.amounts.items() if name.casefold().startswith(stem)]
        if len(counts) != 1 or not sentence.has(table):
            continue
        if counts[0] == 0 and not sentence.has("not", "negative") and all(each.number != 0 for each in numbers):
            return f"{facts.ref} counts 0 of them"
    return ""


@not_found
def each_beside_its_name(of: Comparison) -> str:
    """Of several rows cited together, numbers and times come in the order of the names that they belong to."""

    def holds(facts: Facts, literal: Literal) -> bool:
        is_name = literal in of.sentence.thing_numbers and not facts.computed
        if is_name or literal not in of.support:
            return literal.number in facts.named_numbers if is_name else facts.holds(literal)
        return facts in of.support[literal]

    def homes(literals: Iterable[Literal]) -> list[str]:
        held = [[facts.ref for facts in of.rows if holds(facts, each)] for each in literals]
        return [ref for ref, _ in groupby(refs[0] for refs in held if len(refs) == 1)]

    if of.wholes or len(of.rows) < 2:
        return ""
    codes = [each for each in of.sentence.codes if _is_cell(of, each)]
    between = codes and of.sentence.anchors and codes[0].start < of.sentence.anchors[-1].start  # `A from SG, B from GB`
    moments = homes(of.sentence.of_kind(Kind.MOMENT))
    names = homes(of.sentence.anchors) or homes(codes) or homes(of.sentence.of_kind(Kind.STATE)) or moments
    numeric = of.sentence.of_kind(Kind.NUMBER, Kind.PERCENT, Kind.DURATION)
    numbers = homes(each for each in numeric if each not in of.sentence.thing_numbers)
    for what, values in (("numbers", numbers), ("times", moments), ("codes", homes(codes if between else ()))):
        if len(names) > 1 and names != values and sorted(names) == sorted(values):
            return f"the {what} of {' and '.join(dict.fromkeys(names))} stand beside the name of the other"
    return ""


@not_found
def wrong_code(of: Comparison) -> str:
    """`all from SG`, where the cited rows have another code, of a country say, in that place."""
    rows = [*of.rows, *(facts for whole in of.wholes for facts in of.evidence.rows_of(whole)[:MOST_CODES])]
    there = {
        str(value) for facts in rows for value in facts.cells.values() if isinstance(value, str) and len(value) == 2
    }
    if not any(value.isupper() for value in there):
        return ""
    text = of.sentence.text
    places = (code for code in of.sentence.codes if not text[: code.start].rstrip()[-1:].isdigit())  # not `4.6 GB`
    lost = (code for code in places if not any(f" {code.value} " in facts.words for facts in rows))
    code = next((code for code in lost if of.evidence.is_cell(code)), None)
    return "" if code is None else f"“{code.raw}” does not stand in {', '.join(of.refs[:4])}"


def _is_cell(of: Comparison, code: Literal) -> bool:
    """Whether a code such as `FI` is a whole cell of a cited row."""
    return any(text == code.value for facts in of.rows for _, text in facts.texts)


# -- rules: found, and yet no more than a source ---------------------------------------------------------------------
@source_given
def names_only(of: Comparison) -> str:
    """Nothing but names was compared."""
    return "" if telling(of) and not of.uncounted else "the names stand there; what is said of them was not compared"


def telling(of: Comparison) -> bool:
    """Whether more than names was compared."""
    literals, sentence = of.literals, of.sentence
    anchors = [each for each in sentence.anchors if each.value not in of.evidence.tables]
    few = len(literals) < 4 and not sentence.of_kind(Kind.STATE, Kind.MOMENT, Kind.PERCENT)
    few = few and sentence.kind is not UnitKind.ROW
    for literal in literals:
        held = {facts.ref for facts in of.support.get(literal, ())}
        cited = len(literals) > 1 or of.cited & held
        match literal.kind:
            case Kind.ID | Kind.NAME | Kind.SPOKEN:
                tells = False
            case Kind.STATE:
                tells = bool(cited)
            case Kind.NUMBER:
                counts = held or sentence.counted(literal) or not few
                tells = bool(counts and literal not in sentence.thing_numbers)
            case Kind.MOMENT:
                tells = bool(cited and (literal.value.hour is not None or anchors))
            case _:
                tells = True
        if tells:
            return True
    listed = sentence.kind in (UnitKind.ITEM, UnitKind.ROW)
    return of.evaluated or bool(
        (len({each.value for each in anchors}) > 1 and len({sentence.sort(each) for each in anchors}) > 1)
        or (anchors and any(each in of.support for each in sentence.of_kind(Kind.SPOKEN)))
        or (anchors and len(of.rows) == 1 and _names_its_column(of))
        or (anchors and listed and sum(len(each.raw) for each in anchors) * 2 >= len(sentence.text))
    )


def _names_its_column(of: Comparison) -> bool:
    """`the owner is Åsa Öberg`: the sentence says the column of the cell that holds the name."""
    for column, value in of.rows[0].cells.items():
        said = {*column_words(column), *of.sentence.lexicon.columns.get(column.casefold(), ())}
        text = f" {key(str(value))} " if said & of.sentence.bag else ""
        if any(f" {each.value} " in text for each in of.sentence.anchors):
            return True
    return False


@source_given
def judgement(of: Comparison) -> str:
    """A word of judgement stands in the row, or is the writer's own."""
    said = of.sentence.has("judgements")
    return f"“{min(said)}” is a judgement" if said and not _row_says(of, [word[:6] for word in said]) else ""


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
    concepts = of.sentence.lexicon.concepts
    for word in () if of.sentence.quotes or _asks(of) or not (of.rows or of.wholes) else of.sentence.words:
        concept = concepts.get(word.text, "")
        before = of.sentence.words_before(word.start, 1)
        if before and of.sentence.says(before[0], "article", "one"):
            continue  # `the stolen account` was told before, `a stolen hash` is any
        if word.end <= of.sentence.label_end <= _LONGEST_LABEL:
            continue  # `Against a stolen password: ...` names what is weighed
        said = concept not in STRICT_CONCEPTS or _row_says(of, concept_starts(concept))
        if not said and of.sentence.states(word) and not _is_open_again(of, concept):
            return f"no cited row says “{word.text}”"
    return ""


def _is_open_again(of: Comparison, concept: str) -> bool:
    """`reopened` of an incident that is open and has the time of a closing, which is not told as the reopening's."""
    closed = [each for each in of.rows if "closed_time" in each.cells and each.states.get("status") in OPEN_STATES]
    told = [
        each for each in of.sentence.of_kind(Kind.MOMENT) if any(facts in of.support.get(each, ()) for facts in closed)
    ]
    return concept == "reopen" and bool(closed) and not told


@source_given
def outcome(of: Comparison) -> str:
    """An act or an outcome stands in the row, in its own words."""
    sentence, concepts = of.sentence, of.sentence.lexicon.concepts
    if sentence.quotes or any(whole.writes for whole in of.wholes):
        return ""
    totals = {each.start for each, held in of.support.items() if each.kind is Kind.STATE and not held}
    said = [word for word in sentence.words if word.text in concepts and word.start not in totals]
    for word in said:
        starts = concept_starts(concepts[word.text])
        spoken = sentence.says(word, "acts") and sentence.of_kind(Kind.SPOKEN)
        open_again = _is_open_again(of, concepts[word.text])
        if not (spoken or open_again) and not _row_says(of, starts, quoted=False):
            theirs = _row_says(of, starts)
            return f"{'only text that others wrote' if theirs else 'no cited row'} says “{word.text}”"
    written = of.rows and all(facts.kind in ("comment", "hit") for facts in of.rows)
    if written and any(sentence.says(word, "acts") for word in said) and not sentence.of_kind(Kind.STATE):
        return "somebody wrote that; no record of the deed was read"
    return ""


def _row_says(of: Comparison, starts: Iterable[str], *, quoted: bool = True) -> bool:
    """Whether a cited row, or a row of a cited result, has a word that begins as one of these."""
    return any(
        any(facts.says(start, quoted=quoted) for facts in of.rows)
        or any(of.evidence.says(whole, start, quoted=quoted) for whole in of.wholes)
        for start in starts
    )


RULES: tuple[Rule, ...] = (
    differs,
    not_there,
    wrong_code,
    unclear_name,
    only_failed,
    unsaid,
    out_of_order,
    nothing_to_compare,
    state_of_each_row,
    roles,
    first_or_last,
    first_of_the_cited,
    done_by_another,
    doers,
    belong_together,
    crosswise,
    turned_round,
    each_beside_its_name,
    result_code,
    outcome_counts,
    opposite_outcome,
    *COMPUTED_CLAIMS,
    *CLAIMS,
    names_only,
    judgement,
    outcome,
    failure_untold,
)
"""Asked in this order; the first that speaks decides, and where none does the values were found."""
