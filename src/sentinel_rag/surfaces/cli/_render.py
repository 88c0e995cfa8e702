"""An answer on the terminal, whole or page by page: facts first, tables, questions to go on with, its sources.

Everything passes `safe` here, whatever field it came from; colour, width and links are decided here and nowhere else.
Without a terminal (a pipe, NO_COLOR) the same text comes without colour, and tables are as wide as they need.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.console import Console  # noqa: TID253  # this module is rich, and imported lazily
from rich.text import Text  # noqa: TID253  # as above

from sentinel_rag.agent.times import show_age
from sentinel_rag.contracts.evidence import Answer, Outcome, Table, ToolTrace, Written
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.surfaces.cli._marked_text import fact_lines, source_lines, text_lines, worth_counting
from sentinel_rag.surfaces.cli._tables import (
    NOT_WHOLE,
    TITLE,
    heading_of,
    plain_lines,
    sparkline,
    table_lines,
    trend_of,
)
from sentinel_rag.surfaces.rendering.marks import counted
from sentinel_rag.surfaces.rendering.visible import safe, safe_cell

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
