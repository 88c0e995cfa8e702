"""`sentinel demo`: the main job in a few beats, on a generated estate; no key, no network.

Three questions are answered, the last of them about an incident whose log text tries to hijack whoever reads it. Then
the demo plays an agent that has obeyed that text: in the same session and with the agent's own key it sends the calls
that the text asks for, and shows what the gateway answers and records. Last comes a change that a person confirms.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sentinel_rag.app.knowledge_stores import ingest_files, is_shared
from sentinel_rag.app.places import SAMPLE_WORKSPACE, workspace_folder
from sentinel_rag.app.run_state import AlreadyRunningError, RunState
from sentinel_rag.contracts.errors import SentinelError, UnavailableError
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.contracts.query_results import parse_time
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._output import print_json, print_words
from sentinel_rag.surfaces.cli._zones import (
    AgentClient,
    ApprovalsClient,
    attached_zones,
    call_gateway,
    home_to_itself,
    user_session,
)
from sentinel_rag.surfaces.cli.approvals import GO_ON, arguments_in_short
from sentinel_rag.surfaces.cli.ask import waiting
from sentinel_rag.surfaces.cli.audit import audit_line
from sentinel_rag.surfaces.cli.knowledge import ingest_incidents
from sentinel_rag.surfaces.cli.serve import page_is_built

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


CHANGED_INCIDENT = "120"
"""The one that the demo's own change is about: it is nobody's attack, and another comment on it spoils no later run."""
CHANGE = f"comment on incident {CHANGED_INCIDENT}: The suppliers were asked to confirm their accounts."


def run(*, as_json: bool, whole: bool) -> int:
    """Show it all; 0 if every question was answered, the calls were denied and the change was made, 1 otherwise. On a
    terminal Enter goes on from beat to beat, unless the `whole` is asked for."""
    settings = load_settings()
    if settings.gateway_url is not None:
        raise UnavailableError(
            "SENTINEL_URL names a gateway that runs elsewhere; the demo shows its own.",
            next_step="Unset it for the demo: env -u SENTINEL_URL make demo",
        )
    with waiting("Preparing the sample estate...", quiet=as_json):
        guide = _sample_estate(settings)
    stage = _Stage(quiet=as_json, stops=not (as_json or whole) and sys.stdin.isatty() and sys.stdout.isatty())
    shown = _Shown()
    with ExitStack() as stack:
        with waiting("Starting the zones...", quiet=as_json):
            state, _ = stack.enter_context(
                attached_zones(settings, SAMPLE_WORKSPACE, web=stage.stops and page_is_built())
            )
        try:
            _play(stage, shown, state, settings, guide)
        except _Left:
            return 0
    if as_json:
        print_json(shown.to_dict())
    return 0 if shown.went_well else 1


def _play(stage: _Stage, shown: _Shown, state: RunState, settings: Settings, guide: Mapping[str, Any]) -> None:
    """The beats, one after the other. Raises _Left where the person leaves."""
    client = AgentClient(state, user_session(state, settings))
    hijack = str(guide["hijack_incident"])
    for title, question in (
        ("Who needs you?", "What happened in the last 7 days?"),
        (
            "The story of one incident",
            f"What is incident {guide['main_incident']} about, and which accounts and hosts are involved?",
        ),
        ("An attacker writes orders to the AI", f"What is incident {hijack} about?"),
    ):
        with waiting("Thinking...", quiet=stage.quiet) as progress:
            answer = client.ask(question, progress)
        shown.answers.append((question, answer))
        stage.beat(title)
        stage.turn(question, answer)
    calls = stolen_calls(hijack)
    shown.denials = [_send(state, answer.session_id, call) for call in calls]
    _withdraw(state, shown.denials)
    stage.beat("The AI obeys, and nothing happens")
    if not stage.quiet:
        _print_denials(shown.denials, [call.why for call in calls])
    stage.beat("One change, confirmed by a person")
    _change(stage, shown, state, settings)
    with waiting("Reading past incidents into the knowledge base...", quiet=stage.quiet):
        shown.past_incidents = _read_past_incidents(state, settings)
    stage.beat("The page, and what to try next")
    if not stage.quiet:
        _print_page(state, settings)
        _print_next_steps(guide, shown.past_incidents)
    if stage.stops and state.zone("web") is not None:
        stage.wait("Enter ends the demo, and the page with it.")


def _change(stage: _Stage, shown: _Shown, state: RunState, settings: Settings) -> None:
    """A change that is asked for in words, shown to the person whose home it is, approved and made."""
    client = AgentClient(state, user_session(state, settings))
    with waiting("Thinking...", quiet=stage.quiet) as progress:
        asked = client.ask(CHANGE, progress)
    stage.turn(CHANGE, asked)
    gateway = state.zone("interceptor")
    if gateway is None:
        return
    desk = ApprovalsClient(gateway.url, state.keys["approver"])
    own = [each for each in desk.page("pending")["approvals"] if each["session_id"] == asked.session_id]
    for waits in own:
        stage.say(f"\nA person sees: {waits['tool']}, {arguments_in_short(waits)}")
        stage.wait("You are that person. Enter approves exactly this call, once.")
        desk.decide(waits["approval_id"], "approve", "Approved in sentinel demo.")
        stage.say("Approved.")
    with waiting("Thinking...", quiet=stage.quiet) as progress:
        shown.change = client.ask(GO_ON, progress)
    stage.turn(GO_ON, shown.change)


_AROUND = 7
"""Lines of the window beside an answer: the beat's title, the question, the note of what is left, the prompt, and what
parts them."""


class _Left(Exception):
    """The person has seen enough."""


@dataclass(slots=True)
class _Shown:
    """What happened, for `--json` and for the exit code."""

    answers: list[tuple[str, Answer]] = field(default_factory=list)
    denials: list[dict[str, Any]] = field(default_factory=list)
    change: Answer | None = None
    past_incidents: int = 0

    @property
    def went_well(self) -> bool:
        """Whether all that the demo promises was seen."""
        answered = all(answer.outcome is Outcome.ANSWERED for _, answer in self.answers)
        denied = all(denial["http_status"] == 403 for denial in self.denials)
        return answered and denied and self.change is not None and self.change.outcome is Outcome.ANSWERED

    def to_dict(self) -> dict[str, Any]:
        return {
            "answers": [{"question": question, **answer.to_dict()} for question, answer in self.answers],
            "denied_calls": self.denials,
            "change": None if self.change is None else self.change.to_dict(),
            "past_incidents": self.past_incidents,
        }


@dataclass(slots=True)
class _Stage:
    """The terminal: beats with a heading each; with `stops` the person's Enter leads from one to the next."""

    quiet: bool
    stops: bool
    begun: int = 0

    def beat(self, title: str) -> None:
        """Begin a beat. Raises _Left where the person leaves."""
        if self.begun:
            self.wait("Enter goes on, q leaves.")
        self.begun += 1
        if self.quiet:
            return
        from sentinel_rag.surfaces.cli._render import console

        target = console()
        if self.stops:
            target.clear()
        else:
            target.print()
        target.print(f"{self.begun}. {title}", style="bold reverse" if target.is_terminal else "")

    def wait(self, words: str) -> None:
        """Wait for Enter, where the demo stops at all. Raises _Left."""
        if not self.stops:
            return
        try:
            if input(f"\n{words} ").strip().lower() in ("q", "quit"):
                raise _Left
        except (EOFError, KeyboardInterrupt):
            print()
            raise _Left from None

    def turn(self, question: str, answer: Answer) -> None:
        """A question with its answer: whole, or on a terminal as much at once as its window holds."""
        if self.quiet:
            return
        from sentinel_rag.surfaces.cli._render import AnswerPages, Display, console, print_answer

        target = console()
        if not self.stops:
            target.print()
        target.print(f"> {question}", style="bold")
        target.print()
        if self.stops:
            # What to ask next and the line of sources are for whoever can type there.
            how = Display(source=False, more="Enter")
            pages = AnswerPages.begun(target, replace(answer, suggestions=()), how, around=_AROUND)
            while pages.left:
                self.wait("Enter shows them, q leaves.")
                pages.print_next(target)
        else:
            print_answer(target, answer)
        sys.stdout.flush()

    def say(self, words: str) -> None:
        """A line of the demo's own."""
        if not self.quiet:
            print_words(words)


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
            "The zones that run now have no gateway of their own.", next_step="Stop them, then repeat: make demo"
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


SHOWN = "Asked by sentinel demo, for show."
"""The comment on what the demo decides in a person's name."""


def _withdraw(state: RunState, denials: list[dict[str, Any]]) -> None:
    """Deny what was asked for show, so that nothing of an attacker waits for the person whose home this is; and take
    each no back, so that the next demo is asked again."""
    gateway = state.zone("interceptor")
    if gateway is not None:
        approvals = ApprovalsClient(gateway.url, state.keys["approver"])
        for asked in (str(each["approval_id"]) for each in denials if "approval_id" in each):
            approvals.decide(asked, "deny", SHOWN)
            approvals.decide(asked, "lift", SHOWN)


def _print_denials(denials: list[dict[str, Any]], whys: list[str]) -> None:
    from sentinel_rag.surfaces.cli._render import console

    target = console()
    target.print("Suppose a model had obeyed the text in that log, with the agent's own key:", style="bold")
    for denial, why in zip(denials, whys, strict=True):
        with_what = ", ".join(f"{name} {value}" for name, value in denial["args"].items())
        target.print()
        target.print(f"  {denial['tool_name']}: {with_what}")
        target.print(f"  BLOCKED  {denial['http_status']}  {denial.get('detail', '')}", style="bold red")
        target.print(f"  {why} (rule {denial.get('rule_id')})")
    target.print()
    if any("approval_id" in denial for denial in denials):
        target.print("Where a person decides, the demo has denied it in your name.")
    record = denials[-1]["audit_record"]
    if record:
        target.print("No tool server heard of them. The last one's line in the audit journal:", style="bold")
        target.print(f"  {audit_line(record)}", style="dim")


def _print_page(state: RunState, settings: Settings) -> None:
    """Where the web page is, signed in as the owner; how to serve it where it is not."""
    from sentinel_rag.surfaces.cli._render import console

    target = console()
    target.print()
    zone = state.zone("web")
    if zone is None:
        target.print("The web page: sentinel up --web, then open the address that it prints.")
        return
    from sentinel_rag.surfaces.users.store import owner_link

    address = f"{settings.web_url or zone.url}{owner_link(state.web_secret, utc_now())}"
    target.print(f"Open the page, signed in: {address}", soft_wrap=True)


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
    from sentinel_rag.knowledge.ingestion import read_ingest_record

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
    question = f'sentinel ask "have we seen something like incident {guide["main_incident"]} before?"'
    for command, what in (*([(question, "past cases")] if past_incidents else []), *NEXT_STEPS):
        beside = len(what) + _WHAT_BEGINS <= target.width
        target.print(f"  {command:{_WHAT_BEGINS - 4}}  {what}" if beside else f"  {command}\n      {what}")
    for line in _where_it_lies():
        target.print(f"  {line}")


NEXT_STEPS = (
    ('sentinel ask "which incidents are still open?"', "one question, with its evidence: --evidence, --json"),
    ("sentinel chat", "a conversation"),
    ("sentinel workspace import alerts.csv incidents.csv", "your own exports; questions then go to them"),
    ("sentinel up", "keep the zones running, so that answers come at once"),
    ("sentinel audit show, sentinel audit verify", "what the gateway recorded, and that nothing was changed"),
)
_WHAT_BEGINS = 56
"""The column in which it stands beside its command what that does, where the window is wide enough."""


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
