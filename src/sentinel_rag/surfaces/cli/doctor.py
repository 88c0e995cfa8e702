"""`sentinel doctor`: check each dependency, the services and telemetry too, and name the command that mends it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from importlib import metadata
from urllib.parse import urlsplit

from sentinel_rag.app.database import look
from sentinel_rag.app.plan import telemetry_configuration
from sentinel_rag.app.run_state import RunFolder
from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.settings import Settings, load_settings, misspelt_settings
from sentinel_rag.surfaces.cli import doctor_checks
from sentinel_rag.surfaces.cli._output import print_json
from sentinel_rag.surfaces.cli.doctor_checks import (
    CLOCK_TOLERANCE,
    Check,
    Finding,
    Level,
    fault,
    fine,
    guarded,
    told,
    warning,
)
from sentinel_rag.surfaces.cli.serve import HOW_TO_BUILD, page_is_built
from sentinel_rag.surfaces.cli.status import addresses
from sentinel_rag.surfaces.rendering.visible import safe

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
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    with closing(kind(parts.netloc, timeout=ANSWER_WITHIN_S)) as connection:
        connection.request("GET", parts.path.rstrip("/") + path, headers=headers)
        response = connection.getresponse()
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
    from sentinel_rag.app.model_check import check_models

    found = []
    for each in check_models(settings):
        line = f"model {each.tier}"
        if not each.ok:
            found.append(fault(line, each.detail, each.next_step))
        else:
            found.append(warning(line, each.detail, each.next_step) if each.next_step else fine(line, each.detail))
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
            line, detail = f"azure {name}", f"{each.name}: {each.detail}"
            if not each.ok:
                found.append(fault(line, detail, each.next_step))
            else:
                found.append(warning(line, detail, each.next_step) if each.next_step else fine(line, detail))
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
    from sentinel_rag.telemetry.exporter import Collector

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
    yield doctor_checks.python()
    yield doctor_checks.packages()
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
        ("home folder", doctor_checks.home),
        ("disk", doctor_checks.disk),
        ("ports", doctor_checks.ports),
        ("clock", doctor_checks.clock),
        ("policy", doctor_checks.policy),
        ("tool servers", doctor_checks.tool_servers),
        ("gateway", gateway),
        *((("database", database),) if settings.database.url is not None else ()),
        ("zones", zones),
        *doctor_checks.workspaces(settings),
        *((("sign-in", sign_in),) if settings.uses_azure and settings.gateway_url is None else ()),
        ("templates", doctor_checks.templates),
        ("freeform KQL", doctor_checks.freeform),
        ("kql parser", doctor_checks.kql_parser),
        ("files", doctor_checks.files),
        ("web", doctor_checks.web),
        ("knowledge", doctor_checks.knowledge),
        ("conversations", doctor_checks.conversations),
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
