"""`sentinel doctor`: one line for each thing that must be right, with the command that mends it.

The checks stand beside this file, by what they look at. None changes anything; without `--azure` and `--model` services
are asked for a sign-in at most.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.settings import load_settings, misspelt_settings
from sentinel_rag.surfaces.cli._safe_text import safe
from sentinel_rag.surfaces.cli.doctor import _machine, _services, _sources, _telemetry
from sentinel_rag.surfaces.cli.doctor._finding import Check, Finding, Level, fine, guarded, told, warning

MARKS = {Level.OK: "ok  ", Level.WARN: "warn", Level.FAIL: "FAIL"}


def run(*, as_json: bool, azure: bool = False, model: bool = False) -> int:
    """Print every finding; 0 if all works, 1 if something must be mended. `azure` tries each right by a read, `model`
    sends each model what a question sends."""
    findings = list(_examine())
    if azure:
        findings += _asked("azure", _services.azure_rights)
    if model:
        findings += _asked("model call", _services.model_calls)
    if as_json:
        print(json.dumps([finding.to_dict() for finding in findings], indent=2))
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
    yield _machine.python()
    yield _machine.packages()
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
        ("home folder", _machine.home),
        ("disk", _machine.disk),
        ("ports", _machine.ports),
        ("clock", _machine.clock),
        ("policy", _sources.policy),
        ("tool servers", _sources.tool_servers),
        ("gateway", _services.gateway),
        *((("database", _services.database),) if settings.database.url is not None else ()),
        ("zones", _services.zones),
        *_sources.workspaces(settings),
        *((("sign-in", _services.sign_in),) if settings.uses_azure and settings.gateway_url is None else ()),
        ("templates", _sources.templates),
        ("freeform KQL", _sources.freeform),
        ("kql parser", _sources.kql_parser),
        ("files", _sources.files),
        ("web", _sources.web),
        ("knowledge", _sources.knowledge),
        ("conversations", _sources.conversations),
        ("model", _services.model),
        ("web page", _services.page),
        ("telemetry", _telemetry.telemetry),
    )
    for name, check in checks:
        yield guarded(name, check, settings)


def _asked(name: str, ask: Callable[[], list[Finding]]) -> list[Finding]:
    try:
        return ask()
    except ConfigurationError as error:
        return [told(name, error)]
