"""A person's own conversations and reports of them; another person's are not there."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, Literal

import anyio.to_thread
from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from sentinel_rag.contracts.conversations import total_cost
from sentinel_rag.contracts.errors import SentinelError, UnavailableError, UsageError
from sentinel_rag.contracts.handles import fill_in_answer
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.gateway.store import Scope
from sentinel_rag.surfaces.reports import Head, Reading, ReportTurn, calls_for, hand_over, written
from sentinel_rag.surfaces.users import Role, SignIn
from sentinel_rag.surfaces.web._parts import Analyst, Lead, Parts, Web
from sentinel_rag.surfaces.web._problems import RequestProblem, not_found
from sentinel_rag.surfaces.web.models import ID, Clear, Rename, TimeZone
from sentinel_rag.surfaces.web.routes.approvals import list_for
from sentinel_rag.surfaces.web.routes.chat import shown_beginning
from sentinel_rag.surfaces.web.turns import KeptConversation, KeptTurn

router = APIRouter(prefix="/conversations", tags=["conversations"])

SessionId = Annotated[str, Path(pattern=ID)]

MOST_TURNS = 10_000


@router.get("", summary="Your conversations, the one used last first")
async def list_all(
    sign_in: Analyst,
    web: Parts,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    words: Annotated[str, Query(max_length=200, description="Only with these words in the title or a question.")] = "",
) -> dict[str, Any]:
    found = await anyio.to_thread.run_sync(partial(web.record.list, sign_in.account.user_id, limit, words))
    return {"conversations": [each.to_dict() for each in found]}


@router.get("/{session_id}", summary="A conversation with its turns, oldest first")
async def show(
    session_id: SessionId,
    sign_in: Analyst,
    web: Parts,
    after: Annotated[int, Query(ge=0, le=1_000_000, description="Turns behind this number.")] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> dict[str, Any]:
    found = await _conversation(web, sign_in, session_id)
    turns = await anyio.to_thread.run_sync(partial(web.record.turns, session_id, after, limit))
    key = await web.key_of(sign_in.account, Scope.USER)
    shown: list[dict[str, Any]] = []
    for turn in turns:
        told = turn.to_dict()
        if turn.answer is not None:
            answer = await web.gateway.reveal(key, str(turn.answer["session_id"]), told["answer"], fill_in_answer)
            told["answer"] = {**answer, "session_id": session_id}
        else:
            told |= await shown_beginning(web, key, found.session_id, told)
        shown.append(told)
    return {**found.to_dict(), "items": shown, "next_after": turns[-1].number if turns else after}


@router.get("/{session_id}/requests", summary="What became of the calls that a person was asked about")
async def requests(session_id: SessionId, sign_in: Analyst, web: Parts) -> dict[str, Any]:
    found = await _conversation(web, sign_in, session_id)
    turns = await anyio.to_thread.run_sync(partial(web.record.turns, session_id, 0, MOST_TURNS))
    stories = await _stories(web, sign_in, found, turns)
    names = await web.names()
    records = [entry["record"] for story in stories if story is not None for entry in story["records"]]
    return {"requests": list(_requests(records, names))}


def _requests(records: list[dict[str, Any]], names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Each call that was held back, by its audit id, with what was decided and whether it ran."""
    asked = {each["audit_id"]: each for each in records if each["kind"] == "approval_asked"}
    ended = {each["audit_id"]: each for each in records if each["kind"] in ("approval_decided", "approval_lapsed")}
    used = {each["approval_id"]: each for each in records if each["kind"] == "intent" and each.get("approval_id")}
    for held in records:
        approval_id = held.get("approval_id")
        if held["kind"] != "refusal" or approval_id not in asked:
            continue
        ruling, run = ended.get(approval_id), used.get(approval_id)
        decided = ruling is not None and ruling["kind"] == "approval_decided"
        state = "used" if run else "pending" if ruling is None else ruling["decision"] if decided else "expired"
        yield {
            "approval_id": approval_id,
            "audit_id": held["audit_id"],
            "tool": asked[approval_id]["tool"],
            "state": state,
            "asked_at": asked[approval_id]["at"],
            "decision": _ruling(ruling, names) if ruling is not None and decided else None,
            "used_at": None if run is None else run["at"],
        }


def _ruling(ruling: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    by = ruling.get("actor") or names.get(str(ruling["key_id"])) or "whoever runs this machine"
    return {"by": by, "comment": ruling.get("comment", ""), "at": ruling["at"]}


async def _stories(
    web: Web, sign_in: SignIn, conversation: KeptConversation, turns: Sequence[KeptTurn]
) -> list[Any | None]:
    """What became of the calls of each session of the conversation, the oldest first; None for one that is gone."""
    key = await web.key_of(sign_in.account, Scope.USER)
    sessions = dict.fromkeys(str(turn.answer["session_id"]) for turn in turns if turn.answer is not None)
    return [await web.gateway.records(key, session) for session in (sessions | {conversation.session_id: None})]


@router.patch("/{session_id}", summary="Give a conversation another title")
async def rename(session_id: SessionId, body: Rename, sign_in: Analyst, web: Parts) -> dict[str, Any]:
    await _conversation(web, sign_in, session_id)
    await anyio.to_thread.run_sync(partial(web.record.rename, session_id, body.title))
    return (await _conversation(web, sign_in, session_id)).to_dict()


@router.post("/{session_id}/clear", summary="Start over; facts that were supported may stay")
async def clear(session_id: SessionId, body: Clear, sign_in: Analyst, web: Parts) -> dict[str, Any]:
    await _conversation(web, sign_in, session_id)
    async with web.desk.quiet(session_id):
        current = (await _conversation(web, sign_in, session_id)).session_id
        if not body.carry:
            await web.agent.forget(current)
            return {"carried": []}
        carried = await web.agent.clear(current)
    shown = await web.gateway.reveal(await web.key_of(sign_in.account, Scope.USER), current, carried)
    return {"carried": shown}


@router.delete("/{session_id}", status_code=204, summary="Delete a conversation, and end what is asked in it")
async def delete(session_id: SessionId, sign_in: Analyst, web: Parts) -> Response:
    await _conversation(web, sign_in, session_id)
    await web.desk.cancel_all(session_id)
    async with web.desk.quiet(session_id):
        current = (await _conversation(web, sign_in, session_id)).session_id
        await web.agent.delete(current)
        await web.gateway.close_session(await web.key_of(sign_in.account, Scope.USER), current)
        await anyio.to_thread.run_sync(web.record.delete, session_id)
    return Response(status_code=204)


async def _conversation(web: Web, sign_in: SignIn, session_id: str) -> KeptConversation:
    """The person's conversation of that id. Raises Problem 404."""
    found = await anyio.to_thread.run_sync(partial(web.record.find, session_id, sign_in.account.user_id))
    if found is None:
        raise not_found("conversation")
    return found


reports_router = APIRouter(tags=["reports"])

WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
KINDS = {
    "html": "text/html; charset=utf-8",
    "pdf": "application/pdf",
    "docx": WORD,
    "md": "text/markdown; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "evidence": "text/csv; charset=utf-8",
}
GONE = "The gateway knows a session of this conversation no more, so what it recorded there is not in this report."
NOT_WHOLE = "Only the newest records of a conversation were read."
MOST_CONVERSATIONS = 200
MOST_APPROVALS = 200
FILE: dict[str, Any] = {
    "response_class": Response,
    "responses": {200: {"content": {kind.partition(";")[0]: {} for kind in KINDS.values()}, "description": "A file."}},
}


class ReportOptions(BaseModel):
    """What a report is to be."""

    format: Literal["html", "pdf", "docx", "md", "csv", "evidence"] = "html"
    reveal: bool = Field(default=False, description="With the hidden values that you may see; the report says so.")
    timezone: TimeZone = Field(default="UTC", description="An IANA name, for times beside UTC.")
    incident: str = Field(default="", pattern=r"^[0-9]{0,10}$", description="One incident alone; empty for all.")


class ShiftOptions(ReportOptions):
    """The same, of an incident or of the queue, with all that was asked in the last hours."""

    hours: int = Field(default=12, ge=1, le=31 * 24)
    workspace: str = Field(default="", max_length=128, description="What is read; empty for the default one.")
    team: bool = Field(default=False, description="With what everybody had done, for people with the role approver.")


@reports_router.get("/conversations/{session_id}/export", summary="A conversation as a report, to be saved", **FILE)
async def of_conversation(
    session_id: SessionId, sign_in: Analyst, web: Parts, options: Annotated[ReportOptions, Query()]
) -> Response:
    return await _report(web, sign_in, [await _conversation(web, sign_in, session_id)], "", options)


@reports_router.get("/reports", summary="An incident, or the hand-over of a shift, as a report to be saved", **FILE)
async def of_shift(sign_in: Analyst, web: Parts, options: Annotated[ShiftOptions, Query()]) -> Response:
    if options.team and sign_in.account.roles.isdisjoint((Role.APPROVER, Role.ADMIN)):
        raise RequestProblem(
            403, "missing_role", "What others had done is for people with the role approver.", "Leave out team."
        )
    since = format_time(utc_now() - timedelta(hours=options.hours))
    listed = await anyio.to_thread.run_sync(partial(web.record.list, sign_in.account.user_id, MOST_CONVERSATIONS))
    lately = [each for each in reversed(listed) if each.used_at >= since]
    return await _report(web, sign_in, lately, since, options)


@reports_router.get("/usage", summary="What everybody's questions took in the last days, and in as many days before")
async def usage(_: Lead, web: Parts, days: Annotated[int, Query(ge=1, le=90)] = 7) -> dict[str, Any]:
    now, span = utc_now(), timedelta(days=days)
    ends = [format_time(now - span * back) for back in (2, 1, 0)]
    before, last = [
        total_cost(await anyio.to_thread.run_sync(web.record.costs, since, until))
        for since, until in itertools.pairwise(ends)
    ]
    return {"days": days, "last": last, "before": before}


async def _report(
    web: Web, sign_in: SignIn, conversations: Sequence[KeptConversation], since: str, options: ReportOptions
) -> Response:
    told: list[ReportTurn] = []
    stories: list[Any | None] = []
    for each in conversations:
        turns = await anyio.to_thread.run_sync(partial(web.record.turns, each.conversation_id, 0, MOST_TURNS))
        for turn in turns:
            if turn.asked_at >= since:
                told.append(await _turn(web, sign_in, turn, len(told) + 1, reveal=options.reveal))
        stories += await _stories(web, sign_in, each, turns)
    known = [story for story in stories if story is not None]
    notes: list[str] = []
    readings, approvals = (
        await _read(web, sign_in, since, options, notes) if isinstance(options, ShiftOptions) else ([], [])
    )
    coverage = [each for turn in told for each in (turn.answer or {}).get("coverage", ())]
    coverage += [each.result["coverage"] for each in readings if "coverage" in each.result]
    name = conversations[0].conversation_id if len(conversations) == 1 else f"{len(conversations)} conversations"
    head = Head(
        conversation_id=name,
        exported_by=sign_in.account.name,
        exported_at=utc_now(),
        timezone=options.timezone,
        workspace=", ".join(dict.fromkeys(str(each["workspace"]) for each in coverage)),
        revealed=options.reveal,
        journal_head="number {seq}, hash {hash}".format(**known[-1]["head"]) if known else "",
        notes=(
            *((GONE,) if len(known) < len(stories) else ()),
            *((NOT_WHOLE,) if not all(story["whole"] for story in known) else ()),
            *notes,
        ),
        incident=options.incident,
        people=await web.names(),
        since="" if options.incident else since,
        team=isinstance(options, ShiftOptions) and options.team,
    )
    records = [record for story in known for record in story["records"]]
    records.sort(key=lambda record: int(record["record"]["seq"]))
    report = await anyio.to_thread.run_sync(partial(hand_over, head, told, records, readings, approvals))
    if not report.facts and not any(each.rows for each in readings):
        about = f" about incident {options.incident}" if options.incident else ""
        raise UsageError(
            f"Nothing was asked{about} then, so there is no report.",
            next_step=" ".join(notes) or "There is no such incident, and it holds what you asked yourself.",
        )
    try:
        content = await anyio.to_thread.run_sync(written, options.format, report)
    except UnavailableError as error:  # of this form alone; not a part that is away
        raise RequestProblem(409, "not_installed", str(error), "Take html or md.") from error
    what = "shift" if since else f"handover-{name[:8]}"
    what = f"incident-{options.incident}" if options.incident else what
    named = f"{what}-{head.exported_at:%Y%m%d-%H%M}.{'csv' if options.format == 'evidence' else options.format}"
    disposition = f'attachment; filename="{named}"'
    return Response(content, headers={"Content-Type": KINDS[options.format], "Content-Disposition": disposition})


async def _read(
    web: Web, sign_in: SignIn, since: str, options: ShiftOptions, notes: list[str]
) -> tuple[list[Reading], list[dict[str, Any]]]:
    """What the report reads at the gateway with the person's own key: the incident or the queue, and the approvals that
    it tells of; `notes` get what was refused."""
    key = await web.key_of(sign_in.account, Scope.USER)
    readings: list[Reading] = []
    calls, result = calls_for(options.incident, since, options.workspace), None
    with suppress(StopIteration):
        while True:
            tool, arguments = calls.send(result)
            result = None
            try:
                found = await web.looks.look(sign_in.account, key, tool, arguments, reveal=options.reveal)
            except (RequestProblem, SentinelError) as error:
                notes.append(f"{tool} was not read: {error}")
            else:
                result = found["result"]
                readings.append(Reading(tool, arguments, found["audit_id"], format_time(utc_now()), result))
    try:
        approvals = (await list_for(web, sign_in, {"limit": MOST_APPROVALS}))["approvals"]
    except (RequestProblem, SentinelError) as error:
        notes.append(f"Approvals were not read: {error}")
        return readings, []
    everybody = options.team or options.incident  # of an incident, whatever the gateway shows this person
    return readings, [each for each in approvals if everybody or each["person"] == sign_in.account.name]


async def _turn(web: Web, sign_in: SignIn, turn: KeptTurn, number: int, *, reveal: bool) -> ReportTurn:
    answer = turn.answer
    if answer is not None and reveal:
        key = await web.key_of(sign_in.account, Scope.USER)
        answer = await web.gateway.reveal(key, str(answer["session_id"]), dict(answer), fill_in_answer)
    outcome = turn.state.value if answer is None else str(answer["outcome"])
    return ReportTurn(number, turn.asked_at, turn.question, outcome, answer=answer, conversation=turn.conversation_id)
