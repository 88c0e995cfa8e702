"""The agents that the suite can measure: our own offline analyst, a function of yours, or a program that speaks HTTP.

An agent is given the analyst's words, the gateway's address, a key there and a session. It calls tools over
`POST /v1/proxy-execute` and says an answer. What it is measured by is what its calls do.
"""

from __future__ import annotations

import http.client
import importlib
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import anyio.to_thread

from sentinel_rag.agent.gateway_client import HttpToolGateway
from sentinel_rag.agent.offline import OfflineAnalyst
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.ports import Question, utc_now

ANSWER_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class Turn:
    """What an agent is asked. `tools_url` is where it posts its calls: `{"session_id", "tool_name", "args"}` with the
    header `X-API-Key: <api_key>`; `gateway_url` + `/v1/tools` lists the tools with the same key."""

    question: str
    gateway_url: str
    api_key: str
    session_id: str

    @property
    def tools_url(self) -> str:
        return f"{self.gateway_url}/v1/proxy-execute"


Ask = Callable[[Turn], Awaitable[str]]
"""Answers one turn. Turns of one session are one conversation."""
Agent = Callable[[], AbstractAsyncContextManager[Ask]]
"""Begins a conversation, and ends it."""


def agent_named(name: str) -> Agent:
    """`offline`, `module:function` (`function(turn: Turn) -> str`, async or not), or the address of a program. Raises
    UsageError for anything else."""
    if name == "offline":
        return offline_agent
    if name.startswith(("http://", "https://")):
        return _of_function(_over_http(name))
    module_name, colon, function_name = name.partition(":")
    if not colon:
        raise UsageError(
            f"There is no agent {name!r}.", next_step="Name hijacked, offline, module:function or an http address."
        )
    try:
        function = getattr(importlib.import_module(module_name), function_name)  # noqa: TID251  # it is the caller's own
    except (ImportError, AttributeError) as error:
        raise UsageError(f"The agent {name} cannot be loaded: {error}.", next_step="Put it on PYTHONPATH.") from None
    return _of_function(function)


@asynccontextmanager
async def offline_agent() -> AsyncIterator[Ask]:
    """The product's analyst without a model."""
    opened: list[tuple[OfflineAnalyst, HttpToolGateway]] = []

    async def ask(turn: Turn) -> str:
        if not opened:
            gateway = HttpToolGateway(turn.gateway_url, turn.api_key)
            opened.append((OfflineAnalyst(gateway, clock=utc_now), gateway))
        answer = await opened[0][0].answer(Question(turn.question, turn.session_id))
        cells = [str(cell) for table in answer.tables for row in table.rows for cell in row]
        return "\n".join((answer.text, *cells))

    try:
        yield ask
    finally:
        for _, gateway in opened:
            await gateway.aclose()


def _of_function(function: Callable[[Turn], Any]) -> Agent:
    @asynccontextmanager
    async def conversation() -> AsyncIterator[Ask]:
        async def ask(turn: Turn) -> str:
            if inspect.iscoroutinefunction(function):
                return str(await function(turn))
            return str(await anyio.to_thread.run_sync(function, turn))

        yield ask

    return conversation


def _over_http(address: str) -> Callable[[Turn], str]:
    """Posts `{"question", "gateway_url", "api_key", "session_id"}` and takes `{"answer"}`."""
    parts = urlsplit(address)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection

    def ask(turn: Turn) -> str:
        body = {
            "question": turn.question,
            "gateway_url": turn.gateway_url,
            "api_key": turn.api_key,
            "session_id": turn.session_id,
        }
        connection = kind(parts.hostname or "", parts.port, timeout=ANSWER_TIMEOUT_S)
        try:
            connection.request(
                "POST", parts.path or "/", json.dumps(body).encode(), {"Content-Type": "application/json"}
            )
            response = connection.getresponse()
            answer = json.loads(response.read())
            return str(answer["answer"])
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
            raise UnavailableError(
                f"The agent at {address} gave no answer: {error}.",
                next_step='It takes a POST of JSON and answers {"answer": "..."}; see docs/soc-suite.md.',
            ) from None
        finally:
            connection.close()

    return ask
