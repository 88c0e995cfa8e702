"""What `sentinel doctor` finds of the machine and of the sources of data, each with the command that mends it."""

from __future__ import annotations

import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import partial
from importlib import metadata
from pathlib import Path

from sentinel_rag.app.run_state import RunFolder
from sentinel_rag.contracts.errors import ConfigurationError, SentinelError, UsageError
from sentinel_rag.settings import Settings
from sentinel_rag.surfaces.cli._zones import choose_workspace


class Level(StrEnum):
    """WARN is for what works less well than it could, or will fail later; only FAIL makes the exit code 1."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """`fix` is a command or a sentence; empty where nothing is wrong."""

    name: str
    level: Level
    detail: str
    fix: str = ""

    def to_dict(self) -> dict[str, object]:
        """The form of `--json`: `name`, `level`, `ok` (false for a fault only), `detail`, `fix`."""
        ok = self.level is not Level.FAIL
        return {"name": self.name, "level": self.level.value, "ok": ok, "detail": self.detail, "fix": self.fix}


Check = Callable[[Settings], Finding]


def fine(name: str, detail: str) -> Finding:
    """Nothing to mend."""
    return Finding(name, Level.OK, detail)


def warning(name: str, detail: str, fix: str) -> Finding:
    """Works, and could work better."""
    return Finding(name, Level.WARN, detail, fix)


def fault(name: str, detail: str, fix: str) -> Finding:
    """Does not work."""
    return Finding(name, Level.FAIL, detail, fix)


def told(name: str, error: SentinelError) -> Finding:
    """An error as a fault, with all its problems."""
    problems = error.problems if isinstance(error, ConfigurationError) else ()
    return fault(name, " ".join([str(error), "; ".join(problems)]).strip(), error.next_step)


def guarded(name: str, check: Check, settings: Settings) -> Finding:
    """What the check finds; an error that it meets is a finding too."""
    try:
        return check(settings)
    except SentinelError as error:
        return told(name, error)
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        return fault(name, f"{error.strerror or error}{where}", "check the owner and the rights of the folder")


PACKAGES = ("duckdb", "mcp", "azure-monitor-query", "azure-identity", "starlette", "uvicorn", "msgspec")
LITTLE_SPACE = 2_000_000_000
NO_SPACE = 200_000_000
OLDEST_PYTHON = (3, 11)
CLOCK_TOLERANCE = timedelta(minutes=5)


def python() -> Finding:
    """The interpreter's version."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info < OLDEST_PYTHON:
        return fault("python", version, "make PYTHON=python3.12 demo (3.11 or newer)")
    return fine("python", version)


def packages() -> Finding:
    """The libraries without which no zone starts, with their versions."""
    missing, found = [], []
    for name in PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        return fault("packages", f"missing: {', '.join(missing)}", "make demo (it installs what is locked)")
    return fine("packages", ", ".join(found))


def home_writable(settings: Settings) -> bool:
    """Whether this account may write in the home folder, or make it."""
    return _writable(_nearest(settings.home))


def home(settings: Settings) -> Finding:
    """Whether this account may write where everything is kept."""
    if not home_writable(settings):
        return fault(
            "home folder", f"{settings.home} cannot be written", "set SENTINEL_HOME to a folder that this account owns"
        )
    RunFolder(settings.home).is_held()
    return fine("home folder", str(settings.home) + ("" if settings.home.exists() else " (made when first needed)"))


def disk(settings: Settings) -> Finding:
    """Room on the disk of the home folder."""
    free = shutil.disk_usage(_nearest(settings.home)).free
    detail, fix = f"{free / 1e9:.1f} GB free", "free some disk space, or set SENTINEL_HOME to a folder on another disk"
    if free < NO_SPACE:
        return fault("disk", detail, fix)
    return warning("disk", detail, fix) if free < LITTLE_SPACE else fine("disk", detail)


def ports(settings: Settings) -> Finding:
    """Each zone takes a free port of 127.0.0.1; whether this account gets one."""
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
    except OSError as error:
        return fault(
            "ports",
            f"no port of 127.0.0.1 can be had: {error.strerror or error}",
            "allow this account to listen on 127.0.0.1 (a sandbox or a firewall forbids it)",
        )
    return fine("ports", "zones get free ones of 127.0.0.1; sentinel up --port and --web fix them")


def clock(settings: Settings) -> Finding:
    """Whether this machine's time goes on from what was stored here: a clock behind it makes windows miss rows."""
    now = datetime.now(UTC)
    told = f"{now:%Y-%m-%d %H:%M:%S} UTC, questions are read in {settings.timezone}"
    newest = max(_written(settings.home), default=None)
    if newest is not None and newest > now + CLOCK_TOLERANCE:
        return fault(
            "clock",
            f"{told}; the home folder was written at {newest:%Y-%m-%d %H:%M:%S} UTC, which is still to come",
            "set the clock right: timedatectl set-ntp true",
        )
    return fine("clock", told)


def _written(home: Path) -> Iterator[datetime]:
    """When the journal, the conversations and this installation were last written."""
    installed = Path(__file__)
    for path in (home / "gateway", home / "agent", installed):
        for file in (path, *(path.iterdir() if path.is_dir() else ())):
            if file.exists():
                yield datetime.fromtimestamp(file.stat().st_mtime, UTC)


def _nearest(folder: Path) -> Path:
    return next(each for each in (folder, *folder.parents) if each.exists())


def _writable(folder: Path) -> bool:
    import os

    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


FILL = "sentinel workspace import FILE, or sentinel workspace generate"


def policy(settings: Settings) -> Finding:
    """Whether the next gateway will load the policy."""
    from sentinel_rag.gateway.policy import load_policy

    return fine("policy", f"{settings.policy_file}: {len(load_policy(settings.policy_file).tools)} tools")


def tool_servers(settings: Settings) -> Finding:
    """Whether what the policy's own tool servers are started with is there."""
    from sentinel_rag.app.tool_servers import ToolServers, tool_server_configuration
    from sentinel_rag.gateway.policy import load_policy

    loaded = load_policy(settings.policy_file)
    faults = ToolServers(**tool_server_configuration(settings)).faults(loaded)
    if faults:
        return fault("tool servers", " ".join(map(str, faults)), faults[0].next_step)
    return fine("tool servers", ", ".join(loaded.server_specs) or "only those of the product")


def _no_home(name: str, settings: Settings) -> Finding:
    return fault(name, f"can be kept nowhere: {settings.home} cannot be written", "mend the home folder first")


def conversations(settings: Settings) -> Finding:
    """Where conversations are kept, and how many are."""
    if not home_writable(settings):
        return _no_home("conversations", settings)
    from contextlib import closing

    from sentinel_rag.app.conversations import kept_conversations

    setting = "" if settings.chat_keep_days else "none is kept any more: SENTINEL_CHAT_KEEP_DAYS is 0; "
    try:
        with closing(kept_conversations(settings)) as store:
            return fine("conversations", f"{setting}{store.place}: {store.count()} kept")
    except UsageError as error:
        return fine("conversations", str(error))


def workspaces(settings: Settings) -> Iterator[tuple[str, Check]]:
    """A check for each workspace on this machine, and one for all that are elsewhere, by the name of its line."""
    if settings.gateway_url is not None:
        yield "workspace", _foreign
        return
    if settings.uses_azure:
        yield "workspace", _azure
    embedded = [each.name for each in settings.workspaces if each.embedded]
    for name in embedded if settings.workspaces else [choose_workspace(settings, None)]:
        line = f"workspace {name}" if len(settings.workspaces) > 1 else "workspace"
        yield line, partial(_embedded, name=name, line=line)


def _foreign(settings: Settings) -> Finding:
    return fine("workspace", f"behind the gateway at {settings.gateway_url}")


def _azure(settings: Settings) -> Finding:
    return fine(
        "workspace", f"Azure: {', '.join(settings.azure_workspaces)} (sentinel doctor --azure tries each right)"
    )


def _embedded(settings: Settings, *, name: str, line: str) -> Finding:
    from sentinel_rag.surfaces.cli._workspace_access import workspace_access

    with workspace_access(settings, name, writes=False) as workspace:
        tables = workspace.tables()
    rows = sum(table["rows"] for table in tables)
    if not rows:
        return fault(line, f"{name}: no rows", FILL)
    detail = f"{name}: {rows:,} rows in {len(tables)} tables"
    newest = max((table["newest"] for table in tables if table["newest"]), default=None)
    if newest is None:
        return fine(line, f"{detail}, none with a time")
    detail += f", the newest of {newest[:19].replace('T', ' ')} UTC"
    if datetime.fromisoformat(newest) > datetime.now(UTC):
        return warning(
            line,
            f"{detail}, which is still to come, so windows that end now leave it out",
            "look at the times: sentinel workspace tables; set the clock, or import again with times in UTC",
        )
    return fine(line, detail)


def templates(settings: Settings) -> Finding:
    """The named KQL templates, those of the operator's folder too."""
    from sentinel_rag.sentinel.templates.template_registry import load_templates

    count = len(load_templates(own=settings.templates))
    own = "SENTINEL_TEMPLATES names a folder of your own" if settings.templates is None else str(settings.templates)
    return fine("templates", f"{count} KQL templates; {own}")


def freeform(settings: Settings) -> Finding:
    """Whether the agent may write KQL of its own, and what checks it."""
    if not settings.freeform_kql:
        return fine("freeform KQL", "off: the agent runs named templates only (SENTINEL_FREEFORM_KQL)")
    from sentinel_rag.sentinel.kql_guard.official_parser import parser_state

    tables = ", ".join(settings.freeform_tables) or "every table"
    state = parser_state()
    if state.missing:
        detail = f"on, over {tables}, with the fallback parser, which refuses more. {state.missing}"
        return fault("freeform KQL", detail, state.next_step)
    return fine("freeform KQL", f"on, over {tables}; Microsoft's parser {state.version} checks each query")


def kql_parser(settings: Settings) -> Finding:
    """Not a fault where it is missing: the guard reads KQL with its stricter fallback then."""
    from sentinel_rag.sentinel.kql_guard.official_parser import parser_state

    state = parser_state()
    if state.missing or state.node is None:
        return warning("kql parser", f"{state.missing} The guard's stricter fallback reads KQL.", state.next_step)
    node = ".".join(str(part) for part in state.node.version)
    return fine("kql parser", f"Microsoft's parser {state.version} on node {node}")


def files(settings: Settings) -> Finding:
    """The folder that the file tool reads."""
    if settings.files_root is None:
        return fine("files", "the shipped sample files; SENTINEL_FILES_ROOT names a folder of your own")
    import os

    if os.access(settings.files_root, os.R_OK | os.X_OK):
        return fine("files", str(settings.files_root))
    step = "let this account read the folder, or set SENTINEL_FILES_ROOT to another"
    return fault("files", f"{settings.files_root} cannot be read", step)


def web(settings: Settings) -> Finding:
    """Where the web tools search and read."""
    hosts = ", ".join(settings.web_allowed_hosts) or "every public host"
    if settings.search_provider == "bundled":
        search = "the shipped sample pages; SENTINEL_SEARCH_PROVIDER names a service that searches the web"
    else:
        search = settings.search_provider + (f" at {settings.search_url}" if settings.search_url else "")
    return fine("web", f"search: {search}. Pages from: {hosts}")


def knowledge(settings: Settings) -> Finding:
    """Nothing is made, and no service is asked: `sentinel knowledge status` does that."""
    from sentinel_rag.app.knowledge_stores import knowledge_place, open_embedder, open_knowledge

    store, place = settings.knowledge.store, knowledge_place(settings)
    if store == "local" and not home_writable(settings):
        return _no_home("knowledge", settings)
    held = "sentinel knowledge status looks into it"
    if store == "chroma" and RunFolder(settings.home).read() is not None:
        held = f"`sentinel up` may have it open, as one process can; once it has ended, {held}"
    if store == "local" and not Path(place).exists():
        held = "empty; it begins with the shipped playbooks at the first search"
    elif store == "local":
        with open_knowledge(settings) as opened:
            documents = opened.state().documents
        held = ", ".join(f"{count:,} {collection.value}" for collection, count in documents.items())
    with open_embedder(settings.embeddings) as model:
        by = "found by words and meaning" if model.embedder is not None else "found by words only"
        detail = f"{store}, {place}: {held}; {by}"
        if model.lacking:
            return warning("knowledge", f"{detail}. {model.lacking}", model.next_step)
        return fine("knowledge", detail)
