"""The loopback server is a real one: bytes cross a socket, and the port is free again afterwards."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from urllib.request import urlopen

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S


async def _hello(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"hello {request.client.host if request.client else '?'}")


def test_an_application_answers_over_tcp_while_the_block_runs_and_not_after() -> None:
    with serve(Starlette(routes=[Route("/", _hello)])) as url:
        with urlopen(url) as response:
            assert response.read() == b"hello 127.0.0.1"
        port = int(url.rsplit(":", 1)[1])
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_an_application_that_fails_to_start_is_reported() -> None:
    with pytest.raises(RuntimeError, match="did not start"), serve(_Failing()):
        pass


def test_an_application_that_never_lets_its_loop_run_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread would take a core of the process for ever, and nobody would know."""
    monkeypatch.setattr("sentinel_rag_testing.loopback.END_SECONDS", 0.1)
    arrived, release = threading.Event(), threading.Event()

    async def turns(request: Request) -> PlainTextResponse:
        arrived.set()
        release.wait(WAIT_S)
        return await _hello(request)

    before = set(threading.enumerate())
    with ThreadPoolExecutor(1) as pool:
        try:
            with pytest.raises(RuntimeError, match="did not end"), serve(Starlette(routes=[Route("/", turns)])) as url:
                asked = pool.submit(urlopen, url)
                assert arrived.wait(WAIT_S)
        finally:
            release.set()
        asked.result().close()
    for thread in set(threading.enumerate()) - before:
        thread.join(WAIT_S)
        assert not thread.is_alive()


class _Failing:
    async def __call__(self, scope: dict[str, object], receive: object, send: object) -> None:
        message = await receive()  # type: ignore[operator]
        assert message["type"] == "lifespan.startup"
        await send({"type": "lifespan.startup.failed", "message": "no database"})  # type: ignore[operator]
