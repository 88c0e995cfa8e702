"""`sentinel approvals`: its actions and their options. What an action does is imported when it runs."""

from __future__ import annotations

import argparse

from sentinel_rag.surfaces.cli._options import command


def add_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    states = ("pending", "approved", "denied", "used", "expired", "all")
    shown = command(actions, "list", "those that wait, oldest first", _list)
    shown.add_argument("--state", choices=states, default="pending", help="those in another state, or all")
    shown.add_argument("--json", action="store_true", help="print as JSON")
    one = command(actions, "show", "one call whole: what it does, with which data, why it is asked", _show)
    _which(one)
    one.add_argument("--json", action="store_true", help="print as JSON")
    for verb, meaning in (("approve", "let exactly this call run, once"), ("deny", "let it not run")):
        decide = command(actions, verb, meaning, _decide)
        decide.set_defaults(verb=verb)
        _which(decide)
        decide.add_argument("--comment", default="", help="why; it stands on record")
        decide.add_argument("--json", action="store_true", help="print as JSON")
    watch = command(actions, "watch", "print new ones as they come; on a terminal, ask y or n", _watch)
    watch.add_argument("--json", action="store_true", help="one JSON object a line")


def _which(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("approval_id", nargs="?", metavar="ID", help="the id, or its beginning")
    parser.add_argument("--last", action="store_true", help="the newest one that waits, in place of an ID")


def _list(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.approvals import list_all

    return list_all(options.state, as_json=options.json)


def _show(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.approvals import show

    return show(options.approval_id, last=options.last, as_json=options.json)


def _decide(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.approvals import decide

    return decide(options.approval_id, options.verb, last=options.last, comment=options.comment, as_json=options.json)


def _watch(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.approvals import watch

    return watch(as_json=options.json)
