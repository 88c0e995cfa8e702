"""argparse's parsers of the commands: their help, what is said of a wrong use, and the call of what carries one out."""

from __future__ import annotations

import argparse
import re
import sys
from functools import partial
from importlib import import_module  # noqa: TID251  # no command waits for the imports of another
from typing import NoReturn

from sentinel_rag.surfaces.cli._commands import COMMANDS, EXAMPLES, Command, Either

EPILOG = """\
new here: sentinel demo, then sentinel without anything, which tells what to type next.
each command has an example: sentinel ask --help

exit codes:
  0  answered (also: asked back, out of scope)    3  no data matched, values not found
  1  something is unavailable                     4  denied by the gateway
  2  wrong usage or settings                      5  a tool failed, or a case; contradicted

settings come from the environment and .env; sentinel doctor checks them.
"""
FIRST_STEPS = Command("", "status.show_first_steps", "", "")


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """The whole command line. The chosen command is `options.run(options)`. With `only`, the word that stands where a
    command is named, the actions of other groups are left out: building them all takes longer than any of them starts.
    """
    parser: argparse.ArgumentParser = Parser(
        prog="sentinel",
        description="Ask Microsoft Sentinel in plain words. An agent that can execute nothing plans tool calls;\n"
        "a gateway decides and records each; every fact of the answer carries its evidence.",
        epilog=EPILOG,
        formatter_class=Formatter,
    )
    parser.add_argument("--version", action=_Version)
    parser.set_defaults(run=partial(carry_out, FIRST_STEPS))
    within = {"": parser.add_subparsers(title="commands", metavar="COMMAND")}
    for each in COMMANDS:
        group, _, name = each.path.rpartition(" ")
        if group and only not in (None, group):
            continue
        made = within[group].add_parser(
            name,
            help=each.summary,
            description=f"{each.summary[0].upper()}{each.summary[1:]}.",
            formatter_class=Formatter,
            epilog=f"example:\n  {each.example}",
        )
        if not each.run:
            if only in (None, name):
                within[name] = made.add_subparsers(title="actions", metavar="ACTION", required=True)
            continue
        for option in each.options:
            if isinstance(option, Either):
                exclusive = made.add_mutually_exclusive_group()
                for one in option.options:
                    exclusive.add_argument(one.name, **one.settings)
            else:
                made.add_argument(option.name, **option.settings)
        made.set_defaults(run=partial(carry_out, each), parser=made)
    return parser


def carry_out(command: Command, options: argparse.Namespace) -> int:
    """Import what carries a command out, and call it with its options."""
    module, _, function = command.run.partition(".")
    found = import_module(f"{__package__}.{module}")
    given = {name: value for name, value in vars(options).items() if name not in ("run", "parser")}
    code: int = getattr(found, function)(**given, **command.fixed)
    return code


class _Version(argparse.Action):
    def __init__(self, option_strings: list[str], dest: str, **_: object) -> None:
        super().__init__(
            option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, help="print the version"
        )

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from sentinel_rag import __version__

        print(f"sentinel {__version__}")
        parser.exit()


_WRONG_CHOICE = re.compile(r"argument (?:COMMAND|ACTION): invalid choice: (['\"])(.*?)\1 \(choose", re.DOTALL)
_NO_NUMBER = re.compile(r"invalid (int|float) value: ('.*')", re.DOTALL)
_KINDS = {"int": "whole number", "float": "number"}
OTHER_WORDS = {
    "help": "sentinel --help",
    "version": "sentinel --version",
    "start": "sentinel up",
    "incidents": 'sentinel ask "which incidents are open?"',
    "alerts": 'sentinel ask "which alerts came in the last 24 hours?"',
    "init": "sentinel demo",
    "web": "sentinel up --web",
}
"""What people type who know other programs."""
_SAME_DEED = (
    ("add", "create", "new", "make", "generate"),
    ("list", "ls", "show", "status", "tables", "templates"),
    ("revoke", "remove", "delete", "rm", "disable"),
)
"""Words for what is done to the things of a group, of which each group knows its own."""
_UNKNOWN = re.compile(r"unrecognized arguments: (--[\w-]+)")


class Parser(argparse.ArgumentParser):
    """argparse's own, whose errors end with what to type instead."""

    def error(self, message: str) -> NoReturn:
        from sentinel_rag.surfaces.rendering.visible import safe

        self.print_usage(sys.stderr)
        plain = _NO_NUMBER.sub(lambda found: f"{found[2]} is no {_KINDS[found[1]]}", message)
        print(f"{self.prog}: error: {safe(plain)}", file=sys.stderr)
        self.exit(2, f"  Next: {self._next_step(message)}\n")

    def _next_step(self, message: str) -> str:
        if found := _WRONG_CHOICE.match(message):
            known = next((each.choices for each in self._actions if isinstance(each, argparse._SubParsersAction)), {})
            if meant := _meant(self.prog, found[2], list(known)):
                return meant if meant.endswith("--help") else f"{meant} (or {self.prog} --help)"
        if (found := _UNKNOWN.match(message)) and (near := self._option_like(found[1])):
            return f"{near} instead of {found[1]} ({self.prog} --help tells the rest)"
        example = EXAMPLES.get(self.prog)
        return f"{self.prog} --help" if example is None else f"{example} ({self.prog} --help tells the rest)"

    def _option_like(self, typed: str) -> str:
        import difflib

        return next(iter(difflib.get_close_matches(typed, self._option_string_actions, n=1)), "")


def _meant(prog: str, typed: str, known: list[str]) -> str:
    """The command that was probably meant by a word that is none: one like it, an action of a group, or a question."""
    import difflib
    import shlex

    from sentinel_rag.surfaces.rendering.visible import safe

    alike = {word for deed in _SAME_DEED if typed in deed for word in deed}
    if own := [name for name in known if name in alike and prog != "sentinel"]:
        return f"{prog} {own[0]}"
    if prog == "sentinel" and typed in OTHER_WORDS:
        return OTHER_WORDS[typed]
    if prog == "sentinel" and (within := [name for name in EXAMPLES if name.endswith(f" {typed}")]):
        return within[0]
    if near := difflib.get_close_matches(typed.casefold(), known, n=1):
        return f"{prog} {near[0]}"
    return f"sentinel ask {shlex.quote(safe(typed))}" if " " in typed.strip() else ""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """argparse's own, told the width: finding it out would import shutil and its compressors for each command."""

    def __init__(self, prog: str, indent_increment: int = 2, max_help_position: int = 24) -> None:
        super().__init__(prog, indent_increment, max_help_position, _columns() - 2)

    def add_argument(self, action: argparse.Action) -> None:
        """Names of commands stand one step further in than argparse reckons when it places their help."""
        super().add_argument(action)
        if isinstance(action, argparse._SubParsersAction):
            self._action_max_length += self._indent_increment


def _columns() -> int:
    import os

    try:
        return max(60, os.get_terminal_size(1).columns)
    except OSError:
        return 100
