"""An answer on the terminal, whole or page by page: facts first, tables, questions to go on with, its sources.

Everything passes `safe` here, whatever field it came from; colour, width and links are decided here and nowhere else.
Without a terminal (a pipe, NO_COLOR) the same text comes without colour, and tables are as wide as they need. An id, a
time or a name in a table is never broken: only prose folds, between its words. Charts repeat numbers of the answer;
without Unicode they are ASCII. Severities carry a mark beside their colour, so that a person without colours finds the
high ones too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.cells import cell_len, set_cell_size  # noqa: TID253  # what a terminal gives each character; imported lazily, with rich
from rich.console import Console  # noqa: TID253  # this module is rich, and imported lazily  # noqa: TID253  # this module draws with rich, and is imported lazily
from rich.text import Text  # noqa: TID253  # as above

from sentinel_rag.agent.row_text import show_age
from sentinel_rag.contracts.evidence import Answer, Outcome, Picture, Table, ToolTrace, Written
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.surfaces.cli._marked_text import fact_lines, query_lines, source_lines, text_lines, worth_counting
from sentinel_rag.surfaces.rendering.visible import counted, safe, safe_cell

PIPE_WIDTH = 160
OUTCOME_STYLES = {
    Outcome.DENIED: "bold red",
    Outcome.TOOL_FAILED: "bold red",
    Outcome.NO_DATA: "yellow",
    Outcome.CLARIFICATION: "bold",
}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to `main`, which ends with 0: rich would exit with 1, as if the command had failed."""
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Rich's console: colour and width of the terminal, or plain and wide in a pipe. Markup is never interpreted."""
    made = _Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not made.is_terminal:
        made.width = PIPE_WIDTH
    return made


@dataclass(frozen=True, slots=True)
class Display:
    """How much of an answer is shown."""

    whole: bool = False
    """Whether the details stand below it."""
    evidence: bool = False
    """Whether the details list every fact with its place."""
    hidden: int = 0
    """How many of its sentences were left out at the person's wish."""
    source: bool = True
    """Whether a line says where it comes from."""
    more: str = "--details"
    """What shows the details, as the line of sources names it."""


FOLDED = Display()


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """A line of an answer; `heading` are the lines that name the columns of the table that it goes on in."""

    text: Text
    heading: Sequence[Text] = ()


def print_answer(target: Console, answer: Answer, how: Display = FOLDED) -> None:
    """Write `answer` to `target`."""
    details = detail_lines(target, answer, how) if how.whole else ()
    for line in (*body_lines(target, answer, how), *closing_lines(target, answer, how), *details):
        target.print(line.text, soft_wrap=True)


def body_lines(target: Console, answer: Answer, how: Display = FOLDED) -> Iterator[AnswerLine]:
    """What the answer says: its text, and the tables that are not folded."""
    waits = any(trace.approval_id for trace in answer.tools)
    style = "bold" if waits else OUTCOME_STYLES.get(answer.outcome, "")
    yield from _with_headings(list(text_lines(target, answer.text, answer.sentences, style)))
    for table in answer.tables:
        if not table.folded:
            yield AnswerLine(Text())
            yield from drawn_table(target, table, whole=how.whole)


def _with_headings(lines: Sequence[Text]) -> Iterator[AnswerLine]:
    """The lines of a text; those of a table in it know its heading."""
    heading: Sequence[Text] = ()
    begun = 0
    for place, line in enumerate(lines):
        if not line.plain.strip():
            heading, begun = (), place + 1
        yield AnswerLine(line, heading)
        if not heading and place > begun and set(line.plain.strip()) == {"─"}:
            heading = lines[begun : place + 1]


def closing_lines(target: Console, answer: Answer, how: Display = FOLDED) -> Iterator[AnswerLine]:
    """What stands below it: questions to go on with, and where it comes from in one line; nothing above the details,
    which tell it at length."""
    if how.whole:
        return
    below: list[Text] = []
    if answer.suggestions:
        below += [Text(), _suggested(answer.suggestions, target.width)]
    if source := _source_line(answer, how):
        below += [*([] if below else [Text()]), Text(source, style="dim")]
    below += [Text(safe(line), style="dim") for line in answer.footnote if not _tells_a_call(line, answer)]
    for each in below:
        yield from map(AnswerLine, each.wrap(target, target.width, overflow="fold") or [Text()])


def detail_lines(target: Console, answer: Answer, how: Display = FOLDED) -> Iterator[AnswerLine]:
    """What is shown on demand: tables whole, sources of the sentences, the calls, and the evidence of each fact."""
    for table in answer.tables:
        shortened = not how.whole and any(
            line.text.style == NOT_WHOLE for line in drawn_table(target, table, whole=False)
        )
        if table.folded or shortened:
            yield AnswerLine(Text())
            yield from drawn_table(target, table, whole=True)
    below: list[Text] = []
    if sources := list(source_lines(answer, whole=how.evidence, hidden=how.hidden)):
        below += [Text(), Text(sources[0]), *(Text(line, style="dim") for line in sources[1:])]
    if how.whole and answer.suggestions:
        below += [Text(), Text("You could ask:", style="dim")]
        below += [Text(f"  {safe_cell(suggestion)}") for suggestion in answer.suggestions]
    if footnote := [line for line in answer.footnote if how.whole or _tells_a_call(line, answer)]:
        below += [Text(), *(Text(safe(line), style="dim") for line in footnote)]
    if queries := list(query_lines(answer)):
        below += [Text(), *(Text(line, style="dim") for line in queries)]
    if how.evidence and (facts := list(fact_lines(answer))):
        below += [Text(), *(Text(line, style="dim") for line in ("Evidence:", *facts))]
    elif how.evidence and not sources:
        below += [Text(), Text("No fact of this answer comes from a tool.", style="dim")]
    for each in below:
        yield from map(AnswerLine, each.wrap(target, target.width, overflow="fold") or [Text()])


def _tells_a_call(line: str, answer: Answer) -> bool:
    return line.startswith(tuple(f"{trace.name}(" for trace in answer.tools))


def _suggested(suggestions: Sequence[str], width: int) -> Text:
    """As many of them as one line holds, the first in any case."""
    line = Text.assemble(("You could ask: ", "dim"), safe_cell(suggestions[0]))
    for each in suggestions[1:]:
        more = Text.assemble((" · ", "dim"), safe_cell(each))
        if line.cell_len + more.cell_len > width:
            break
        line.append_text(more)
    return line


def _source_line(answer: Answer, how: Display) -> str:
    """Calls, rows, age and workspace in a few words, and what came of the check."""
    if not how.source:
        return ""
    calls = ", ".join(_calls_told(answer.tools))
    told = [f"Source: {calls}"] if calls else []
    if worth_counting(answer) and (words := counted(answer.sentences)):
        told.append(words)
    if how.hidden:
        told.append(f"{how.hidden} hidden (not found or contradicted)")
    folded = "" if how.whole or not told else f" ({how.more})"
    return safe_cell(f"{', '.join(told)}{folded}")


def _calls_told(calls: Sequence[ToolTrace]) -> Iterator[str]:
    if calls:
        queries = dict.fromkeys(str(trace.arguments["template"]) for trace in calls if "template" in trace.arguments)
        told = ", ".join(queries) or calls[0].name
        yield told if len(calls) == 1 else f"{len(calls)} calls ({told})" if queries else f"{len(calls)} calls"
    became = Counter("waits for a yes" if trace.approval_id else trace.status for trace in calls)
    for what in ("waits for a yes", "denied", "failed"):
        if number := became[what]:
            yield what if len(calls) == 1 else f"{number} {what}"
    found = [trace.coverage for trace in calls if trace.coverage is not None and trace.coverage["tables"]]
    if not found:
        return
    shown, totals = [each["rows_returned"] for each in found], [each["rows_total"] for each in found]
    rows = sum(each for each in shown if isinstance(each, int))
    of = sum(each for each in totals if isinstance(each, int)) if None not in totals else "?"
    told = f"{rows} row{'' if rows == 1 else 's'}" if of == rows else f"{rows} of {of} rows"
    workspaces = dict.fromkeys(str(each["workspace"]) for each in found if each["workspace"])
    yield f"{told} of {', '.join(workspaces)}" if workspaces else told
    newest = max((str(each["table_newest"]) for each in found if each.get("table_newest")), default="")
    if newest:
        yield f"newest {show_age(utc_now() - datetime.fromisoformat(newest))} ago"
    if any(each["partial"] for each in found):
        yield "PARTIAL"


def print_begun(written: Written) -> None:
    """The beginning of an answer that did not come to its end."""
    target = console()
    for line in text_lines(target, written.text, written.sentences):
        target.print(line, soft_wrap=True)
    target.print(Text("... the answer was not finished.", style="bold"))


def drawn_table(target: Console, table: Table, *, whole: bool = True) -> Iterator[AnswerLine]:
    """A table in lines, below a trend of its counts."""
    counts = trend_of(table.columns, table.rows) if target.is_terminal else []
    if any(counts):
        drawn = sparkline(counts, plain=plain_lines(target), most=target.width - 24)
        yield AnswerLine(Text.assemble((drawn, "cyan"), f"  0 to {max(counts)}"))
    lines = list(table_lines(table, target, whole=whole))
    heading = heading_of(lines)
    begun = False
    for line in lines:
        yield AnswerLine(line, heading if begun else ())
        begun = begun or (bool(heading) and line is heading[-1])


FEWEST_LINES = 8
"""Of an answer's body, however much stands below it."""
_AROUND = 4
"""Lines of a window that are no answer's: the question, the note of what is left, an empty one, the prompt."""
_TOO_FEW = 2
"""Lines that are not worth a page of their own; the question may leave the window for them."""


class AnswerPages:
    """The lines of an answer that were not shown yet: those that did not fit, then its details."""

    def __init__(
        self, rest: Sequence[AnswerLine] = (), details: Sequence[AnswerLine] = (), more: str = "/more"
    ) -> None:
        self._rest = list(rest)
        self._details = list(details)
        self._more = more

    @property
    def left(self) -> bool:
        """Whether lines of the answer itself were not shown yet."""
        return bool(self._rest)

    @classmethod
    def begun(cls, target: Console, answer: Answer, how: Display, *, around: int = _AROUND) -> AnswerPages:
        """Print as much of the answer as the window holds beside `around` other lines, and what stands below it
        whole."""
        body = list(body_lines(target, answer, how))
        below = list(closing_lines(target, answer, how))
        details = list(detail_lines(target, answer, how))
        if how.whole:
            body, details = [*body, *details], []
        room = max(FEWEST_LINES, target.height - around - len(below))
        room = _before_a_heading(body, room)
        pages = cls(body[room:] if len(body) > room + _TOO_FEW else (), details, how.more)
        _print(target, body[: len(body) - len(pages._rest)])
        pages._tell_rest(target)
        _print(target, below)
        return pages

    def print_next(self, target: Console) -> None:
        """Print the next lines; a table that goes on has its columns named again."""
        if not self._rest:
            self._rest, self._details = self._details, []
        if not self._rest:
            target.print(Text("There is no more of the last answer."))
            return
        heading = [AnswerLine(each) for each in self._rest[0].heading]
        room = max(FEWEST_LINES, target.height - _AROUND - len(heading))
        room += _TOO_FEW if len(self._rest) <= room + _TOO_FEW else 0
        page, self._rest = self._rest[:room], self._rest[room:]
        _print(target, [*heading, *page])
        self._tell_rest(target)

    def _tell_rest(self, target: Console) -> None:
        left = len(self._rest)
        if left:
            target.print(Text(f"... {left} more line{'' if left == 1 else 's'}: {self._more}", style="bold"))


def _before_a_heading(body: Sequence[AnswerLine], room: int) -> int:
    """How many lines are shown where `room` have place: no heading of a table without one of its rows."""
    heading = body[room].heading if room < len(body) else ()
    if not heading or body[room - 1].text is not heading[-1]:
        return room
    room -= len(heading)
    while room and (body[room - 1].text.style == TITLE or not body[room - 1].text.plain.strip()):
        room -= 1
    return room


def _print(target: Console, lines: Sequence[AnswerLine]) -> None:
    for line in lines:
        target.print(line.text, soft_wrap=True)


SPARKS = "▁▂▃▄▅▆▇█"
ASCII_SPARKS = "_.-=+*%#"
BAR, SHORT_BAR, WIDE = 20, 10, 100
"""Cells of a bar in a window that is `WIDE` at least, and in a narrower one."""
MOST_SPARKS = 60

_DAY_OR_TIME = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}.*)?")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}")


def sparkline(values: Sequence[int], *, plain: bool, most: int = MOST_SPARKS) -> str:
    """One character a value, from 0 to the highest; with more than `most` values, one for the peak of some each."""
    step = -(-len(values) // most)
    peaks = [max(values[start : start + step]) for start in range(0, len(values), step)] if step else []
    sparks, top = ASCII_SPARKS if plain else SPARKS, max(peaks, default=0)
    return "".join(sparks[_part(value, top, len(sparks) - 1)] for value in peaks)


def bar(value: int, top: int, *, plain: bool, length: int = BAR) -> str:
    """A bar of at most `length` characters, at least one for what is not 0."""
    return ("#" if plain else "█") * _part(value, top, length)


def trend_of(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """The numbers of a trend: the second column, where the first holds days or times; empty for another table."""
    if len(names) < 2 or len(rows) < 2 or not all(_DAY_OR_TIME.fullmatch(row[0]) for row in rows):
        return []
    counts = [row[1] for row in rows]
    return [int(each) for each in counts] if all(map(_is_count, counts)) else []


def with_picture(
    table: Table, names: list[str], rows: list[list[str]], *, plain: bool, length: int = BAR
) -> tuple[list[str], list[list[str]]]:
    """The cells of a table with a column that draws them, behind the one that it draws; as they are where nothing is
    to be drawn."""
    if table.picture is Picture.TIMES:
        return _with_times(names, rows, plain=plain, length=length)
    if trend_of(names, rows):
        at = 1
    elif table.picture in (Picture.RANKING, Picture.SHARE):
        at = next((at for at in range(len(names)) if at and rows and all(_is_count(row[at]) for row in rows)), 0)
    else:
        at = 0
    counts = [int(row[at]) for row in rows] if at else []
    if not any(counts):
        return names, rows
    whole = max(counts) if table.picture is not Picture.SHARE else sum(counts)
    drawn = [bar(count, whole, plain=plain, length=length) for count in counts]
    if table.picture is Picture.SHARE:
        drawn = [f"{each:{length}} {round(100 * count / whole):3} %" for each, count in zip(drawn, counts, strict=True)]
    return _inserted(names, rows, at + 1, drawn)


def _with_times(
    names: list[str], rows: list[list[str]], *, plain: bool, length: int
) -> tuple[list[str], list[list[str]]]:
    """Each row with a mark at its place between the first moment and the last."""
    at = next((at for at in range(len(names)) if rows and all(_TIME.match(row[at]) for row in rows)), None)
    if at is None or len(rows) < 2:
        return names, rows
    moments = [datetime.fromisoformat(row[at][:19]) for row in rows]
    first, lasted = min(moments), (max(moments) - min(moments)).total_seconds() or 1.0
    places = [round((each - first).total_seconds() / lasted * (length - 1)) for each in moments]
    line, mark = (".", "o") if plain else ("·", "●")
    return _inserted(names, rows, at + 1, [line * place + mark + line * (length - 1 - place) for place in places])


def _inserted(
    names: list[str], rows: list[list[str]], at: int, drawn: Sequence[str]
) -> tuple[list[str], list[list[str]]]:
    told = [[*row[:at], each, *row[at:]] for row, each in zip(rows, drawn, strict=True)]
    return [*names[:at], "", *names[at:]], told


def _is_count(cell: str) -> bool:
    return cell.isascii() and cell.isdigit()


def _part(value: int, top: int, length: int) -> int:
    return max(1, round(value / top * length)) if value > 0 and top > 0 else 0


BETWEEN = 3
ONE_LINE_BETWEEN = 2
EMPTY = "-"
EDGES = 2
PROSE = 24
"""Cells that a column of sentences needs at least to be read."""
LEAST_CUT = 12
"""Cells that are left of a cut one at least."""
MOST_BELOW = 3
"""Columns told below a row; with more of them a list is easier to read."""

_STAY = frozenset({"severity", "status", "state", "alert", "title"})
_TIME_TAIL = re.compile(r"\d{4}-\d{2}-\d{2}( (?:00:00(?::00)? )?[A-Z]{2,5})")
"""Of a clock time only midnight, which means the day: any other in a heading would look like a mistake."""
_MOMENT = re.compile(r"\d{4}-(\d{2}-\d{2} \d{2}:\d{2})(?::\d{2})?( [A-Z]{2,5})?")
_CLOCK_TAIL = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}(?::\d{2})?( [A-Z]{2,5})")


@dataclass(frozen=True, slots=True)
class Layout:
    """`widths` of the columns (by number) that stand side by side, in order; `below` are told under each row."""

    widths: dict[int, int]
    below: tuple[int, ...] = ()


def layout(names: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Layout | None:
    """The layout in `width` cells, or None if only a list of `name: value` lines can hold it."""
    columns = [_Column(number, name, [row[number] for row in rows]) for number, name in enumerate(names)]
    if _needed(wide := {each.number: max(each.whole, cell_len(each.name)) for each in columns}) <= width:
        return Layout(wide)
    beside = list(columns)
    while (over := _needed({each.number: each.least for each in beside}) - width) > 0:
        movable = [each for each in beside if each.number > 1 and each.movable]
        if not movable:
            return None
        enough = [each for each in movable if each.least + BETWEEN >= over]
        gone = min(enough, key=lambda each: each.least) if enough else max(movable, key=lambda each: each.least)
        beside.remove(gone)
    below = tuple(each.number for each in columns if each not in beside)
    if len(below) > MOST_BELOW or (below and len(beside) < 2):
        return None
    return Layout(_shared_out(beside, width), below)


def shared_tail(cells: Sequence[str]) -> str:
    """What every time of a column ends in, such as ` UTC` or ` 00:00:00 UTC`: it can stand in the heading once."""
    for pattern in (_TIME_TAIL, _CLOCK_TAIL):
        found = {match[1] if (match := pattern.fullmatch(cell)) else "" for cell in cells}
        if len(found) == 1 and "" not in found:
            return found.pop()
    return ""


@dataclass(frozen=True, slots=True)
class OneLineEach:
    """A list of things with one line each: times to the minute, the longest column cut, the last columns left out."""

    names: Sequence[str]
    rows: Sequence[Sequence[str]]
    widths: dict[int, int]
    """Of the columns (by number) that stand side by side, in order."""
    cut: bool
    """Whether a cell is shorter than it was."""
    left_out: tuple[str, ...]
    """Names of columns that are not shown."""


def one_line_each(names: Sequence[str], rows: Sequence[Sequence[str]], width: int, sign: str) -> OneLineEach | None:
    """The rows with one line each in `width` cells, cut cells with `sign` at their end; None if that cannot be."""
    names, rows = _to_the_minute(names, rows)
    columns = [_Column(number, name, [row[number] for row in rows]) for number, name in enumerate(names)]
    drawn = next((each.number for each in columns if each.number and not each.name), len(columns))
    stay = [each for each in columns if each.number < drawn or each.name.strip().lower() in _STAY]  # beside a picture
    longest = max(stay, key=lambda each: (each.whole, each.number))
    shown = list(columns)

    def room() -> int:
        rest = sum(each.most for each in shown if each is not longest)
        return width - EDGES - ONE_LINE_BETWEEN * (len(shown) - 1) - rest

    while room() < min(PROSE, longest.most):
        movable = [each for each in shown if each.number > 1 and each is not longest and each.movable]
        if not movable:
            break
        shown.remove(movable[-1])
    if room() < min(LEAST_CUT, longest.most):
        return None
    least = min(longest.most, room())
    widths = {each.number: least if each is longest else each.most for each in shown}
    cut = longest.whole > least
    if cut:
        at = longest.number
        rows = [[*row[:at], _cut(row[at], least, sign), *row[at + 1 :]] for row in rows]
    left_out = tuple(each.name for each in columns if each not in shown)
    return OneLineEach(names, rows, widths, cut, left_out)


def _cut(cell: str, width: int, sign: str) -> str:
    if cell_len(cell) <= width:
        return cell
    kept = set_cell_size(cell, max(0, width - cell_len(sign)))
    return f"{kept.rstrip()}{sign}"


def _to_the_minute(names: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """Columns of moments of one year and zone as month, day, hour and minute; what they share is in the heading."""
    heads, told = list(names), [list(row) for row in rows]
    for number in range(len(heads)):
        found = [_MOMENT.fullmatch(row[number]) for row in told]
        shared = {(match.string[:4], match[2]) for match in found if match}
        if len(shared) != 1 or not all(match or row[number] == EMPTY for match, row in zip(found, told, strict=True)):
            continue
        _, zone = shared.pop()
        heads[number] += f" ({zone.strip()})" if zone else ""
        for match, row in zip(found, told, strict=True):
            row[number] = match[1] if match else row[number]
    return heads, told


class _Column:
    def __init__(self, number: int, name: str, cells: Sequence[str]) -> None:
        self.number, self.name = number, name
        self.movable = bool(name.strip()) and name.strip().lower() not in _STAY  # what has no name draws its neighbour
        self.whole = max(map(cell_len, cells), default=0)
        word = max((cell_len(word) for cell in cells for word in cell.split()), default=0)
        heading = max(map(cell_len, name.split()), default=0)
        self.prose = self.whole > PROSE and word < self.whole
        self.least = max(heading, min(self.whole, max(word, PROSE)) if self.prose else self.whole)
        self.most = max(self.whole, cell_len(name))


def _needed(widths: dict[int, int]) -> int:
    return sum(widths.values()) + BETWEEN * (len(widths) - 1) + EDGES


def _shared_out(columns: Sequence[_Column], width: int) -> dict[int, int]:
    """Each column its least, and what is left to those that want more, the most modest first."""
    widths = {each.number: each.least for each in columns}
    left = width - _needed(widths)
    wanting = sorted((each for each in columns if each.most > each.least), key=lambda each: each.most - each.least)
    for place, each in enumerate(wanting):
        more = min(each.most - each.least, left // (len(wanting) - place))
        widths[each.number] += more
        left -= more
    return widths


MARKS = {"High": "!", "Medium": "+", "Low": "-", "Informational": "."}
STYLES = {
    "High": "bold red",
    "Medium": "yellow",
    "Low": "cyan",
    "Informational": "dim",
    "New": "bold",
    "Active": "bold",
    "Closed": "dim",
}
DRAWN = "cyan"
INDENT = "     "
TITLE = "italic"
NOT_WHOLE = "dim italic"
"""The style of the line that says what a list leaves out."""
FEWEST_OF_A_LIST = 4
"""Rows of a list that gets one line each; fewer fold."""


@dataclass(frozen=True, slots=True)
class _Rules:
    heading: str
    across: str
    crossing: str
    cell: str


LINES = _Rules(" ┃ ", "━", "━╇━", " │ ")
ASCII_LINES = _Rules(" | ", "-", "-+-", " | ")


def plain_lines(target: Console) -> bool:
    """Whether `target` shows ASCII only, so that rules and bars are drawn of it."""
    return target.options.ascii_only or target.is_dumb_terminal


def heading_of(lines: Sequence[Text]) -> Sequence[Text]:
    """The lines of a drawn table that name its columns; none of one that is drawn as a list."""
    marks = set("".join((LINES.across, LINES.crossing, ASCII_LINES.across, ASCII_LINES.crossing)))
    for place, line in enumerate(lines):
        if line.plain and set(line.plain) <= marks:
            return [each for each in lines[: place + 1] if each.style != TITLE]
    return ()


def table_lines(table: Table, target: Console, *, whole: bool = True) -> Iterator[Text]:
    """`table` in lines of at most the width of `target`; on a terminal with marks, and with bars beside a trend. Where
    not the `whole` is asked for, a list that is too wide gets one line a row, and says what that leaves out."""
    width = target.width
    rules = ASCII_LINES if plain_lines(target) else LINES
    names = [safe_cell(name) for name in table.columns]
    rows = [[safe_cell(cell) for cell in row] for row in table.rows]
    if table.title:
        yield from _wrapped(Text(safe_cell(table.title), style=TITLE), width, target)
    if target.is_terminal:
        rows = [[_marked(name, cell) for name, cell in zip(names, row, strict=True)] for row in rows]
        drawn = with_picture(table, names, rows, plain=plain_lines(target), length=BAR if width >= WIDE else SHORT_BAR)
        found = layout(*drawn, width)
        if (found is not None and not found.below) or one_line_each(*drawn, width, "") is not None:
            names, rows = drawn
    found = layout(names, rows, width)
    if target.is_terminal and not whole and len(rows) >= FEWEST_OF_A_LIST and not _is_one_line_each(rows, found):
        dense = one_line_each(names, rows, width, "..." if plain_lines(target) else "…")
        if dense is not None:
            yield from _dense(dense, rules, target)
            return
    if found is None or found.below:
        names, rows = _tails_told_once(names, rows)
        found = layout(names, rows, width)
    if found is None:
        yield from _list(names, rows, target)
    else:
        yield from _grid(names, rows, found, rules, target)


def _is_one_line_each(rows: Sequence[Sequence[str]], found: Layout | None) -> bool:
    """Whether every cell stands whole in the width of its column."""
    return (
        found is not None
        and not found.below
        and all(cell_len(row[number]) <= width for row in rows for number, width in found.widths.items())
    )


def _dense(found: OneLineEach, rules: _Rules, target: Console) -> Iterator[Text]:
    between = " " * ONE_LINE_BETWEEN
    widths = found.widths
    if any(found.names[number].strip() for number in widths):
        yield from _row([Text(found.names[number], style="bold") for number in widths], widths, between, target)
        yield Text(rules.across * (sum(widths.values()) + ONE_LINE_BETWEEN * (len(widths) - 1) + EDGES))
    for row in found.rows:
        yield from _row(_cells(row, widths), widths, between, target)
    told = ["cells that end in … are cut"] if found.cut else []
    told += [f"not shown: {', '.join(name.strip() for name in found.left_out)}"] if found.left_out else []
    if told:
        text = f"({'; '.join(told)})".replace("…", "..." if plain_lines(target) else "…")
        yield from _wrapped(Text(text, style=NOT_WHOLE), target.width, target)


def _marked(name: str, cell: str) -> str:
    return f"{MARKS[cell]} {cell}" if cell in MARKS and "severity" in name.lower() else cell


def _style(cell: str) -> str:
    mark, _, word = cell.partition(" ")
    return STYLES.get(word if MARKS.get(word) == mark else cell, "")


def _tails_told_once(names: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Times without what they share, which the heading tells: `Created (UTC)`."""
    names, rows = list(names), [list(row) for row in rows]
    for number in range(len(names)):
        tail = shared_tail([row[number] for row in rows])
        if tail:
            names[number] += f" ({tail.strip()})"
            for row in rows:
                row[number] = row[number].removesuffix(tail)
    return names, rows


def _grid(
    names: Sequence[str], rows: Sequence[Sequence[str]], found: Layout, rules: _Rules, target: Console
) -> Iterator[Text]:
    widths = found.widths
    if any(names[number].strip() for number in widths):
        yield from _row([Text(names[number], style="bold") for number in widths], widths, rules.heading, target)
        rule = rules.crossing.join(rules.across * each for each in widths.values())
        yield Text(f"{rules.across}{rule}{rules.across}")
    for row in rows:
        yield from _row(_cells(row, widths), widths, rules.cell, target)
        if found.below:
            parts = [
                Text.assemble((f"{names[number]}: ", "dim"), (row[number], _style(row[number])))
                for number in found.below
                if row[number].strip()
            ]
            for line in _wrapped(Text("  ").join(parts), target.width - len(INDENT), target):
                yield Text(INDENT) + line


def _cells(row: Sequence[str], widths: Mapping[int, int]) -> list[Text]:
    """The cells in their styles; what is drawn of a row has that of its severity."""
    severity = next((style for cell in row if cell[:2].strip() in MARKS.values() and (style := _style(cell))), DRAWN)
    drawn = (*SPARKS[-1], "#")
    styles = {number: severity if row[number].startswith(drawn) else _style(row[number]) for number in widths}
    return [Text(row[number], style=style) for number, style in styles.items()]


def _row(cells: Sequence[Text], widths: dict[int, int], between: str, target: Console) -> Iterator[Text]:
    folded = [_wrapped(cell, width, target) for cell, width in zip(cells, widths.values(), strict=True)]
    for place in range(max(map(len, folded), default=0)):
        line = Text(" ")
        for number, (lines, width) in enumerate(zip(folded, widths.values(), strict=True)):
            part = lines[place].copy() if place < len(lines) else Text()
            part.rstrip()
            part.pad_right(max(0, width - part.cell_len))
            if number:
                line.append(between)
            line.append_text(part)
        line.rstrip()  # else each line would wrap into two once the window is made narrower
        yield line


def _list(names: Sequence[str], rows: Sequence[Sequence[str]], target: Console) -> Iterator[Text]:
    """One line a cell, an empty line between rows."""
    for place, row in enumerate(rows):
        if place:
            yield Text()
        for name, cell in zip(names, row, strict=True):
            label = f"{name}: " if name.strip() else ""
            yield from _wrapped(Text.assemble((label, "dim"), (cell, _style(cell))), target.width, target)


def _wrapped(text: Text, width: int, target: Console) -> list[Text]:
    return list(text.wrap(target, max(1, width), overflow="fold")) or [Text()]
