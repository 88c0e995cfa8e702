"""An answer on the terminal: facts first, tables, suggestions, then the footnote in a quiet colour.

Everything passes `safe` here, whatever field it came from; colour, width and links are decided here and nowhere else.
Without a terminal (a pipe, NO_COLOR) the same text comes without colour, and tables are as wide as they need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console  # noqa: TID253  # this module is rich, and imported lazily
from rich.text import Text  # noqa: TID253  # as above

from sentinel_rag.contracts.evidence import Answer, Evidence, Outcome, Table, Written
from sentinel_rag.surfaces.cli._charts import bar, severity_counts, sparkline, trend_of
from sentinel_rag.surfaces.cli._evidence_page import fact_lines
from sentinel_rag.surfaces.cli._marked_text import source_lines, text_lines
from sentinel_rag.surfaces.cli._safe_text import safe, safe_cell
from sentinel_rag.surfaces.cli._tables import MARKS, STYLES, heading_of, plain_lines, table_lines

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
class Line:
    """A line of an answer; `heading` are the lines that name the columns of the table that it goes on in."""

    text: Text
    heading: Sequence[Text] = ()


def print_answer(target: Console, answer: Answer, *, evidence: bool = False, hidden: int = 0) -> None:
    """Write `answer` to `target`; `hidden` sentences of it were left out at the person's wish."""
    for line in (*body_lines(target, answer), *closing_lines(target, answer, evidence=evidence, hidden=hidden)):
        target.print(line.text, soft_wrap=True)


def body_lines(target: Console, answer: Answer) -> Iterator[Line]:
    """What the answer says: its text, its bars and its tables."""
    waits = any(trace.approval_id for trace in answer.tools)
    style = "bold" if waits else OUTCOME_STYLES.get(answer.outcome, "")
    yield from _with_headings(list(text_lines(target, answer.text, answer.sentences, style)))
    if target.is_terminal and not any(trend_of(table.columns, table.rows) for table in answer.tables):
        yield from map(Line, _severities(answer.evidence, plain=plain_lines(target)))
    for table in answer.tables:
        yield Line(Text())
        yield from _table(target, table)


def _with_headings(lines: Sequence[Text]) -> Iterator[Line]:
    """The lines of a text; those of a table in it know its heading."""
    heading: Sequence[Text] = ()
    begun = 0
    for place, line in enumerate(lines):
        if not line.plain.strip():
            heading, begun = (), place + 1
        yield Line(line, heading)
        if not heading and place > begun and set(line.plain.strip()) == {"─"}:
            heading = lines[begun : place + 1]


def closing_lines(target: Console, answer: Answer, *, evidence: bool = False, hidden: int = 0) -> Iterator[Line]:
    """What stands below it: what the check says of it and its sources, questions to go on with, how it was found, and
    the evidence of its facts."""
    below: list[Text] = []
    if sources := list(source_lines(answer, whole=evidence, hidden=hidden)):
        below += [Text(), Text(sources[0]), *(Text(line, style="dim") for line in sources[1:])]
    if answer.suggestions:
        below += [Text(), Text("You could ask:", style="dim")]
        below += [Text(f"  {safe_cell(suggestion)}") for suggestion in answer.suggestions]
    if answer.footnote:
        below += [Text(), *(Text(safe(line), style="dim") for line in answer.footnote)]
    if evidence and (facts := list(fact_lines(answer))):
        below += [Text(), *(Text(line, style="dim") for line in ("Evidence:", *facts))]
    elif evidence and not sources:
        below += [Text(), Text("No fact of this answer comes from a tool.", style="dim")]
    for each in below:
        yield from map(Line, each.wrap(target, target.width, overflow="fold") or [Text()])


def print_table(target: Console, title: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """A table of plain cells, for commands that list things."""
    for line in _table(target, Table(columns, tuple(rows), title)):
        target.print(line.text, soft_wrap=True)


def print_begun(written: Written) -> None:
    """The beginning of an answer that did not come to its end."""
    target = console()
    for line in text_lines(target, written.text, written.sentences):
        target.print(line, soft_wrap=True)
    target.print(Text("... the answer was not finished.", style="bold"))


def print_words(text: str) -> None:
    """Sentences of ours to standard output, folded between words."""
    console().print(Text(safe(text)))


def _table(target: Console, table: Table) -> Iterator[Line]:
    counts = trend_of(table.columns, table.rows) if target.is_terminal else []
    if any(counts):
        drawn = sparkline(counts, plain=plain_lines(target), most=target.width - 24)
        yield Line(Text.assemble((drawn, "cyan"), f"  0 to {max(counts)}"))
    lines = list(table_lines(table, target))
    heading = heading_of(lines)
    begun = False
    for line in lines:
        yield Line(line, heading if begun else ())
        begun = begun or (bool(heading) and line is heading[-1])


def _severities(evidence: tuple[Evidence, ...], *, plain: bool) -> Iterator[Text]:
    """Bars of what the answer counts by severity."""
    for kind, counts in severity_counts(evidence).items():
        yield Text()
        if kind:
            yield Text(safe_cell(f"{kind.capitalize()} by severity"), style="italic")
        top = max(counts.values())
        for name, count in counts.items():
            drawn = bar(count, top, plain=plain)
            yield Text.assemble(f"  {MARKS[name]} {name:13} {count:6}  ", (drawn, STYLES[name]))
