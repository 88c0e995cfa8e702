"""What the results of a conversation hold, read once and ready to be compared with the literals of a sentence.

`Evidence` keeps the facts of all results, with an index from words, numbers and times to rows, so that a sentence
without a citation can be given one. It judges nothing: that is `check`'s.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from typing import Any

from sentinel_rag.agent.answers.facts import Facts, column_words, total_label
from sentinel_rag.agent.answers.markup import expanded_refs
from sentinel_rag.agent.answers.results import Cell, Result, Results, Row
from sentinel_rag.language.lexicon import CANONICAL, everything, fold, plain_words, words_in
from sentinel_rag.language.literals import ELLIPSIS, Kind, Literal, Moment, Names, Word, key, row_time, scan
from sentinel_rag.language.text import toml_beside

ADDRESSES = frozenset({"url", "mail", "host", "ip"})
"""Forms of ids that somebody could be led to."""
PARTS_OF_A_DOSSIER = frozenset({"alert", "comment", "event", "bookmark", "incident"})
RUN, COPIED = 4, 6
"""Words of a quoted cell in a row that are looked for, and that make a sentence theirs; a short one fewer of them."""
_LONGEST_SCANNED = 4_000
_LONGEST_NAME = 160
_LONGEST_QUOTED = 20_000
_SPAN = re.compile(r"last_(\d{1,6})([hd])")
_HAS_DIGIT = re.compile(r"\d")
_PORT = re.compile(r"(?<=[\w\]]:)\d{2,5}(?=[/?\s'\"]|$)")
"""`8080` of `http://203.0.113.66:8080/collect`."""
_PLAIN_VALUES = frozenset(
    words_in("success failure true false none info row account host ip user url file process mailbox")
)
"""Values of cells that name nothing."""
_NO_NAMES = frozenset(
    words_in("severity status classification kind collection message outcome clientappused description parameters")
)
"""Columns that hold no names."""
_FREE_TEXT = frozenset({"query", "kql", "text", "words", "question", "comment"})
"""Arguments of a call that choose no rows by their values."""
_MOST_WORDS_ASKED = 8
_MEMO = 20_000


@dataclass
class _Read:
    """A result as it was read: its facts and its index."""

    result: Result
    whole: Facts
    rows: tuple[Facts, ...] = ()
    holding: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Refs of rows by word, by `#number`, by `@month-day` and by `:hour-minute`."""
    numbers: list[tuple[float, str]] = field(default_factory=list)
    """Numbers with the ref of their row, in order."""
    by_kind: dict[str, list[Facts]] = field(default_factory=dict)


class ReadResults:
    """All results of a conversation, read.

    `zone` is the reader's: times without a zone may be in it. `said` are the person's own words, which an answer may
    repeat. `names` are more names of the workspace. A result that is read already is not read again; `update` reads
    what was added since, and is called by the check itself.
    """

    def __init__(
        self, results: Results, *, zone: tzinfo = UTC, said: Sequence[str] = (), names: Iterable[str] = ()
    ) -> None:
        self.results = results
        self.zone = zone
        self.names = Names()
        self.tables: set[str] = set()
        """Keys of the names of log tables."""
        self._name_tables(_TRADE["logs"])
        for name in names:
            self.names.add(name)
        self.now: datetime | None = None
        self._read: dict[str, _Read] = {}
        self._facts: dict[str, Facts] = {}
        self._runs: dict[str, str] = {}
        self._open_words: set[str] = set()
        self._quoted_addresses: dict[str, str] = {}
        self._demands: dict[frozenset[str], Facts] = {}
        self._memo: dict[tuple[object, ...], frozenset[str]] = {}
        self._said = " ".join(("", *(key(text) for text in said), ""))
        self.update()

    def say(self, text: str) -> None:
        """Take up more of what the person said."""
        self._said += f"| {key(text)} "

    def was_said(self, literal: Literal) -> bool:
        """Whether the person used the very words."""
        return f" {key(literal.raw)} " in self._said

    def update(self) -> None:
        """Read results that are new, and forget those that are gone."""
        current = {result.ref: result for result in self.results}
        gone = [ref for ref, read in self._read.items() if current.get(ref) is not read.result]
        fresh = [result for ref, result in current.items() if ref not in self._read or ref in gone]
        if not gone and not fresh:
            return
        for ref in gone:
            read = self._read.pop(ref)
            for facts in (*read.rows, read.whole):
                self._facts.pop(facts.ref, None)
        self._memo = {}
        for result in fresh:
            self._add(result)

    # -- looking up -----------------------------------------------------------------------------------------------
    def facts(self, ref: str) -> Facts | None:
        """What `c1.3` or `c1` holds."""
        return self._facts.get(ref)

    def rows_at(self, ref: str) -> Sequence[Facts]:
        """The row `c1.3`, or the rows of `c1`."""
        facts = self._facts.get(ref)
        return () if facts is None else (facts,) if facts.row is not None else self.rows_of(facts.result)

    def whole(self, result: Result) -> Facts:
        """What a result holds as a whole."""
        return self._read[result.ref].whole

    def heads(self, result: Result, depth: int = 3) -> Iterator[Facts]:
        """A result as a whole, and those that it was computed from."""
        yield self._read[result.ref].whole
        for name in dict.fromkeys(ref.partition(".")[0] for ref in result.operands) if depth else ():
            if (source := self.result(name)) is not None:
                yield from self.heads(source, depth - 1)

    def heads_of(self, refs: Iterable[str]) -> frozenset[str]:
        """The incidents whose dossiers hold some rows."""
        results = (self.result(ref.partition(".")[0]) for ref in refs)
        dossiers = (result for result in results if result is not None and len(result.kinds) > 1)
        return frozenset(row.ref for result in dossiers for row in result.rows_of() if row.kind == "incident")

    def dossier_of(self, rows: Iterable[Facts]) -> frozenset[str]:
        """Alerts and entities of the incidents among some rows."""
        numbers = {number for facts in rows if facts.kind == "incident" for number in facts.named_numbers}
        found = (ref for read in self._read.values() for each in numbers for ref in read.holding.get(f"#{each:g}", ()))
        return frozenset(
            ref
            for ref in found
            if self._facts[ref].cells.get("incident_number") in numbers and self._facts[ref].kind != "incident"
        )

    def rows_of(self, result: Result, kind: str = "") -> list[Facts]:
        """The rows of a result that a claim about all of it is about."""
        read = self._read[result.ref]
        if kind not in read.by_kind:
            read.by_kind[kind] = [self._facts[row.ref] for row in result.rows_of(kind)]
        return read.by_kind[kind]

    def all_rows(self, result: Result) -> tuple[Facts, ...]:
        """All rows of a result, parts of a dossier too."""
        return self._read[result.ref].rows

    def is_cell(self, literal: Literal) -> bool:
        """Whether a row has the literal as a whole cell."""
        found = (
            self._facts[ref] for read in self._read.values() for ref in read.holding.get(str(literal.value), ())[:1]
        )
        return any(text == literal.value for facts in found for _, text in facts.texts)

    def is_now(self, moment: Moment, ago: Sequence[Literal]) -> bool:
        """Whether a moment is the one in which was read, or lies a length of time before it: the clock says so."""
        if self.now is None or moment.hour is None:
            return False
        ends = [self.now, *(self.now - timedelta(seconds=each.number * each.unit) for each in ago)]
        return any(moment.fits(end + timedelta(minutes=shift), self.zone) for end in ends for shift in (-1, 0, 1))

    def result(self, ref: str) -> Result | None:
        """The result with this id."""
        read = self._read.get(ref)
        return None if read is None else read.result

    def cell_text(self, ref: str) -> str | None:
        """The text of the cell `c1.3.severity` on one line; words of others in quotation marks."""
        row_ref, _, column = ref.rpartition(".")
        facts = self._facts.get(row_ref)
        if facts is None or facts.row is None or column not in facts.row.cells:
            return None
        text = " ".join(_shown(facts.row.cells[column]).split())
        return f"“{text}”" if column in facts.row.quoted else text

    def cell_says(self, ref: str, shown: str) -> bool:
        """Whether a text stands for what the cell `c1.3.created_time` holds: its words, or its value written anew."""
        right = self.cell_text(ref)
        facts = self._facts.get(ref.rpartition(".")[0])
        if right is None or facts is None:
            return False
        if f" {key(shown)} " in f" {key(right)} ":
            return True
        column = ref.rpartition(".")[2]
        alone = Facts(facts.ref, None, facts.result, self.zone, words=f" {key(right)} ")
        alone.numbers = {number: {column} for number, columns in facts.numbers.items() if column in columns}
        alone.moments = [(name, at) for name, at in facts.moments if name == column]
        alone.durations = [(name, seconds) for name, seconds in facts.durations if name == column]
        literals = scan(shown, self.names).literals
        return bool(literals) and all(alone.holds(literal) for literal in literals)

    def holders(self, literal: Literal) -> frozenset[str]:
        """Refs of the rows that hold the literal."""
        name = (literal.kind, literal.value, literal.bound, literal.unit, literal.domain)
        return self._remembered(
            name, lambda: (ref for read in self._read.values() for ref in self._candidates(read, literal))
        )

    def _remembered(self, name: tuple[object, ...], find: Callable[[], Iterable[str]]) -> frozenset[str]:
        """The refs that were found under this name, or are found now."""
        held = self._memo.get(name)
        if held is None:
            held = frozenset(find())
            if len(self._memo) < _MEMO:
                self._memo[name] = held
        return held

    def holding(self, literal: Literal, result: Result) -> list[Facts]:
        """The rows of one result that hold the literal."""
        read = self._read[result.ref]
        if len(read.rows) <= 3:
            return [facts for facts in read.rows if facts.holds(literal)]
        held = self.holders(literal)
        if len(held) * 4 < len(read.rows):
            inside = f"{result.ref}."
            return [self._facts[ref] for ref in sorted(held, key=_row_order) if ref.startswith(inside)]
        return [facts for facts in read.rows if facts.ref in held]

    def _candidates(self, read: _Read, literal: Literal) -> Iterable[str]:
        match literal.kind:
            case Kind.ID | Kind.NAME | Kind.TEXT:
                words = str(literal.value).replace(ELLIPSIS, "").split()
                rarest = min((read.holding.get(word, ()) for word in words), key=len, default=())
                found: Iterable[str] = rarest
            case Kind.NUMBER:
                found = dict.fromkeys(self._numbered(read, literal))
            case Kind.MOMENT if literal.value.month and literal.value.day:
                found = _around(read, literal.value)
            case Kind.MOMENT if literal.value.hour is not None and literal.value.offset is None:
                found = dict.fromkeys(
                    ref
                    for shift in (0, 1)
                    for ref in read.holding.get(
                        _clock(literal.value.hour * 60 + (literal.value.minute or 0) - shift), ()
                    )
                )
            case _:
                found = (facts.ref for facts in read.rows)
        return [ref for ref in found if self._facts[ref].holds(literal)]

    @staticmethod
    def _numbered(read: _Read, literal: Literal) -> Iterator[str]:
        value, unit = literal.number * literal.unit, literal.unit
        low = high = value
        if literal.bound.startswith(">"):
            high = value * 2 + 1e-9
        elif literal.bound == "<":
            low = value * 0.5
        elif literal.bound == "~":
            low, high = value - 0.16 * value - 0.05 * unit, value + 0.16 * value + 0.05 * unit
        elif unit != 1.0:
            low, high = low - 0.06 * unit, high + 0.06 * unit
            yield from (ref for _, ref in _between(read.numbers, literal.number, literal.number))
        elif value % 1:
            low, high = value - 0.5, value + 0.5
        yield from (ref for _, ref in _between(read.numbers, low, high))
        if literal.other_reading is not None:
            yield from ReadResults._numbered(read, literal.other_reading)

    def says(self, result: Result, start: str, *, quoted: bool = True) -> bool:
        """Whether some row of a result has a word that begins so."""
        rows = self._read[result.ref].rows
        name = ("says", result.ref, start, quoted)
        return bool(self._remembered(name, lambda: (each.ref for each in rows if each.says(start, quoted=quoted))))

    def is_named_number(self, literal: Literal) -> bool:
        """Whether the number names a thing of some row, such as incident 124."""
        if literal.kind is not Kind.NUMBER or literal.unit != 1.0 or not literal.raw.isdigit():
            return False
        value, index = literal.number, f"#{literal.number:g}"
        there = (ref for read in self._read.values() for ref in read.holding.get(index, ()))
        named = self._remembered(
            ("named", value), lambda: (ref for ref in there if value in self._facts[ref].named_numbers)
        )
        return bool(named)

    # -- words of others --------------------------------------------------------------------------------------------
    def words_of_others(self, runs: Iterable[str], words: int) -> str:
        """Where a cell that an outsider wrote holds so many words in a row, or most of a sentence's `words`.

        `runs` are the sentence's runs of `RUN` words, one for each place. Empty if nowhere.
        """
        least, together, telling = min(COPIED, max(RUN, 0.6 * words)), 0, False
        for run in runs:
            together = together + 1 if run in self._runs else 0
            telling = bool(together) and (telling or sum(word not in plain_words() for word in run.split()) >= 2)
            if telling and together + RUN - 1 >= least:
                return self._runs[run]
        return ""

    def demand_of_others(self, asked: frozenset[str]) -> str:
        """Where an outsider's text asks for the same of the same thing; empty if nowhere."""
        numbers = {each for each in asked if each.isdigit()}
        verdicts = asked & _CLASSIFICATIONS
        for theirs, facts in self._demands.items() if asked & _DEMANDED else ():
            both = theirs & asked
            if verdicts and theirs & _CLASSIFICATIONS and not verdicts & theirs:
                continue  # it comes to another verdict than theirs
            about = {f"{number:g}" for number in facts.named_numbers} | {each for each in theirs if each.isdigit()}
            if both & _DEMANDED and len(both | (about & numbers)) > 1 and not (numbers and about.isdisjoint(numbers)):
                return facts.ref
        return ""

    def address_of_others(self, literal: Literal) -> str:
        """Where an address stands, if only outsiders' cells hold it; empty otherwise."""
        where = self._quoted_addresses.get(str(literal.value), "")
        return "" if str(literal.value) in self._open_words else where

    # -- reading ----------------------------------------------------------------------------------------------------
    def _add(self, result: Result) -> None:
        read = _Read(result, self._whole(result))
        rows: list[Facts] = []
        heads: dict[str, Facts] = {}
        arguments = [key(text) for text in (*_asked(result), *_table_of(result))]
        self._name_tables(_flat(result.coverage.get("tables")))
        for row in result.rows:
            facts = self.facts_of(row, result)
            rows.append(facts)
            if row.kind == "incident":
                heads[row.pointer] = facts
            elif row.kind not in PARTS_OF_A_DOSSIER and "/entities/" in row.pointer:
                head = heads.get(row.pointer.partition("/entities/")[0])
                if head is not None:
                    _take_up(head, facts)
            self._facts[facts.ref] = facts
        for facts in rows:
            facts.asked = " " + " | ".join(arguments) + " "
            facts.words = " " + " | ".join([*(text for _, text in facts.texts), *arguments]) + " "
        if result.computed:
            for computed in rows:
                self._take_operands(computed, result)
        for facts in rows:
            self._index(read, facts)
        read.rows = tuple(rows)
        read.numbers.sort()
        self._facts[result.ref] = read.whole
        self._read[result.ref] = read
        newest = result.read_at or row_time(str(result.coverage.get("table_newest")))
        if newest is not None:
            self.now = newest if self.now is None else max(self.now, newest)

    def _name_tables(self, tables: Iterable[str]) -> None:
        for table in tables:
            self.names.add(table)
            self.tables.add(key(table))

    def facts_of(self, row: Row, result: Result) -> Facts:
        """What a row holds."""
        facts = Facts(row.ref, row, result, self.zone)
        for column, value in row.cells.items():
            self._cell(facts, column, value)
        unit = everything().time_units.get("".join(column_words(str(row.cells.get("column", "")))[-1:]), 0)
        if result.computed and unit:
            facts.durations.extend(
                (name, each * unit) for name, each in row.cells.items() if isinstance(each, int | float)
            )
        account, display = row.cells.get("name"), row.cells.get("display_name")
        if isinstance(account, str) and isinstance(display, str) and "display_name" not in row.quoted:
            _take_account(self.names, f"{account} {display}")
        facts.named_numbers |= _incidents_asked(result)
        return facts

    def _cell(self, facts: Facts, column: str, value: Cell) -> None:
        quoted = facts.row is not None and column in facts.row.quoted
        if isinstance(value, tuple):
            facts.numbers[float(len(value))].add(f"len:{column}")
            kinds = Counter(str(item).partition(":")[0] for item in value if column == "entities")
            for kind, count in kinds.items():
                facts.numbers[float(count)].add(f"len:{kind}")
            for item in value:
                if isinstance(item, int | float) and not isinstance(item, bool) and "incident" in column:
                    facts.named_numbers.add(float(item))
                self._cell(facts, column, item)
            return
        if isinstance(value, bool):
            facts.texts.append((column, f"{key(column)} {str(value).lower()}"))
        elif isinstance(value, int | float):
            self._number_cell(facts, column, value)
            facts.texts.extend((column, each) for each in _means(column, value))
        else:
            self._text_cell(facts, column, value, quoted)

    @staticmethod
    def _number_cell(facts: Facts, column: str, value: int | float) -> None:
        number = float(value)
        facts.numbers[number].add(column)
        words = column_words(column)
        if "number" in words or "numbers" in words:
            facts.named_numbers.add(number)
        facts.texts.append((column, f"{value:g}" if number.is_integer() and abs(number) < 1e15 else key(str(value))))
        for unit, names in ((1, ("s", "seconds")), (60, ("minutes",)), (3600, ("hours",)), (86400, ("days",))):
            if words and words[-1] in names:
                facts.durations.append((column, abs(number) * unit))
        if "percent" in words:
            facts.percents.append((column, number))
            if number < 0:
                facts.percents.append((column, -number))

    def _text_cell(self, facts: Facts, column: str, text: str, quoted: bool) -> None:
        at = row_time(text)
        if at is not None:
            facts.moments.append((column, at))
        words = key(text)
        facts.texts.append((column, words))
        if quoted and not _is_title(text):
            facts.theirs.add(column)
            self._take_quoted(facts.ref, words)
        if at is None and (quoted or _HAS_DIGIT.search(text) or not _number_words().isdisjoint(words.split())):
            self._scan_cell(facts, column, text, quoted)
        facts.texts.extend((column, each) for each in _means(column, text))
        low = column.casefold()
        if text in CANONICAL.get(low, ()) or low == "owner":
            facts.states[low] = text
        if at is None:
            self._take_names(low, text, quoted)

    def _scan_cell(self, facts: Facts, column: str, text: str, quoted: bool) -> None:
        """Numbers and times inside a text, and addresses in one of an outsider."""
        read = scan(text[:_LONGEST_SCANNED])
        if len(self._demands) < _MOST_DEMANDS:
            plain = scan(text[:_LONGEST_SCANNED].translate(_NO_MARKS)) if '"' in text else read
            asked = demands(plain.lexicon.orders, plain.words, plain.literals)
            if asked & _DEMANDED and (quoted or asked >= _OF_NO_RECORD):
                self._demands.setdefault(asked, facts)
        for port in _PORT.findall(text[:_LONGEST_SCANNED]):
            facts.numbers[float(port)].add(column)
        for literal in read.literals:
            if quoted and literal.kind is Kind.ID and literal.domain in ADDRESSES:
                self._quoted_addresses.setdefault(str(literal.value), facts.ref)
            elif literal.kind is Kind.NUMBER:
                facts.numbers[literal.number * literal.unit].add(column)
                facts.numbers[literal.number].add(column)
            elif literal.kind is Kind.PERCENT:
                facts.percents.append((column, literal.number))
            elif literal.kind is Kind.DURATION:
                facts.durations.append((column, literal.number * literal.unit))
                facts.numbers[literal.number].add(column)
            elif literal.kind is Kind.MOMENT and (at := literal.value.begins) is not None:
                facts.moments.append((column, at))

    def _take_quoted(self, where: str, words: str) -> None:
        parts = words.split()[:_LONGEST_QUOTED]
        for at in range(len(parts) - RUN + 1):
            run = parts[at : at + RUN]
            if not plain_words().issuperset(run):
                self._runs.setdefault(" ".join(run), where)

    def _take_names(self, column: str, text: str, quoted: bool) -> None:
        if column in _NO_NAMES or len(text) > _LONGEST_NAME or any(text in values for values in CANONICAL.values()):
            return
        entity = re.match(r"[a-z]\w{0,30}:(?!//)(?=\S)", text)
        if entity is not None and column.endswith(("entities", "entity")):
            text = text[entity.end() :]
        if quoted and " " in text.strip():
            return
        _take_account(self.names, text)
        if key(text) in _PLAIN_VALUES:
            return
        if " " in text.strip() or not text[:1].islower() or any(mark in text for mark in "._-\\/@"):
            self.names.add(text)
        if (column == "owner" or entity is not None) and " " in text and len(text) < 60:
            for piece in text.split():
                if not piece[:1].islower() and len(piece) > 2:
                    self.names.add(piece)

    def _take_operands(self, facts: Facts, result: Result) -> None:
        """A computed row speaks of the things that it was computed from, and of what these were asked for."""
        for ref in result.operands if len(result.rows) == 1 else ():
            name, _, total = ref.partition(".")
            source = self.result(name)
            told = [total.rpartition(".")[2]] if total and not total[0].isdigit() else []
            told += _asked(source) if source is not None else []
            facts.words += "".join(f"| {key(text)} " for text in told)
        operands = [".".join(ref.split(".")[:2]) for told in result.operands for ref in expanded_refs(told)]
        named = [row for ref in operands if "." in ref and (row := self._facts.get(ref)) is not None]
        if named and len(result.rows) == 1:
            facts.numbers[float(len(named))].add("operands")
            for other in named[:20]:
                facts.words += other.words
                facts.named_numbers |= other.named_numbers
                facts.moments += [("operand", at) for _, at in other.moments]
                for number in other.named_numbers:
                    facts.numbers[number].add("number")
        cited = facts.cells.get("row")
        of = self._facts.get(cited) if isinstance(cited, str) else None
        if of is not None:
            facts.words += of.words
            facts.named_numbers |= of.named_numbers
            for number in of.named_numbers:
                facts.numbers[number].add("number")

    def _index(self, read: _Read, facts: Facts) -> None:
        for word in set(facts.words.split()):
            read.holding[word].append(facts.ref)
        row = facts.row
        if row is not None:
            for column, text in facts.texts:
                if column not in row.quoted:
                    self._open_words.update((text, text.partition(" ")[2]) if column.endswith("entities") else (text,))
        for number in facts.numbers:
            read.holding[f"#{number:g}"].append(facts.ref)
            read.numbers.append((number, facts.ref))
        for _, at in facts.moments:
            for local in {at, at.astimezone(self.zone)}:
                read.holding[f"@{local:%m-%d}"].append(facts.ref)
                read.holding[_clock(local.hour * 60 + local.minute)].append(facts.ref)

    def _whole(self, result: Result) -> Facts:
        facts = Facts(result.ref, None, result, self.zone)
        tables = _flat([result.coverage.get("tables"), result.coverage.get("workspace")])
        texts = [("", key(text)) for text in (*_asked(result), *result.notes, *tables, result.problem)]
        for total in result.totals:
            label = total_label(total.path)
            texts.extend((label, key(piece)) for piece in total.path)
            if isinstance(total.value, int | float):
                facts.numbers[float(total.value)].add(label)
                continue
            at = row_time(total.value)
            if at is not None:
                facts.moments.append((total.path[-1], at))
            texts.append((label, key(total.value)))
        for literal in (each for note in result.notes for each in scan(note[:_LONGEST_SCANNED]).literals):
            if literal.kind is Kind.NUMBER:
                facts.numbers[literal.number].add("")
        total_rows = result.coverage.get("rows_total")
        if isinstance(total_rows, int):
            facts.numbers[float(total_rows)].add("")
        for name in ("rows_returned", "table_rows"):
            if isinstance(shown := result.coverage.get(name), int):
                facts.numbers[float(shown)].add("rows")
        before = result.arguments.get("offset")
        if isinstance(before, int) and before:
            facts.numbers[float(before + 1)].add("rows shown from")  # the row of all rows that this page begins with
        for name in ("table_oldest", "table_newest"):
            if (at := row_time(str(result.coverage.get(name)))) is not None:
                facts.moments.append((name, at))
        sought = [result.arguments.get(name) for name in ("text", "parameters")]
        for text in _flat(result.arguments if result.problem else sought):  # `4698: nothing`
            if text.isdigit():
                facts.numbers[float(text)].add("")
        _take_window(facts, result)
        facts.asked = " " + " | ".join(map(key, _asked(result))) + " "
        facts.named_numbers = _incidents_asked(result)
        facts.texts = texts
        facts.words = " " + " | ".join(text for _, text in texts) + " "
        return facts


def _take_window(facts: Facts, result: Result) -> None:
    """The window of a result: its ends, the last moment in it, and its length."""
    window = result.coverage.get("window")
    sides = [row_time(str(window.get(side))) for side in ("start", "end")] if isinstance(window, Mapping) else []
    told = [*sides, *map(row_time, _asked(result))]
    facts.moments.extend(("window", at) for at in told if at is not None)
    if sides and sides[1] is not None:
        facts.moments.append(("window", sides[1] - timedelta(seconds=1)))  # `to 22 November` that ends before the 23rd
        facts.durations.extend(("window", (sides[1] - start).total_seconds()) for start in sides[:1] if start)
    for span in filter(None, map(_SPAN.fullmatch, _asked(result))):
        facts.durations.append(("window", int(span[1]) * (3600.0 if span[2] == "h" else 86400.0)))


def _take_account(names: Names, text: str) -> None:
    """`anna.smith@x.example Anna Smith`: the display name and the name before the @ mean the account."""
    account, _, display = text.partition(" ")
    local, at, _ = account.partition("@")
    if not at:
        return
    if display and display[:1].isalpha():
        names.add(display)
        names.aliases[key(display)] = key(account)
        names.short[key(account)] = key(local)
        for piece in display.split():
            if len(piece) > 2 and not piece[0].islower():
                names.aliases.setdefault(key(piece), key(account))
    if len(local) >= 5 and local.isalnum():
        names.small.add(fold(local))
    given, *more = local.split(".")
    if more and len(given) > 2:
        names.aliases.setdefault(key(given), key(account))
    for piece in (local, given, *more):
        if len(piece) > 2:
            names.add(piece)


_CLASSIFICATIONS = frozenset(CANONICAL["classification"])
_DEMANDED = frozenset({"close", "ignore", "mark", "trust", "send"}) | _CLASSIFICATIONS
_OF_NO_RECORD = frozenset({"ignore", "rules"})
"""A text that bids to disregard rules is an outsider's, whatever the label of its cell."""
_NO_MARKS = str.maketrans('"', " ")
"""Marks of quotation hide words from a scan, not from who reads the text."""
_MOST_DEMANDS = 200


def demands(orders: Mapping[str, str], words: Iterable[Word], literals: Iterable[Literal]) -> frozenset[str]:
    """What the words of a text ask for, the states that it names, and those numbers among `literals`."""
    found = {orders[word.text] for word in words if word.text in orders}
    for literal in literals:
        if literal.kind in (Kind.STATE, Kind.SPOKEN):
            found.add("close" if literal.value in ("Closed", "ever_closed") else str(literal.value))
        elif literal.kind is Kind.NUMBER:
            found.add(f"{literal.number:g}")
    return frozenset(found)


_TRADE = toml_beside(__package__, "trade.toml")
"""What the trade calls logs, rows and codes."""


def _means(column: str, value: str | int | float) -> Iterator[str]:
    """What a value stands for, in the words of the trade."""
    if value in _TRADE["logs"]:
        yield _TRADE["logs"][value]
    elif column == "LogonType" and str(value) in _TRADE["logon_types"]:
        yield _TRADE["logon_types"][str(value)]
    elif column == "ResultType":
        yield "success" if str(value) == "0" else "failed failure"
    elif column in _TRADE["tables"]:
        yield _TRADE["tables"][column]
    elif column == "event" and " from Closed to " in str(value):
        yield "reopened"


def _is_title(text: str) -> bool:
    """A short name in capitals such as a product's (`Office 365 Exchange Online`), without a word that tells or asks
    for something: whoever names it repeats nobody's message."""
    words = text.split()
    return len(words) <= COPIED and not any(word[0].islower() or fold(word) in _telling_words() for word in words)


@cache
def _telling_words() -> frozenset[str]:
    lexicon = everything()
    claims = (lexicon.claims[table] for table in ("possible", "not", "negative", "judgements", "i", "we"))
    tables = (lexicon.concepts, lexicon.concepts.values(), lexicon.orders, lexicon.spoken, plain_words())
    return frozenset().union(*tables, *claims)


@cache
def _number_words() -> frozenset[str]:
    return frozenset(everything().numbers)


def _take_up(head: Facts, entity: Facts) -> None:
    """An incident's row holds the names of its entities, and how many of each kind there are."""
    head.entities.append(entity)
    kind = entity.row.kind if entity.row is not None else ""
    count = sum(1 for each in head.entities if each.row is not None and each.row.kind == kind)
    if count > 1:
        head.numbers[float(count - 1)].discard(f"len:{kind}")
    head.numbers[float(count)].add(f"len:{kind}")
    for column, text in entity.texts:
        if column != "incident_number":
            head.texts.append(("entities", text))


def _around(read: _Read, moment: Moment) -> Iterable[str]:
    """Rows of the day, and of the days beside it where a zone may shift it."""
    day = Moment(moment.year or 2024, moment.month, moment.day).begins
    if day is None:
        return ()
    shifts = (-1, 0, 1) if moment.offset or moment.hour is not None else (0,)
    return dict.fromkeys(
        ref for shift in shifts for ref in read.holding.get(f"@{day + timedelta(days=shift):%m-%d}", ())
    )


def _clock(minutes: int) -> str:
    return f":{minutes % 1440}"


def _between(numbers: list[tuple[float, str]], low: float, high: float) -> list[tuple[float, str]]:
    return numbers[bisect_left(numbers, (low, "")) : bisect_right(numbers, (high, "\U0010ffff"))]


def _row_order(ref: str) -> int:
    return int(ref.rpartition(".")[2])


def _incidents_asked(result: Result) -> set[float]:
    asked = _flat({name: result.arguments.get(name) for name in ("incident", "like_incident")})
    return {float(text) for text in asked if text.isdigit()}


def _asked(result: Result) -> list[str]:
    """What a tool was asked for, which its rows then are about: no free text, which whoever asked made up. Of a
    computation nothing: its conditions stand in its rows, apart from what was found."""
    if result.computed:
        return []
    if result.writes or not (result.rows or result.totals):
        return _flat(result.arguments)
    values = _flat({name: value for name, value in result.arguments.items() if name not in _FREE_TEXT})
    return [value for value in values if len(value.split()) <= _MOST_WORDS_ASKED]


def _table_of(result: Result) -> list[str]:
    """The one log table that the rows of a query come from: a person asks for it, and no cell says it."""
    tables = [] if result.computed or len(result.kinds) > 1 else _flat(result.coverage.get("tables"))
    return tables if len(tables) == 1 else []


def _flat(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [text for part in value.values() for text in _flat(part)]
    if isinstance(value, list | tuple):
        return [text for part in value for text in _flat(part)]
    return [] if value in (None, "") else [str(value)]


def _shown(value: Cell) -> str:
    return ", ".join(map(_shown, value)) if isinstance(value, tuple) else str(value)
