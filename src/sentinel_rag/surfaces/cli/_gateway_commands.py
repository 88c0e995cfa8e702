"""Actions of the commands that look after the gateway: keys, users, policy, audit, approvals and its database.

What an action does is imported when it runs.
"""

from __future__ import annotations

import argparse

from sentinel_rag.surfaces.cli._options import command

TYPE_CHECKING = False  # as the type checker knows it: `typing` alone would cost a command two milliseconds

if TYPE_CHECKING:
    from sentinel_rag.gateway.policy.model import Rate


def _add_keys_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    create = command(actions, "create", "make a key and print its text, this once", _keys_create)
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
        "--rate", type=_keys_rate, default=None, metavar="CALLS/SECONDS", help="how often it may ask, such as 600/60"
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

    listed = command(actions, "list", "print every key with what it may do and its state", _keys_list)
    listed.add_argument("--json", action="store_true", help="print as JSON")

    rotate = command(actions, "rotate", "give a key a new secret under the same id", _keys_rotate)
    rotate.add_argument("key", help="its id, or its name")
    rotate.add_argument("--overlap", type=int, default=0, metavar="MINUTES", help="how long the old text still works")
    rotate.add_argument("--json", action="store_true", help="print key and terms as JSON")

    revoke = command(actions, "revoke", "end a key, at once and for good", _keys_revoke)
    revoke.add_argument("key", help="its id, or its name")
    revoke.add_argument("--json", action="store_true", help="print as JSON")


def _keys_rate(text: str) -> Rate:
    from sentinel_rag.gateway.policy.model import Rate

    calls, _, seconds = text.partition("/")
    if not (calls.isascii() and calls.isdecimal() and seconds.isascii() and seconds.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no rate such as 600/60")
    if not (1 <= int(calls[:8]) <= 1_000_000 and 1 <= int(seconds[:8]) <= 86_400):
        raise argparse.ArgumentTypeError("a rate is 1 to 1000000 calls in 1 to 86400 seconds")
    return Rate(int(calls), float(seconds))


def _keys_create(options: argparse.Namespace) -> int:
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


def _keys_list(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.keys import show_all

    return show_all(as_json=options.json)


def _keys_rotate(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.keys import rotate

    return rotate(options.key, overlap_minutes=options.overlap, as_json=options.json)


def _keys_revoke(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.keys import revoke

    return revoke(options.key, as_json=options.json)


ROLES = ("analyst", "approver", "auditor", "admin")


def _add_users_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    add = command(actions, "add", "make an account, with a key of its own at the gateway", _users_add)
    add.add_argument("name", help="what the person signs in as, and what the audit names the key")
    _users_terms(add)
    add.add_argument("--oidc", default=None, metavar="CLAIM", help="who it is at the identity provider: no password")
    add.add_argument("--password-stdin", action="store_true", help="read the password from standard input, a line")
    add.add_argument("--json", action="store_true", help="print as JSON")

    listed = command(actions, "list", "print every account with its roles and state", _users_list)
    listed.add_argument("--json", action="store_true", help="print as JSON")

    change = command(actions, "change", "give an account other roles, and a new key; it is live then", _users_change)
    change.add_argument("name", help="the account's name")
    _users_terms(change)
    change.add_argument("--json", action="store_true", help="print as JSON")

    disable = command(actions, "disable", "end an account: its sign-ins, tokens and key end at once", _users_disable)
    disable.add_argument("name", help="the account's name")
    disable.add_argument("--json", action="store_true", help="print as JSON")

    link = command(actions, "link", "print a link that signs you in as the owner, once, within an hour", _users_link)
    link.add_argument("--json", action="store_true", help="print as JSON")

    reset = command(actions, "reset", "set another password; every sign-in of the account ends", _users_reset)
    reset.add_argument("name", help="the account's name")
    reset.add_argument("--password-stdin", action="store_true", help="read it from standard input, a line")
    reset.add_argument("--json", action="store_true", help="print as JSON")


def _users_terms(parser: argparse.ArgumentParser) -> None:
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


def _users_add(options: argparse.Namespace) -> int:
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


def _users_list(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.users import show_all

    return show_all(as_json=options.json)


def _users_change(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.users import change

    return change(
        options.name,
        options.role or ROLES[:1],
        clearance=options.clearance,
        groups=options.group or (),
        as_json=options.json,
    )


def _users_disable(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.users import disable

    return disable(options.name, as_json=options.json)


def _users_link(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.users import link

    return link(as_json=options.json)


def _users_reset(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.users import reset

    return reset(options.name, from_stdin=options.password_stdin, as_json=options.json)


def _add_policy_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    check = command(actions, "check", "load a policy and name every problem with its line", _policy_check)
    check.add_argument("file", nargs="?", help="the policy (default: the one in use)")
    test = command(actions, "test", "run cases: calls with the decision that they must get", _policy_test)
    test.add_argument("cases", nargs="*", help="files or folders of cases (default: cases/ beside the policy)")
    explain = command(actions, "explain", "tell step by step why a call is decided as it is", _policy_explain)
    explain.add_argument("call", metavar="TOOL|AUDIT_ID", help="a tool to call, or the audit id of a past call")
    explain.add_argument("arguments", nargs="*", metavar="NAME=VALUE", help="arguments, or one JSON object")
    explain.add_argument("--context", default=None, metavar="LABEL", help="the session's label, as HIGH/UNTRUSTED")
    explain.add_argument(
        "--handle", action="append", default=[], metavar="NAME=LABEL", help="this argument is a hidden value"
    )
    explain.add_argument("--words", default=None, metavar="TEXT", help="what the user said in the session")
    replay = command(actions, "replay", "decide every audited call again", _policy_replay)
    for one in (test, explain, replay):
        one.add_argument("--policy", default=None, metavar="FILE", help="judge by this policy")
    diff = command(actions, "diff", "compare two policies: keys, cases, audited calls", _policy_diff)
    diff.add_argument("old", help="a policy file")
    diff.add_argument("new", help="a policy file")
    for one in (replay, diff):
        one.add_argument("--since", default=None, metavar="TIME", help="only calls from then on: 24h, 7d, a time")
    for one in (check, test, explain, replay, diff):
        one.add_argument("--json", action="store_true", help="print as JSON")


def _policy_check(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.policy import check

    return check(options.file, as_json=options.json)


def _policy_test(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.policy import test

    return test(options.cases, policy_file=options.policy, as_json=options.json)


def _policy_explain(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.policy import explain

    return explain(
        options.call,
        options.arguments,
        context=options.context,
        handles=options.handle,
        words=options.words,
        policy_file=options.policy,
        as_json=options.json,
    )


def _policy_replay(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.policy import replay

    return replay(policy_file=options.policy, since=options.since, as_json=options.json)


def _policy_diff(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.policy import diff

    return diff(options.old, options.new, since=options.since, as_json=options.json)


def _add_audit_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    show = command(actions, "show", "print records, newest last", _audit_show)
    show.add_argument("audit_id", nargs="?", help="one call's records, whole")
    show.add_argument("--last", type=int, default=20, help="how many, up to 1000 (default 20)")
    show.add_argument("--session", default=None, metavar="ID", help="only records of this session")
    show.add_argument("--person", default=None, metavar="NAME", help="only what this account or key did and had done")
    show.add_argument("--incident", default=None, metavar="NUMBER", help="only calls about this incident")
    show.add_argument("--tool", default=None, metavar="NAME", help="only calls of this tool")
    show.add_argument("--decision", default=None, choices=("allow", "deny"), help="only calls decided so")
    show.add_argument("--reason", default=None, metavar="REASON", help="only records with this reason (rule_denies)")
    show.add_argument("--since", default=None, metavar="TIME", help="from then on: ISO 8601, a date, or 12h or 7d ago")
    show.add_argument("--json", action="store_true", help="one JSON object a line")

    verify = command(actions, "verify", "check every record, checkpoint and segment of the journal", _audit_verify)
    verify.add_argument("--public-key", default=None, metavar="FILE", help="PEM file (default: the journal's own)")
    verify.add_argument("--file", default=None, metavar="EXPORT", help="check an exported file instead of the journal")
    verify.add_argument("--anchor", default=None, metavar="FILE", help="second file of checkpoints (default: as set)")
    verify.add_argument("--json", action="store_true", help="print as JSON")

    export = command(actions, "export", "write records as JSON lines that verify --file can check", _audit_export)
    export.add_argument("file", metavar="FILE", help="new file to write, or - for standard output")
    export.add_argument("--since", default=None, metavar="TIME", help="first moment; as for show")
    export.add_argument("--until", default=None, metavar="TIME", help="end, not included; as for show")

    key = command(actions, "key", "print the public key that checks the journal's signatures", _audit_key)
    key.add_argument("--json", action="store_true", help="print as JSON")

    rotate = command(actions, "rotate", "move all records into a segment of its own", _audit_rotate)
    rotate.add_argument("--json", action="store_true", help="print as JSON")

    prune = command(actions, "prune", "remove whole segments whose records are all old, provably", _audit_prune)
    prune.add_argument("--older-than", type=float, required=True, metavar="DAYS", help="how old the newest record is")
    prune.add_argument("--json", action="store_true", help="print as JSON")
    replay = command(
        actions, "replay", "decide every past call again under the policy it was decided by", _audit_replay
    )
    replay.add_argument("--since", default=None, metavar="TIME", help="only calls from then on: 24h, 7d, a time")
    replay.add_argument("--json", action="store_true", help="print as JSON")


def _audit_show(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.audit import show

    return show(
        options.audit_id,
        last=options.last,
        session=options.session,
        person=options.person,
        incident=options.incident,
        tool=options.tool,
        decision=options.decision,
        reason=options.reason,
        since=options.since,
        as_json=options.json,
    )


def _audit_verify(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.audit import verify

    return verify(public_key=options.public_key, export=options.file, anchor=options.anchor, as_json=options.json)


def _audit_export(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.audit import export

    return export(options.file, since=options.since, until=options.until)


def _audit_key(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.audit import key

    return key(as_json=options.json)


def _audit_rotate(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.audit import rotate

    return rotate(as_json=options.json)


def _audit_prune(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.audit import prune

    return prune(days=options.older_than, as_json=options.json)


def _audit_replay(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.policy import replay

    return replay(policy_file=None, since=options.since, as_json=options.json)


def _add_approvals_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    states = ("pending", "approved", "denied", "used", "expired", "all")
    shown = command(actions, "list", "those that wait, oldest first", _approvals_list)
    shown.add_argument("--state", choices=states, default="pending", help="those in another state, or all")
    shown.add_argument("--json", action="store_true", help="print as JSON")
    one = command(actions, "show", "one call whole: what it does, with which data, why it is asked", _approvals_show)
    _approvals_which(one)
    one.add_argument("--json", action="store_true", help="print as JSON")
    for verb, meaning in (
        ("approve", "let exactly this call run, once"),
        ("deny", "let it not run, nor be asked about again for some time"),
        ("lift", "take a denial back, so that the call is asked about again"),
    ):
        decide = command(actions, verb, meaning, _approvals_decide)
        decide.set_defaults(verb=verb, last=False)
        if verb == "lift":  # the last that waits was not denied
            decide.add_argument("approval_id", metavar="ID", help="the id, or its beginning")
        else:
            _approvals_which(decide)
        decide.add_argument("--comment", default="", help="why; it stands on record")
        decide.add_argument("--json", action="store_true", help="print as JSON")
    watch = command(actions, "watch", "print new ones as they come; on a terminal, ask y or n", _approvals_watch)
    watch.add_argument("--json", action="store_true", help="one JSON object a line")


def _approvals_which(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("approval_id", nargs="?", metavar="ID", help="the id, or its beginning")
    parser.add_argument("--last", action="store_true", help="the newest one that waits, in place of an ID")


def _approvals_list(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.approvals import list_all

    return list_all(options.state, as_json=options.json)


def _approvals_show(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.approvals import show

    return show(options.approval_id, last=options.last, as_json=options.json)


def _approvals_decide(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.approvals import decide

    return decide(options.approval_id, options.verb, last=options.last, comment=options.comment, as_json=options.json)


def _approvals_watch(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.approvals import watch

    return watch(as_json=options.json)


def _add_database_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    prepare = command(actions, "prepare", "make the tables in PostgreSQL, or bring them up to date", _database_prepare)
    prepare.add_argument("--for", dest="role", default=None, metavar="ROLE", help="role that gateways run with")
    prepare.add_argument("--json", action="store_true", help="print as JSON")

    move = command(
        actions, "move", "move keys, sessions, approvals and journal from the files of this home", _database_move
    )
    move.add_argument("--json", action="store_true", help="print as JSON")


def _database_prepare(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.database import prepare

    return prepare(options.role, as_json=options.json)


def _database_move(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.database import move

    return move(as_json=options.json)


GATEWAY_ACTIONS = {
    "policy": _add_policy_actions,
    "audit": _add_audit_actions,
    "database": _add_database_actions,
    "approvals": _add_approvals_actions,
    "keys": _add_keys_actions,
    "users": _add_users_actions,
}
