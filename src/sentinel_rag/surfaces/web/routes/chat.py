"""Questions: `POST /chat`, as one answer or as events, and the turns that they begin.

A turn goes on whoever listens: a reader that lost its connection asks `GET /turns/{turn_id}/events` with the last id it
saw and misses nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Annotated, Any

import anyio
import anyio.to_thread
from fastapi import APIRouter, Header, Path, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from sentinel_rag.contracts.handles import fill_in_answer, handles_in
from sentinel_rag.gateway.store import Scope
from sentinel_rag.surfaces.users import SignIn
from sentinel_rag.surfaces.web._parts import Analyst, Parts, Web
from sentinel_rag.surfaces.web._problems import RequestProblem, not_found, too_often
from sentinel_rag.surfaces.web.models import ID, ChatAnswer, ChatRequest, Opinion
from sentinel_rag.surfaces.web.turns import Event, KeptTurn, PersonQuestion, TurnState
from sentinel_rag.surfaces.web.turns.events import filled

KEEP_ALIVE_S = 15.0
ELSEWHERE_S = 15.0
"""How long a reader waits in one go for a turn that another surface answers."""
EVENT_STREAM = "text/event-stream"

router = APIRouter(tags=["chat"])

TurnId = Annotated[str, Path(pattern=ID)]
LastEventId = Annotated[str | None, Header(pattern=r"^[0-9]{1,6}$", description="The id of the last event you saw.")]


@router.post(
    "/chat",
    summary="Ask a question",
    response_model=ChatAnswer,
    responses={200: {"description": "The answer; with `Accept: text/event-stream`, its events as they come."}},
)
async def chat(
    asked: ChatRequest,
    sign_in: Analyst,
    web: Parts,
    request: Request,
    idempotency_key: Annotated[str | None, Header(pattern=r"^[A-Za-z0-9._:-]{1,128}$")] = None,
) -> Response:
    account = sign_in.account
    wait = web.rates.take(f"{account.user_id}/questions", web.limits.questions)
    if wait is not None:
        raise too_often(wait, "questions")
    if asked.request_id and idempotency_key and asked.request_id != idempotency_key:
        raise RequestProblem(
            422, "malformed_body", "Idempotency-Key and request_id name two turns.", "Send one of them."
        )
    streams = EVENT_STREAM in request.headers.get("accept", "")
    if streams:
        _check_streams(web, account.user_id)
    turn_id = await web.desk.ask(
        PersonQuestion(
            user_id=account.user_id,
            key=await web.key_of(account, Scope.USER),
            message=asked.message,
            conversation_id=asked.session_id,
            request_id=asked.request_id or idempotency_key,
            options={
                "workspace": asked.workspace,
                "timezone": asked.timezone,
                "verbosity": None if asked.verbosity is None else asked.verbosity.value,
            },
        )
    )
    if streams:
        return await _events(web, sign_in, turn_id, 0)
    live = web.desk.live(turn_id, account.user_id)
    if live is not None:
        await live.wait()
    await web.desk.elsewhere(turn_id, account.user_id)
    turn = await _turn(web, sign_in, turn_id)
    if turn.answer is None:
        raise _failure(turn)
    shown = await _shown(web, sign_in, turn)
    return JSONResponse({"turn_id": turn_id, "request_id": turn.request_id, **shown})


@router.get("/turns/{turn_id}", summary="One turn, answered or not")
async def show(turn_id: TurnId, sign_in: Analyst, web: Parts) -> dict[str, Any]:
    turn = await _turn(web, sign_in, turn_id)
    told = turn.to_dict()
    if turn.answer is not None:
        return {**told, "answer": await _shown(web, sign_in, turn)}
    found = await anyio.to_thread.run_sync(partial(web.record.find, turn.conversation_id, turn.user_id))
    key = await web.key_of(sign_in.account, Scope.USER)
    session_id = turn.conversation_id if found is None else found.session_id
    return {**told, **await shown_beginning(web, key, session_id, told)}


@router.get(
    "/turns/{turn_id}/events",
    summary="Follow a turn, or go on following it",
    responses={
        200: {"content": {EVENT_STREAM: {}}, "description": "The events behind `Last-Event-ID`."},
        204: {"description": "There are no more: the turn is over, and you have its last event."},
    },
    response_class=StreamingResponse,
)
async def events(turn_id: TurnId, sign_in: Analyst, web: Parts, last_event_id: LastEventId = None) -> Response:
    _check_streams(web, sign_in.account.user_id)
    return await _events(web, sign_in, turn_id, int(last_event_id or 0))


@router.delete("/turns/{turn_id}", status_code=202, summary="Stop answering")
async def cancel(turn_id: TurnId, sign_in: Analyst, web: Parts) -> dict[str, Any]:
    turn = await _turn(web, sign_in, turn_id)
    live = web.desk.live(turn_id, sign_in.account.user_id)
    if live is not None:
        live.cancel()
        await live.wait()
        turn = await _turn(web, sign_in, turn_id)
    return {"turn_id": turn_id, "state": turn.state.value}


@router.put("/turns/{turn_id}/opinion", status_code=204, summary="Say whether an answer helped")
async def think(turn_id: TurnId, body: Opinion, sign_in: Analyst, web: Parts) -> Response:
    if (await _turn(web, sign_in, turn_id)).answer is None:
        raise RequestProblem(
            409, "no_answer", "This turn has no answer yet.", "Wait for it, then say what you think of it."
        )
    await anyio.to_thread.run_sync(partial(web.record.think, turn_id, body.model_dump()))
    return Response(status_code=204)


@router.delete("/turns/{turn_id}/opinion", status_code=204, summary="Take back what you said of an answer")
async def think_nothing(turn_id: TurnId, sign_in: Analyst, web: Parts) -> Response:
    await _turn(web, sign_in, turn_id)
    await anyio.to_thread.run_sync(partial(web.record.think, turn_id, None))
    return Response(status_code=204)


@router.get("/turns/{turn_id}/evidence/{number}", summary="What one fact of an answer rests on")
async def evidence(
    turn_id: TurnId, number: Annotated[int, Path(ge=1, le=100_000)], sign_in: Analyst, web: Parts
) -> dict[str, Any]:
    turn = await _turn(web, sign_in, turn_id)
    if turn.answer is None or number > len(turn.answer["evidence"]):
        raise not_found("piece of evidence")
    shown = await _shown(web, sign_in, turn)
    piece = shown["evidence"][number - 1]
    call = next((trace for trace in shown["tools"] if trace["call_id"] == piece["call_id"]), None)
    return {"number": number, **piece, "row": _row(shown["evidence"], piece), "call": call}


def _row(pieces: list[dict[str, Any]], piece: dict[str, Any]) -> dict[str, Any]:
    """What the answer's other evidence says of the same row of the same result, by column."""
    place = piece["pointer"].rpartition("/")[0]
    return {
        each["pointer"].rpartition("/")[2].replace("~1", "/").replace("~0", "~"): each["value"]
        for each in pieces
        if each["call_id"] == piece["call_id"] and each["pointer"].rpartition("/")[0] == place
    }


async def _turn(web: Web, sign_in: SignIn, turn_id: str) -> KeptTurn:
    """The turn, if it is this person's. Raises Problem 404."""
    found = await anyio.to_thread.run_sync(partial(web.record.turn, turn_id, sign_in.account.user_id))
    if found is None:
        raise not_found("turn")
    return found


async def _shown(web: Web, sign_in: SignIn, turn: KeptTurn) -> dict[str, Any]:
    """The answer of a turn with the hidden values that this person may see."""
    assert turn.answer is not None
    key = await web.key_of(sign_in.account, Scope.USER)
    shown: dict[str, Any] = await web.gateway.reveal(
        key, str(turn.answer["session_id"]), dict(turn.answer), fill_in_answer
    )
    return {"sentences": [], **shown, "session_id": turn.conversation_id}  # one of an earlier version has none


async def shown_beginning(web: Web, key: str, session_id: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """What was written of a turn without an answer, with the hidden values that the person may see."""
    written = {"answer": told["written"], "sentences": told["written_sentences"]}
    shown = await web.gateway.reveal(key, session_id, written, fill_in_answer)
    return {"written": shown["answer"], "written_sentences": shown["sentences"]}


async def _events(web: Web, sign_in: SignIn, turn_id: str, after: int) -> Response:
    """The events behind number `after`, whether the turn is on its way or over."""
    user_id = sign_in.account.user_id
    live = web.desk.live(turn_id, user_id)
    if live is not None:
        return _stream(_counted(web, user_id, _encoded(live.follow(after, idle_s=KEEP_ALIVE_S))))
    with anyio.move_on_after(ELSEWHERE_S):
        await web.desk.elsewhere(turn_id, user_id)
    turn = await _turn(web, sign_in, turn_id)
    if web.record.shared and turn.state is TurnState.RUNNING:  # at another surface: whoever follows comes back
        return _stream(_encoded(_nothing_yet()))
    told = turn.events
    if turn.answer is not None:
        key = await web.key_of(sign_in.account, Scope.USER)
        handles = handles_in([dict(event.data) for event in told])
        told = tuple(filled(told, await web.gateway.values(key, str(turn.answer["session_id"]), handles)))
    elif not told:  # the surface ended amid this turn
        told = (Event("error", _failure(turn).body()),)
    if after >= len(told):
        return Response(status_code=204)  # which tells a browser's EventSource not to come back

    async def replay() -> AsyncIterator[bytes]:
        for number, event in enumerate(told, 1):
            if number > after:
                yield event.encoded(number)

    return _stream(replay())


def _check_streams(web: Web, user_id: str) -> None:
    """Raise Problem for a person who follows as many answers as one may."""
    if web.streams.get(user_id, 0) >= web.limits.streams:
        raise RequestProblem(
            429,
            "too_many_streams",
            f"You follow {web.limits.streams} answers already.",
            "Close a page, or wait for an answer.",
            {"Retry-After": "5"},
        )


async def _encoded(events: AsyncIterator[tuple[int, Event] | None]) -> AsyncIterator[bytes]:
    async for numbered in events:
        yield b": still working\n\n" if numbered is None else numbered[1].encoded(numbered[0])


async def _nothing_yet() -> AsyncIterator[tuple[int, Event] | None]:
    yield None


async def _counted(web: Web, user_id: str, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    web.streams[user_id] = web.streams.get(user_id, 0) + 1
    try:
        async for event in events:
            yield event
    finally:
        web.streams[user_id] -= 1
        if not web.streams[user_id]:
            del web.streams[user_id]


def _stream(events: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(
        events, media_type=EVENT_STREAM, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )


def _failure(turn: KeptTurn) -> RequestProblem:
    """Why a turn has no answer, as it was told."""
    last = turn.events[-1].data if turn.events else {}
    status = 409 if turn.state is TurnState.STOPPED else 503
    reason = str(last.get("reason", "stopped"))
    statuses = {"internal": 500, "rate_limited": 429, "key_ended": 403}
    return RequestProblem(
        statuses.get(reason, status),
        reason,
        str(last.get("detail", "The question was stopped before its answer.")),
        str(last.get("next_step", "Ask again.")),
    )
