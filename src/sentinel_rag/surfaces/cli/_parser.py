"""The command line: every command with its options and help text; groups of actions stand in modules of their own.

Commands are imported when they run, not here.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

from sentinel_rag.surfaces.cli._options import Formatter, Parser, command, days, group, port, workspace_option

FILES = {"EXPORT", "FILE", "FOLDER", "PATH", "cases", "file", "folder", "new", "old", "path", "paths"}
"""What the command line calls a place on disk, as placeholder of an option or as name of a word."""


EPILOG = """\
new here: sentinel demo, then sentinel without anything, which tells what to type next.
each command has an example: sentinel ask --help

exit codes:
  0  answered (also: asked back, out of scope)    3  no data matched, values not found
  1  something is unavailable                     4  denied by the gateway
  2  wrong usage or settings                      5  a tool failed, or a case; contradicted

settings come from the environment and .env; sentinel doctor checks them.
"""
DATA = ("workspace", "watchlist", "kql", "knowledge", "answer")
"""Groups of actions whose parsers stand in `_data_commands`; those of the others stand in `_gateway_commands`."""
ONLY_FOUND = "hide sentences whose values were not found in what they cite, and say how many"


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
    parser.set_defaults(run=_first_steps)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    demo = command(
        commands,
        "demo",
        "a sample estate in five minutes: who needs you, the story, a hijacked agent that gets nowhere, one change",
        _demo,
    )
    demo.add_argument("--all", action="store_true", help="print all at once; on a terminal Enter goes on otherwise")
    demo.add_argument("--json", action="store_true", help="print what happened as JSON")

    ask = command(commands, "ask", "ask one question and print the answer", _ask)
    ask.add_argument("question", nargs="*", help="the question; read from standard input when left out")
    ask.add_argument("--json", action="store_true", help="print answer, tools, coverage and evidence as JSON")
    details_help = "the details too: ids, addresses of portals, hashes, sources, calls and audit ids"
    ask.add_argument("--details", action="store_true", help=details_help)
    ask.add_argument(
        "--evidence", action="store_true", help="the details, with the call, row and field behind each fact"
    )
    ask.add_argument("--only-found", action="store_true", help=ONLY_FOUND)
    ask.add_argument("--plan", action="store_true", help="print how it is read without a model, and run nothing")
    ask.add_argument("--session", default=None, metavar="ID", help="go on with the conversation of an earlier answer")
    workspace_option(ask)

    plan = command(
        commands, "plan", "how questions are read without a model, and the calls they become; runs nothing", _plan
    )
    plan.add_argument("file", help='JSON lines, each {"q": "...", "after": ["..."]} or a string; - for standard input')
    plan.add_argument("--json", action="store_true", help="print one line of JSON a question")

    chat = command(commands, "chat", "hold a conversation (/help lists its commands)", _chat)
    kept = chat.add_mutually_exclusive_group()
    resume_help = "go on with a kept conversation (without an ID: the last one)"
    kept.add_argument("--resume", nargs="?", const="", default=None, metavar="ID", help=resume_help)
    kept.add_argument("--list", action="store_true", help="list the kept conversations")
    kept.add_argument("--rename", nargs=2, default=None, metavar=("ID", "TITLE"), help="give one another title")
    kept.add_argument("--delete", default=None, metavar="ID", help="delete a kept conversation")
    chat.add_argument("--only-found", action="store_true", help=ONLY_FOUND)
    chat.add_argument("--json", action="store_true", help="with --list: print as JSON")
    workspace_option(chat)

    usage = command(commands, "usage", "what questions took: tokens, and money where a model has a price", _usage)
    usage.add_argument("--days", type=days, default=7, help="of how many days (default: 7)")
    by_help = "a line for each (default: day)"
    usage.add_argument("--by", choices=("day", "person", "question"), default="day", help=by_help)
    usage.add_argument("--json", action="store_true", help="print as JSON")

    texts = command(commands, "texts", "texts in alerts that attackers may have left to be obeyed", _texts)
    texts.add_argument("--days", type=days, default=14, help="of how many days (default: 14)")
    texts.add_argument("--json", action="store_true", help="print as JSON")
    workspace_option(texts)

    export = command(
        commands, "export", "write a conversation as a report: a page to read, its evidence behind it", _export
    )
    export.add_argument("conversation", nargs="?", help="beginning of its id (default: the last one)")
    form_help = "md (default), html, pdf, docx, csv (the rows of evidence), or results (the calls with "
    form_help += "their results as JSON, for sentinel answer check); or by the name of the file"
    export.add_argument(
        "--format", choices=("md", "html", "pdf", "docx", "csv", "results"), default=None, help=form_help
    )
    export.add_argument("--csv", action="store_const", const="csv", dest="format", help="the same as --format csv")
    incident_help = "report of this incident alone (default: of all that was asked)"
    export.add_argument("--incident", default="", metavar="NUMBER", help=incident_help)
    export.add_argument("--output", default=None, metavar="PATH", help="the file to write; - for standard output")
    export.add_argument("--force", action="store_true", help="write over a file that is there")
    reveal_help = "show values that the policy hides from the agent, as far as you may see them; the report says so"
    export.add_argument("--reveal", action="store_true", help=reveal_help)

    up = command(commands, "up", "start the zones and keep them running until Ctrl-C", _up)
    up.add_argument("--port", type=port, default=0, help="port of the gateway (default: a free one)")
    up.add_argument("--agent-port", type=port, default=0, help="port of the agent's POST /chat (default: a free one)")
    web_help = "serve the people's HTTP API too, on this port (default: a free one)"
    up.add_argument("--web", type=port, nargs="?", const=0, default=None, metavar="PORT", help=web_help)
    up.add_argument("--json", action="store_true", help="print the addresses as JSON once everything serves")
    workspace_option(up)

    mcp = command(commands, "mcp", "serve the tools to an MCP client on standard input and output", _mcp)
    workspace_option(mcp)

    serve = command(commands, "serve", "start the zones of one role alone, for containers and several machines", _serve)
    serve.add_argument(
        "role", nargs="?", choices=("web", "agent", "interceptor", "tools"), help="which part of a deployment this is"
    )
    serve.add_argument(
        "--tools", default=None, metavar="NAMES", help="with tools: which (sentinel,knowledge,files,web)"
    )
    listen_help = "IP address, and port if not the role's own (default: 127.0.0.1)"
    serve.add_argument("--listen", default="127.0.0.1", metavar="ADDRESS[:PORT]", help=listen_help)
    serve.add_argument("--check", action="store_true", help="ask whether the role serves here (exit code 0), and end")
    serve.add_argument("--json", action="store_true", help="print the addresses as JSON once everything serves")
    workspace_option(serve)

    status = command(commands, "status", "which parts run, where, and their state", _status)
    shown = status.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print as JSON")
    shown.add_argument("--url", action="store_true", help="print the address of the web page alone")

    doctor = command(commands, "doctor", "check each dependency and name the command that mends it", _doctor)
    doctor.add_argument("--json", action="store_true", help="print as JSON")
    doctor.add_argument("--azure", action="store_true", help="try each right on the Azure workspaces, by reading")
    doctor.add_argument("--model", action="store_true", help="send each configured model what a question sends")

    backup = command(commands, "backup", "copy this home into a folder, while its zones run", _backup)
    backup.add_argument("folder", help="a new folder, best on another disk; it will hold keys and accounts")
    backup.add_argument("--workspaces", action="store_true", help="the embedded workspaces too; no zone may run then")
    backup.add_argument("--json", action="store_true", help="print what was copied as JSON")

    restore = command(commands, "restore", "put a backup in the place of this home, which is moved aside", _restore)
    restore.add_argument("folder", help="a folder that sentinel backup made")
    restore.add_argument("--seal", help="the seal that was printed when it was made, if you kept it elsewhere")
    restore.add_argument("--check", action="store_true", help="only look whether it is as it was made")
    restore.add_argument("--json", action="store_true", help="print what was done as JSON")

    completion = command(commands, "completion", "print the script that lets your shell complete on Tab", _completion)
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))

    groups = {}
    groups["workspace"] = group(commands, "workspace", "the embedded workspace: fill it, look at it, query it")
    tools = command(commands, "tools", "the tools, their parameters and what the policy says of them", _tools)
    tools.add_argument("name", nargs="?", help="one tool, with all its parameters; or pins, or accept TOOL")
    tools.add_argument("tool", nargs="?", help="with accept: the tool whose changed definition is accepted")
    tools.add_argument("--yes", action="store_true", help="with accept: do not ask")
    tools.add_argument("--json", action="store_true", help="print names, descriptions and JSON schemas")
    groups["watchlist"] = group(commands, "watchlist", "lists to compare rows with: list, show, put in, remove")
    groups["kql"] = group(commands, "kql", "the named KQL templates: list them, run one, check your own")
    groups["knowledge"] = group(
        commands, "knowledge", "playbooks and past incidents: put them in, look them up (this is you)"
    )
    groups["policy"] = group(
        commands, "policy", "the policy: check it, run its cases, explain calls, decide past ones again"
    )
    groups["answer"] = group(commands, "answer", "judge an answer of any model against the results that it cites")
    groups["audit"] = group(commands, "audit", "the gateway's record of every call")
    groups["database"] = group(
        commands, "database", "the gateway's state in PostgreSQL: make its tables, move files into it"
    )
    groups["approvals"] = group(commands, "approvals", "calls that wait for a person: see and decide them")
    groups["keys"] = group(commands, "keys", "the gateway's API keys, whether or not it runs")
    groups["users"] = group(commands, "users", "the people who may sign in to the web surface, whether or not it runs")

    actions: dict[str, Callable[[argparse.ArgumentParser], None]] = {}
    if only is None or only in DATA:
        from sentinel_rag.surfaces.cli._data_commands import DATA_ACTIONS

        actions |= DATA_ACTIONS
    if only is None or (only not in DATA and only in groups):
        from sentinel_rag.surfaces.cli._gateway_commands import GATEWAY_ACTIONS

        actions |= GATEWAY_ACTIONS
    for name, add_actions in actions.items():
        if only in (None, name):
            add_actions(groups[name])
    return parser


class _Version(argparse.Action):
    def __init__(self, option_strings: list[str], dest: str, **_: object) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from sentinel_rag import __version__

        print(f"sentinel {__version__}")
        parser.exit()


def _first_steps(_: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.status import show_first_steps

    return show_first_steps()


def _demo(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.demo import run

    return run(as_json=options.json, whole=options.all)


def _ask(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.ask import checked_question, read_text, run

    if options.plan:
        from sentinel_rag.surfaces.cli.plan import run_question

        return run_question(checked_question(read_text(options.question, what="question")), as_json=options.json)
    return run(
        options.question,
        workspace=options.workspace,
        as_json=options.json,
        details=options.details,
        evidence=options.evidence,
        only_found=options.only_found,
        session_id=options.session,
    )


def _plan(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.plan import run_file

    return run_file(options.file, as_json=options.json)


def _chat(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli import kept_conversations

    if options.json and not options.list:
        options.parser.error("--json goes with --list")
    if options.list:
        return kept_conversations.show(as_json=options.json)
    if options.rename is not None:
        return kept_conversations.rename(*options.rename)
    if options.delete is not None:
        return kept_conversations.delete(options.delete)
    from sentinel_rag.surfaces.cli.chat import run

    return run(workspace=options.workspace, resume=options.resume, only_found=options.only_found)


def _usage(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.usage import run

    return run(days=options.days, by=options.by, as_json=options.json)


def _texts(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.texts import run

    return run(workspace=options.workspace, days=options.days, as_json=options.json)


def _export(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.export import ExportOptions, run

    return run(
        options.conversation,
        ExportOptions(options.format, options.output, options.force, options.reveal, options.incident.lstrip("#")),
    )


def _up(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.serve import up

    return up(
        workspace=options.workspace,
        port=options.port,
        agent_port=options.agent_port,
        web_port=options.web,
        as_json=options.json,
    )


def _mcp(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.mcp import run

    return run(workspace=options.workspace)


def _serve(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.serve import RoleOptions, check, serve

    wish = RoleOptions(options.role, options.tools, options.listen, options.workspace)
    return check(wish) if options.check else serve(wish, as_json=options.json)


def _status(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.status import page_address, run

    return page_address() if options.url else run(as_json=options.json)


def _doctor(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.doctor import run

    return run(as_json=options.json, azure=options.azure, model=options.model)


def _backup(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.backup import backup

    return backup(options.folder, workspaces=options.workspaces, as_json=options.json)


def _restore(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.backup import restore

    return restore(options.folder, seal=options.seal, check=options.check, as_json=options.json)


def _completion(options: argparse.Namespace) -> int:
    return _print_completion(options.shell, build_parser())


def _print_completion(shell: str, parser: argparse.ArgumentParser) -> int:
    """Print the script for `shell`. Raises UnavailableError if the library that writes it is missing."""
    from sentinel_rag.contracts.errors import UnavailableError

    try:
        import shtab
    except ModuleNotFoundError:
        raise UnavailableError(
            "The package shtab, which writes the script, is not installed.", next_step="Run: pip install shtab"
        ) from None
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
