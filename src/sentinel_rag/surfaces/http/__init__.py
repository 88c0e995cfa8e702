"""The agent's HTTP face: `POST /chat`, as one JSON answer or as a stream of events.

A surface above one `Analyst`: it authenticates the person's side, keeps one question of a session at a time, so that
"that incident" has one meaning, bounds each by a deadline and turns an answer into bytes. It plans nothing and knows no
tool.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Annotated
from uuid import uuid4
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import anyio
import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from sentinel_rag import __version__
from sentinel_rag.contracts.conversations import CarriedFact, Preferences, Verbosity
from sentinel_rag.contracts.evidence import Answer, Outcome, Progress, Written
from sentinel_rag.contracts.ports import MAX_QUESTION_CHARACTERS, Chat, ProgressListener, Question
from sentinel_rag.contracts.servers import Refused, RequestAuthenticator

__all__ = ["SessionLocks", "create_app"]


class SessionLocks:
    """A lock for each session that is in use; none is kept for idle ones."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[anyio.Lock, int]] = {}

    @asynccontextmanager
    async def hold(self, session_id: str) -> AsyncIterator[None]:
        lock, users = self._locks.get(session_id, (anyio.Lock(), 0))
        self._locks[session_id] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(session_id)
            if users > 1:
                self._locks[session_id] = (lock, users - 1)


MAX_BODY_BYTES = 64 * 1024
MOST_WAITING = 64
"""Events that wait for a slow reader before status lines are left out."""

Message = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_QUESTION_CHARACTERS)]
SessionId = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{8,64}$")]
TimezoneName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_+/-]{1,64}$")]
WorkspaceName = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")]
Close = Callable[[], Awaitable[None]]
Endpoint = Callable[[Request], Awaitable[Response]]


class ChatBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `POST /chat`. Without `session_id` a new conversation starts; its id is in the answer. `workspace` is
    where questions go that name none, `timezone` an IANA name, `verbosity` short, normal or full; left out, each stays
    as it was in the conversation."""

    message: Message
    session_id: SessionId | None = None
    workspace: WorkspaceName | None = None
    timezone: TimezoneName | None = None
    verbosity: Verbosity | None = None


_decode = msgspec.json.Decoder(ChatBody).decode
_encode = msgspec.json.Encoder().encode


def create_app(
    analyst: Chat, *, token: str, question_timeout_s: float, model: str = "", close: Close | None = None
) -> Starlette:
    """An ASGI app over `analyst`. Every route but `/healthz` asks for `Authorization: Bearer <token>`.

    `model` is the name of what answers, empty for the planner. `close` is awaited at shutdown.
    """
    routes = _Routes(_Turns(analyst, question_timeout_s), model)
    authenticator = RequestAuthenticator(token=token)

    def guarded(route: Endpoint) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            return _refuse(request, authenticator) or await route(request)

        return endpoint

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        if close is not None:
            await close()

    return Starlette(
        routes=[
            Route("/healthz", routes.healthz),
            Route("/about", guarded(routes.about)),
            Route("/chat", guarded(routes.chat), methods=["POST"]),
            Route("/chat/{session_id}", guarded(routes.clear), methods=["DELETE"]),
            Route("/chat/{session_id}/clear", guarded(routes.clear_and_carry), methods=["POST"]),
            Route("/conversations/{session_id}", guarded(routes.delete), methods=["DELETE"]),
        ],
        exception_handlers={404: _not_found, 405: _wrong_method, Exception: _broken},
        lifespan=lifespan,
    )


class _Routes:
    """The routes as methods, so that each sees the parts it needs."""

    def __init__(self, turns: _Turns, model: str) -> None:
        self._turns = turns
        self._about = {"version": __version__, "model": model}

    async def healthz(self, _: Request) -> Response:
        return _json({"status": "ok"})

    async def about(self, _: Request) -> Response:
        return _json(self._about)

    async def chat(self, request: Request) -> Response:
        body = await _read(request)
        if body is None:
            return _error(413, "too_large", f"The body is over {MAX_BODY_BYTES} bytes.")
        try:
            asked = _decode(body)
        except msgspec.DecodeError as error:
            return _error(422, "malformed_body", f"The body is not as documented: {error}.")
        if asked.timezone is not None and not _is_zone(asked.timezone):
            return _error(422, "malformed_body", "timezone is no IANA name such as Europe/Berlin or UTC.")
        session_id = asked.session_id or uuid4().hex
        if "text/event-stream" in request.headers.get("accept", ""):
            return StreamingResponse(
                self._turns.stream(asked, session_id),
                media_type="text/event-stream",
                headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
            )
        return _json((await self._turns.answer(asked, session_id, lambda _: None)).to_dict())

    async def clear(self, request: Request) -> Response:
        await self._turns.clear(request.path_params["session_id"], carry=False)
        return Response(status_code=204)

    async def delete(self, request: Request) -> Response:
        await self._turns.delete(request.path_params["session_id"])
        return Response(status_code=204)

    async def clear_and_carry(self, request: Request) -> Response:
        carried = await self._turns.clear(request.path_params["session_id"], carry=True)
        return _json({"carried": [fact.to_dict() for fact in carried]})


class _Turns:
    """One question of a session at a time, each within its deadline; as an answer, or as events while it is found."""

    def __init__(self, analyst: Chat, timeout_s: float) -> None:
        self._analyst = analyst
        self._timeout_s = timeout_s
        self._locks = SessionLocks()

    async def answer(self, asked: ChatBody, session_id: str, progress: ProgressListener) -> Answer:
        started = time.monotonic()
        async with self._locks.hold(session_id):
            with anyio.move_on_after(self._timeout_s):
                return await self._analyst.answer(
                    Question(
                        asked.message,
                        session_id,
                        Preferences(asked.workspace, asked.timezone, asked.verbosity),
                        progress=progress,
                    )
                )
        return Answer(
            outcome=Outcome.TOOL_FAILED,
            text=(
                f"This took longer than {self._timeout_s:.0f} seconds, so it was stopped. A change that was asked for "
                "may have been made: look before you ask for it again. "
                "Try a narrower time window, or raise SENTINEL_QUESTION_TIMEOUT_S."
            ),
            session_id=session_id,
            duration_ms=(time.monotonic() - started) * 1e3,
        )

    async def clear(self, session_id: str, *, carry: bool) -> tuple[CarriedFact, ...]:
        """Start the conversation over, after a question that is being answered."""
        async with self._locks.hold(session_id):
            return await self._analyst.clear(session_id, carry=carry)

    async def delete(self, session_id: str) -> None:
        """Remove a conversation, after a question that is being answered."""
        async with self._locks.hold(session_id):
            await self._analyst.delete(session_id)

    async def stream(self, asked: ChatBody, session_id: str) -> AsyncIterator[bytes]:
        """`progress`, `text`, `sentences` and `withdrawn` as they come, then `answer`, whose text begins with what came
        as `text` since it was last withdrawn."""
        # Without a bound, since no text may be lost: an answer's text has one.
        send, receive = anyio.create_memory_object_stream[bytes](math.inf)
        written = Written()

        def listen(progress: Progress) -> None:
            written.hear(progress)
            waiting = send.statistics().current_buffer_used
            if progress.written or progress.withdrawn or progress.sentences or waiting < MOST_WAITING:
                for event in _progress_events(progress):  # a reader that is slower misses a status line, no more
                    send.send_nowait(event)

        async def work() -> None:
            async with send:
                answer = await self.answer(asked, session_id, listen)
                if written.text and written.rest_of(answer.text) is None:
                    listen(Progress("The answer is another one...", withdrawn=True))
                await send.send(_event("answer", answer.to_dict()))

        async with anyio.create_task_group() as group, receive:
            group.start_soon(work)
            async for line in receive:
                yield line


def _progress_events(progress: Progress) -> Iterator[bytes]:
    told: dict[str, object] = {"text": progress.text, "elapsed_s": round(progress.elapsed_s, 3)}
    if progress.withdrawn:
        yield _event("withdrawn", told)
    if progress.written:
        yield _event("text", told | {"text": progress.written})
    if progress.sentences:
        yield _event("sentences", told | {"sentences": [each.to_dict() for each in progress.sentences]})
    if not (progress.withdrawn or progress.written or progress.sentences):
        yield _event("progress", told if progress.tool is None else told | {"tool": progress.tool.to_dict()})


def _refuse(request: Request, authenticator: RequestAuthenticator) -> Response | None:
    refused = authenticator.refused(request.headers.raw)
    if refused is None:
        return None
    if refused is Refused.BEARER:
        return _error(401, "unauthenticated", "Send the surface's token as Authorization: Bearer ...")
    return _error(421, "wrong_host", "This server answers on this machine's loopback address only.")


async def _read(request: Request) -> bytes | None:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            return None
    return bytes(body)


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _event(name: str, data: object) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + _encode(data) + b"\n\n"


def _json(data: object, status: int = 200) -> Response:
    return Response(_encode(data), status, media_type="application/json", headers={"Cache-Control": "no-store"})


def _error(status: int, reason: str, detail: str) -> Response:
    return _json({"detail": detail, "reason": reason}, status)


async def _not_found(_: Request, __: Exception) -> Response:
    return _error(404, "not_found", "There is no such route; questions go to POST /chat.")


async def _wrong_method(_: Request, __: Exception) -> Response:
    return _error(405, "wrong_method", "This route has no such method; questions go to POST /chat.")


async def _broken(_: Request, __: Exception) -> Response:
    return _error(500, "internal", "The agent failed on this question; its log has the details.")
