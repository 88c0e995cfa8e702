"""`sentinel users`: its actions and their options. What an action does is imported when it runs."""

from __future__ import annotations

import argparse

from sentinel_rag.surfaces.cli._options import command

ROLES = ("analyst", "approver", "auditor", "admin")


def add_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    add = command(actions, "add", "make an account, with a key of its own at the gateway", _add)
    add.add_argument("name", help="what the person signs in as, and what the audit names the key")
    _terms(add)
    add.add_argument("--oidc", default=None, metavar="CLAIM", help="who it is at the identity provider: no password")
    add.add_argument("--password-stdin", action="store_true", help="read the password from standard input, a line")
    add.add_argument("--json", action="store_true", help="print as JSON")

    listed = command(actions, "list", "print every account with its roles and state", _list)
    listed.add_argument("--json", action="store_true", help="print as JSON")

    change = command(actions, "change", "give an account other roles, and a new key; it is live then", _change)
    change.add_argument("name", help="the account's name")
    _terms(change)
    change.add_argument("--json", action="store_true", help="print as JSON")

    disable = command(actions, "disable", "end an account: its sign-ins, tokens and key end at once", _disable)
    disable.add_argument("name", help="the account's name")
    disable.add_argument("--json", action="store_true", help="print as JSON")

    link = command(actions, "link", "print a link that signs you in as the owner, once, within an hour", _link)
    link.add_argument("--json", action="store_true", help="print as JSON")

    reset = command(actions, "reset", "set another password; every sign-in of the account ends", _reset)
    reset.add_argument("name", help="the account's name")
    reset.add_argument("--password-stdin", action="store_true", help="read it from standard input, a line")
    reset.add_argument("--json", action="store_true", help="print as JSON")


def _terms(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--role",
        action="append",
        choices=ROLES,
        default=None,
        help="what the person may do; may be given more than once (default: analyst)",
    )
    parser.add_argument(
        "--clearance",
        choices=("LOW", "MEDIUM", "HIGH"),
        default="MEDIUM",
        help="how secret a hidden value the person may see (default: MEDIUM)",
    )
    parser.add_argument(
        "--group", action="append", default=None, metavar="NAME", help="a group of readers of knowledge; repeatable"
    )


def _add(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.users import add

    return add(
        options.name,
        options.role or ROLES[:1],
        clearance=options.clearance,
        groups=options.group or (),
        oidc=options.oidc,
        from_stdin=options.password_stdin,
        as_json=options.json,
    )


def _list(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.users import show_all

    return show_all(as_json=options.json)


def _change(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.users import change

    return change(
        options.name,
        options.role or ROLES[:1],
        clearance=options.clearance,
        groups=options.group or (),
        as_json=options.json,
    )


def _disable(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.users import disable

    return disable(options.name, as_json=options.json)


def _link(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.users import link

    return link(as_json=options.json)


def _reset(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.users import reset

    return reset(options.name, from_stdin=options.password_stdin, as_json=options.json)
