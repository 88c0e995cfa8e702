"""`sentinel completion`: the script with which a shell completes commands, options, choices and files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.surfaces.cli._parser import build_parser

FILES = {"EXPORT", "FILE", "FOLDER", "PATH", "cases", "file", "folder", "new", "old", "path", "paths"}
"""What the command line calls a place on disk, as placeholder of an option or as name of a word."""


def run(shell: str) -> int:
    """Print the script for `shell`. Raises UnavailableError if the library that writes it is missing."""
    try:
        import shtab
    except ModuleNotFoundError:
        raise UnavailableError(
            "The package shtab, which writes the script, is not installed.", next_step="Run: pip install shtab"
        ) from None
    parser = build_parser()
    for action in _all_actions(parser):
        name = action.metavar if action.option_strings else action.metavar or action.dest
        if name in FILES:
            setattr(action, "complete", shtab.FILE)  # noqa: B010  # shtab looks for it on argparse's own objects
    print(shtab.complete(parser, shell), end="")
    return 0


def _all_actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _all_actions(child)
        else:
            yield action
