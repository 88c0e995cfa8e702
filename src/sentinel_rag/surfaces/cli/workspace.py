"""`sentinel workspace` and `sentinel watchlist`: fill the embedded workspace, look at it, query it, and make it fail on
purpose."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from sentinel_rag.app.places import SAMPLE_WORKSPACE, workspace_folder
from sentinel_rag.app.run_state import RunFolder
from sentinel_rag.contracts.errors import SentinelError, UsageError
from sentinel_rag.contracts.query_results import TimeWindow, format_time, parse_time
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._commands import NONE
from sentinel_rag.surfaces.cli._moments import moment, window_of
from sentinel_rag.surfaces.cli._output import print_json, print_table
from sentinel_rag.surfaces.cli._workspace_access import WorkspaceAccess, embedded_name, fault_admin, workspace_access
from sentinel_rag.surfaces.cli.ask import read_text, waiting
from sentinel_rag.surfaces.rendering.visible import plain_cell, safe, safe_cell
from sentinel_rag.workspace.importing.reports import ImportReport, questions_of
from sentinel_rag.workspace.sample.company import TENANT_ID
from sentinel_rag.workspace.sample.options import EstateOptions

SHOWN, MOST_NAMED = 5, 8


def import_files(path: Sequence[str], *, workspace: str | None, table: str | None, trial: bool, as_json: bool) -> int:
    """Import files and folders, or only tell what would become of them; 0 if each was read, 1 if one could not be (the
    others are stored)."""
    settings = load_settings()
    _check_kept(settings, workspace)
    reports: list[ImportReport] = []
    with waiting("Importing...", quiet=as_json), workspace_access(settings, workspace, writes=True) as access:
        name = access.name
        for each in path:
            try:
                wanted = {"path": str(Path(each).absolute()), "table": table, "trial": trial}
                reports += map(ImportReport.from_dict, access.ask("POST", "/admin/import", wanted)["reports"])
            except SentinelError as error:
                if len(path) == 1:
                    raise
                reports.append(
                    ImportReport(file=each, table="", format="", error=str(error), next_step=error.next_step)
                )
    if as_json:
        print_json([report.to_dict() for report in reports])
    else:
        folders = [f"{Path(each).absolute().parent}/" for each in path]
        for report in reports:
            _print_report(report, folders)
        stored = sum(report.rows_stored for report in reports)
        print(f"Workspace: {name}, {stored:,} rows {'would be ' if trial else ''}stored")
        questions = questions_of(reports)
        if questions:
            print("Ask, for example:")
        beside = "" if workspace is None else f" --workspace {name}"
        for question in questions:
            print(f"  sentinel ask{beside} {shlex.quote(safe_cell(question))}")
        if not trial:
            _tell_open_chat(settings, name)
    return 1 if any(_failed(report) for report in reports) else 0


def _tell_open_chat(settings: Settings, name: str) -> None:
    """Say that zones which run now do not serve the workspace that was filled beside them."""
    state = RunFolder(settings.home).read()
    if state is not None and not state.private and name not in state.workspaces:
        print(f"An open chat, or sentinel up, asks {', '.join(state.workspaces)}: start it again to ask {name}.")


def generate(
    workspace: str | None,
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
    chosen = embedded_name(settings, workspace, writes=True)
    if once and workspace_folder(settings.home, chosen).exists():
        print(json.dumps({}) if as_json else f"The workspace {chosen!r} is there already.")
        return 0
    given = {name: value for name, value in (("days", days), ("events", events), ("seed", seed)) if value is not None}
    options = EstateOptions(**given, end=None if end is None else _moment(end))
    with waiting("Generating...", quiet=as_json), workspace_access(settings, workspace, writes=True) as access:
        name = access.name
        if (workspace or settings.workspace) is None and not settings.workspaces:
            _keep_apart(access)
        made = access.ask("POST", "/admin/generate", options.to_dict())["guide"]
    if as_json:
        print_json(made)
        return 0
    for key, value in made.items():
        print(f"{key.replace('_', ' '):24} {safe(plain_cell(value))}")
    print(f'\nWorkspace: {name}. Ask, for example: sentinel ask "what happened in the last 7 days?"')
    return 0


def _keep_apart(access: WorkspaceAccess) -> None:
    """Raise UsageError if invented incidents would come to lie among imported ones; naming the workspace allows it."""
    foreign = f'union SecurityAlert, SecurityIncident | where isempty(TenantId) or TenantId != "{TENANT_ID}" | take 1'
    if access.query(foreign, None)["rows"]:
        raise UsageError(
            f"The workspace {access.name!r} holds imported incidents or alerts; invented ones would mix with them.",
            next_step=f"Name another workspace: --workspace practice (or --workspace {access.name}, to mix them).",
        )


def tables(workspace: str | None, *, as_json: bool) -> int:
    """List the tables that hold rows."""
    with workspace_access(load_settings(), workspace, writes=False) as access:
        name, found = access.name, access.tables()
    if as_json:
        print_json(found)
        return 0
    if not found:
        print(f"The workspace {name!r} has no rows yet. Fill it: sentinel workspace import FILE")
        return 0
    rows = [(t["table"], f"{t['rows']:,}", t["oldest"] or "-", t["newest"] or "-") for t in found]
    print_table(("table", "rows", "oldest", "newest"), rows, f"Workspace {name}")
    return 0


def query(
    kql: list[str], *, workspace: str | None, since: str | None, until: str | None, timespan: str | None, as_json: bool
) -> int:
    """Run KQL in the window, or in `timespan` as Log Analytics takes it; 3 if it gives no rows."""
    window = window_of(since, until)
    if window != TimeWindow():
        if timespan is not None:
            raise UsageError("--timespan and --since or --until both say the window.", next_step="Give one of them.")
        from sentinel_rag.sentinel.logs.log_analytics import timespan_text

        timespan = timespan_text(window)
    text = read_text(kql, what="query")
    with workspace_access(load_settings(), workspace, writes=False) as access:
        answer = access.query(text, timespan)
    if as_json:
        print(json.dumps(answer))
    else:
        columns = tuple(column["name"] for column in answer["columns"])
        print_table(columns, [tuple(plain_cell(cell) for cell in row) for row in answer["rows"]])
        print(f"\n{len(answer['rows'])} rows")
        if answer["partial"]:
            print(f"Partial: {safe(answer['partial'])}")
    return 0 if answer["rows"] else 3


def show_watchlists(alias: str | None = None, *, limit: int, workspace: str | None, as_json: bool) -> int:
    """Print the watchlists, or the items of one; 3 for none."""
    from sentinel_rag.contracts.watchlists import LISTED, rows_of
    from sentinel_rag.surfaces.cli.kql import query as run_kql

    kql = [LISTED if alias is None else rows_of(alias)]
    return run_kql(kql, since=None, until=None, limit=limit, workspace=workspace, unguarded=True, as_json=as_json)


def put_watchlist(
    alias: str, file: str, *, key: str | None, replace: bool, workspace: str | None, as_json: bool
) -> int:
    """Put a list in, from a CSV file."""
    settings, path = load_settings(), Path(file).expanduser().absolute()
    _check_kept(settings, workspace)
    with workspace_access(settings, workspace, writes=True) as access:
        wanted = {"alias": alias, "path": str(path), "search_key": key, "replaces": replace}
        made = access.ask("POST", "/admin/watchlists", wanted)
    keys = f"Watchlist | where WatchlistAlias == '{alias}' | project SearchKey"
    told = f"The watchlist {alias} holds {made['items']:,} items. Its keys in KQL: {keys}"
    print(json.dumps(made) if as_json else safe_cell(told))
    if not as_json:
        print(f"Workspace: {access.name}")
        _tell_open_chat(settings, access.name)
    return 0


def remove_watchlist(alias: str, *, workspace: str | None) -> int:
    """Remove a list."""
    with workspace_access(load_settings(), workspace, writes=True) as access:
        access.ask("DELETE", "/admin/watchlists", {"alias": alias})
    print(safe_cell(f"The watchlist {alias} is removed."))
    return 0


def _check_kept(settings: Settings, workspace: str | None) -> None:
    """Raise UsageError for a workspace whose rows do not stay."""
    if embedded_name(settings, workspace, writes=True) == SAMPLE_WORKSPACE:
        raise UsageError(
            "The workspace 'sample' is generated and made anew by sentinel demo; your data would be lost with it.",
            next_step="Import into another: --workspace default",
        )


def _failed(report: ImportReport) -> bool:
    """Not read, or nothing in it was a row."""
    nothing = report.rows_rejected > 0 and not report.rows_stored and not report.duplicates_skipped
    return bool(report.error) or nothing


def _print_report(report: ImportReport, folders: Sequence[str]) -> None:
    told = report.sentence()  # files are named without the folder that was asked for
    for folder in folders:
        told = told.replace(folder, "")
    print(safe(told))
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
    added = list(report.new_columns or ())
    if added:
        more = f" and {len(added) - MOST_NAMED} more (--json)" if len(added) > MOST_NAMED else ""
        print(f"  new columns: {safe_cell(', '.join(added[:MOST_NAMED]))}{more}")
    if report.trial and report.first:
        cells = zip(report.columns, report.first[0], strict=True)
        print(f"  first row: {safe_cell(', '.join(f'{name} {cell[:60]}' for name, cell in cells))}")
    for note in report.notes:
        print(f"  {safe(note)}")


def _moment(text: str) -> datetime:
    try:
        return parse_time(text)
    except ValueError as error:
        raise UsageError(f"--end: {error}.", next_step="Write it as 2024-07-02T00:00:00Z.") from None


_SHOWN = ("kind", "wire", "method", "path", "times", "skip", "every", "probability", "start", "end")


def faults(action: str, kind: str | None, *, workspace: str | None, as_json: bool, **options: Any) -> int:
    """Show the faults that are left, set them (`set` in place of others, `add` behind them), or `clear` them."""
    given = {name: None if value is NONE else value for name, value in options.items() if value is not None}
    if action in ("set", "add") and kind is None:
        raise UsageError(f"faults {action} needs the kind of the fault.", next_step="sentinel workspace faults --help")
    if action in ("show", "clear") and (kind is not None or given):
        raise UsageError(f"faults {action} takes no fault.", next_step=f"sentinel workspace faults {action}")
    admin = fault_admin(load_settings(), workspace)
    if action == "show":
        state = admin("GET", None)
    elif action == "clear":
        state = admin("PUT", {"faults": []})
    else:
        state = admin("PUT" if action == "set" else "POST", {"faults": [_fault(str(kind), given)]})
    if as_json:
        print_json(state)
    else:
        _print(state)
    return 0


def _fault(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    times = {name: format_time(moment(f"--{name}", given[name])) for name in ("start", "end") if name in given}
    return {"kind": kind, **given, **times}


def _print(state: Mapping[str, Any]) -> None:
    faults = state["faults"]
    if faults:
        rows = [tuple(_cell(name, fault.get(name)) for name in _SHOWN) for fault in faults]
        print_table(_SHOWN, rows)
    else:
        print("No fault is to come.")
    counted = ", ".join(f"{safe_cell(name)} {count}" for name, count in state["requests"].items())
    print(f"Requests since they were set: {counted or 'none'}.")


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "all" if name == "times" else "any" if name in ("wire", "method") else "-"
    return str(value)
