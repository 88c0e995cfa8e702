"""One sentence against what it cites: which of its literals stand there, in its rows, totals, or by what follows from
them. Whether they belong together is for the rules (`rules`, `claims`), which `compare` asks in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from itertools import combinations, pairwise

from sentinel_rag.agent.answers.evidence import PRIMARY_TIMES, Evidence, Facts, column_words, near
from sentinel_rag.agent.answers.results import Result
from sentinel_rag.agent.answers.sentence import DOMAINS, LARGE, STATES, STRONG_NAMES, Sentence
from sentinel_rag.contracts.evidence import SentenceState
from sentinel_rag.language.lexicon import everything, fold
from sentinel_rag.language.literals import Kind, Literal, Moment, key

NONE = "(none)"
"""How a computed row writes an empty value."""
MOST_LABELS = 8
MOST_ROWS_PAIRED = 400
"""Rows of a whole result up to which gaps between their times are looked at."""
_TIMES_OF_VERBS = ("created_time", "closed_time", "updated_time")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found of a sentence. `support` are the rows that hold each literal, `wrong` the literal and cell that
    differ, `missing` the literals that stand nowhere in what is cited."""

    state: SentenceState
    reason: str = ""
    refs: tuple[str, ...] = ()
    support: dict[Literal, list[Facts]] = field(default_factory=dict)
    missing: tuple[Literal, ...] = ()
    wrong: tuple[Literal, Facts, str] | None = None


class Comparison:
    """A sentence with the rows and whole results that it cites."""

    def __init__(
        self, sentence: Sentence, rows: Sequence[Facts], wholes: Sequence[Result], refs: Sequence[str]
    ) -> None:
        self.sentence = sentence
        self.evidence: Evidence = sentence.evidence
        self.rows = list(rows)
        self.wholes = list(wholes)
        self.refs = tuple(refs)
        self.support: dict[Literal, list[Facts]] = {}
        self.missing: list[Literal] = []
        self.evaluated = False
        """A claim of all, none, or an extreme was counted and holds."""
        self.unheard = ""
        """A spoken state that no cited row has: it may mean something else."""

    @property
    def literals(self) -> tuple[Literal, ...]:
        return self.sentence.literals

    @cached_property
    def plain(self) -> list[Facts]:
        """The cited rows that were read and not computed."""
        return [facts for facts in self.rows if not facts.computed]

    @cached_property
    def computed(self) -> list[Facts]:
        """The cited rows that were computed."""
        return [facts for facts in self.rows if facts.computed]

    @cached_property
    def cited(self) -> frozenset[str]:
        return frozenset(facts.ref for facts in self.rows)

    def verdict(self, state: SentenceState, reason: str = "") -> Verdict:
        return Verdict(state, reason, self.refs, self.support, tuple(self.missing))

    # -- which literals stand there -----------------------------------------------------------------------------------
    def find(self) -> None:
        """Fill `support` and `missing`."""
        for literal in self.literals:
            if self._compares(literal):
                if (held := [facts for facts in self.computed if facts.holds(literal)]) or self._is_twice(literal):
                    self.support[literal] = held
                else:
                    self.missing.append(literal)
                continue
            held = [facts for facts in self.rows if self._in_row(literal, facts)] or self._in_entities(literal)
            if held:
                self.support[literal] = held
                continue
            held = self._in_whole(literal)
            if held:
                self.support[literal] = held
            elif (
                self._in_totals(literal) or self._derived(literal) or self._denied(literal) or self._is_absent(literal)
            ):
                self.support[literal] = []
            elif literal.kind is Kind.SPOKEN:
                kinds = {facts.row.kind for facts in self.rows if facts.row is not None}
                if len(self.rows) == 1 and " " in literal.raw and kinds <= {"incident", "alert"}:
                    self.missing.append(literal)
                else:
                    self.unheard = literal.raw
            elif not self._may_be_a_word(literal):
                self.missing.append(literal)

    def _may_be_a_word(self, literal: Literal) -> bool:
        """A one-word name at the start of a sentence, where ordinary words have a capital too; not a person's."""
        if literal.kind is not Kind.NAME or " " in str(literal.value) or literal.value in self.evidence.names.aliases:
            return False
        return not any(letter.isalnum() for letter in self.sentence.text[: literal.start])

    def _denied(self, literal: Literal) -> bool:
        """`none is Low`: a state of a complete result that none of its rows has; whether that is so is a rule's."""
        if literal.kind is not Kind.STATE or not self.sentence.has("negative"):
            return False
        return any(literal.domain in facts.states for facts in self.universe(self.wholes))

    def _is_absent(self, literal: Literal) -> bool:
        """`203.0.113.9 is not among them`: a name that a complete result does not hold."""
        start, end = self.sentence.clause_start(literal.start), self.sentence.clause_end(literal.start)
        denied = self.sentence.has("not") | self.sentence.has("negative")
        here = any(start <= word.start < end for word in self.sentence.words if word.text in denied)
        named = literal.kind in (Kind.ID, Kind.NAME) or literal in self.sentence.thing_numbers
        absent = bool(named and here and self.wholes) and all(whole.complete for whole in self.wholes)
        self.evaluated = self.evaluated or absent
        return absent

    def _in_row(self, literal: Literal, facts: Facts) -> bool:
        return (self.held(literal, facts) and self._right_thing(literal, facts)) or self._by_column(literal, facts)

    def _in_entities(self, literal: Literal) -> list[Facts]:
        """Entities of a cited incident: a number beside the name of the entity that has it."""
        if literal.kind is not Kind.NUMBER:
            return []
        return [
            entity
            for facts in self.rows
            for entity in facts.entities
            if self._in_row(literal, entity) and any(entity.holds(anchor) for anchor in self.sentence.anchors)
        ]

    def held(self, literal: Literal, facts: Facts) -> bool:
        """Whether a row holds a literal as the sentence means it."""
        sentence = self.sentence
        if literal.kind in STATES and literal.domain in DOMAINS and sentence.negated(literal):
            got = facts.states.get(literal.domain)
            if got is None and facts.computed:
                return f" {key(str(literal.value))} " in f" {key(str(facts.cells.get('unless', '')))} "
            return got is not None and got != literal.value and not (literal.value == "open" and got != "Closed")
        if literal.kind is Kind.MOMENT:
            return self._moment(literal, facts)
        if literal.kind is Kind.NAME and facts.row is not None:
            account = self.evidence.names.aliases.get(str(literal.value))
            return facts.holds(literal) or (account is not None and f" {account} " in facts.words)
        if literal.kind is Kind.NUMBER and not facts.holds(literal):
            thing = sentence.counted(literal)
            columns = facts.numbers.get(literal.number, ()) if thing and literal.unit == 1.0 else ()
            return any(column.startswith("len:") and column_thing(column) == thing for column in columns)
        return facts.holds(literal)

    def _right_thing(self, literal: Literal, facts: Facts) -> bool:
        """`3 incidents` is not the 3 of `alert_count`."""
        if literal.kind is not Kind.NUMBER or literal.unit != 1.0:
            return True
        thing = self.sentence.counted(literal)
        if thing in ("", "other"):
            return True
        told = [column_thing(column) for column in facts.numbers.get(literal.number, ())]
        return not told or any(each in ("", thing) for each in told)

    def _moment(self, literal: Literal, facts: Facts) -> bool:
        column = self._time_column(literal)
        chosen = [at for name, at in facts.moments if name == column] if column else []
        return any(literal.value.fits(at, self.evidence.zone) for at in chosen) if chosen else facts.holds(literal)

    def _time_column(self, literal: Literal) -> str:
        """The column that the verb before a moment speaks of (`created`); empty for none."""
        start = self.sentence.clause_start(literal.start)
        columns = self.sentence.lexicon.columns
        for word in reversed(self.sentence.words_before(literal.start, 12)):
            if word.start < start:
                break
            for name in _TIMES_OF_VERBS:
                if word.text in columns[name]:
                    return name
        return ""

    def among(self, rows: Sequence[Facts], literals: Iterable[Literal], *, denied: bool = False) -> list[Facts]:
        """The rows that hold all of the literals; with `denied` a word of denial before a state means nothing."""
        left = list(rows)
        for literal in literals:
            if not left:
                break
            if denied or self._is_plain(literal):
                held = self.evidence.holders(literal)
                left = [facts for facts in left if facts.ref in held]
            else:
                left = [facts for facts in left if self.held(literal, facts)]
        return left

    def _is_plain(self, literal: Literal) -> bool:
        """Whether the sentence means by a literal what it says by itself."""
        match literal.kind:
            case Kind.NAME:
                return str(literal.value) not in self.evidence.names.aliases
            case Kind.STATE | Kind.SPOKEN:
                return not self.sentence.negated(literal)
            case Kind.MOMENT:
                return not self._time_column(literal)
            case Kind.NUMBER:
                return literal in self.sentence.thing_numbers
        return True

    def _by_column(self, literal: Literal, facts: Facts) -> bool:
        """High beside a column `high_alerts`: its number is in the sentence, or the sentence says none."""
        value = facts.labelled(literal)
        if value is None:
            return False
        numbers = (Kind.NUMBER, Kind.PERCENT)
        start = self.sentence.clause_start(literal.start)
        near_by = [each for each in self.literals if each.kind in numbers and each not in self.sentence.thing_numbers]
        said = [each for each in near_by if self.sentence.clause_start(each.start) == start] or near_by
        return (
            any(each.kind is Kind.PERCENT or each.value == value for each in said)
            or (value == 2 and bool(self.sentence.has("pairwise")))
            or (value == 0 and bool(self.sentence.has("negative")))
            or (value == 1 and bool(self.sentence.has("one") | self.sentence.has("exclusive")))
        )

    def _in_whole(self, literal: Literal) -> list[Facts]:
        """Rows of a whole result; a number only beside a label of the same row, unless it is a name itself."""
        if literal.kind is Kind.PERCENT or not self.wholes:
            return []
        found = [facts for whole in self.wholes for facts in self.evidence.holding(literal, whole)]
        if not found and str(literal.value) in self.evidence.names.aliases:
            account = replace(literal, value=self.evidence.names.aliases[str(literal.value)])
            found = [facts for whole in self.wholes for facts in self.evidence.holding(account, whole)]
        if literal.kind is not Kind.NUMBER:
            return found if self._is_plain(literal) else [facts for facts in found if self.held(literal, facts)]
        if literal in self.sentence.thing_numbers or literal.number >= LARGE:
            return found
        labels = [each for each in self.literals if each.kind in STRONG_NAMES or each.kind in (Kind.STATE, Kind.MOMENT)]
        return [
            facts
            for facts in found
            if facts.row is not None
            and facts.row.kind in ("row", "incident", "computed")
            and self._right_thing(literal, facts)
            and any(facts.holds(label) for label in labels)
        ]

    # -- numbers of a whole result, and what follows from cited cells by itself ---------------------------------------
    def _in_totals(self, literal: Literal) -> bool:
        for whole in self.wholes:
            facts = self.evidence.facts(whole.ref)
            assert facts is not None
            if literal.kind is Kind.NUMBER and literal.unit == 1.0:
                if self._is_total(literal, facts):
                    return True
            elif literal.kind is Kind.STATE:
                totals = {total.value for total in whole.totals if total.path[-1] == literal.value}
                numbers = {each.value for each in self.literals if each.kind is Kind.NUMBER}
                if not whole.rows and f" {fold(str(literal.value))} " in facts.words:
                    return True
                if any(total.value == literal.value for total in whole.totals):
                    return True
                if totals & numbers or (totals and any(each.kind is Kind.PERCENT for each in self.literals)):
                    return True
            elif (literal.kind in STRONG_NAMES or literal.kind in (Kind.MOMENT, Kind.DURATION)) and facts.holds(
                literal
            ):
                return True
        return False

    def _is_total(self, literal: Literal, facts: Facts) -> bool:
        labels = facts.numbers.get(literal.number)
        if not labels:
            return False
        clause = [each for each in self.sentence.clause_labels(literal) if each.kind in STATES]
        narrowed = {each.value for each in clause if each.value != "ever_closed"}
        if "" not in labels and len(narrowed) > 1 and facts.result.complete and facts.result.rows:
            return False  # two states at once: the rows are counted instead
        said = {str(each.value) for each in clause or self.literals if each.kind in STATES}
        if labels - {"rows"} == {""} and self._is_narrowed(literal, self.universe([facts.result])):
            return False
        return "" in labels or any(
            label in said or (not clause and f" {key(label)} " in self.sentence.key) for label in labels
        )

    def universe(self, wholes: Iterable[Result] | None = None, *, strict: bool = False) -> list[Facts]:
        """The rows that a claim about all of them is about: those of complete results, else the cited ones.

        Unless `strict`, rows of a dossier's part count as complete where only other parts are cut.
        """
        given = self.wholes if wholes is None else list(wholes)
        if len(self.plain) >= 2 and not given:
            return self.plain
        part = self.sentence.part
        return [
            facts
            for whole in given
            if whole.complete or (part and not strict and whole.has_all_of(part))
            for facts in self.evidence.rows_of(whole, part)
        ]

    def _each_universe(self) -> list[list[Facts]]:
        found = [self.universe([whole]) for whole in self.wholes] or [self.universe([])]
        return [rows for rows in found if rows]

    def counts_rows(self, literal: Literal, rows: Sequence[Facts]) -> bool:
        """Whether so many rows hold all labels of the clause that the number stands in."""
        labels = self.sentence.clause_labels(literal) or self.sentence.labels[:1]
        told = [
            each
            for each in labels[:MOST_LABELS]
            if any(each is not other and each.domain == other.domain and each.kind is Kind.STATE for other in labels)
            or len(self.among(rows, [each], denied=True)) < len(rows)
        ]
        if not told:
            return False
        kept = self.among(rows, told)
        moments = [each for each in told if each.kind is Kind.MOMENT]
        zone = self.evidence.zone
        happened = [
            facts
            for facts in kept
            if facts.happened and all(each.value.fits(facts.happened[1], zone) for each in moments)
        ]
        return literal.value in (len(kept), len(happened) if moments else -1)

    def _set_counts(self, rows: Sequence[Facts]) -> set[float]:
        """How many rows hold each label of the sentence, and each two of them."""
        there = {facts.ref for facts in rows}
        held = [self.evidence.holders(label) & there for label in self.sentence.labels[:MOST_LABELS]]
        counts = {len(refs) for refs in held} | {len(a & b) for a, b in combinations(held, 2)}
        return set(map(float, counts - {0}))

    def _derived(self, literal: Literal) -> bool:
        match literal.kind:
            case Kind.NUMBER if literal.unit == 1.0:
                return self._derived_number(literal)
            case Kind.PERCENT:
                return self._derived_share(literal)
            case Kind.DURATION:
                return self._derived_duration(literal)
            case Kind.MOMENT:
                return self._is_bound_of_all()
        return False

    def _is_bound_of_all(self) -> bool:
        """`between 07:00 and 09:30`: all rows that it speaks of lie between the two times."""
        bounds = [each.value for each in self.literals if each.kind is Kind.MOMENT]
        if len(bounds) != 2 or not self.sentence.has("between"):
            return False
        rows = self.plain or self.universe()
        return bool(rows) and all(within(facts, *bounds) for facts in rows)

    def _derived_number(self, literal: Literal) -> bool:
        if len(self.plain) >= 2 and literal.value == len(self.plain):
            return True
        made = [facts for facts in self.computed if NONE not in facts.cells.values()]
        if len(made) >= 2 and literal.value == len(made):
            return True
        if self._is_whole_of_parts(literal) or self._is_one_of_its_kind(literal):
            return True
        if self._owned() & {literal.number}:
            return True
        return any(
            (literal.value == len(rows) and not self._is_narrowed(literal, rows)) or self.counts_rows(literal, rows)
            for rows in self._each_universe()
        )

    def _is_narrowed(self, literal: Literal, rows: Sequence[Facts]) -> bool:
        """So many in all, and the clause chooses some of them: then these are counted."""
        chosen = any(
            (0 if each.kind is Kind.SPOKEN else -1) < len(self.among(rows, [each])) < len(rows)
            for each in self.sentence.clause_labels(literal)
            if each not in self.sentence.thing_numbers
        )
        things = rows and all(each.row is not None and each.row.kind in ("incident", "alert") for each in rows)
        numbers = any(each.kind in (Kind.NUMBER, Kind.PERCENT) and each is not literal for each in self.literals)
        return bool(things and chosen) and not (numbers and self.sentence.has("part_of"))

    def _is_whole_of_parts(self, literal: Literal) -> bool:
        """`three of the eight`: the eight may be the total of the result that the cited rows come from."""
        if not any(each.kind in (Kind.NUMBER, Kind.PERCENT) and each is not literal for each in self.literals):
            return False
        if not self.sentence.has("part_of"):
            return False
        parents = (self.evidence.facts(facts.result.ref) for facts in self.plain)
        return any(parent is not None and "" in parent.numbers.get(literal.number, ()) for parent in parents)

    def _is_one_of_its_kind(self, literal: Literal) -> bool:
        """`(in 1 alert)`, `Accounts (1)`: of all rows of its kind, the cited one alone holds each name."""
        if literal.value != 1 or len(self.plain) != 1 or self.plain[0].row is None:
            return False
        parent, kind = self.plain[0].result, self.plain[0].row.kind
        before = [self.sentence.lexicon.things.get(word.text) for word in self.sentence.words_before(literal.start, 1)]
        if (self.sentence.counted(literal) or "".join(map(str, before))) != kind or not parent.has_all_of(kind):
            return False
        return self.among(self.evidence.rows_of(parent, kind), self.sentence.anchors) == self.plain

    def _owned(self) -> set[float]:
        """How many rows have an owner, or none where the sentence says so."""
        if not self.sentence.lexicon.columns["owner"] & self.sentence.bag:
            return set()
        nobody = bool(self.sentence.has("negative")) or any(each.domain == "owner" for each in self.literals)
        incidents = [[f for f in rows if f.row and f.row.kind == "incident"] for rows in self._each_universe()]
        return {float(sum(("owner" in f.cells) is not nobody for f in rows)) for rows in incidents if rows}

    def _compares(self, literal: Literal) -> bool:
        """`twice as many`: a word that compares and counts nothing."""
        if literal.kind is not Kind.NUMBER or literal.raw[:1].isdigit():
            return False
        lexicon = self.sentence.lexicon
        following = self.sentence.words_after(literal.start, 1)
        return lexicon.has("times", fold(literal.raw)) and any(lexicon.has("as", word.text) for word in following)

    def _is_twice(self, literal: Literal) -> bool:
        """`twice as many`: the numbers of two cited rows in one column."""
        if literal.value != 2 or literal.raw[:1].isdigit() or len(self.plain) != 2 or self.sentence.counted(literal):
            return False
        first, second = (facts.cells for facts in self.plain)
        for column, value in first.items():
            other = second.get(column)
            numbers = isinstance(value, int | float) and isinstance(other, int | float)
            if numbers and other and "number" not in column and value == 2 * other:
                return True
        return False

    def _derived_share(self, literal: Literal) -> bool:
        stated = {each.number for each in self.literals if each.kind is Kind.NUMBER}
        universes = self._each_universe() if self.wholes else []
        states = [each for each in self.literals if each.kind in STATES]
        parts = stated | {count for rows in universes for count in self._set_counts(rows)}
        parts |= {value for facts in self.rows for each in states if (value := facts.labelled(each)) is not None}
        named = {fold(str(each.value)) for each in states}
        whole = stated | {float(len(rows)) for rows in universes}
        for result in self.wholes:
            facts = self.evidence.facts(result.ref)
            assert facts is not None
            labelled = {
                number for number, labels in facts.numbers.items() if any(fold(label) in named for label in labels)
            }
            grand = {number for number, labels in facts.numbers.items() if "" in labels}
            whole |= labelled | grand
            if any(
                near(literal, 100 * part / of, slack=0.6)
                for part in labelled
                for of in (stated & grand) or grand | stated
                if of > part
            ):
                return True
        whole = (stated & whole) or whole
        return any(near(literal, 100 * part / of, slack=0.6) for part in parts for of in whole if 0 < part < of)

    def _derived_duration(self, literal: Literal) -> bool:
        def fits(seconds: float) -> bool:
            return near(literal, abs(seconds) / literal.unit)

        for column in PRIMARY_TIMES:  # two rows are compared in the same column
            same = [at for facts in self.plain[:3] for name, at in facts.moments if name == column]
            if len(same) >= 2:
                if any(fits((b - a).total_seconds()) for a, b in combinations(same, 2)):
                    return True
                break
        if len(self.plain) == 1:
            times = [at for name, at in self.plain[0].moments if name in PRIMARY_TIMES]
            if self.evidence.now is not None and any(name == "created_time" for name, _ in self.plain[0].moments):
                times.append(self.evidence.now)
            return any(fits((b - a).total_seconds()) for a, b in combinations(times, 2) if a != b)
        if 1 < len(self.plain) <= 3:
            return False
        happened = sorted(facts.happened[1] for facts in self.universe()[:MOST_ROWS_PAIRED] if facts.happened)
        if len(happened) < 2:
            return False
        gaps = sorted((b - a).total_seconds() for a, b in pairwise(happened))
        return fits((happened[-1] - happened[0]).total_seconds()) or fits(gaps[len(gaps) // 2])


Rule = Callable[[Comparison], Verdict | None]
"""What speaks of a comparison, or is silent."""


def compare(comparison: Comparison, rules: Sequence[Rule]) -> Verdict:
    """The verdict of the first rule that speaks."""
    comparison.find()
    for rule in rules:
        verdict = rule(comparison)
        if verdict is not None:
            return verdict
    return comparison.verdict(SentenceState.VALUES_FOUND)


def not_found(reason: Callable[[Comparison], str]) -> Rule:
    """A rule out of a function that gives the reason for which a sentence is not found, or nothing."""

    def rule(of: Comparison) -> Verdict | None:
        told = reason(of)
        return of.verdict(SentenceState.NOT_FOUND, told) if told else None

    rule.__name__ = reason.__name__
    rule.__doc__ = reason.__doc__
    return rule


def source_given(reason: Callable[[Comparison], str]) -> Rule:
    """A rule out of a function that gives the reason for which a sentence has no more than a source."""

    def rule(of: Comparison) -> Verdict | None:
        told = reason(of)
        return of.verdict(SentenceState.SOURCE_GIVEN, told) if told else None

    rule.__name__ = reason.__name__
    rule.__doc__ = reason.__doc__
    return rule


def within(facts: Facts, first: Moment, last: Moment) -> bool:
    """Whether the thing of a row happened between two times, as far as both were stated."""
    if first.day is None and first.hour is not None:
        first = replace(first, month=last.month, day=last.day)
    if facts.happened is None or (first.day is None) is not (last.day is None):
        return False

    def place(moment: Moment | datetime, end: bool = False) -> tuple[int, ...]:
        day = (moment.month or 0, moment.day or 0) if first.day is not None else ()
        hour, minute = (23, 59) if end else (0, 0)
        hour = hour if moment.hour is None else moment.hour
        return (*day, hour, minute if moment.minute is None else moment.minute)

    at = facts.happened[1] + timedelta(minutes=first.offset or last.offset or 0)
    return place(first) <= place(at) <= place(last, end=True)


def column_thing(column: str) -> str:
    """The class of the things that a column counts."""
    things = everything().things
    return next((things[word] for word in column_words(column.removeprefix("len:")) if word in things), "")
