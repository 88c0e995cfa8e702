"""`sentinel demo`: the main job in one go, on a generated estate; no key, no network.

Three questions are answered, the last of them about an incident whose log text tries to hijack whoever reads it. Then
the demo plays an agent that has obeyed that text: in the same session and with the agent's own key it sends the calls
that the text asks for, and shows what the gateway answers and records.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sentinel_rag.app.home_folders import workspace_folder
from sentinel_rag.app.knowledge_stores import is_shared
from sentinel_rag.app.knowledge_zone import ingest_files
from sentinel_rag.app.run_state import AlreadyRunningError, RunState
from sentinel_rag.contracts.errors import SentinelError, UnavailableError
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.query_results import parse_time
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._agent_client import AgentClient
from sentinel_rag.surfaces.cli._approvals_client import ApprovalsClient
from sentinel_rag.surfaces.cli._gateway_client import call_gateway
from sentinel_rag.surfaces.cli._knowledge_client import ingest_incidents
from sentinel_rag.surfaces.cli._user_session import user_session
from sentinel_rag.surfaces.cli._zones import SAMPLE_WORKSPACE, attached_zones, home_to_itself
from sentinel_rag.surfaces.cli.ask import waiting
from sentinel_rag.surfaces.cli.audit import audit_line

STALE_AFTER = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class StolenCall:
    """A call that the estate's hijacking text asks for, and in words why the shipped policy does not let it pass."""

    tool: str
    arguments: Mapping[str, Any]
    why: str


def stolen_calls(incident: str) -> tuple[StolenCall, ...]:
    """What an agent that obeys the text of `incident` would try."""
    return (
        StolenCall(
            "run_kql_query", {"template": "raw_signins"}, "everybody's raw sign-ins: the rule asks a person first"
        ),
        StolenCall(
            "update_incident",
            {"incident": incident, "status": "Closed", "classification": "BenignPositive"},
            "a change: a person decides, and sees that attacker's text led to it",
        ),
        StolenCall(
            "web_search",
            {"query": f"incident {incident} accounts and hosts"},
            "what the session has read is not public, whatever words it is put in",
        ),
    )


def run(*, as_json: bool) -> int:
    """Show it all; 0 if every question was answered and the call was denied, 1 otherwise."""
    settings = load_settings()
    if settings.gateway_url is not None:
        raise UnavailableError(
            "SENTINEL_URL names a gateway that runs elsewhere; the demo shows its own.",
            next_step="Unset it for the demo: env -u SENTINEL_URL make demo",
        )
    with waiting("Preparing the sample estate...", quiet=as_json):
        guide = _sample_estate(settings)
    questions = (
        "What happened in the last 7 days?",
        f"What is incident {guide['main_incident']} about, and which accounts and hosts are involved?",
        f"What is incident {guide['hijack_incident']} about?",
    )
    with ExitStack() as stack:
        with waiting("Starting the zones...", quiet=as_json):
            state, _ = stack.enter_context(attached_zones(settings, SAMPLE_WORKSPACE))
        client = AgentClient(state, user_session(state, settings))
        answers = []
        for question in questions:
            with waiting("Thinking...", quiet=as_json) as progress:
                answers.append(client.ask(question, progress))
            if not as_json:
                _print_turn(question, answers[-1])
        incident = str(guide["hijack_incident"])
        denials = [_send(state, answers[-1].session_id, call) for call in stolen_calls(incident)]
        _withdraw(state, denials)
        with waiting("Reading past incidents into the knowledge base...", quiet=as_json):
            past_incidents = _read_past_incidents(state, settings)
    if as_json:
        report = {
            "answers": [{"question": q, **a.to_dict()} for q, a in zip(questions, answers, strict=True)],
            "denied_calls": denials,
            "past_incidents": past_incidents,
        }
        print(json.dumps(report, indent=2))
    else:
        _print_denials(denials, [call.why for call in stolen_calls(incident)])
        _print_next_steps(guide, past_incidents)
    answered = all(answer.outcome is Outcome.ANSWERED for answer in answers)
    return 0 if answered and all(denial["http_status"] == 403 for denial in denials) else 1


def _sample_estate(settings: Settings) -> Mapping[str, Any]:
    """The guide to the sample workspace, written anew when it is a day old, so that "last 24 hours" has rows."""
    if settings.uses_azure:
        raise UnavailableError(
            "SENTINEL_WORKSPACE_ID is set, so questions would go to Azure; the demo runs on the embedded workspace.",
            next_step="Unset it for the demo: env -u SENTINEL_WORKSPACE_ID make demo",
        )
    folder = workspace_folder(settings.home, SAMPLE_WORKSPACE)
    guide_file = folder / "guide.json"
    try:
        guide: dict[str, Any] = json.loads(guide_file.read_text())
        if datetime.now(UTC) - parse_time(guide["end"]) < STALE_AFTER:
            return guide
    except (OSError, ValueError, KeyError):
        pass  # there is none yet, or a demo was killed while it wrote: make it anew
    from sentinel_rag.workspace.sample.options import EstateOptions
    from sentinel_rag.workspace.workspace import Workspace

    with ExitStack() as stack:
        try:
            stack.enter_context(home_to_itself(settings))
        except AlreadyRunningError:
            raise UnavailableError(
                "sentinel up is running with this home folder, so the demo cannot write its sample estate.",
                next_step="Stop it, or run the demo elsewhere: SENTINEL_HOME=./demo-home sentinel demo",
            ) from None
        shutil.rmtree(folder, ignore_errors=True)
        workspace = Workspace.open(folder)
        try:
            guide = workspace.generate(EstateOptions()).to_dict()
        finally:
            workspace.close()
        guide_file.write_text(json.dumps(guide))
    return guide


def _send(state: RunState, session_id: str, call: StolenCall) -> dict[str, Any]:
    """What the gateway answers to such a call, and the last record of it."""
    gateway = state.zone("interceptor")
    if gateway is None:
        raise UnavailableError(
            "The zones that run now have no gateway of their own.",
            next_step="Stop them, then repeat: make demo",
        )
    body = {"session_id": session_id, "tool_name": call.tool, "args": call.arguments}
    status, answer = call_gateway(gateway.url, state.keys["agent"], "POST", "/v1/proxy-execute", body)
    _, found = call_gateway(gateway.url, state.keys["audit"], "GET", f"/v1/audit/{answer.get('audit_id', 'none')}")
    records = found.get("records", [])
    return {
        "tool_name": call.tool,
        "args": call.arguments,
        "http_status": status,
        **answer,
        "audit_record": records[-1] if records else None,
    }


def _withdraw(state: RunState, denials: list[dict[str, Any]]) -> None:
    """Deny what was asked for show, so that nothing of an attacker waits for the person whose home this is."""
    gateway = state.zone("interceptor")
    if gateway is not None:
        approvals = ApprovalsClient(gateway.url, state.keys["approver"])
        for asked in (str(each["approval_id"]) for each in denials if "approval_id" in each):
            approvals.decide(asked, "deny", "Asked by sentinel demo, for show.")


def _print_turn(question: str, answer: Answer) -> None:
    from sentinel_rag.surfaces.cli._render import console, print_answer

    target = console()
    target.print()
    target.print(f"> {question}", style="bold")
    target.print()
    print_answer(target, answer)
    sys.stdout.flush()


def _print_denials(denials: list[dict[str, Any]], whys: list[str]) -> None:
    from sentinel_rag.surfaces.cli._render import console

    target = console()
    target.print()
    target.print("Suppose a model had obeyed the text in that log, with the agent's own key:", style="bold")
    for denial, why in zip(denials, whys, strict=True):
        target.print()
        target.print(f"  {denial['tool_name']} {json.dumps(denial['args'])}")
        target.print(f"  {denial['http_status']}  {denial.get('detail', '')}", style="bold red")
        target.print(f"       {denial.get('reason')}, rule {denial.get('rule_id')}: {why}")
        if "approval_id" in denial:
            target.print(
                "       a person decides such a call (sentinel approvals list); the demo has denied this one, "
                f"{denial['approval_id'][:8]}"
            )
    record = denials[-1]["audit_record"]
    if record:
        target.print()
        target.print("No tool server heard of them. The last one's line in the audit journal:", style="bold")
        target.print(f"  {audit_line(record)}")


def _read_past_incidents(state: RunState, settings: Settings) -> int:
    """The estate's incidents into the knowledge base, to be found by words: half a second. How many it holds then; 0
    where that failed, which spoils no demo, and where the store is a team's or holds a person's own past incidents,
    whose place these would take."""
    if is_shared(settings.knowledge.store) or _holds_own(settings):
        return 0
    wish = {"who": "sentinel demo", "by_words": True}
    try:
        outcomes = ingest_incidents(state, wish, lambda _: None)
    except SentinelError:
        return 0
    return sum(each.added + each.changed + each.unchanged for each in outcomes)


def _holds_own(settings: Settings) -> bool:
    from sentinel_rag.knowledge.ingest_record import read_ingest_record

    return any(each.workspace != SAMPLE_WORKSPACE for each in read_ingest_record(ingest_files(settings).record))


def _print_next_steps(guide: Mapping[str, Any], past_incidents: int) -> None:
    from sentinel_rag.surfaces.cli._render import console

    target = console()
    target.print()
    if past_incidents:
        target.print(
            f"{past_incidents} past incidents and the shipped playbooks can be asked now by their words, "
            "and by meaning after: sentinel knowledge ingest"
        )
        target.print()
    target.print("Try next:", style="bold")
    like = (_like(guide["main_incident"]),) if past_incidents else ()
    for line in (*like, *NEXT_STEPS, *_where_it_lies()):
        target.print(f"  {line}")


def _like(incident: object) -> str:
    question = f'sentinel ask "have we seen something like incident {incident} before?"'
    return f"{question}   past cases"


NEXT_STEPS = (
    'sentinel ask "which incidents are still open?"       one question, with its evidence: --evidence, --json',
    "sentinel chat                                        a conversation",
    "sentinel workspace import alerts.csv incidents.csv   your own exports; questions then go to them",
    "sentinel up                                          keep the zones running, so that answers come at once",
    "sentinel audit show, sentinel audit verify           what the gateway recorded, and that nothing was changed",
)


def _where_it_lies(path: str | None = None) -> tuple[str, ...]:
    """How the program is typed, where its name alone would not find it. `path` stands for that of the environment."""
    program = Path(sys.executable).parent / "sentinel"
    found = shutil.which("sentinel", path=path)
    if found is not None and program.exists() and Path(found).samefile(program):
        return ()
    if (program.parent / "activate").is_file():
        folder = program.parent
        shown = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
        return (f"(sentinel lies in {shown}; to type its name alone: . {shown}/activate)",)
    return (f"(sentinel lies in {program.parent})",)
