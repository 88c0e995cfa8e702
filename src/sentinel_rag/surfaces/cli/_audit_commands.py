"""`sentinel audit`: its actions and their options. What an action does is imported when it runs."""

from __future__ import annotations

import argparse

from sentinel_rag.surfaces.cli._options import command


def add_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    show = command(actions, "show", "print records, newest last", _show)
    show.add_argument("audit_id", nargs="?", help="one call's records, whole")
    show.add_argument("--last", type=int, default=20, help="how many, up to 1000 (default 20)")
    show.add_argument("--session", default=None, metavar="ID", help="only records of this session")
    show.add_argument("--tool", default=None, metavar="NAME", help="only calls of this tool")
    show.add_argument("--decision", default=None, choices=("allow", "deny"), help="only calls decided so")
    show.add_argument("--reason", default=None, metavar="REASON", help="only records with this reason (rule_denies)")
    show.add_argument("--since", default=None, metavar="TIME", help="from then on: ISO 8601, a date, or 12h or 7d ago")
    show.add_argument("--json", action="store_true", help="one JSON object a line")

    verify = command(actions, "verify", "check every record, checkpoint and segment of the journal", _verify)
    verify.add_argument("--public-key", default=None, metavar="FILE", help="PEM file (default: the journal's own)")
    verify.add_argument("--file", default=None, metavar="EXPORT", help="check an exported file instead of the journal")
    verify.add_argument("--anchor", default=None, metavar="FILE", help="second file of checkpoints (default: as set)")
    verify.add_argument("--json", action="store_true", help="print as JSON")

    export = command(actions, "export", "write records as JSON lines that verify --file can check", _export)
    export.add_argument("file", metavar="FILE", help="new file to write, or - for standard output")
    export.add_argument("--since", default=None, metavar="TIME", help="first moment; as for show")
    export.add_argument("--until", default=None, metavar="TIME", help="end, not included; as for show")

    key = command(actions, "key", "print the public key that checks the journal's signatures", _key)
    key.add_argument("--json", action="store_true", help="print as JSON")

    rotate = command(actions, "rotate", "move all records into a segment of its own", _rotate)
    rotate.add_argument("--json", action="store_true", help="print as JSON")

    prune = command(actions, "prune", "remove whole segments whose records are all old, provably", _prune)
    prune.add_argument("--older-than", type=float, required=True, metavar="DAYS", help="how old the newest record is")
    prune.add_argument("--json", action="store_true", help="print as JSON")
    replay = command(actions, "replay", "decide every past call again under the policy it was decided by", _replay)
    replay.add_argument("--since", default=None, metavar="TIME", help="only calls from then on: 24h, 7d, a time")
    replay.add_argument("--json", action="store_true", help="print as JSON")


def _show(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.audit import show

    return show(
        options.audit_id,
        last=options.last,
        session=options.session,
        tool=options.tool,
        decision=options.decision,
        reason=options.reason,
        since=options.since,
        as_json=options.json,
    )


def _verify(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.audit import verify

    return verify(public_key=options.public_key, export=options.file, anchor=options.anchor, as_json=options.json)


def _export(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.audit_keeping import export

    return export(options.file, since=options.since, until=options.until)


def _key(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.audit import key

    return key(as_json=options.json)


def _rotate(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.audit_keeping import rotate

    return rotate(as_json=options.json)


def _prune(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.audit_keeping import prune

    return prune(days=options.older_than, as_json=options.json)


def _replay(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.policy import replay

    return replay(policy_file=None, since=options.since, as_json=options.json)
