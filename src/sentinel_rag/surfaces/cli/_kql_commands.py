"""`sentinel kql`: its actions and their options. What an action does is imported when it runs."""

from __future__ import annotations

import argparse

from sentinel_rag.surfaces.cli._options import command, window_options, workspace_option


def add_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listed = command(actions, "templates", "list the templates, or show one with its query", _templates)
    listed.add_argument("name", nargs="?", metavar="NAME", help="one template, whole")
    run = command(actions, "run", "run a template yourself (this is you, not the agent: no policy applies)", _run)
    run.add_argument("name", metavar="NAME", help="the template")
    run.add_argument("arguments", nargs="*", metavar="PARAM=VALUE", help="its parameters; a list by commas")
    window_options(run)
    run.add_argument("--limit", type=_row_limit, default=20, metavar="N", help="rows to print, 1 to 10000 (default 20)")
    workspace_option(run)
    query = command(actions, "query", "run KQL of your own, checked by the guard (no policy applies)", _query)
    query.add_argument("kql", nargs="*", help="the query, or a file with it; read from standard input when left out")
    window_options(query)
    query.add_argument(
        "--limit", type=_row_limit, default=20, metavar="N", help="rows to print, 1 to 10000 (default 20)"
    )
    query.add_argument("--unguarded", action="store_true", help="send the text as it is, without the guard's check")
    workspace_option(query)
    lint = command(actions, "lint", "check templates, and try each on an empty workspace", _lint)
    lint.add_argument("path", nargs="?", metavar="PATH", help="a file or folder (default: shipped ones and your own)")
    check = command(actions, "check", "check the KQL of rule files: plain, Markdown, YAML and ARM", _check)
    check.add_argument("paths", nargs="+", metavar="PATH", help="files, or folders of them")
    check.add_argument("--schema", default=None, metavar="FILE", help="more tables: JSON {table: {column: type}}")
    check.add_argument("--guard", action="store_true", help="also say what would be refused as freeform KQL")
    check.add_argument("--strict", action="store_true", help="warnings count as faults")
    workspace_option(check)
    install = command(actions, "install", "install Microsoft's KQL parser for freeform KQL", _install)
    for one in (listed, run, query, lint, check, install):
        one.add_argument("--json", action="store_true", help="print as JSON")


def _row_limit(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:6]) <= 10_000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows from 1 to 10000")
    return int(text)


def _templates(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.kql import templates

    return templates(options.name, as_json=options.json)


def _run(options: argparse.Namespace) -> int:
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


def _query(options: argparse.Namespace) -> int:
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


def _lint(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.kql import lint

    return lint(options.path, as_json=options.json)


def _check(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.kql_check import check

    return check(
        options.paths,
        schema_file=options.schema,
        workspace=options.workspace,
        freeform=options.guard,
        strict=options.strict,
        as_json=options.json,
    )


def _install(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.kql_parser import install

    return install(as_json=options.json)
