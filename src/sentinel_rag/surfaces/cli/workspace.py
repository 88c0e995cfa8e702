"""`sentinel workspace`: fill the embedded workspace, look at it, run KQL on it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from sentinel_rag.app.home_folders import workspace_folder
from sentinel_rag.app.run_state import RunFolder
from sentinel_rag.contracts.errors import SentinelError, UsageError
from sentinel_rag.contracts.query_results import TimeWindow, parse_time
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._imported_questions import questions_of
from sentinel_rag.surfaces.cli._safe_text import safe, safe_cell
from sentinel_rag.surfaces.cli._workspace_access import WorkspaceAccess, embedded_name, workspace_access
from sentinel_rag.surfaces.cli._zones import SAMPLE_WORKSPACE
from sentinel_rag.surfaces.cli.ask import read_text, waiting
from sentinel_rag.workspace.importing.reports import ImportReport
from sentinel_rag.workspace.sample.company import TENANT_ID
from sentinel_rag.workspace.sample.options import EstateOptions

SHOWN = 5


def import_files(requested: str | None, paths: Sequence[str], *, table: str | None, as_json: bool) -> int:
    """Import files and folders; 0 if each was read, 1 if one could not be (the others are stored)."""
    settings = load_settings()
    if embedded_name(settings, requested, writes=True) == SAMPLE_WORKSPACE:
        raise UsageError(
            "The workspace 'sample' is generated and made anew by sentinel demo; your data would be lost with it.",
            next_step="Import into another: --workspace default",
        )
    reports: list[ImportReport] = []
    with (
        waiting("Importing...", quiet=as_json),
        workspace_access(settings, requested, writes=True) as workspace,
    ):
        name = workspace.name
        for path in paths:
            try:
                reports += workspace.import_path(Path(path).absolute(), table)
            except SentinelError as error:
                if len(paths) == 1:
                    raise
                reports.append(
                    ImportReport(file=path, table="", format="", error=str(error), next_step=error.next_step)
                )
        questions = () if as_json else questions_of(workspace, reports)
    if as_json:
        print(json.dumps([report.to_dict() for report in reports], indent=2))
    else:
        for report in reports:
            _print_report(report)
        print(f"Workspace: {name}")
        if questions:
            print("Ask, for example:")
        for question in questions:
            print(f"  sentinel ask {shlex.quote(safe_cell(question))}")
        _tell_open_chat(settings, name)
    return 1 if any(_failed(report) for report in reports) else 0


def _tell_open_chat(settings: Settings, name: str) -> None:
    """Say that zones which run now do not serve the workspace that was filled beside them."""
    state = RunFolder(settings.home).read()
    if state is not None and not state.private and name not in state.workspaces:
        print(f"An open chat, or sentinel up, asks {', '.join(state.workspaces)}: start it again to ask {name}.")


def generate(
    requested: str | None,
    *,
    days: int | None,
    events: int | None,
    seed: int | None,
    end: str | None,
    once: bool,
    as_json: bool,
) -> int:
    """Write a sample estate into the chosen workspace; with `once` nothing where the workspace is there already."""
    settings = load_settings()
    chosen = embedded_name(settings, requested, writes=True)
    if once and workspace_folder(settings.home, chosen).exists():
        print(json.dumps({}) if as_json else f"The workspace {chosen!r} is there already.")
        return 0
    given = {name: value for name, value in (("days", days), ("events", events), ("seed", seed)) if value is not None}
    options = EstateOptions(**given, end=None if end is None else _moment(end))
    with (
        waiting("Generating...", quiet=as_json),
        workspace_access(settings, requested, writes=True) as workspace,
    ):
        name = workspace.name
        if (requested or settings.workspace) is None and not settings.workspaces:
            _keep_apart(workspace)
        made = workspace.generate(options)
    if as_json:
        print(json.dumps(made, indent=2))
        return 0
    for key, value in made.items():
        print(f"{key.replace('_', ' '):24} {safe(_plain(value))}")
    print(f'\nWorkspace: {name}. Ask, for example: sentinel ask "what happened in the last 7 days?"')
    return 0


def _keep_apart(workspace: WorkspaceAccess) -> None:
    """Raise UsageError if invented incidents would come to lie among imported ones; naming the workspace allows it."""
    foreign = f'union SecurityAlert, SecurityIncident | where isempty(TenantId) or TenantId != "{TENANT_ID}" | take 1'
    if workspace.query(foreign, None)["rows"]:
        raise UsageError(
            f"The workspace {workspace.name!r} holds imported incidents or alerts; invented ones would mix with them.",
            next_step=f"Name another workspace: --workspace practice (or --workspace {workspace.name}, to mix them).",
        )


def tables(requested: str | None, *, as_json: bool) -> int:
    """List the tables that hold rows."""
    with workspace_access(load_settings(), requested, writes=False) as workspace:
        name, found = workspace.name, workspace.tables()
    if as_json:
        print(json.dumps(found, indent=2))
        return 0
    if not found:
        print(f"The workspace {name!r} has no rows yet. Fill it: sentinel workspace import FILE")
        return 0
    from sentinel_rag.surfaces.cli._render import console, print_table

    rows = [(t["table"], f"{t['rows']:,}", t["oldest"] or "-", t["newest"] or "-") for t in found]
    print_table(console(), f"Workspace {name}", ("table", "rows", "oldest", "newest"), rows)
    return 0


def query(requested: str | None, words: list[str], *, window: TimeWindow, timespan: str | None, as_json: bool) -> int:
    """Run KQL in `window`, or in `timespan` as Log Analytics takes it; 3 if it gives no rows."""
    if window != TimeWindow():
        if timespan is not None:
            raise UsageError("--timespan and --since or --until both say the window.", next_step="Give one of them.")
        from sentinel_rag.sentinel.log_analytics import timespan_text

        timespan = timespan_text(window)
    kql = read_text(words, what="query")
    with workspace_access(load_settings(), requested, writes=False) as workspace:
        answer = workspace.query(kql, timespan)
    if as_json:
        print(json.dumps(answer))
    else:
        from sentinel_rag.surfaces.cli._render import console, print_table

        columns = tuple(column["name"] for column in answer["columns"])
        print_table(console(), "", columns, [tuple(_plain(cell) for cell in row) for row in answer["rows"]])
        print(f"\n{len(answer['rows'])} rows")
        if answer["partial"]:
            print(f"Partial: {safe(answer['partial'])}")
    return 0 if answer["rows"] else 3


def _failed(report: ImportReport) -> bool:
    """Not read, or nothing in it was a row."""
    nothing = report.rows_rejected > 0 and not report.rows_stored and not report.duplicates_skipped
    return bool(report.error) or nothing


def _print_report(report: ImportReport) -> None:
    print(safe(report.sentence()))
    if report.error:
        print(f"  Next: {safe(report.next_step)}")
    for misfit in report.misfits:
        pairs = zip(misfit.records, misfit.values, strict=True)
        examples = ", ".join(f"record {record}: {value[:60]!r}" for record, value in pairs)
        column = safe_cell(misfit.column)
        print(f"  {misfit.count:,} values of {column} are no {misfit.type}: {safe_cell(examples)}")
    for reject in report.rejects[:SHOWN]:
        place = "" if reject.line is None else f"line {reject.line}: "
        print(f"  rejected {place}{safe_cell(reject.reason)}")
    if report.rows_rejected > SHOWN:
        print(f"  ... and {report.rows_rejected - SHOWN:,} more; the workspace keeps them all")
    if report.new_columns:
        print(f"  new columns: {safe_cell(', '.join(report.new_columns))}")
    for note in report.notes:
        print(f"  {safe(note)}")


def _moment(text: str) -> datetime:
    try:
        return parse_time(text)
    except ValueError as error:
        raise UsageError(f"--end: {error}.", next_step="Write it as 2024-07-02T00:00:00Z.") from None


def _plain(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
