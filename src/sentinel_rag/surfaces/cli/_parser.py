"""The command line: every command with its options and help text; groups of actions stand in modules of their own.

Commands are imported when they run, not here.
"""

from __future__ import annotations

import argparse

from sentinel_rag.surfaces.cli._options import Formatter, Parser, command, group, port, workspace_option

EPILOG = """\
new here: sentinel demo, then sentinel without anything, which tells what to type next.
each command has an example: sentinel ask --help

exit codes:
  0  answered (also: asked back, out of scope)    3  no data matched, values not found
  1  something is unavailable                     4  denied by the gateway
  2  wrong usage or settings                      5  a tool failed, or a case; contradicted

settings come from the environment and .env; sentinel doctor checks them.
"""


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
    kept.add_argument("--delete", default=None, metavar="ID", help="delete a kept conversation")
    chat.add_argument("--only-found", action="store_true", help=ONLY_FOUND)
    chat.add_argument("--json", action="store_true", help="with --list: print as JSON")
    workspace_option(chat)

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

    workspace = group(commands, "workspace", "the embedded workspace: fill it, look at it, query it")
    if only in (None, "workspace"):
        from sentinel_rag.surfaces.cli import _workspace_commands

        _workspace_commands.add_actions(workspace)

    tools = command(commands, "tools", "the tools, their parameters and what the policy says of them", _tools)
    tools.add_argument("name", nargs="?", help="one tool, with all its parameters; or pins, or accept TOOL")
    tools.add_argument("tool", nargs="?", help="with accept: the tool whose changed definition is accepted")
    tools.add_argument("--yes", action="store_true", help="with accept: do not ask")
    tools.add_argument("--json", action="store_true", help="print names, descriptions and JSON schemas")

    kql = group(commands, "kql", "the named KQL templates: list them, run one, check your own")
    if only in (None, "kql"):
        from sentinel_rag.surfaces.cli import _kql_commands

        _kql_commands.add_actions(kql)

    knowledge = group(commands, "knowledge", "playbooks and past incidents: put them in, look them up (this is you)")
    if only in (None, "knowledge"):
        from sentinel_rag.surfaces.cli import _knowledge_commands

        _knowledge_commands.add_actions(knowledge)

    policy = group(commands, "policy", "the policy: check it, run its cases, explain calls, decide past ones again")
    if only in (None, "policy"):
        from sentinel_rag.surfaces.cli import _policy_commands

        _policy_commands.add_actions(policy)

    answer = group(commands, "answer", "judge an answer of any model against the results that it cites")
    if only in (None, "answer"):
        from sentinel_rag.surfaces.cli import _answer_commands

        _answer_commands.add_actions(answer)

    audit = group(commands, "audit", "the gateway's record of every call")
    if only in (None, "audit"):
        from sentinel_rag.surfaces.cli import _audit_commands

        _audit_commands.add_actions(audit)

    database = group(commands, "database", "the gateway's state in PostgreSQL: make its tables, move files into it")
    if only in (None, "database"):
        from sentinel_rag.surfaces.cli import _database_commands

        _database_commands.add_actions(database)

    approvals = group(commands, "approvals", "calls that wait for a person: see and decide them")
    if only in (None, "approvals"):
        from sentinel_rag.surfaces.cli import _approvals_commands

        _approvals_commands.add_actions(approvals)

    keys = group(commands, "keys", "the gateway's API keys, whether or not it runs")
    if only in (None, "keys"):
        from sentinel_rag.surfaces.cli import _keys_commands

        _keys_commands.add_actions(keys)

    users = group(commands, "users", "the people who may sign in to the web surface, whether or not it runs")
    if only in (None, "users"):
        from sentinel_rag.surfaces.cli import _users_commands

        _users_commands.add_actions(users)
    return parser


class _Version(argparse.Action):
    def __init__(self, option_strings: list[str], dest: str, **_: object) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from sentinel_rag import __version__

        print(f"sentinel {__version__}")
        parser.exit()


def _first_steps(_: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.first_steps import run

    return run()


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
    if options.delete is not None:
        return kept_conversations.delete(options.delete)
    from sentinel_rag.surfaces.cli.chat import run

    return run(workspace=options.workspace, resume=options.resume, only_found=options.only_found)


def _export(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.export import Wish, run

    return run(
        options.conversation,
        Wish(options.format, options.output, options.force, options.reveal, options.incident.lstrip("#")),
    )


def _up(options: argparse.Namespace) -> int:
    from sentinel_rag.surfaces.cli.up import run

    return run(
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
    from sentinel_rag.surfaces.cli.serve import Wish, check, run

    wish = Wish(options.role, options.tools, options.listen, options.workspace)
    return check(wish) if options.check else run(wish, as_json=options.json)


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
    from sentinel_rag.surfaces.cli.completion import run

    return run(options.shell, build_parser())


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
