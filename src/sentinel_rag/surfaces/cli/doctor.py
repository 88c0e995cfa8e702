"""`sentinel doctor`: check each dependency, the services and telemetry too, and name the command that mends it."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from functools import partial
from http import HTTPStatus
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

from sentinel_rag.app.database import look
from sentinel_rag.app.plan import telemetry_configuration
from sentinel_rag.app.run_state import RunFolder
from sentinel_rag.contracts.errors import ConfigurationError, SentinelError, UsageError
from sentinel_rag.settings import Settings, load_settings, misspelt_settings
from sentinel_rag.surfaces.cli._output import print_json
from sentinel_rag.surfaces.cli._zones import response_to
from sentinel_rag.surfaces.cli.serve import HOW_TO_BUILD, page_is_built
from sentinel_rag.surfaces.cli.status import addresses
from sentinel_rag.surfaces.rendering.visible import safe


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


def tried(name: str, detail: str, next_step: str, *, ok: bool) -> Finding:
    """What came of a try; one that went well may have a next step too."""
    return (
        fault(name, detail, next_step)
        if not ok
        else Finding(name, Level.WARN if next_step else Level.OK, detail, next_step)
    )


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
    for name in embedded if settings.workspaces else [None]:
        line = f"workspace {name}" if len(settings.workspaces) > 1 else "workspace"
        yield line, partial(_embedded, name=name, line=line)


def _foreign(settings: Settings) -> Finding:
    return fine("workspace", f"behind the gateway at {settings.gateway_url}")


def _azure(settings: Settings) -> Finding:
    return fine(
        "workspace", f"Azure: {', '.join(settings.azure_workspaces)} (sentinel doctor --azure tries each right)"
    )


def _embedded(settings: Settings, *, name: str | None, line: str) -> Finding:
    from sentinel_rag.surfaces.cli._workspace_access import workspace_access

    with workspace_access(settings, name, writes=False) as workspace:
        name, tables = workspace.name, workspace.tables()
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


ANSWER_WITHIN_S = 10
RESTART = "stop sentinel up and start it again (sentinel status names its process)"


def gateway(settings: Settings) -> Finding:
    """The gateway: whether it answers, is ready, takes the agent's key, and has the same time as this machine."""
    if settings.gateway_url is not None:
        return _remote(settings, settings.gateway_url)
    state = RunFolder(settings.home).read()
    zone = None if state is None else state.zone("interceptor")
    if zone is None:
        return fine("gateway", "none runs; each question starts its own (sentinel up keeps one)")
    try:
        status, body, _ = _get(zone.url, "/readyz", {})
    except (OSError, http.client.HTTPException) as error:
        return fault("gateway", f"{zone.url} does not answer: {error}", RESTART)
    return _readiness(zone.url, status, body, RESTART)


def database(settings: Settings) -> Finding:
    """The gateway's state in PostgreSQL: whether it can be reached, and has its tables."""
    found = look(settings)
    way = "encrypted" if found.encrypted else "not encrypted"
    where = f"PostgreSQL {found.version}, schema {found.schema}, {way}"
    if not found.ready:
        return warning("database", f"{where}; it has no tables yet", "sentinel database prepare, or just sentinel up")
    return fine("database", f"{where}; {found.gateways} gateway(s) connected")


def _remote(settings: Settings, url: str) -> Finding:
    at = urlsplit(url).netloc
    try:
        status, body, date = _get(url, "/readyz", {})
    except (OSError, http.client.HTTPException) as error:
        return fault("gateway", f"{at} does not answer: {error}", "start it there, or correct SENTINEL_URL")
    found = _readiness(url, status, body, "look at it where it runs: sentinel doctor")
    if found.fix:
        return found
    if settings.gateway_key is not None:
        status, _, _ = _get(url, "/v1/tools", {"X-API-Key": settings.gateway_key.reveal()})
        if status != HTTPStatus.OK:
            make_one = "make a key where it runs: sentinel keys create --name NAME --scope execute"
            return fault("gateway", f"{at} does not take SENTINEL_API_KEY (HTTP {status})", make_one)
    if date is not None and abs(datetime.now(UTC) - date) > CLOCK_TOLERANCE:
        return fault("gateway", f"its clock and this one differ: there it is {date:%Y-%m-%d %H:%M:%S} UTC", "set both")
    return found


def _readiness(url: str, status: int, body: bytes, fix: str) -> Finding:
    at = urlsplit(url).netloc
    try:
        checks = json.loads(body)["checks"]
        told = ", ".join(f"{name} {value}" for name, value in checks.items())
    except (ValueError, KeyError, TypeError, AttributeError):
        return fault("gateway", f"what answers at {at} is no gateway (HTTP {status})", "correct SENTINEL_URL")
    if status != HTTPStatus.OK:
        return fault("gateway", f"{at} is not ready: {told}", fix)
    if checks.get("policy") != "ok":
        return warning("gateway", f"{at}: {told}", "sentinel policy check names what is wrong with the file")
    return fine("gateway", f"{at} is ready: {told}")


def _get(url: str, path: str, headers: dict[str, str]) -> tuple[int, bytes, datetime | None]:
    with response_to(url, "GET", path, headers=headers, timeout=ANSWER_WITHIN_S) as response:
        try:
            date = parsedate_to_datetime(response.headers["Date"])
        except (TypeError, ValueError):
            date = None
        return response.status, response.read(1_000_000), date


def zones(settings: Settings) -> Finding:
    """The processes of this home, if any run."""
    found = addresses(settings, RunFolder(settings.home).read())
    if not found["running"]:
        return fine("zones", "not running; each question starts what it needs (sentinel up keeps it warm)")
    parts = {name: found[name]["state"] for name in ("interceptor", "agent", "workspace")}
    parts |= {f"workspace {name}": part["state"] for name, part in list(found["workspaces"].items())[1:]}
    parts |= {f"executor {name}": part["state"] for name, part in found["executors"].items()}
    detail = ", ".join(f"{name} {state}" for name, state in parts.items())
    if all(state in ("running", "azure", "remote") for state in parts.values()):
        return fine("zones", detail)
    return fault("zones", detail, f"stop sentinel up and start it again; logs: {found['logs']}")


def page(settings: Settings) -> Finding:
    """Whether the web page was built into this installation."""
    if page_is_built():
        return fine("web page", "built; sentinel up --web serves it")
    return warning("web page", "not built: sentinel up --web serves the HTTP API alone", HOW_TO_BUILD)


def model(settings: Settings) -> Finding:
    """What answers questions; nothing is sent to it."""
    chosen = settings.model_settings
    if chosen is None:
        return fine("model", "offline: answers are planned and written without a model")
    names = chosen.name if chosen.small_name is None else f"{chosen.name}, for simple questions {chosen.small_name}"
    detail = f"{names} at {chosen.url}, which reads questions and the rows behind them"
    try:
        version = metadata.version("openai")
    except metadata.PackageNotFoundError:
        return fault("model", f"{detail}; the openai library is missing", "pip install 'sentinel-rag[openai]'")
    return fine("model", f"{detail} (sentinel doctor --model asks it), openai {version}")


def sign_in(settings: Settings) -> Finding:
    """Whether an identity can be had for the Azure workspaces; what it may do there is for `--azure`."""
    from sentinel_rag.app.azure import azure_sign_in

    failed = azure_sign_in(settings)
    names = ", ".join(settings.azure_workspaces)
    if failed is None:
        return fine("sign-in", f"Azure gives tokens for {names} (sentinel doctor --azure tries each right)")
    return fault("sign-in", f"Azure gives no token for {failed.name}: {failed.detail}", failed.next_step)


def model_calls() -> list[Finding]:
    """`--model`: each configured model is sent what a question sends, and asked for one call."""
    from sentinel_rag.settings import load_settings

    settings = load_settings().model_settings
    if settings is None:
        return [fault("model call", "SENTINEL_MODEL is offline: no model to ask", "see docs/models.md")]
    from sentinel_rag.app.model_access import check_models

    found = []
    for each in check_models(settings):
        found.append(tried(f"model {each.tier}", each.detail, each.next_step, ok=each.ok))
    return found


def azure_rights() -> list[Finding]:
    """`--azure`: each right on each Azure workspace, tried by reading."""
    from sentinel_rag.settings import load_settings

    settings = load_settings()
    if not settings.uses_azure:
        return [fault("azure", "SENTINEL_WORKSPACE_ID is not set", "see docs/azure.md")]
    from sentinel_rag.app.azure import azure_access

    found = []
    for name, checks in azure_access(settings).items():
        for each in checks:
            found.append(tried(f"azure {name}", f"{each.name}: {each.detail}", each.next_step, ok=each.ok))
    return found


NAME = "telemetry"
LONGEST_WAIT_S = 5.0


def telemetry(settings: Settings) -> Finding:
    """One line: an export without spans is sent, which every collector answers."""
    wanted = settings.telemetry
    metrics = "metrics off" if wanted.metrics_token is None else "metrics served"
    configuration = telemetry_configuration(wanted)
    if configuration is None or configuration["tracing"] is None:
        return fine(NAME, f"spans off (OTEL_EXPORTER_OTLP_ENDPOINT turns them on), {metrics}")
    from sentinel_rag.telemetry.tracer import Collector

    collector = Collector(**configuration["tracing"]["collector"])
    at = urlsplit(collector.endpoint).netloc
    try:
        status = collector.status(LONGEST_WAIT_S)
    except OSError as error:
        # Every question is answered all the same.
        return warning(NAME, f"{at} does not answer ({error}); spans are lost", "start it, or correct the address")
    if not 200 <= status < 300:
        return fault(NAME, f"{at}: the collector answered {status}; spans are lost", _what_mends(status))
    return fine(NAME, f"{at} takes spans ({wanted.sampler}), {metrics}")


def _what_mends(status: int) -> str:
    if status in (401, 403):
        return "correct OTEL_EXPORTER_OTLP_HEADERS"
    if status in (404, 405):
        return "correct OTEL_EXPORTER_OTLP_ENDPOINT: the address without /v1/traces, of OTLP over HTTP (port 4318)"
    return "look at the collector's log"


MARKS = {Level.OK: "ok  ", Level.WARN: "warn", Level.FAIL: "FAIL"}


def run(*, as_json: bool, azure: bool = False, model: bool = False) -> int:
    """Print every finding; 0 if all works, 1 if something must be mended. `azure` tries each right by a read, `model`
    sends each model what a question sends."""
    findings = list(_examine())
    if azure:
        findings += _asked("azure", azure_rights)
    if model:
        findings += _asked("model call", model_calls)
    if as_json:
        print_json([finding.to_dict() for finding in findings])
    else:
        _print(findings)
    return 1 if any(finding.level is Level.FAIL for finding in findings) else 0


def _print(findings: list[Finding]) -> None:
    for finding in findings:
        print(f"{MARKS[finding.level]}  {finding.name:22} {safe(finding.detail)}")
        if finding.fix:
            print(f"      {'':22} fix: {safe(finding.fix).removeprefix('Run: ')}")
    counts = {level: sum(finding.level is level for finding in findings) for level in Level}
    warned = f", {counts[Level.WARN]} could be better" if counts[Level.WARN] else ""
    failed = f"{counts[Level.FAIL]} to mend" if counts[Level.FAIL] else "everything that is needed works"
    print(f"\n{len(findings)} checks: {failed}{warned}.")


def _examine() -> Iterator[Finding]:
    yield python()
    yield packages()
    try:
        settings = load_settings()
    except ConfigurationError as error:
        yield told("settings", error)
        return
    told_of = f"model {settings.model}, time zone {settings.timezone}"
    misspelt = "; ".join(f"{name} is no setting, {near} is" for name, near in misspelt_settings().items())
    if misspelt:
        yield warning("settings", f"{told_of}; in the environment {misspelt}", "Rename it if it is meant for this.")
    else:
        yield fine("settings", told_of)
    checks: tuple[tuple[str, Check], ...] = (
        ("home folder", home),
        ("disk", disk),
        ("ports", ports),
        ("clock", clock),
        ("policy", policy),
        ("tool servers", tool_servers),
        ("gateway", gateway),
        *((("database", database),) if settings.database.url is not None else ()),
        ("zones", zones),
        *workspaces(settings),
        *((("sign-in", sign_in),) if settings.uses_azure and settings.gateway_url is None else ()),
        ("templates", templates),
        ("freeform KQL", freeform),
        ("kql parser", kql_parser),
        ("files", files),
        ("web", web),
        ("knowledge", knowledge),
        ("conversations", conversations),
        ("model", model),
        ("web page", page),
        ("telemetry", telemetry),
    )
    for name, check in checks:
        yield guarded(name, check, settings)


def _asked(name: str, ask: Callable[[], list[Finding]]) -> list[Finding]:
    try:
        return ask()
    except ConfigurationError as error:
        return [told(name, error)]
