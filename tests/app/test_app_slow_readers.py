"""Attacker controls: whether it reads what it asked for. Wanted: that a server keeps its answer in memory for ever.

A reader that takes nothing is dropped after a while, and until then no more is made for it than fits between the two.
"""

from __future__ import annotations

import select
import socket
import threading
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest

from sentinel_rag.app import serving
from sentinel_rag_testing.loopback import serve
from waiting import WAIT_S

PIECE = b"x" * 50_000
BETWEEN_BYTES = 12_000_000
"""What the kernel holds for two sockets of one machine, at the most, and the transport on top."""
WAIT_MS = WAIT_S * 1_000


class Endless:
    """An answer without an end; counts what was made of it."""

    def __init__(self) -> None:
        self.made = 0
        self.left = threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        if scope["path"] == "/short":
            await send({"type": "http.response.body", "body": b"short"})
            return
        if scope["path"] == "/large":
            await send({"type": "http.response.body", "body": PIECE * 400})
            self.left.set()
            return
        while not self.left.is_set():
            await send({"type": "http.response.body", "body": PIECE, "more_body": True})
            self.made += len(PIECE)
            # The server takes what is sent to a connection that has ended, and says so only here.
            if self.made > 4 * BETWEEN_BYTES or getattr(send.__self__, "disconnected", False):
                self.left.set()


def asking(url: str, path: str) -> socket.socket:
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)
    line.connect((urlsplit(url).hostname, urlsplit(url).port))
    line.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    return line


def dropped(line: socket.socket) -> bool:
    """Wait, without reading, until the server has ended the connection."""
    ended = select.poll()
    ended.register(line, select.POLLHUP)
    return bool(ended.poll(WAIT_MS))


@pytest.mark.requirement("SURF-3")
@pytest.mark.parametrize("path", ["/endless", "/large"])
def test_a_reader_that_takes_nothing_is_dropped(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(serving, "READER_SECONDS", 0.05)
    app = Endless()
    with serve(app) as url:
        with closing(asking(url, path)) as deaf:
            assert dropped(deaf)
            assert app.left.wait(WAIT_S)
            assert app.made < BETWEEN_BYTES
        with closing(asking(url, "/short")) as other:
            assert other.makefile("rb").read().endswith(b"short\r\n0\r\n\r\n")


def test_a_reader_that_takes_a_little_at_a_time_gets_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel takes more of an answer only once it is rid of much of it; who reads meanwhile is not deaf."""
    monkeypatch.setattr(serving, "READER_SECONDS", 0.5)
    pace = threading.Event()
    with serve(Endless()) as url, closing(asking(url, "/large")) as slow:
        size = 0
        for _ in range(75):  # longer than the bound, and less than what the kernel waits for
            size += len(slow.recv(2_000))
            pace.wait(0.02)  # its slowness is what this is about
        monkeypatch.undo()
        while part := slow.recv(1_000_000):
            size += len(part)
    assert size > len(PIECE) * 400
