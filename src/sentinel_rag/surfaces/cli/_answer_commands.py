"""`sentinel answer`: its action and its options. What it does is imported when it runs."""

from __future__ import annotations

import argparse

from sentinel_rag.surfaces.cli._options import command


def add_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    check = command(actions, "check", "compare each sentence of an answer with what it cites", _check)
    results_help = "the results that it cites, as sentinel export --format results writes them"
    check.add_argument("--results", required=True, metavar="FILE", help=results_help)
    answer_help = "the answer with its citations, as text or Markdown; - for standard input"
    check.add_argument("--answer", required=True, metavar="FILE", help=answer_help)
    check.add_argument("--json", action="store_true", help="print as JSON")


def _check(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.answer import check

    return check(options.results, options.answer, as_json=options.json)
