"""`sentinel keys`: its actions and their options. What an action does is imported when it runs."""

from __future__ import annotations

import argparse

from sentinel_rag.surfaces.cli._options import command

TYPE_CHECKING = False  # as the type checker knows it: `typing` alone would cost a command two milliseconds
if TYPE_CHECKING:
    from sentinel_rag.gateway.policy.model import Rate


def add_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    create = command(actions, "create", "make a key and print its text, this once", _create)
    create.add_argument("--name", required=True, help="what people call it; no two live keys share a name")
    create.add_argument(
        "--scope",
        required=True,
        action="append",
        choices=("execute", "user", "approve", "audit", "admin"),
        help="what it may do; may be given more than once. user: speak for a signed-in person",
    )
    create.add_argument(
        "--clearance",
        choices=("LOW", "MEDIUM", "HIGH"),
        default=None,
        help="how secret a hidden value a user key may have shown (default MEDIUM)",
    )
    create.add_argument("--expires", type=int, default=None, metavar="DAYS", help="when it ends by itself")
    create.add_argument(
        "--rate", type=_rate, default=None, metavar="CALLS/SECONDS", help="how often it may ask, such as 600/60"
    )
    create.add_argument(
        "--for",
        dest="for_key",
        default=None,
        metavar="KEY",
        help="id or name of the key whose sessions a user key may open (default: the agent's of each run)",
    )
    create.add_argument(
        "--reader",
        action="append",
        default=[],
        metavar="NAME",
        help="a name under which it may read what is not for everybody; may be given more than once",
    )
    create.add_argument("--json", action="store_true", help="print key and terms as JSON")

    listed = command(actions, "list", "print every key with what it may do and its state", _list)
    listed.add_argument("--json", action="store_true", help="print as JSON")

    rotate = command(actions, "rotate", "give a key a new secret under the same id", _rotate)
    rotate.add_argument("key", help="its id, or its name")
    rotate.add_argument("--overlap", type=int, default=0, metavar="MINUTES", help="how long the old text still works")
    rotate.add_argument("--json", action="store_true", help="print key and terms as JSON")

    revoke = command(actions, "revoke", "end a key, at once and for good", _revoke)
    revoke.add_argument("key", help="its id, or its name")
    revoke.add_argument("--json", action="store_true", help="print as JSON")


def _rate(text: str) -> Rate:
    from sentinel_rag.gateway.policy.model import Rate

    calls, _, seconds = text.partition("/")
    if not (calls.isascii() and calls.isdecimal() and seconds.isascii() and seconds.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no rate such as 600/60")
    if not (1 <= int(calls[:8]) <= 1_000_000 and 1 <= int(seconds[:8]) <= 86_400):
        raise argparse.ArgumentTypeError("a rate is 1 to 1000000 calls in 1 to 86400 seconds")
    return Rate(int(calls), float(seconds))


def _create(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.keys import create

    return create(
        options.name,
        options.scope,
        clearance=options.clearance,
        expires_days=options.expires,
        rate=options.rate,
        for_key=options.for_key,
        readers=options.reader,
        as_json=options.json,
    )


def _list(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.keys import show_all

    return show_all(as_json=options.json)


def _rotate(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.keys import rotate

    return rotate(options.key, overlap_minutes=options.overlap, as_json=options.json)


def _revoke(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.keys import revoke

    return revoke(options.key, as_json=options.json)
