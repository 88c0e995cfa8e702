"""What there is to ask: workspaces, tables and KQL templates; and the rows of a template that was run."""

from __future__ import annotations

from collections.abc import Mapping

from sentinel_rag.agent.offline.answer_writer import EMPTY_CELL, AnswerWriter, Echo, Fact, phrase
from sentinel_rag.agent.offline.attributes import escape
from sentinel_rag.agent.offline.compositions import scope
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome

MAX_COLUMNS = 8


def compose_tables(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """Tables with row counts and age."""
    if not run.rows:
        writer.say_none([run], f"No table holds rows yet. {scope.HOW_TO_FILL}")
        return Composed(outcome=Outcome.NO_DATA)
    writer.say("{} tables hold rows.", scope.total_of(writer, run))
    scope.say_partial(writer, run)
    placed = scope.workspace_column(run)
    rows = [
        [
            *(writer.cell(run, f"/rows/{place}/workspace") for _ in placed),
            writer.cell(run, f"/rows/{place}/table"),
            writer.cell(run, f"/rows/{place}/rows"),
            writer.time_cell(run, f"/rows/{place}/oldest"),
            writer.time_cell(run, f"/rows/{place}/newest"),
        ]
        for place in range(len(run.rows))
    ]
    writer.table("", (*placed, "Table", "Rows", "Oldest row", "Newest row"), rows)
    return Composed(suggestions=("List the KQL templates", "List the incidents still open, newest first"))


def compose_workspaces(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """The workspaces by name."""
    writer.say(
        "{} workspaces can be asked; questions go to {} unless they name another.",
        scope.total_of(writer, run),
        writer.exact(run, "/summary/default"),
    )
    rows = [
        [writer.cell(run, f"/rows/{place}/name"), Fact("yes" if row.get("changes") else "no")]
        for place, row in enumerate(run.rows)
    ]
    writer.table("", ("Workspace", "Incidents can be changed"), rows)
    return Composed(suggestions=("List the incidents still open in all workspaces",) if len(run.rows) > 1 else ())


def compose_templates(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """Templates with parameters."""
    if not run.rows:
        writer.say_none([run], "There are no KQL templates.")
        return Composed(outcome=Outcome.NO_DATA)
    writer.say("{} KQL templates can be run. Ask in words, or name one.", scope.total_of(writer, run))
    rows = []
    for place, row in enumerate(run.rows):
        parameters = row.get("parameters")
        names = [
            writer.cell(run, f"/rows/{place}/parameters/{index}/name")
            for index in range(len(parameters) if isinstance(parameters, list | tuple) else 0)
        ]
        joined = phrase("{}", names) if names else Fact(EMPTY_CELL)
        rows.append(
            [writer.cell(run, f"/rows/{place}/name"), joined, writer.cell(run, f"/rows/{place}/description", limit=160)]
        )
    writer.table("", ("Template", "Parameters", "What it shows"), rows)
    questions = [row.get("questions") for row in run.rows]
    first = [plain(str(each[0])) for each in questions if isinstance(each, list | tuple) and each][:3]
    return Composed(suggestions=tuple(first), shown=len(run.rows))


def compose_kql(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """The rows of a template, columns with values first."""
    if scope.is_empty(run):
        writer.say(f"The query {{}} was run{_for_values(run)}.", writer.exact(run, "/summary/template"), *_values(run))
        return scope.compose_empty(writer, plan, run, "rows")
    assert run.result is not None
    total = scope.total_of(writer, run)
    writer.say(
        f"The query {{}} ({{}}) found {{}} rows{_for_values(run)}.",
        writer.exact(run, "/summary/template"),
        writer.words(run, "/summary/description"),
        total,
        *_values(run),
    )
    scope.say_shown(writer, run, total, first=plan.first)
    _say_totals(writer, run)
    scope.say_window(writer, run)
    scope.say_partial(writer, run)
    say_rows(writer, run)
    return Composed(shown=plan.first + len(run.rows))


def say_rows(writer: AnswerWriter, run: ToolRun) -> None:
    """The rows as a table, of the columns that hold values."""
    assert run.result is not None
    names = [column.name for column in run.result.columns] or list(run.rows[0])
    filled = [name for name in names if any(row.get(name) not in (None, "") for row in run.rows)]
    shown = filled[:MAX_COLUMNS]
    if len(shown) < len(filled):
        writer.fixed("Only the first columns that hold values are shown.")
    types = {column.name: column.type for column in run.result.columns}
    rows = []
    for place, row in enumerate(run.rows):
        cells = []
        for name in shown:
            pointer = f"/rows/{place}/{escape(name)}"
            is_time = types.get(name) == "datetime"
            value = row.get(name)
            cells.append(
                writer.time_cell(run, pointer)
                if is_time and not isinstance(value, Mapping)
                else writer.cell(run, pointer)
            )
        rows.append(cells)
    writer.table("", shown, rows)


def _say_totals(writer: AnswerWriter, run: ToolRun) -> None:
    """What the template's counts add up to over every row, also those that are not shown."""
    totals = run.at("/summary/totals")
    names = [name for name in totals if name.isidentifier()] if isinstance(totals, Mapping) else []
    if names and len(run.rows) > 1:
        facts = [writer.number(run, f"/summary/totals/{name}") for name in names]
        writer.say(f"Sums over the rows: {', '.join(f'{name} {{}}' for name in names)}.", *facts)


def _values(run: ToolRun) -> list[Echo]:
    """The values with which a template was run, which tell the runs of one answer apart."""
    given = run.call.arguments.get("parameters")
    if not isinstance(given, Mapping):
        return []
    return [Echo(f"{name} {value}" if isinstance(value, int) else str(value)) for name, value in given.items()]


def _for_values(run: ToolRun) -> str:
    values = _values(run)
    return " for " + ", ".join("{}" for _ in values) if values else ""
