"""One sentence against what it cites: which of its literals stand there, in its rows, totals, or by what follows from
them. Whether they belong together is for the rules (`rules`, `claims`), which `compare` asks in their order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property, partial, wraps
from itertools import combinations, pairwise, permutations

from sentinel_rag.agent.answers.evidence import ReadResults
from sentinel_rag.agent.answers.facts import Facts, column_words, near
from sentinel_rag.agent.answers.markup import UnitKind
from sentinel_rag.agent.answers.results import Result
from sentinel_rag.agent.answers.sentence import DOMAINS, LARGE, STATES, STRONG_NAMES, ReadSentence
from sentinel_rag.contracts.evidence import SentenceState
from sentinel_rag.language.lexicon import CANONICAL, everything, fold, plain_words
from sentinel_rag.language.literals import Kind, Literal, Moment, key, tokens

NONE = "(none)"
"""How a computed row writes an empty value."""
MANY_ROWS = 10
"""Rows of a table that are known by their number; fewer may count anything."""
MOST_LABELS = 8
STEM = 5
"""Letters by which a word is known in another form."""
_WORDS_OF_A_COUNT = 4
MOST_ROWS_BETWEEN = 12
"""Cited rows up to which a time between any and the first or last of them is looked at."""
_FEW_ROWS, _FEW_NEAR = 4, 3
MOST_ROWS_PAIRED = 400
"""Rows of a whole result up to which gaps between their times are looked at."""
_BESIDE = 8
"""Characters between a time and a word that speaks of it."""
_LONGEST_STEP = 400 * 86_400
_LONGEST_AROUND = 86_400
"""Seconds of a window that is around something."""
_CAMEL = re.compile(r"[a-z][A-Z]")
_PART_OF_NAME = re.compile(r"[A-Z][a-z]+")
_CODES = frozenset({"type", "id", "code", "port", "score", "eventid"})
"""Last words of columns whose numbers count nothing."""
_STATES = frozenset(fold(value) for values in CANONICAL.values() for value in values)
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
    rule: str = ""
    """What gave the reason, by its name."""


class Comparison:
    """A sentence with the rows and whole results that it cites."""

    def __init__(
        self,
        sentence: ReadSentence,
        rows: Sequence[Facts],
        wholes: Sequence[Result],
        refs: Sequence[str],
        near: Sequence[str] = (),
        granted: frozenset[Literal] = frozenset(),
        borrowed: bool = False,
    ) -> None:
        self.sentence = sentence
        self.literals = sentence.literals
        self.evidence: ReadResults = sentence.evidence
        self.rows = list(rows)
        self.wholes = list(wholes)
        self.refs = tuple(refs)
        self.near = near
        """Rows that sentences before cite: a length of time may begin there."""
        self.borrowed = borrowed
        """The citations are those of other sentences."""
        self.granted = granted
        """Literals that need not stand in what is cited."""
        self.plain = [facts for facts in self.rows if not facts.computed]
        """The cited rows that were read and not computed."""
        self.computed = [facts for facts in self.rows if facts.computed]
        self.support: dict[Literal, list[Facts]] = {}
        self.missing: list[Literal] = []
        self.evaluated = False
        """A claim of all, none, or an extreme was counted and holds."""
        self.uncounted = False
        """What it denies was looked for by its word alone."""

    @property
    def alone(self) -> Facts | None:
        """The one row that is cited, if nothing else is."""
        return self.plain[0] if len(self.plain) == 1 and not (self.wholes or self.computed) else None

    @property
    def failed(self) -> str:
        """The first of the cited calls that brought nothing; empty for none."""
        return next((whole.ref for whole in self.wholes if whole.problem), "")

    @cached_property
    def cited(self) -> frozenset[str]:
        return frozenset(facts.ref for facts in self.rows)

    def verdict(
        self, state: SentenceState, reason: str = "", wrong: tuple[Literal, Facts, str] | None = None
    ) -> Verdict:
        return Verdict(state, reason, self.refs, self.support, tuple(self.missing), wrong)

    # -- which literals stand there -----------------------------------------------------------------------------------
    def find(self) -> None:
        """Fill `support` and `missing`."""
        for literal in self.literals:
            held = self._rows_with(literal)
            if held is None and (literal in self.granted or self._is_denied_time(literal) or self._is_now(literal)):
                continue
            if held is not None:
                self.support[literal] = held
            elif literal.kind is Kind.SPOKEN:
                ends = not self.sentence.inside(literal.start, self.sentence.words_after(literal.end - 1, 1))
                if len(self.rows) == 1 and self.rows[0].is_thing and (" " in literal.raw or ends):
                    self.missing.append(literal)
            elif not (
                self._may_be_a_word(literal) or self.sentence.is_emphasis(literal) or self.sentence.refers(literal)
            ):
                self.missing.append(literal)

    def _is_now(self, literal: Literal) -> bool:
        """`as of 1 December, 11:30`: the time of the question."""
        return literal.kind is Kind.MOMENT and self.evidence.is_now(literal.value, ())

    def _is_denied_time(self, literal: Literal) -> bool:
        """`not at 02:08`, `for 19:56 the log has no row`: a time at which the cited result has nothing."""
        if literal.kind is not Kind.MOMENT:
            return False
        sentence = self.sentence
        bound = any(
            sentence.says(word, "after", "before", "newer", "older") for word in sentence.words_before(literal.start, 2)
        )
        beside = sentence.inside(literal.start, sentence.words) if self.wholes and not bound else ()
        return sentence.negated(literal) or any(sentence.says(word, "negative") for word in beside)

    def _rows_with(self, literal: Literal) -> list[Facts] | None:
        """The rows that hold a literal, none of them where it is a total or follows from what is cited; None where it
        stands nowhere."""
        if self.is_window(literal):
            between = len(self.plain) > 1 and self._derived_duration(literal)  # `the last 45 minutes before it`
            return [] if between or self._fits_window(literal) else None
        if literal.kind is Kind.NUMBER and self._is_factor(literal):
            return [facts for facts in self.computed if facts.holds(literal)] or None
        held = [facts for facts in self.rows if self._in_row(literal, facts)]
        held = held or self._in_entities(literal) or self._in_whole(literal)
        if not held and literal.kind is Kind.MOMENT and self.sentence.has("head"):
            self.evaluated = self.evaluated or self._in_head(literal) or self._in_totals(literal)
        follows = (self._in_totals, self._derived, self._denied, self._is_absent, self._in_head, self._is_subject)
        return held if held or any(test(literal) for test in follows) else None

    # -- the window of what is cited ----------------------------------------------------------------------------------
    @cached_property
    def heads(self) -> list[Facts]:
        """All that is cited as wholes, and what it was computed from."""
        results = {result.ref: result for result in (*self.wholes, *(facts.result for facts in self.rows))}
        return [head for result in results.values() for head in self.evidence.heads(result)]

    def is_window(self, literal: Literal) -> bool:
        """`the last 7 days` of results whose window is known: no number of a row."""
        if literal.kind is not Kind.DURATION:
            return False
        sentence = self.sentence
        beside = (*sentence.words_before(literal.start, 1), *sentence.words_after(literal.start, 1))
        return any(sentence.says(word, "window") for word in beside) and any(
            name == "window" for head in self.heads for name, _ in head.durations
        )

    def _fits_window(self, literal: Literal) -> bool:
        """It is the window of what is cited, or all cited rows happened in it, or so many rows as the sentence says."""
        if any(self._is_of_window(literal, head) for head in self.heads):
            return True
        if not self.wholes:
            return bool(self.plain) and self._happened_in(literal) == len(self.plain)
        return not self._counts_of_window().isdisjoint(each.value for each in self.sentence.of_kind(Kind.NUMBER))

    def _counts_of_window(self) -> set[int]:
        """How many rows of the results happened in a shorter window that the sentence names."""
        windows = [each for head in self.heads for name, each in head.durations if name == "window"]
        return {
            self._happened_in(each)
            for each in self.sentence.of_kind(Kind.DURATION)
            if self.wholes and self.is_window(each) and each.number * each.unit < max(windows)
        }

    def _happened_in(self, window: Literal) -> int:
        """How many rows that the sentence speaks of happened in a window up to now."""
        if self.evidence.now is None:
            return 0
        start = self.evidence.now - timedelta(seconds=window.number * window.unit)
        rows = self.universe() if self.wholes else self.plain
        return sum(facts.happened is not None and facts.happened[1] >= start for facts in rows)

    @staticmethod
    def _is_of_window(literal: Literal, head: Facts) -> bool:
        if literal.kind is Kind.MOMENT:
            bounded = any(name == "window" for name, _ in head.moments)  # without bounds all of the table was read
            ends = (at for name, at in head.moments if name == "window" or (not bounded and name.startswith("table_")))
            return any(literal.value.fits(at, head.zone) for at in ends)
        return any(name == "window" and near(literal, each / literal.unit) for name, each in head.durations)

    def _in_head(self, literal: Literal) -> bool:
        """`since 22 November`, `in the seven days before`: an end or the length of the window of what is cited."""
        if literal.kind not in (Kind.MOMENT, Kind.DURATION) or (self.alone is not None and self.alone.is_thing):
            return False
        sentence = self.sentence
        near_by = [word for word in sentence.words_before(literal.start, 2) if literal.start - word.end < _BESIDE]
        first = next((each for each in sentence.of_kind(Kind.MOMENT) if 0 < literal.start - each.end < _BESIDE), None)
        near_by += sentence.words_before(first.start, 1) if first is not None else ()  # `between 13:00 and 16:00`
        bounds = any(sentence.says(word, "span", "head") for word in near_by)
        bounds = bounds or any(  # `8 to 29 November` is a span by its form
            each is not literal and (each.start, each.end) == (literal.start, literal.end) for each in self.literals
        )
        if literal.kind is Kind.DURATION:  # `in the seven days before`
            behind = sentence.words_after(literal.end - 1, 2)
            bounds = bounds or any(sentence.says(word, "before", "after", "window") for word in behind)
        days = literal.kind is Kind.DURATION and literal.unit >= _LONGEST_AROUND
        whole = days and any(word.text in plain_words() for word in near_by[-1:])  # `in three weeks of log`
        return any(
            (bounds and self._is_of_window(literal, head)) or (whole and self._is_span_of_days(literal, head))
            for head in self.heads
        )

    @staticmethod
    def _is_span_of_days(literal: Literal, head: Facts) -> bool:
        """So many days lie between the ends of what was read, or have a part in it."""
        spans = [[at for name, at in head.moments if name == "window"]]
        spans += [[at for name, at in head.moments if name.startswith("table_")]]
        days = literal.number * literal.unit / _LONGEST_AROUND
        return any(
            len(ends) > 1 and days in ((span := (max(ends).date() - min(ends).date()).days), span + 1) for ends in spans
        )

    def _is_subject(self, literal: Literal) -> bool:
        """`102 and 118 share one`: what the cited results, and those that they were computed from, are about; and
        `around 118`, the thing that happened inside their window."""
        rows = (facts for facts in self.plain if not facts.named_numbers and literal in self.sentence.thing_numbers)
        if any(literal.number in self.evidence.whole(facts.result).named_numbers for facts in rows):
            return True  # an alert out of the dossier of 124
        if any(facts.is_thing or facts.named_numbers for facts in self.plain):
            return False  # rows that name the thing themselves
        if self.evidence.is_named_number(literal):
            heads = [head for head in self.heads if literal.number in head.named_numbers]
            return any(map(self._speaks_of, heads)) or self._is_in_window(literal)
        if literal.kind in STRONG_NAMES and any(self._is_of_all_counted(literal, facts) for facts in self.computed):
            return True
        if literal.kind is Kind.NUMBER and literal.number >= MANY_ROWS and literal.raw.isdigit():
            return any(f" {literal.raw} " in head.asked for head in self.heads)  # what a query chose rows by
        if literal.kind not in (Kind.ID, Kind.NAME):
            return False
        names = {str(literal.value), self.evidence.names.aliases.get(str(literal.value), str(literal.value))}
        return any(f" {name} " in head.asked for head in self.heads for name in names)

    def _is_of_all_counted(self, literal: Literal, counted: Facts) -> bool:
        """Whether all rows of a result were counted, and each of them holds a name."""
        sources = {ref.partition(".")[0] for ref in counted.result.operands}
        whole = "count" in counted.cells and counted.cells["count"] == counted.cells.get("of")
        source = self.evidence.result(min(sources)) if whole and len(sources) == 1 else None
        rows = self.evidence.rows_of(source) if source is not None and source.complete else []
        return bool(rows) and all(facts.holds(literal) for facts in rows)

    def _speaks_of(self, head: Facts) -> bool:
        """Whether a result is cited as a whole, or one of its cited rows holds something of the sentence."""
        rows = [facts for facts in self.rows if facts.result is head.result]
        numbers = self.sentence.thing_numbers
        return not rows or any(facts.holds(each) for facts in rows for each in self.literals if each not in numbers)

    def _is_in_window(self, literal: Literal) -> bool:
        """Whether something of the thing that a number names happened in a short window of what is cited."""
        windows = [
            [at for name, at in head.moments if name == "window"]
            for head in self.heads
            if any(name == "window" and seconds <= _LONGEST_AROUND for name, seconds in head.durations)
        ]
        rows = (self.evidence.facts(ref) for ref in self.evidence.holders(literal) if windows)
        own = (each for each in rows if each is not None and each.is_thing and literal.number in each.named_numbers)
        return any(min(ends) <= at <= max(ends) for each in own for _, at in each.moments for ends in windows)

    def clause_labels(self, literal: Literal) -> list[Literal]:
        """The labels of the clause of a literal that choose rows: ends of the window choose none."""
        return [
            each
            for each in self.sentence.clause_labels(literal.start)
            if each.kind is not Kind.MOMENT or not self._in_head(each)
        ]

    def _may_be_a_word(self, literal: Literal) -> bool:
        """A word of the trade with a figure in it (`C2`) that no row holds; a one-word name at the start of a sentence,
        where ordinary words have a capital too; not a person's."""
        if literal.kind is Kind.ID and self.sentence.lexicon.has("trade", str(literal.value)):
            return not self.evidence.holders(literal)
        if literal.kind is not Kind.NAME or " " in str(literal.value) or literal.value in self.evidence.names.aliases:
            return False
        if _CAMEL.search(literal.raw):
            return False  # `SigninLogs`
        return not any(letter.isalnum() for letter in self.sentence.text[: literal.start])

    def _denied(self, literal: Literal) -> bool:
        """`none is Low`: a state of a complete result that none of its rows has; whether that is so is a rule's."""
        none = (each for each in self.sentence.of_kind(Kind.NUMBER) if each.value == 0)
        if self.sentence.is_label(literal) and literal.kind in STATES and any(map(self._is_of_no_group, none)):
            return True
        if literal.kind is not Kind.STATE or not self.sentence.has("negative"):
            return False
        return any(literal.domain in facts.states for facts in self.universe(self.wholes))

    def _is_absent(self, literal: Literal) -> bool:
        """`203.0.113.9 is not among them`: a name that a complete result does not hold."""
        sentence = self.sentence
        here = any(sentence.says(word, "not", "negative") for word in sentence.inside(literal.start, sentence.words))
        code = literal.kind is Kind.TEXT and literal.quoted_by == "`"
        named = code or literal.kind in (Kind.ID, Kind.NAME) or literal in sentence.thing_numbers
        absent = bool(named and here and self.wholes) and all(whole.complete for whole in self.wholes)
        beside = sentence.words_before(literal.start, 1) if named and self.plain and self.support else ()
        absent = absent or any(sentence.says(word, "not") for word in beside)  # `names A, not B`
        if not named and here and self.plain and not self.wholes:  # `the playbook does not speak of a first hour`
            return literal.kind is Kind.MOMENT and all(facts.kind in ("hit", "passage") for facts in self.plain)
        self.evaluated = self.evaluated or absent
        return absent

    def _in_row(self, literal: Literal, facts: Facts) -> bool:
        return (self.held(literal, facts) and self._right_thing(literal, facts)) or self._by_column(literal, facts)

    def _in_entities(self, literal: Literal) -> list[Facts]:
        """Entities of a cited incident: a number beside the name of the entity that has it."""
        entities = [entity for facts in self.rows for entity in facts.entities] if literal.kind is Kind.NUMBER else []
        return [
            entity
            for entity in entities
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
        if literal.kind is Kind.STATE and facts.states.get(literal.domain) in sentence.reach(literal):
            return True
        if literal.kind in STATES and sentence.has("tells") and f" {fold(str(literal.value))} " in facts.words:
            return True  # what a text of others says
        if literal.kind is Kind.MOMENT:
            column = self._time_column(literal)
            chosen = [at for name, at in facts.moments if name == column] if column else []
            return any(literal.value.fits(at, self.evidence.zone) for at in chosen) if chosen else facts.holds(literal)
        if literal.kind is Kind.NAME and facts.row is not None:
            account = self.evidence.names.aliases.get(str(literal.value))
            short = self.evidence.names.short.get(account or "", account)
            return facts.holds(literal) or (account is not None and f" {short} " in facts.words)
        if literal.kind is Kind.ID and literal.domain == "ip" and not facts.holds(literal):
            address, _, port = literal.raw.partition(":")
            apart = port.isdigit() and "." in address and facts.holds(replace(literal, value=key(address)))
            return apart and float(port) in facts.numbers
        if literal.kind is Kind.ID and literal.domain == "mail" and not facts.holds(literal):
            short = key(literal.raw.partition("@")[0])
            own = any(
                f" {short} " in f" {text} " and "@" not in str(facts.cells.get(column)) for column, text in facts.texts
            )
            return own and bool(self.evidence.holders(literal))
        if literal.kind is Kind.NUMBER and not facts.holds(literal):
            thing = sentence.counted(literal)
            columns = facts.numbers.get(literal.number, ()) if thing and literal.unit == 1.0 else ()
            return any(column.startswith("len:") and column_thing(column) == thing for column in columns)
        return facts.holds(literal)

    def _right_thing(self, literal: Literal, facts: Facts) -> bool:
        """`3 incidents` is not the 3 of `alert_count`; the 124 of `in incident 124 her account` counts nothing."""
        if literal.kind is not Kind.NUMBER or literal.unit != 1.0 or literal in self.sentence.thing_numbers:
            return True
        thing = self.sentence.counted(literal)
        if self.sentence.kind is not UnitKind.ROW and self._is_of_other_column(literal, facts, thing):
            return False
        if thing in ("", "other"):
            return True
        told = [column_thing(column) for column in facts.numbers.get(literal.number, ())]
        return not told or any(each in ("", thing) for each in told)

    def _is_of_other_column(self, literal: Literal, facts: Facts, thing: str) -> bool:
        """`three logons` is no `LogonType` 3, and `2 alerts` not the 2 of a column `low` that nobody names."""
        words = [column_words(column) for column in facts.numbers.get(literal.number, ())]
        if not words or facts.row is None:
            return False
        if literal.raw.isalpha() and all(each[-1:] and each[-1] in _CODES for each in words):
            return True
        states = [each[0] for each in words if len(each) == 1 and each[0] in _STATES]
        said = {fold(str(each.value)) for each in self.sentence.of_kind(*STATES)} | self.sentence.bag
        total = any(column_words(column)[-1:] == ["count"] for column in facts.amounts)
        return bool(thing or literal.raw.isalpha()) and total and len(states) == len(words) and said.isdisjoint(states)

    def _time_column(self, literal: Literal) -> str:
        """The column that the verb before a moment speaks of (`created`); empty for none."""
        start = self.sentence.clause_start(literal.start)
        columns = self.sentence.lexicon.columns
        said = [word.text for word in self.sentence.words_before(literal.start, 12) if word.start >= start]
        return next((name for word in reversed(said) for name in _TIMES_OF_VERBS if word in columns[name]), "")

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
        sentence = self.sentence
        near_by = [each for each in sentence.of_kind(Kind.NUMBER, Kind.PERCENT) if each not in sentence.thing_numbers]
        start = sentence.clause_start(literal.start)
        said = [each for each in near_by if sentence.clause_start(each.start) == start] or near_by
        words = {2: ("pairwise",), 0: ("negative",), 1: ("one", "exclusive")}.get(int(value), ())
        return any(each.kind is Kind.PERCENT or each.value == value for each in said) or (
            value == int(value) and bool(sentence.has(*words))
        )

    def _in_whole(self, literal: Literal) -> list[Facts]:
        """Rows of a whole result; a number only beside a label of the same row, unless it is a name itself."""
        if literal.kind is Kind.PERCENT or not self.wholes:
            return []
        alias = self.evidence.names.aliases.get(str(literal.value))
        for meant in (literal, *((replace(literal, value=alias),) if alias is not None else ())):
            found = [facts for whole in self.wholes for facts in self.evidence.holding(meant, whole)]
            if found:
                break
        if literal.kind is not Kind.NUMBER:
            return found if self._is_plain(literal) else [facts for facts in found if self.held(literal, facts)]
        if literal in self.sentence.thing_numbers or literal.number >= LARGE:
            return found
        labels = self.sentence.of_kind(*STRONG_NAMES, Kind.STATE, Kind.MOMENT)
        return [
            facts
            for facts in found
            if facts.kind in ("row", "incident", "computed")
            and self._right_thing(literal, facts)
            and any(facts.holds(label) for label in labels)
        ]

    # -- numbers of a whole result, and what follows from cited cells by itself ---------------------------------------
    def _in_totals(self, literal: Literal) -> bool:
        return any(self.is_total(literal, whole) for whole in self.wholes)

    def is_total(self, literal: Literal, whole: Result) -> bool:
        """Whether a literal is a total of a whole result, or a label of one."""
        facts = self.evidence.whole(whole)
        match literal.kind:
            case Kind.NUMBER:
                return facts.holds(literal) if literal.unit != 1.0 else self._is_counted_total(literal, facts)
            case Kind.STATE:
                totals = {total.value for total in whole.totals if total.path[-1] == literal.value}
                numbers = {each.value for each in self.sentence.of_kind(Kind.NUMBER)}
                return bool(
                    (not whole.rows and f" {fold(str(literal.value))} " in facts.words)
                    or any(total.value == literal.value for total in whole.totals)
                    or totals & numbers
                    or (totals and self.sentence.of_kind(Kind.PERCENT))
                )
            case Kind.SPOKEN | Kind.PERCENT:
                return False
        return facts.holds(literal)

    def _is_counted_total(self, literal: Literal, facts: Facts) -> bool:
        labels = facts.numbers.get(literal.number)
        if not labels:
            return False
        clause = [each for each in self.sentence.clause_labels(literal.start) if each.kind in STATES]
        narrowed = {each.value for each in clause if each.value != "ever_closed"}
        if "" not in labels and len(narrowed) > 1 and facts.result.complete and facts.result.rows:
            return False  # two states at once: the rows are counted instead
        rows = self.universe([facts.result]) if set(labels) - {"rows"} == {""} else []
        if rows and (self._is_narrowed(literal, rows) or self._by_word(literal, rows, some=True)):
            return False
        said = {str(each.value) for each in clause or self.sentence.of_kind(*STATES)}
        said |= {"Closed"} if "ever_closed" in said else set()
        said |= {"rows"} if self.sentence.has("head") or self._is_of_a_part(literal) else set()
        states = {fold(str(each.value)) for each in clause}  # `Azure Active Directory` is a name with a state's word
        return "" in labels or any(
            label in said or (states.issubset(tokens(label)) and self._names_label(label, facts, literal))
            for label in labels
        )

    def _names_label(self, label: str, facts: Facts, literal: Literal) -> bool:
        """Whether the sentence has most of the words of a total's label, or one that no other label has: `294 process
        rows` of DeviceProcessEvents beside DeviceNetworkEvents. The rows of a table ("74 firewall rows") are no
        other table's unless the sentence has such a word of another table."""
        words = [word for word in tokens(label) if word not in plain_words()]
        if words and 2 * sum(f" {word} " in self.sentence.key for word in words) > len(words):
            return True
        parts = {fold(part) for part in _PART_OF_NAME.findall(label)}
        if len(parts) < 2:
            return False
        others = [name for names in facts.numbers.values() for name in names if name != label]
        theirs = {fold(part) for name in others for part in _PART_OF_NAME.findall(name)}
        said = {part for part in parts | theirs if f" {part} " in self.sentence.key}
        of_rows = literal.number >= MANY_ROWS and self.sentence.counted(literal) in ("", "other")
        return bool(said & parts - theirs) or (of_rows and not said & theirs - parts)

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
        labels = self.clause_labels(literal) or self.sentence.labels[:1]
        told = [
            each
            for each in labels[:MOST_LABELS]
            if any(each is not other and each.domain == other.domain and each.kind is Kind.STATE for other in labels)
            or len(self.among(rows, [each], denied=True)) < len(rows)
        ]
        kept = self.among(rows, told) if told else []
        moments = [each for each in told if each.kind is Kind.MOMENT]
        zone = self.evidence.zone
        happened = [
            facts
            for facts in kept
            if facts.happened and all(each.value.fits(facts.happened[1], zone) for each in moments)
        ]
        return bool(told) and literal.value in (len(kept), len(happened) if moments else -1)

    def _derived(self, literal: Literal) -> bool:
        match literal.kind:
            case Kind.NUMBER:
                return self._derived_number(literal) if literal.unit == 1.0 else self._is_calculated(literal)
            case Kind.PERCENT:
                return self._derived_share(literal)
            case Kind.DURATION:
                return self._derived_duration(literal)
            case Kind.MOMENT:
                lengths = self.sentence.of_kind(Kind.DURATION)
                return self._is_bound_of_all() or any(self._ends_length(literal, each) for each in lengths)
        return False

    def _ends_length(self, moment: Literal, length: Literal) -> bool:
        """`72 hours from it end on 4 Dec at 01:56`: a time lies a length before or behind one of a cited row."""
        step = timedelta(seconds=min(length.number * length.unit, _LONGEST_STEP))
        ends = (at + way for at in self._times(self.plain) for way in (step, -step))
        return moment.value.hour is not None and any(moment.value.fits(at, self.evidence.zone) for at in ends)

    def _is_bound_of_all(self) -> bool:
        """`between 07:00 and 09:30`: all rows that it speaks of lie between the two times."""
        bounds = [each.value for each in self.sentence.of_kind(Kind.MOMENT)]
        if len(bounds) != 2 or not self.sentence.has("between"):
            return False
        rows = self.plain or self.universe()
        return bool(rows) and all(within(facts, *bounds) for facts in rows)

    def _derived_number(self, literal: Literal) -> bool:
        if literal.value in self._counts_of_cited(literal) | self._counts_of_window():
            return True
        unit = next((each.unit for each in self.sentence.of_kind(Kind.DURATION)), 0.0)
        if (
            unit
            and not self.sentence.counted(literal)
            and self._derived_duration(replace(literal, kind=Kind.DURATION, unit=unit))
        ):
            return True  # `five hours after 126 and five before 128`
        if literal.value == 0 and self._is_of_no_group(literal):
            return True
        if any(self.sentence.says(word, "records") for word in self.sentence.words_after(literal.start, 3)) and any(
            literal.value == facts.result.coverage.get("rows_returned") for facts in self.plain
        ):
            return True  # `in 14 process rows one carries a hash`
        if self._is_whole_of_parts(literal) or self._is_one_of_its_kind(literal) or self._is_calculated(literal):
            return True
        return any(
            (
                literal.value == len(rows)
                and not self._is_narrowed(literal, rows)
                and not self._by_word(literal, rows, some=True)
            )
            or self.counts_rows(literal, rows)
            or literal.value in self._by_word(literal, rows)
            for rows in self._each_universe()
        )

    def _is_of_no_group(self, literal: Literal) -> bool:
        """`High | 0`: a grouping of all rows that is cited, or that the lines of the table before cite, has no group of
        that name."""
        labels = [each for each in self.clause_labels(literal) if each.kind in STATES | STRONG_NAMES]
        results = {facts.result.ref: facts.result for facts in self.computed}
        if self.sentence.kind is UnitKind.ROW:
            near_by = (self.evidence.result(ref.partition(".")[0]) for ref in self.near)
            results |= {each.ref: each for each in near_by if each is not None}
            labels = labels or [each for each in self.sentence.labels if self.sentence.is_label(each)]
        groups = [each for each in results.values() if each.arguments.get("op") == "group" and each.complete]
        return bool(labels) and any(
            not any(facts.holds(each) for facts in self.evidence.all_rows(group) for each in labels) for group in groups
        )

    def _is_calculated(self, literal: Literal) -> bool:
        """The sum of a column of the cited rows; the difference or, of sizes, the ratio of two other numbers of the
        sentence that stand in what is cited."""
        value = literal.number * literal.unit
        rows = self.rows if 1 < len(self.rows) <= MOST_ROWS_PAIRED and not self.wholes else []
        columns = frozenset.intersection(*(frozenset(facts.amounts) for facts in rows)) if rows else frozenset()
        if any(sum(facts.amounts[column] for facts in rows) == value for column in columns):
            return True
        told = [
            each
            for each in self.sentence.of_kind(Kind.NUMBER)
            if each is not literal and each not in self.sentence.thing_numbers
        ]
        there = [
            each.number * each.unit
            for each in told[:MOST_LABELS]
            if any(self._in_row(each, facts) for facts in self.rows) or self._in_totals(each)
        ]
        slack = 0.5 * literal.unit if literal.unit != 1.0 else 0.05
        if literal.unit != 1.0:
            return any(b and abs(value - a / b) <= slack for a, b in permutations(there, 2))
        beside = (*self.sentence.words_before(literal.start, 2), *self.sentence.words_after(literal.start, 3))
        compares = any(self.sentence.says(each, "more", "comparative", "rises", "falls", "under") for each in beside)
        signed = self.sentence.text[: literal.start].endswith(("+", "-", "−"))
        part = bool(self.sentence.has("part_of"))  # `seven of the 13 are closed, six open`
        for whole in self.wholes[:1] if part else ():  # `of 28 incidents 18 are closed`, where 10 are open
            sums = (total.value for total in whole.totals[:MOST_LABELS] if total.path[0] == "totals")
            there += [value for value in sums if isinstance(value, int | float)]
        return (compares or signed or part) and any(abs(value - (a - b)) <= slack for a, b in permutations(there, 2))

    def _by_word(self, literal: Literal, rows: Sequence[Facts], *, some: bool = False) -> set[int]:
        """`4 of them are sign-ins`: how many rows of a complete result have the word behind a number in a cell; with
        `some` only what is neither none nor all of them."""
        after = self.sentence.words_after(literal.start, 1 if some else _WORDS_OF_A_COUNT)
        first = {tokens(word.text)[0] for word in after if word.text not in plain_words()}
        stems = {word[:STEM] for word in first if len(word) >= STEM - 1}
        if not stems or not self.wholes or self.sentence.counted(literal) not in ("", "other"):
            return set()
        counts = {sum(facts.says(stem, quoted=False) for facts in rows) for stem in stems}
        return {count for count in counts if 0 < count < len(rows)} if some else counts

    def _counts_of_cited(self, literal: Literal) -> set[int]:
        """How many rows are cited, of the kind that is counted, and how many things of that kind they name."""
        made = [facts for facts in self.computed if NONE not in facts.cells.values()]
        counted = self.sentence.counted
        thing = counted(literal) or next(filter(None, map(counted, self.sentence.of_kind(Kind.NUMBER))), "")
        found = {len(self.plain), len(made), len(self.wholes), sum(facts.kind == thing for facts in self.plain)}
        entities = [each for each in self.wholes if thing in each.kinds and thing not in ("incident", "alert")]
        found |= {len(self.evidence.rows_of(whole, thing)) for whole in entities}
        columns = {column for facts in self.plain for column in facts.cells if thing and column_thing(column) == thing}
        found |= {len({str(facts.cells.get(column)) for facts in self.plain}) for column in columns}
        return {count for count in found if count >= 2}

    @cached_property
    def tells_empty(self) -> bool:
        """`nobody owns it`, `it has no comments`: each cited row has no value in a column that the sentence denies."""
        sentence = self.sentence
        if not self.plain or not sentence.has("negative"):
            return False
        things = {sentence.lexicon.things.get(word, "") for word in sentence.bag} - {"", "other"}
        return any(
            sentence.bag.issuperset(column_words(column))
            or sentence.lexicon.columns.get(column, frozenset()) & sentence.bag
            or column_thing(column) in things
            for column in frozenset.intersection(*(facts.empty for facts in self.plain))
        )

    def _is_narrowed(self, literal: Literal, rows: Sequence[Facts]) -> bool:
        """So many in all, and the clause chooses some of them: then these are counted."""
        chosen = any(
            (0 if each.kind is Kind.SPOKEN else -1) < len(self.among(rows, [each])) < len(rows)
            for each in self.clause_labels(literal)
            if each not in self.sentence.thing_numbers
        )
        things = bool(rows) and all(each.is_thing for each in rows)
        return things and chosen and not self._is_of_a_part(literal)

    def _is_of_a_part(self, literal: Literal) -> bool:
        """`three of the eight`."""
        others = self.sentence.of_kind(Kind.NUMBER, Kind.PERCENT)
        return any(each is not literal for each in others) and bool(self.sentence.has("part_of"))

    def _is_whole_of_parts(self, literal: Literal) -> bool:
        """The eight of `three of the eight` may be the total of the result that the cited rows come from."""
        parents = (self.evidence.whole(facts.result) for facts in self.plain)
        return self._is_of_a_part(literal) and any("" in each.numbers.get(literal.number, ()) for each in parents)

    def _is_one_of_its_kind(self, literal: Literal) -> bool:
        """`(in 1 alert)`, `Accounts (1)`: of all rows of its kind, the cited one alone holds each name."""
        if literal.value != 1 or len(self.plain) != 1:
            return False
        parent, kind = self.plain[0].result, self.plain[0].kind
        before = [self.sentence.lexicon.things.get(word.text) for word in self.sentence.words_before(literal.start, 1)]
        if (self.sentence.counted(literal) or "".join(map(str, before))) != kind or not parent.has_all_of(kind):
            return False
        return self.among(self.evidence.rows_of(parent, kind), self.sentence.anchors) == self.plain

    def _is_factor(self, literal: Literal) -> bool:
        """`twice as many`: a word that compares and counts nothing."""
        following = self.sentence.words_after(literal.start, 1)
        times = self.sentence.lexicon.has("times", fold(literal.raw))
        return times and any(self.sentence.says(word, "as") for word in following)

    def _derived_share(self, literal: Literal) -> bool:
        """A part of a whole: counted rows, totals, and numbers that the sentence gives itself."""

        def is_share(parts: Iterable[float], wholes: Iterable[float]) -> bool:
            return any(near(literal, 100 * part / of, slack=0.6) for part in parts for of in wholes if 0 < part < of)

        stated = {each.number for each in self.sentence.of_kind(Kind.NUMBER)}
        states = self.sentence.of_kind(*STATES)
        named = {fold(str(each.value)) for each in states}
        universes = self._each_universe() if self.wholes else []
        parts = stated | {
            value for facts in self.rows for each in states if (value := facts.labelled(each)) is not None
        }
        whole = stated | {float(len(rows)) for rows in universes}
        sums = [total for facts in self.plain[:1] for total in facts.result.totals if total.path[0] == "totals"]
        for total in sums:  # a row's share of the sum of its column
            mine = self.plain[0].amounts.get(total.path[-1])
            if mine is not None and is_share([float(mine)], [float(total.value)]):
                return True
        for rows in universes:  # how many rows hold each label of the sentence, and each two of them
            there = {facts.ref for facts in rows}
            held = [self.evidence.holders(label) & there for label in self.sentence.labels[:MOST_LABELS]]
            parts |= {float(len(refs)) for refs in held} | {float(len(a & b)) for a, b in combinations(held, 2)}
        for facts in map(self.evidence.whole, self.wholes):
            labelled = {number for number, labels in facts.numbers.items() if not named.isdisjoint(map(fold, labels))}
            grand = {number for number, labels in facts.numbers.items() if "" in labels}
            whole |= labelled | grand
            if is_share(labelled, (stated & grand) or grand | stated):
                return True
        return is_share(parts, (stated & whole) or whole)

    def _derived_duration(self, literal: Literal) -> bool:
        def fits(a: datetime, b: datetime) -> bool:
            return near(literal, abs((b - a).total_seconds()) / literal.unit)

        days = literal.unit >= _LONGEST_AROUND  # `three days later` may mean the dates

        def fits_rows(a: datetime, b: datetime) -> bool:
            return fits(a, b) or (days and abs((b.date() - a.date()).days) * 86_400 == literal.number * literal.unit)

        if any(self._ends_length(each, literal) for each in self.sentence.of_kind(Kind.MOMENT)):
            return True
        rows = (self.evidence.facts(ref) for ref in dict.fromkeys(self.near) if ref not in self.cited)
        near_by = [facts for facts in rows if facts is not None and facts.row is not None][:_FEW_NEAR]
        mine = self._times(self.plain)
        if any(fits_rows(a, b) for a, b in combinations(mine, 2)):
            return True
        if any(fits_rows(a, b) for a in mine for b in self._times(near_by)):
            return True
        if self.plain:
            return False
        happened = sorted(facts.happened[1] for facts in self.universe()[:MOST_ROWS_PAIRED] if facts.happened)
        gaps = sorted(pairwise(happened), key=lambda pair: pair[1] - pair[0])
        return bool(gaps) and (fits(happened[0], happened[-1]) or fits(*gaps[len(gaps) // 2]))

    def _times(self, rows: Sequence[Facts]) -> list[datetime]:
        """All times of a few rows, and up to now where one is of a thing; of many when they happened, the first and the
        last."""
        if len(rows) > _FEW_ROWS:
            ends = sorted(facts.happened[1] for facts in rows if facts.happened)
            return list(dict.fromkeys(ends)) if len(ends) <= MOST_ROWS_BETWEEN else ends[:: len(ends) - 1]
        times = [at for facts in rows for _, at in facts.moments]
        created = len(rows) == 1 and any(name == "created_time" for name, _ in rows[0].moments)
        times += [self.evidence.now] if created and self.evidence.now is not None else []
        return list(dict.fromkeys(times))


Rule = Callable[[Comparison], Verdict | None]
"""What speaks of a comparison, or is silent."""


def compare(comparison: Comparison, rules: Sequence[Rule]) -> Verdict:
    """The verdict of the first rule that speaks; of what is not found with the reasons of all others that say so, for
    one repair is to mend all of it."""
    comparison.find()
    said = (replace(each, rule=rule.__name__) for rule in rules if (each := rule(comparison)) is not None)
    first = next(said, None)
    if first is None or first.state is not SentenceState.NOT_FOUND:
        return first or comparison.verdict(SentenceState.VALUES_FOUND)
    more = (each.reason for each in said if each.state is SentenceState.NOT_FOUND)
    return replace(first, reason="; ".join(dict.fromkeys((first.reason, *more))))


def _rule(state: SentenceState, reason: Callable[[Comparison], str]) -> Rule:
    """A rule out of a function that gives the reason for a state, or nothing."""

    @wraps(reason)
    def rule(of: Comparison) -> Verdict | None:
        told = reason(of)
        return of.verdict(state, told) if told else None

    return rule


not_found = partial(_rule, SentenceState.NOT_FOUND)
source_given = partial(_rule, SentenceState.SOURCE_GIVEN)


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


def is_later(at: datetime, moment: Moment) -> bool:
    """Whether a time lies behind a day, or behind a minute of a day, that a sentence names."""
    local = at + timedelta(minutes=moment.offset or 0)
    parts = (
        (moment.month, local.month),
        (moment.day, local.day),
        (moment.hour, local.hour),
        (moment.minute, local.minute),
    )
    told = [(wanted, got) for wanted, got in parts if wanted is not None]
    return tuple(got for _, got in told) > tuple(wanted for wanted, _ in told)


def column_thing(column: str) -> str:
    """The class of the things that a column counts."""
    things = everything().things
    return next((things[word] for word in column_words(column.removeprefix("len:")) if word in things), "")
