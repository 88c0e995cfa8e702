"""The command line: every command, option and help text. Commands are imported when they run, not here."""

from __future__ import annotations

import argparse
from collections.abc import Callable

TYPE_CHECKING = False  # as the type checker knows it: `typing` alone would cost a command two milliseconds
if TYPE_CHECKING:
    from sentinel_rag.interceptor.policy.model import Rate

EXIT_CODES = """\
exit codes:
  0  answered (also: asked back, out of scope)    3  no data matched
  1  something is unavailable                     4  denied by the Interceptor
  2  wrong usage or settings                      5  a tool failed, or a policy case

settings come from the environment and .env; sentinel doctor checks them.
"""

Run = Callable[[argparse.Namespace], int]


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """The whole command line. The chosen command is `options.run(options)`. With `only`, the word that stands where a
    command is named, the actions of other groups are left out: building them all takes longer than any of them starts.
    """
    parser = argparse.ArgumentParser(
        prog="sentinel",
        description="Ask Microsoft Sentinel in plain words. An agent that can execute nothing plans tool calls; a "
        "gateway decides and records each; every fact of the answer carries its evidence.",
        epilog=EXIT_CODES,
        formatter_class=_Formatter,
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    demo = _command(
        commands,
        "demo",
        "three questions of a sample estate, then the calls of a hijacked agent and what becomes of them",
        _demo,
    )
    demo.add_argument("--json", action="store_true", help="print what happened as JSON")

    ask = _command(commands, "ask", "ask one question and print the answer", _ask)
    ask.add_argument("question", nargs="*", help="the question; read from standard input when left out")
    ask.add_argument("--json", action="store_true", help="print answer, tools, coverage and evidence as JSON")
    ask.add_argument("--evidence", action="store_true", help="list the tool call, row and field behind each fact")
    ask.add_argument("--session", default=None, metavar="ID", help="go on with the conversation of an earlier answer")
    _workspace_option(ask)

    chat = _command(commands, "chat", "hold a conversation (/help lists its commands)", _chat)
    _workspace_option(chat)

    up = _command(commands, "up", "start the zones and keep them running until Ctrl-C", _up)
    up.add_argument("--port", type=_port, default=0, help="port of the Interceptor (default: a free one)")
    up.add_argument("--agent-port", type=_port, default=0, help="port of the agent's POST /chat (default: a free one)")
    up.add_argument("--json", action="store_true", help="print the addresses as JSON once everything serves")
    _workspace_option(up)

    status = _command(commands, "status", "which parts run, where, and their state", _status)
    status.add_argument("--json", action="store_true", help="print as JSON")

    doctor = _command(commands, "doctor", "check each dependency and name the command that mends it", _doctor)
    doctor.add_argument("--json", action="store_true", help="print as JSON")
    doctor.add_argument("--azure", action="store_true", help="try each right on the Azure workspaces, by reading")
    doctor.add_argument("--model", action="store_true", help="ask each configured model one tiny question")

    _workspace(commands, only)

    tools = _command(commands, "tools", "the tools, their parameters and what the policy says of them", _tools)
    tools.add_argument("name", nargs="?", help="one tool, with all its parameters; or pins, or accept TOOL")
    tools.add_argument("tool", nargs="?", help="with accept: the tool whose changed definition is accepted")
    tools.add_argument("--yes", action="store_true", help="with accept: do not ask")
    tools.add_argument("--json", action="store_true", help="print names, descriptions and JSON schemas")

    _kql(commands, only)
    _policy(commands, only)
    _audit(commands, only)
    _approvals(commands, only)
    _keys(commands, only)
    return parser


def _workspace(commands: argparse._SubParsersAction[argparse.ArgumentParser], only: str | None) -> None:
    summary = "the embedded workspace: fill it, look at it, query it"
    workspace = _group(commands, "workspace", summary)
    if only not in (None, "workspace"):
        return
    actions = workspace.add_subparsers(title="actions", metavar="ACTION", required=True)

    generate = _command(actions, "generate", "write a sample estate: several weeks, an attack, benign noise", _generate)
    generate.add_argument("--days", type=int, default=None, help="how many days back it reaches")
    generate.add_argument("--events", type=int, default=None, help="about how many log rows")
    generate.add_argument("--seed", type=int, default=None, help="same seed, same estate")
    generate.add_argument("--end", default=None, help="its last moment, ISO 8601 (default: now)")
    generate.add_argument("--json", action="store_true", help="print what was written as JSON")
    _workspace_option(generate)

    load = _command(actions, "import", "import exports: CSV, JSON, JSON lines, Parquet, or a folder of them", _import)
    load.add_argument("path", nargs="+", help="files or folders")
    load.add_argument("--table", default=None, help="table to import into (default: found from the file)")
    load.add_argument("--json", action="store_true", help="print the reports as JSON")
    _workspace_option(load)

    tables = _command(actions, "tables", "tables with rows, their counts and times", _tables)
    tables.add_argument("--json", action="store_true", help="print as JSON")
    _workspace_option(tables)

    query = _command(actions, "query", "run KQL yourself (this is you, not the agent: no policy applies)", _query)
    query.add_argument("kql", nargs="*", help="the query; read from standard input when left out")
    query.add_argument(
        "--since", default=None, metavar="TIME", help="from then on: 24h, 7d, a date or an ISO 8601 time"
    )
    query.add_argument("--until", default=None, metavar="TIME", help="end, not included (default: now, or no end)")
    query.add_argument("--timespan", default=None, help="ISO 8601 duration or start/end, as Log Analytics takes it")
    query.add_argument("--json", action="store_true", help="print columns and rows as JSON")
    _workspace_option(query)

    faults = _command(actions, "faults", "make a bad day of the service: throttling, slow or broken answers", _faults)
    faults.add_argument("action", nargs="?", choices=("show", "set", "add", "clear"), default="show")
    faults.add_argument(
        "kind", nargs="?", choices=_FAULT_KINDS, metavar="KIND", help=f"one of {', '.join(_FAULT_KINDS)}"
    )
    faults.add_argument("--wire", choices=("logs", "rest"), default=None, help="queries or incidents (default: both)")
    faults.add_argument("--method", default=None, help="only requests of this method")
    faults.add_argument("--path", default=None, metavar="TEXT", help="only requests whose path holds this")
    faults.add_argument("--times", type=_times, default=None, metavar="N", help="how many it hits, or all (default 1)")
    faults.add_argument("--skip", type=int, default=None, metavar="N", help="how many pass before it begins")
    faults.add_argument("--every", type=int, default=None, metavar="N", help="hit every N-th only")
    faults.add_argument("--probability", type=float, default=None, metavar="P", help="hit this share of them (0 to 1)")
    faults.add_argument("--seed", type=int, default=None, help="same seed, same requests")
    faults.add_argument("--start", default=None, metavar="TIME", help="not before then (ISO 8601)")
    faults.add_argument("--end", default=None, metavar="TIME", help="not from then on")
    faults.add_argument(
        "--retry-after",
        dest="retry_after_s",
        type=_seconds_or_none,
        default=None,
        metavar="S",
        help="seconds of Retry-After, or none (default 1)",
    )
    faults.add_argument("--delay", dest="delay_s", type=float, default=None, metavar="S", help="how slow (default 0.2)")
    faults.add_argument("--status", type=int, choices=(409, 412), default=None, help="of a conflict")
    faults.add_argument("--json", action="store_true", help="print as JSON")
    _workspace_option(faults)


_FAULT_KINDS = (
    "throttled", "timeout", "server_error", "html", "empty", "no_content", "truncated", "too_large", "partial",
    "unauthorized", "forbidden", "conflict", "slow", "lost_answer",
)  # fmt: skip
"""As `workspace.serving.faults` knows them; a test keeps the two equal."""


def _kql(commands: argparse._SubParsersAction[argparse.ArgumentParser], only: str | None) -> None:
    kql = _group(commands, "kql", "the named KQL templates: list them, run one, check your own")
    if only not in (None, "kql"):
        return
    actions = kql.add_subparsers(title="actions", metavar="ACTION", required=True)
    listed = _command(actions, "templates", "list the templates, or show one with its query", _kql_templates)
    listed.add_argument("name", nargs="?", metavar="NAME", help="one template, whole")
    run = _command(actions, "run", "run a template yourself (this is you, not the agent: no policy applies)", _kql_run)
    run.add_argument("name", metavar="NAME", help="the template")
    run.add_argument("arguments", nargs="*", metavar="PARAM=VALUE", help="its parameters; a list by commas")
    run.add_argument("--since", default=None, metavar="TIME", help="from then on: 24h, 7d, a date or an ISO 8601 time")
    run.add_argument("--until", default=None, metavar="TIME", help="end, not included (default: now, or no end)")
    run.add_argument("--limit", type=_row_limit, default=20, metavar="N", help="rows to print, 1 to 10000 (default 20)")
    _workspace_option(run)
    query = _command(actions, "query", "run KQL of your own, checked by the guard (no policy applies)", _kql_query)
    query.add_argument("kql", nargs="*", help="the query, or a file with it; read from standard input when left out")
    query.add_argument(
        "--since", default=None, metavar="TIME", help="from then on: 24h, 7d, a date or an ISO 8601 time"
    )
    query.add_argument("--until", default=None, metavar="TIME", help="end, not included (default: now, or no end)")
    query.add_argument(
        "--limit", type=_row_limit, default=20, metavar="N", help="rows to print, 1 to 10000 (default 20)"
    )
    query.add_argument("--unguarded", action="store_true", help="send the text as it is, without the guard's check")
    _workspace_option(query)
    lint = _command(actions, "lint", "check templates, and try each on an empty workspace", _kql_lint)
    lint.add_argument("path", nargs="?", metavar="PATH", help="a file or folder (default: shipped ones and your own)")
    check = _command(actions, "check", "check the KQL of rule files: plain, Markdown, YAML and ARM", _kql_check)
    check.add_argument("paths", nargs="+", metavar="PATH", help="files, or folders of them")
    check.add_argument("--schema", default=None, metavar="FILE", help="more tables: JSON {table: {column: type}}")
    check.add_argument("--guard", action="store_true", help="also say what would be refused as freeform KQL")
    check.add_argument("--strict", action="store_true", help="warnings count as faults")
    _workspace_option(check)
    install = _command(actions, "install", "install Microsoft's KQL parser for freeform KQL", _kql_install)
    for command in (listed, run, query, lint, check, install):
        command.add_argument("--json", action="store_true", help="print as JSON")


def _policy(commands: argparse._SubParsersAction[argparse.ArgumentParser], only: str | None) -> None:
    summary = "the policy: check it, run its cases, explain calls, decide past ones again"
    policy = _group(commands, "policy", summary)
    if only not in (None, "policy"):
        return
    actions = policy.add_subparsers(title="actions", metavar="ACTION", required=True)
    check = _command(actions, "check", "load a policy and name every problem with its line", _policy_check)
    check.add_argument("file", nargs="?", help="the policy (default: the one in use)")
    test = _command(actions, "test", "run cases: calls with the decision that they must get", _policy_test)
    test.add_argument("cases", nargs="*", help="files or folders of cases (default: cases/ beside the policy)")
    explain = _command(actions, "explain", "tell step by step why a call is decided as it is", _policy_explain)
    explain.add_argument("call", metavar="TOOL|AUDIT_ID", help="a tool to call, or the audit id of a past call")
    explain.add_argument("arguments", nargs="*", metavar="NAME=VALUE", help="arguments, or one JSON object")
    explain.add_argument("--context", default=None, metavar="LABEL", help="the session's label, as HIGH/UNTRUSTED")
    explain.add_argument(
        "--handle", action="append", default=[], metavar="NAME=LABEL", help="this argument is a hidden value"
    )
    explain.add_argument("--words", default=None, metavar="TEXT", help="what the user said in the session")
    replay = _command(actions, "replay", "decide every audited call again", _policy_replay)
    for command in (test, explain, replay):
        command.add_argument("--policy", default=None, metavar="FILE", help="judge by this policy")
    diff = _command(actions, "diff", "compare two policies: keys, cases, audited calls", _policy_diff)
    diff.add_argument("old", help="a policy file")
    diff.add_argument("new", help="a policy file")
    for command in (replay, diff):
        command.add_argument("--since", default=None, metavar="TIME", help="only calls from then on: 24h, 7d, a time")
    for command in (check, test, explain, replay, diff):
        command.add_argument("--json", action="store_true", help="print as JSON")


def _audit(commands: argparse._SubParsersAction[argparse.ArgumentParser], only: str | None) -> None:
    summary = "the Interceptor's record of every call"
    audit = _group(commands, "audit", summary)
    if only not in (None, "audit"):
        return
    actions = audit.add_subparsers(title="actions", metavar="ACTION", required=True)
    show = _command(actions, "show", "print records, newest last", _audit_show)
    show.add_argument("audit_id", nargs="?", help="one call's records, whole")
    show.add_argument("--last", type=int, default=20, help="how many, up to 1000 (default 20)")
    show.add_argument("--session", default=None, metavar="ID", help="only records of this session")
    show.add_argument("--tool", default=None, metavar="NAME", help="only calls of this tool")
    show.add_argument("--decision", default=None, choices=("allow", "deny"), help="only calls decided so")
    show.add_argument("--reason", default=None, metavar="REASON", help="only records with this reason (rule_denies)")
    show.add_argument("--since", default=None, metavar="TIME", help="from then on: ISO 8601, a date, or 12h or 7d ago")
    show.add_argument("--json", action="store_true", help="one JSON object a line")

    verify = _command(actions, "verify", "check every record, checkpoint and segment of the journal", _audit_verify)
    verify.add_argument("--public-key", default=None, metavar="FILE", help="PEM file (default: the journal's own)")
    verify.add_argument("--file", default=None, metavar="EXPORT", help="check an exported file instead of the journal")
    verify.add_argument("--anchor", default=None, metavar="FILE", help="second file of checkpoints (default: as set)")
    verify.add_argument("--json", action="store_true", help="print as JSON")

    export = _command(actions, "export", "write records as JSON lines that verify --file can check", _audit_export)
    export.add_argument("file", metavar="FILE", help="new file to write, or - for standard output")
    export.add_argument("--since", default=None, metavar="TIME", help="first moment; as for show")
    export.add_argument("--until", default=None, metavar="TIME", help="end, not included; as for show")

    key = _command(actions, "key", "print the public key that checks the journal's signatures", _audit_key)
    key.add_argument("--json", action="store_true", help="print as JSON")

    rotate = _command(actions, "rotate", "move all records into a segment of its own", _audit_rotate)
    rotate.add_argument("--json", action="store_true", help="print as JSON")

    prune = _command(actions, "prune", "remove whole segments whose records are all old, provably", _audit_prune)
    prune.add_argument("--older-than", type=float, required=True, metavar="DAYS", help="how old the newest record is")
    prune.add_argument("--json", action="store_true", help="print as JSON")
    replay = _command(
        actions, "replay", "decide every past call again under the policy it was decided by", _policy_replay
    )
    replay.set_defaults(policy=None)
    replay.add_argument("--since", default=None, metavar="TIME", help="only calls from then on: 24h, 7d, a time")
    replay.add_argument("--json", action="store_true", help="print as JSON")


def _approvals(commands: argparse._SubParsersAction[argparse.ArgumentParser], only: str | None) -> None:
    summary = "calls that wait for a person: see and decide them"
    approvals = _group(commands, "approvals", summary)
    if only not in (None, "approvals"):
        return
    actions = approvals.add_subparsers(title="actions", metavar="ACTION", required=True)
    states = ("pending", "approved", "denied", "used", "expired", "all")
    shown = _command(actions, "list", "those that wait, oldest first", _approvals_list)
    shown.add_argument("--state", choices=states, default="pending", help="those in another state, or all")
    shown.add_argument("--json", action="store_true", help="print as JSON")
    one = _command(actions, "show", "one call whole: what it does, with which data, why it is asked", _approvals_show)
    one.add_argument("approval_id", metavar="ID", help="the id, or its beginning")
    one.add_argument("--json", action="store_true", help="print as JSON")
    for verb, meaning in (("approve", "let exactly this call run, once"), ("deny", "let it not run")):
        decide = _command(actions, verb, meaning, _approvals_decide)
        decide.set_defaults(verb=verb)
        decide.add_argument("approval_id", metavar="ID", help="the id, or its beginning")
        decide.add_argument("--comment", default="", help="why; it stands on record")
        decide.add_argument("--json", action="store_true", help="print as JSON")
    watch = _command(actions, "watch", "print new ones as they come; on a terminal, ask y or n", _approvals_watch)
    watch.add_argument("--json", action="store_true", help="one JSON object a line")


def _keys(commands: argparse._SubParsersAction[argparse.ArgumentParser], only: str | None) -> None:
    keys = _group(commands, "keys", "the Interceptor's API keys, whether or not it runs")
    if only not in (None, "keys"):
        return
    actions = keys.add_subparsers(title="actions", metavar="ACTION", required=True)

    create = _command(actions, "create", "make a key and print its text, this once", _keys_create)
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
    create.add_argument("--json", action="store_true", help="print key and terms as JSON")

    listed = _command(actions, "list", "print every key with what it may do and its state", _keys_list)
    listed.add_argument("--json", action="store_true", help="print as JSON")

    rotate = _command(actions, "rotate", "give a key a new secret under the same id", _keys_rotate)
    rotate.add_argument("key", help="its id, or its name")
    rotate.add_argument("--overlap", type=int, default=0, metavar="MINUTES", help="how long the old text still works")
    rotate.add_argument("--json", action="store_true", help="print key and terms as JSON")

    revoke = _command(actions, "revoke", "end a key, at once and for good", _keys_revoke)
    revoke.add_argument("key", help="its id, or its name")
    revoke.add_argument("--json", action="store_true", help="print as JSON")


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str, run: Run
) -> argparse.ArgumentParser:
    parser = _group(commands, name, summary)
    parser.set_defaults(run=run, parser=parser)
    return parser


def _group(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", formatter_class=_Formatter
    )


def _workspace_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workspace",
        type=_workspace_name,
        default=None,
        metavar="NAME",
        help="workspace to use (see sentinel status)",
    )


def _workspace_name(text: str) -> str:
    from sentinel_rag.settings import workspace_name

    try:
        return workspace_name(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _rate(text: str) -> Rate:
    from sentinel_rag.interceptor.policy.model import Rate

    calls, _, seconds = text.partition("/")
    if not (calls.isascii() and calls.isdecimal() and seconds.isascii() and seconds.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no rate such as 600/60")
    if not (1 <= int(calls[:8]) <= 1_000_000 and 1 <= int(seconds[:8]) <= 86_400):
        raise argparse.ArgumentTypeError("a rate is 1 to 1000000 calls in 1 to 86400 seconds")
    return Rate(int(calls), float(seconds))


_NONE = object()


def _times(text: str) -> object:
    """A number, or all: then nothing counts them down."""
    return _NONE if text == "all" else int(text)


def _seconds_or_none(text: str) -> object:
    return _NONE if text == "none" else int(text)


def _row_limit(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:6]) <= 10_000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows from 1 to 10000")
    return int(text)


def _port(text: str) -> int:
    try:
        port = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no port number") from None
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is outside 0 to 65535")
    return port


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """argparse's own, told the width: finding it out would import shutil and its compressors for each command."""

    def __init__(self, prog: str, indent_increment: int = 2, max_help_position: int = 24) -> None:
        super().__init__(prog, indent_increment, max_help_position, _columns() - 2)


def _columns() -> int:
    import os

    try:
        return max(60, os.get_terminal_size(1).columns)
    except OSError:
        return 100


class _Version(argparse.Action):
    def __init__(self, option_strings: list[str], dest: str, **_: object) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from sentinel_rag import __version__

        print(f"sentinel {__version__}")
        parser.exit()


def _demo(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.demo import run

    return run(as_json=options.json)


def _ask(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.ask import run

    return run(
        options.question,
        workspace=options.workspace,
        as_json=options.json,
        evidence=options.evidence,
        session_id=options.session,
    )


def _chat(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.chat import run

    return run(workspace=options.workspace)


def _up(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.up import run

    return run(workspace=options.workspace, port=options.port, agent_port=options.agent_port, as_json=options.json)


def _status(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.status import run

    return run(as_json=options.json)


def _doctor(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.doctor import run

    return run(as_json=options.json, azure=options.azure, model=options.model)


def _tools(options: argparse.Namespace) -> int:
    if options.name in ("pins", "accept"):
        from sentinel_rag.surfaces.cli import tool_pins

        if options.name == "accept":
            return tool_pins.accept(options.tool, yes=options.yes, as_json=options.json)
        return tool_pins.show(as_json=options.json)
    from sentinel_rag.contracts.errors import UsageError
    from sentinel_rag.surfaces.cli.tools import run

    if options.tool is not None:
        raise UsageError("One tool at a time.", next_step=f"Run: sentinel tools {options.name}")

    return run(options.name, as_json=options.json)


def _generate(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.workspace import generate

    return generate(
        options.workspace,
        days=options.days,
        events=options.events,
        seed=options.seed,
        end=options.end,
        as_json=options.json,
    )


def _import(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.workspace import import_files

    return import_files(options.workspace, options.path, table=options.table, as_json=options.json)


def _tables(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.workspace import tables

    return tables(options.workspace, as_json=options.json)


def _faults(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.workspace_faults import run

    names = "wire method path times skip every probability seed start end retry_after_s delay_s status"
    given = {name: value for name in names.split() if (value := getattr(options, name)) is not None}
    given = {name: None if value is _NONE else value for name, value in given.items()}
    return run(options.workspace, options.action, options.kind, given, as_json=options.json)


def _query(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli._moments import window_of
    from sentinel_rag.surfaces.cli.workspace import query

    window = window_of(options.since, options.until)
    return query(options.workspace, options.kql, window=window, timespan=options.timespan, as_json=options.json)


def _kql_templates(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.kql import templates

    return templates(options.name, as_json=options.json)


def _kql_run(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.kql import run

    return run(
        options.name,
        options.arguments,
        since=options.since,
        until=options.until,
        limit=options.limit,
        workspace=options.workspace,
        as_json=options.json,
    )


def _kql_check(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.kql_check import check

    return check(
        options.paths,
        schema_file=options.schema,
        workspace=options.workspace,
        freeform=options.guard,
        strict=options.strict,
        as_json=options.json,
    )


def _kql_query(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli._moments import window_of
    from sentinel_rag.surfaces.cli.kql_query import run

    return run(
        options.kql,
        window=window_of(options.since, options.until),
        limit=options.limit,
        workspace=options.workspace,
        guarded=not options.unguarded,
        as_json=options.json,
    )


def _kql_install(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.kql_parser import install

    return install(as_json=options.json)


def _kql_lint(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.kql import lint

    return lint(options.path, as_json=options.json)


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


def _audit_show(options: argparse.Namespace) -> int:
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


def _audit_verify(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.audit import verify

    return verify(public_key=options.public_key, export=options.file, anchor=options.anchor, as_json=options.json)


def _audit_export(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.audit_keeping import export

    return export(options.file, since=options.since, until=options.until)


def _audit_key(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.audit import key

    return key(as_json=options.json)


def _audit_rotate(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.audit_keeping import rotate

    return rotate(as_json=options.json)


def _audit_prune(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.audit_keeping import prune

    return prune(days=options.older_than, as_json=options.json)


def _approvals_list(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.approvals import list_all

    return list_all(options.state, as_json=options.json)


def _approvals_show(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.approvals import show

    return show(options.approval_id, as_json=options.json)


def _approvals_decide(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.approvals import decide

    return decide(options.approval_id, options.verb, comment=options.comment, as_json=options.json)


def _approvals_watch(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.approvals import watch

    return watch(as_json=options.json)


def _keys_create(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.keys import create

    return create(
        options.name,
        options.scope,
        clearance=options.clearance,
        expires_days=options.expires,
        rate=options.rate,
        for_key=options.for_key,
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
