"""What every command is made with: its place in the help, its example, its form, and options that several share."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from typing import NoReturn

EXAMPLES = {
    "sentinel": "sentinel demo",
    "sentinel demo": "sentinel demo",
    "sentinel watchlist put": "sentinel watchlist put VIPUsers vip.csv --key UserPrincipalName",
    "sentinel watchlist": "sentinel watchlist list",
    "sentinel watchlist list": "sentinel watchlist list --json",
    "sentinel watchlist show": "sentinel watchlist show VIPUsers",
    "sentinel watchlist remove": "sentinel watchlist remove VIPUsers",
    "sentinel usage": "sentinel usage --days 30 --by person",
    "sentinel texts": "sentinel texts --days 7",
    "sentinel ask": 'sentinel ask "how many high severity incidents in the last 7 days?"',
    "sentinel plan": "sentinel plan questions.jsonl --json",
    "sentinel chat": "sentinel chat --resume",
    "sentinel export": "sentinel export --format html --output hand-over.html",
    "sentinel answer": "sentinel answer check --results results.json --answer answer.md",
    "sentinel answer check": "sentinel answer check --results results.json --answer answer.md --json",
    "sentinel up": "sentinel up --web 8443",
    "sentinel mcp": "sentinel mcp",
    "sentinel serve": "sentinel serve tools --tools sentinel,knowledge",
    "sentinel status": "sentinel status --json",
    "sentinel doctor": "sentinel doctor --azure",
    "sentinel backup": "sentinel backup backups/2026-11-28",
    "sentinel restore": "sentinel restore backups/2026-11-28",
    "sentinel completion": "sentinel completion bash",
    "sentinel workspace": "sentinel workspace generate",
    "sentinel workspace generate": "sentinel workspace generate --events 20000",
    "sentinel workspace import": "sentinel workspace import incidents.csv --table SecurityIncident",
    "sentinel workspace tables": "sentinel workspace tables",
    "sentinel workspace query": 'sentinel workspace query "SecurityIncident | summarize count() by Severity"',
    "sentinel workspace faults": "sentinel workspace faults add throttled --times 3",
    "sentinel tools": "sentinel tools query_incidents",
    "sentinel kql": "sentinel kql templates",
    "sentinel kql templates": "sentinel kql templates account_activity_timeline",
    "sentinel kql run": "sentinel kql run account_activity_timeline account=noah.vandenberg@woodgrove.example",
    "sentinel kql query": 'sentinel kql query "SigninLogs | take 5" --since 24h',
    "sentinel kql lint": "sentinel kql lint",
    "sentinel kql check": "sentinel kql check rules/",
    "sentinel kql install": "sentinel kql install",
    "sentinel knowledge": "sentinel knowledge ingest",
    "sentinel knowledge ingest": "sentinel knowledge ingest",
    "sentinel knowledge search": 'sentinel knowledge search "containment of a phished account"',
    "sentinel knowledge list": "sentinel knowledge list",
    "sentinel knowledge remove": "sentinel knowledge remove phishing.md",
    "sentinel knowledge status": "sentinel knowledge status",
    "sentinel knowledge rebuild": "sentinel knowledge rebuild",
    "sentinel knowledge install": "sentinel knowledge install",
    "sentinel knowledge migrate": "sentinel knowledge migrate --to pgvector",
    "sentinel policy": "sentinel policy check",
    "sentinel policy check": "sentinel policy check",
    "sentinel policy test": "sentinel policy test",
    "sentinel policy explain": "sentinel policy explain query_incidents severity=High",
    "sentinel policy replay": "sentinel policy replay --since 24h",
    "sentinel policy diff": "sentinel policy diff old.yaml new.yaml",
    "sentinel audit": "sentinel audit verify",
    "sentinel audit show": "sentinel audit show --decision deny --since 24h",
    "sentinel audit verify": "sentinel audit verify",
    "sentinel audit export": "sentinel audit export audit.jsonl --since 7d",
    "sentinel audit key": "sentinel audit key",
    "sentinel audit rotate": "sentinel audit rotate",
    "sentinel audit prune": "sentinel audit prune --older-than 365",
    "sentinel audit replay": "sentinel audit replay --since 24h",
    "sentinel database": "sentinel database prepare",
    "sentinel database prepare": "sentinel database prepare --for sentinel_gateway",
    "sentinel database move": "sentinel database move",
    "sentinel approvals": "sentinel approvals list",
    "sentinel approvals list": "sentinel approvals list --state all",
    "sentinel approvals show": "sentinel approvals show 3f2a",
    "sentinel approvals approve": 'sentinel approvals approve 3f2a --comment "checked with the owner"',
    "sentinel approvals deny": 'sentinel approvals deny 3f2a --comment "not now"',
    "sentinel approvals lift": "sentinel approvals lift 3f2a",
    "sentinel approvals watch": "sentinel approvals watch",
    "sentinel keys": "sentinel keys list",
    "sentinel keys create": "sentinel keys create --name soc-bot --scope execute",
    "sentinel keys list": "sentinel keys list",
    "sentinel keys rotate": "sentinel keys rotate soc-bot --overlap 60",
    "sentinel keys revoke": "sentinel keys revoke soc-bot",
    "sentinel users": "sentinel users list",
    "sentinel users add": "sentinel users add ana --role analyst",
    "sentinel users list": "sentinel users list",
    "sentinel users change": "sentinel users change ana --role approver",
    "sentinel users disable": "sentinel users disable ana",
    "sentinel users link": "sentinel users link",
    "sentinel users reset": "sentinel users reset ana",
}


Run = Callable[[argparse.Namespace], int]

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


def command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str, run: Run
) -> argparse.ArgumentParser:
    """A command that `run` carries out; the parser is kept beside it for its usage line."""
    parser = group(commands, name, summary)
    parser.set_defaults(run=run, parser=parser)
    return parser


def group(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str
) -> argparse.ArgumentParser:
    """A command without a run of its own: one of its actions is chosen."""
    made = commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", formatter_class=Formatter
    )
    if example := EXAMPLES.get(made.prog):
        made.epilog = f"example:\n  {example}"
    return made


def workspace_option(parser: argparse.ArgumentParser) -> None:
    """`--workspace`, checked for its form only: whether there is such a one is known later."""
    parser.add_argument(
        "--workspace",
        type=_workspace_name,
        default=None,
        metavar="NAME",
        help="workspace to use (see sentinel status)",
    )


def window_options(parser: argparse.ArgumentParser) -> None:
    """`--since` and `--until`, as `_moments.window_of` reads them."""
    parser.add_argument(
        "--since", default=None, metavar="TIME", help="from then on: 24h, 7d, a date or an ISO 8601 time"
    )
    parser.add_argument("--until", default=None, metavar="TIME", help="end, not included (default: now, or no end)")


def _workspace_name(text: str) -> str:
    from sentinel_rag.settings import workspace_name

    try:
        return workspace_name(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def port(text: str) -> int:
    """A port number, 0 for any free one."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no port number") from None
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is outside 0 to 65535")
    return number


def days(text: str) -> int:
    """A number of days, of which something is kept."""
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= 3_650):
        raise argparse.ArgumentTypeError(f"{text} is not a number of days from 1 to 3650")
    return int(text)


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
