"""`sentinel workspace`: its actions and their options. What an action does is imported when it runs."""

from __future__ import annotations

import argparse

from sentinel_rag.surfaces.cli._options import command, window_options, workspace_option

FAULT_KINDS = (
    "throttled", "timeout", "server_error", "html", "empty", "no_content", "truncated", "too_large", "partial",
    "unauthorized", "forbidden", "conflict", "slow", "lost_answer", "other_columns", "late_rows",
)  # fmt: skip
"""As `workspace.serving.faults` knows them; a test keeps the two equal."""

_NONE = object()


def add_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    generate = command(actions, "generate", "write a sample estate: several weeks, an attack, benign noise", _generate)
    generate.add_argument("--days", type=int, default=None, help="how many days back it reaches")
    generate.add_argument("--events", type=int, default=None, help="about how many log rows")
    generate.add_argument("--seed", type=int, default=None, help="same seed, same estate")
    generate.add_argument("--end", default=None, help="its last moment, ISO 8601 (default: now)")
    generate.add_argument("--once", action="store_true", help="do nothing where the workspace is there already")
    generate.add_argument("--json", action="store_true", help="print what was written as JSON")
    workspace_option(generate)

    load = command(actions, "import", "import exports: CSV, JSON, JSON lines, Parquet, or a folder of them", _import)
    load.add_argument("path", nargs="+", help="files or folders")
    load.add_argument("--table", default=None, help="table to import into (default: found from the file)")
    load.add_argument("--json", action="store_true", help="print the reports as JSON")
    workspace_option(load)

    tables = command(actions, "tables", "tables with rows, their counts and times", _tables)
    tables.add_argument("--json", action="store_true", help="print as JSON")
    workspace_option(tables)

    query = command(actions, "query", "run KQL yourself (this is you, not the agent: no policy applies)", _query)
    query.add_argument("kql", nargs="*", help="the query; read from standard input when left out")
    window_options(query)
    query.add_argument("--timespan", default=None, help="ISO 8601 duration or start/end, as Log Analytics takes it")
    query.add_argument("--json", action="store_true", help="print columns and rows as JSON")
    workspace_option(query)

    faults = command(actions, "faults", "make a bad day of the service: throttling, slow or broken answers", _faults)
    faults.add_argument("action", nargs="?", choices=("show", "set", "add", "clear"), default="show")
    faults.add_argument("kind", nargs="?", choices=FAULT_KINDS, metavar="KIND", help=f"one of {', '.join(FAULT_KINDS)}")
    faults.add_argument("--wire", choices=("logs", "rest"), default=None, help="queries or incidents (default: both)")
    faults.add_argument("--method", default=None, help="only requests of this method")
    faults.add_argument("--path", default=None, metavar="TEXT", help="only requests whose path holds this")
    faults.add_argument("--times", type=_times, default=None, metavar="N", help="how many it hits, or all (default 1)")
    faults.add_argument("--skip", type=int, default=None, metavar="N", help="how many pass before it begins")
    faults.add_argument("--every", type=int, default=None, metavar="N", help="hit every N-th only")
    faults.add_argument("--probability", type=float, default=None, metavar="P", help="hit this share of them (0 to 1)")
    faults.add_argument("--seed", type=int, default=None, help="same seed, same requests")
    faults.add_argument("--start", default=None, metavar="TIME", help="not before then (ISO 8601)")
    faults.add_argument("--end", default=None, metavar="TIME", help="not from then on")
    faults.add_argument(
        "--retry-after",
        dest="retry_after_s",
        type=_seconds_or_none,
        default=None,
        metavar="S",
        help="Retry-After: seconds, a date or other text, or none (default 1)",
    )
    faults.add_argument(
        "--delay",
        dest="delay_s",
        type=float,
        default=None,
        metavar="S",
        help="how slow, or how late rows come (default 0.2)",
    )
    faults.add_argument("--status", type=int, choices=(409, 412), default=None, help="of a conflict")
    faults.add_argument("--json", action="store_true", help="print as JSON")
    workspace_option(faults)


def _times(text: str) -> object:
    """A number, or all: then nothing counts them down."""
    return _NONE if text == "all" else int(text)


def _seconds_or_none(text: str) -> object:
    """Seconds, no header for none, or the header's text as it is: a date, or nonsense."""
    if text == "none":
        return _NONE
    return int(text) if text.isdigit() else text


def _generate(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.workspace import generate

    return generate(
        options.workspace,
        days=options.days,
        events=options.events,
        seed=options.seed,
        end=options.end,
        once=options.once,
        as_json=options.json,
    )


def _import(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.workspace import import_files

    return import_files(options.workspace, options.path, table=options.table, as_json=options.json)


def _tables(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.workspace import tables

    return tables(options.workspace, as_json=options.json)


def _query(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli._moments import window_of
    from sentinel_rag.surfaces.cli.workspace import query

    window = window_of(options.since, options.until)
    return query(options.workspace, options.kql, window=window, timespan=options.timespan, as_json=options.json)


def _faults(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.workspace_faults import run

    names = "wire method path times skip every probability seed start end retry_after_s delay_s status"
    given = {name: value for name in names.split() if (value := getattr(options, name)) is not None}
    given = {name: None if value is _NONE else value for name, value in given.items()}
    return run(options.workspace, options.action, options.kind, given, as_json=options.json)
