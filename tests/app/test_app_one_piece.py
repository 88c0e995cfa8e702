"""Head and body of an answer leave together where they are written together, and only there."""

from __future__ import annotations

import socket
import threading
from typing import Any
from urllib.parse import urlsplit

import anyio.to_thread

from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

HEAD = {"type": "http.response.start", "status": 200, "headers": [(b"transfer-encoding", b"chunked")]}


def test_the_head_of_a_stream_does_not_wait_for_its_body() -> None:
    go_on = threading.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send(HEAD)
            await anyio.to_thread.run_sync(go_on.wait, WAIT_S)
            await send({"type": "http.response.body", "body": b"late"})

    with (
        serve(app) as url,
        socket.create_connection((urlsplit(url).hostname, urlsplit(url).port), timeout=WAIT_S) as line,
    ):
        line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        head = b""
        while b"\r\n\r\n" not in head:
            head += line.recv(65_536)
        assert head.startswith(b"HTTP/1.1 200 OK")
        assert b"late" not in head
        go_on.set()
        body = head.partition(b"\r\n\r\n")[2]
        while not body.endswith(b"0\r\n\r\n"):
            body += line.recv(65_536)
        assert body == b"4\r\nlate\r\n0\r\n\r\n"


def test_a_large_answer_arrives_whole_and_the_connection_ends_behind_it() -> None:
    content = bytes(range(256)) * 20_000

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send({**HEAD, "headers": [(b"content-length", b"%d" % len(content)), (b"connection", b"close")]})
            for start in range(0, len(content), 1_000):
                more = start + 1_000 < len(content)
                await send({"type": "http.response.body", "body": content[start : start + 1_000], "more_body": more})

    with (
        serve(app) as url,
        socket.create_connection((urlsplit(url).hostname, urlsplit(url).port), timeout=WAIT_S) as line,
    ):
        line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        while part := line.recv(1_000_000):
            answer += part
    assert answer.partition(b"\r\n\r\n")[2] == content
