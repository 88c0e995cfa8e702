"""`docs/reference/command-line.md`: every command with its usage, words and options, as the parser has them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from sentinel_rag.surfaces.cli._commands import EXAMPLES
from sentinel_rag.surfaces.cli._parser import build_parser
from tools.documentation.reference import markdown

INTRODUCTION = """
Each command with all that it takes. [The command line](../cli.md) tells what they are for, the exit codes and what
happens on a terminal; `sentinel COMMAND --help` prints the same as here.
"""


def page(_: Path) -> str:
    parts = [part for name, parser in commands(build_parser()) for part in (f"## {name}", _command(name, parser))]
    return markdown.page("Commands and options", INTRODUCTION, parts)


def commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command that can be run, by its whole name, in the order of the help."""
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if parser.get_default("run") is not None:
        yield parser.prog, parser
    for group in groups:
        for child in group.choices.values():
            yield from commands(child)


def _command(name: str, parser: argparse.ArgumentParser) -> str:
    rows = [
        (_name(action), _taken(action), action.help or "")
        for action in parser._actions
        if not isinstance(action, argparse._SubParsersAction) and action.dest != "help"
    ]
    parts = [" ".join((parser.description or "").split())]
    if rows:
        parts.append(markdown.table(("word or option", "takes", "meaning"), rows))
    if name in EXAMPLES and name != "sentinel":
        parts.append(f"```sh\n{EXAMPLES[name]}\n```")
    return "\n\n".join(part for part in parts if part)


def _name(action: argparse.Action) -> str:
    return markdown.codes(action.option_strings) or markdown.code(action.dest.upper())


def _taken(action: argparse.Action) -> str:
    if action.choices:
        words = "one of " + markdown.codes(str(choice) for choice in action.choices)
    elif action.nargs == 0:
        return ""
    else:
        words = markdown.code(str(action.metavar or action.dest.upper()))
    if action.nargs in ("*", "+") or isinstance(action, argparse._AppendAction):
        words += ", may be repeated"
    if not action.option_strings and action.nargs in ("?", "*"):
        words += ", may be left out"
    elif action.option_strings and action.nargs == "?":
        words += " or nothing"
    if action.required and action.option_strings:
        words += ", needed"
    return words
