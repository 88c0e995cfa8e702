"""What one connection may send before an application hears of it, and after it has answered."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from sentinel_rag.app import serving
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S


async def _echo(request: Request) -> JSONResponse:
    body = await request.body() if request.query_params.get("read") else b""
    names = [name for name, _ in request.headers.items()]
    return JSONResponse({"path": request.url.path, "headers": names, "bytes": len(body)})


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[str, int]]:
    with serve(Starlette(routes=[Route("/{path:path}", _echo, methods=["GET", "POST"])])) as url:
        parts = urlsplit(url)
        yield parts.hostname or "", parts.port or 0


class Wire:
    """A connection on which a test says exactly which bytes are sent."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, timeout=WAIT_S)
        self.reader = self.socket.makefile("rb")

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.reader.close()
        self.socket.close()

    def send(self, data: bytes) -> bool:
        """False if the server has ended the connection."""
        try:
            self.socket.sendall(data)
        except OSError:
            return False
        return True

    def answer(self) -> tuple[int, Any]:
        """Status and JSON of the next response; 0 where the connection ends without one."""
        try:
            line = self.reader.readline()
            length = 0
            while (header := self.reader.readline()) not in (b"\r\n", b""):
                if header.lower().startswith(b"content-length:"):
                    length = int(header.partition(b":")[2])
            return (int(line.split()[1]), json.loads(self.reader.read(length))) if line else (0, None)
        except ConnectionError:
            return 0, None


def test_requests_within_the_bounds_pass_also_one_after_another(address: tuple[str, int]) -> None:
    with Wire(address) as wire:
        wire.send(
            b"GET /a HTTP/1.1\r\nHost: x\r\n\r\nPOST /b?read=1 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
        )
        assert wire.answer()[1]["path"] == "/a"
        assert wire.answer()[1] == {"path": "/b", "headers": ["host", "content-length"], "bytes": 3}
        for (
            byte
        ) in b"POST /c?read=1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n":
            wire.send(bytes([byte]))
        assert wire.answer()[1]["bytes"] == 2
        wire.send(b"POST /d?read=1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        wire.send(b"1\r\na\r\n" * 50_000 + b"0\r\n\r\n")
        assert wire.answer()[1]["bytes"] == 50_000


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (b"GET /", b"a" * 10_000),
        (b"GET / HTTP/1.1\r\n", b"X-Header: " + b"a" * 1_000 + b"\r\n"),
        (b"GET / HTTP/1.1\r\nX-Header: ", b"a" * 10_000),
        (b"GET / HTTP/1.1\r\n", b"a" * 10_000),
        (
            b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n",
            b"X-T: " + b"a" * 1_000 + b"\r\n",
        ),
        (b"POST /?read=1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"a" * 10_000),
    ],
    ids=["url", "many headers", "one header", "a name", "trailers", "a chunk extension"],
)
def test_a_head_without_an_end_is_ended(address: tuple[str, int], begin: bytes, more: bytes) -> None:
    """The client sends 20 MB if it may; the server ends it within a fraction of that."""
    with Wire(address) as wire:
        wire.send(begin)
        sent = 0
        while sent < 20_000_000 and wire.send(more):
            sent += len(more)
        assert sent < 20_000_000
        assert wire.answer()[0] in (0, 200, 400, 431)


def test_a_head_just_over_the_bound_is_431_in_json(address: tuple[str, int]) -> None:
    with Wire(address) as wire:
        wire.send(b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X-A: " + b"a" * serving.HEAD_BYTES)
        assert wire.answer() == (
            431,
            {"detail": "The head of the request is too large.", "status": "error", "reason": "too_large"},
        )


@pytest.mark.parametrize(
    "line",
    [
        b"GET http://attacker.example/v1/tools HTTP/1.1",
        b"GET http://127.0.0.1/v1/tools HTTP/1.1",
        b"CONNECT attacker.example:443 HTTP/1.1",
        b"OPTIONS * HTTP/1.1",
    ],
    ids=bytes.decode,
)
def test_a_whole_url_is_not_taken_for_a_path(address: tuple[str, int], line: bytes) -> None:
    with Wire(address) as wire:
        wire.send(line + b"\r\nHost: 127.0.0.1\r\n\r\n")
        status, body = wire.answer()
        assert (status, body["reason"]) == (421, "misdirected")
        assert wire.answer()[0] == 0


@pytest.mark.parametrize(
    "head",
    [
        b"not http at all\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: a\x00b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n folded\r\nX:\r\n\r\n\x16\x03\x01",
    ],
    ids=repr,
)
def test_what_two_servers_could_read_two_ways_ends_the_connection(address: tuple[str, int], head: bytes) -> None:
    with Wire(address) as wire:
        wire.send(head)
        statuses = []
        while (status := wire.answer()[0]) and len(statuses) < 3:
            statuses.append(status)
        # Where the head was good and the body is not, the request is dropped without an answer.
        assert statuses in ([400], [200, 400], [])


def test_a_trailer_is_not_a_header(address: tuple[str, int]) -> None:
    with Wire(address) as wire:
        wire.send(
            b"POST /?read=1 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"1\r\na\r\n0\r\nX-API-Key: stolen\r\n\r\n"
        )
        assert wire.answer()[1]["headers"] == ["host", "transfer-encoding"]


def test_a_slow_head_is_408_and_silence_is_ended(monkeypatch: pytest.MonkeyPatch, address: tuple[str, int]) -> None:
    monkeypatch.setattr(serving, "HEAD_SECONDS", 0.1)
    with Wire(address) as wire:
        wire.send(b"GET / HTTP/1.1\r\nX: ")
        assert wire.answer()[0] == 408
    with Wire(address) as wire:
        assert wire.answer()[0] == 0
    with Wire(address) as wire:  # the second head of a connection has its time too
        wire.send(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
        assert wire.answer()[0] == 200
        wire.send(b"GET /b")
        assert wire.answer()[0] == 408


def test_what_comes_after_the_answer_is_bounded_in_bytes_and_in_time(
    monkeypatch: pytest.MonkeyPatch, address: tuple[str, int]
) -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000000\r\n\r\n"
    with Wire(address) as wire:
        wire.send(head)
        assert wire.answer()[0] == 200
        sent = 0
        while sent < 50_000_000 and wire.send(b"a" * 100_000):
            sent += 100_000
        assert sent < 50_000_000
    monkeypatch.setattr(serving, "DRAIN_SECONDS", 0.1)
    with Wire(address) as wire:
        wire.send(head)
        assert wire.answer()[0] == 200
        assert wire.answer()[0] == 0


def test_one_connection_too_many_is_503(monkeypatch: pytest.MonkeyPatch, address: tuple[str, int]) -> None:
    with Wire(address) as first:
        first.send(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
        assert first.answer()[0] == 200
        monkeypatch.setattr(serving, "CONNECTIONS", 1)
        with Wire(address) as second:
            status, body = second.answer()
            assert (status, body["reason"]) == (503, "overloaded")
        first.send(b"GET /b HTTP/1.1\r\nHost: x\r\n\r\n")
        assert first.answer()[0] == 200
