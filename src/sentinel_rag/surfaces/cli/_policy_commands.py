"""`sentinel policy`: its actions and their options. What an action does is imported when it runs."""

from __future__ import annotations

import argparse

from sentinel_rag.surfaces.cli._options import command


def add_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    check = command(actions, "check", "load a policy and name every problem with its line", _check)
    check.add_argument("file", nargs="?", help="the policy (default: the one in use)")
    test = command(actions, "test", "run cases: calls with the decision that they must get", _test)
    test.add_argument("cases", nargs="*", help="files or folders of cases (default: cases/ beside the policy)")
    explain = command(actions, "explain", "tell step by step why a call is decided as it is", _explain)
    explain.add_argument("call", metavar="TOOL|AUDIT_ID", help="a tool to call, or the audit id of a past call")
    explain.add_argument("arguments", nargs="*", metavar="NAME=VALUE", help="arguments, or one JSON object")
    explain.add_argument("--context", default=None, metavar="LABEL", help="the session's label, as HIGH/UNTRUSTED")
    explain.add_argument(
        "--handle", action="append", default=[], metavar="NAME=LABEL", help="this argument is a hidden value"
    )
    explain.add_argument("--words", default=None, metavar="TEXT", help="what the user said in the session")
    replay = command(actions, "replay", "decide every audited call again", _replay)
    for one in (test, explain, replay):
        one.add_argument("--policy", default=None, metavar="FILE", help="judge by this policy")
    diff = command(actions, "diff", "compare two policies: keys, cases, audited calls", _diff)
    diff.add_argument("old", help="a policy file")
    diff.add_argument("new", help="a policy file")
    for one in (replay, diff):
        one.add_argument("--since", default=None, metavar="TIME", help="only calls from then on: 24h, 7d, a time")
    for one in (check, test, explain, replay, diff):
        one.add_argument("--json", action="store_true", help="print as JSON")


def _check(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.policy import check

    return check(options.file, as_json=options.json)


def _test(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.policy import test

    return test(options.cases, policy_file=options.policy, as_json=options.json)


def _explain(options: argparse.Namespace) -> int:
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


def _replay(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.policy import replay

    return replay(policy_file=options.policy, since=options.since, as_json=options.json)


def _diff(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.policy import diff

    return diff(options.old, options.new, since=options.since, as_json=options.json)
