"""`sentinel database`: its actions and their options. What an action does is imported when it runs."""

from __future__ import annotations

import argparse

from sentinel_rag.surfaces.cli._options import command


def add_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    prepare = command(actions, "prepare", "make the tables in PostgreSQL, or bring them up to date", _prepare)
    prepare.add_argument("--for", dest="role", default=None, metavar="ROLE", help="role that gateways run with")
    prepare.add_argument("--json", action="store_true", help="print as JSON")

    move = command(actions, "move", "move keys, sessions, approvals and journal from the files of this home", _move)
    move.add_argument("--json", action="store_true", help="print as JSON")


def _prepare(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.database import prepare

    return prepare(options.role, as_json=options.json)


def _move(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.database import move

    return move(as_json=options.json)
