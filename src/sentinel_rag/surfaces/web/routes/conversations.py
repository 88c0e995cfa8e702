"""A person's own conversations; another person's are not there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

import anyio.to_thread
from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from sentinel_rag.contracts.handles import fill_in_answer
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.gateway.store import Scope
from sentinel_rag.surfaces.reports import Head, ReportTurn, as_csv, as_html, as_markdown, hand_over
from sentinel_rag.surfaces.users import SignIn
from sentinel_rag.surfaces.web._access import Analyst, Parts
from sentinel_rag.surfaces.web._parts import Web
from sentinel_rag.surfaces.web._problems import not_found
from sentinel_rag.surfaces.web.models import ID, Clear, Rename
from sentinel_rag.surfaces.web.routes.chat import shown_beginning
from sentinel_rag.surfaces.web.turns import Conversation, Turn

router = APIRouter(prefix="/conversations", tags=["conversations"])

SessionId = Annotated[str, Path(pattern=ID)]
Zone = Annotated[str, Query(pattern=r"^[A-Za-z0-9_+/-]{1,64}$", description="An IANA name, for times beside UTC.")]

MOST_TURNS = 10_000
FORMS = {
    "md": (as_markdown, "text/markdown"),
    "html": (as_html, "text/html"),
    "csv": (as_csv, "text/csv"),
}
GONE = "The gateway knows a session of this conversation no more, so what it recorded there is not in this report."
NOT_WHOLE = "Only the newest records of the conversation were read."


@router.get("", summary="Your conversations, the one used last first")
async def list_all(sign_in: Analyst, web: Parts, limit: Annotated[int, Query(ge=1, le=1_000)] = 100) -> dict[str, Any]:
    found = await anyio.to_thread.run_sync(partial(web.record.list, sign_in.account.user_id, limit))
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
    people = await anyio.to_thread.run_sync(web.people.list)
    names = {each.key_id: each.name for each in people if each.key_id}
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


async def _stories(web: Web, sign_in: SignIn, conversation: Conversation, turns: Sequence[Turn]) -> list[Any | None]:
    """What became of the calls of each session of the conversation, the oldest first; None for one that is gone."""
    key = await web.key_of(sign_in.account, Scope.USER)
    sessions = dict.fromkeys(str(turn.answer["session_id"]) for turn in turns if turn.answer is not None)
    return [await web.gateway.records(key, session) for session in (sessions | {conversation.session_id: None})]


@router.get(
    "/{session_id}/export",
    summary="A conversation as a hand-over report, to be saved",
    response_class=Response,
    responses={200: {"content": {kind: {} for _, kind in FORMS.values()}, "description": "The report, as a file."}},
)
async def export(
    session_id: SessionId,
    sign_in: Analyst,
    web: Parts,
    form: Annotated[Literal["md", "html", "csv"], Query(alias="format")] = "html",
    reveal: Annotated[bool, Query(description="With the hidden values that you may see; the report says so.")] = False,
    timezone: Zone = "UTC",
) -> Response:
    found = await _conversation(web, sign_in, session_id)
    turns = await anyio.to_thread.run_sync(partial(web.record.turns, session_id, 0, MOST_TURNS))
    key = await web.key_of(sign_in.account, Scope.USER)
    told: list[ReportTurn] = []
    for turn in turns:
        answer = turn.answer
        if answer is not None and reveal:
            answer = await web.gateway.reveal(key, str(answer["session_id"]), dict(answer), fill_in_answer)
        outcome = turn.state.value if answer is None else str(answer["outcome"])
        told.append(ReportTurn(turn.number, turn.asked_at, turn.question, outcome, answer=answer))
    stories = await _stories(web, sign_in, found, turns)
    known = [story for story in stories if story is not None]
    head = Head(
        conversation_id=found.conversation_id,
        exported_by=sign_in.account.name,
        exported_at=utc_now(),
        timezone=timezone,
        revealed=reveal,
        journal_head="number {seq}, hash {hash}".format(**known[-1]["head"]) if known else "",
        notes=(
            *((GONE,) if len(known) < len(stories) else ()),
            *((NOT_WHOLE,) if not all(story["whole"] for story in known) else ()),
        ),
    )
    records = [record for story in known for record in story["records"]]
    records.sort(key=lambda each: int(each["record"]["seq"]))
    write, kind = FORMS[form]
    written = await anyio.to_thread.run_sync(lambda: write(hand_over(head, told, records)))
    return Response(
        written.encode("utf-8", "backslashreplace"),
        media_type=f"{kind}; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{_file_name(session_id, head.exported_at, form)}"'},
    )


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


def _file_name(session_id: str, at: datetime, form: str) -> str:
    return f"handover-{session_id[:8]}-{at:%Y%m%d-%H%M}.{form}"


async def _conversation(web: Web, sign_in: SignIn, session_id: str) -> Conversation:
    found = await anyio.to_thread.run_sync(partial(web.record.find, session_id, sign_in.account.user_id))
    if found is None:
        raise not_found("conversation")
    return found
