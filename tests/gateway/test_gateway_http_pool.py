"""The HTTP connections to tool servers, against servers that say exactly these bytes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import anyio
import pytest

from sentinel_rag.gateway.upstream.mcp_http import (
    FRAME_BYTES,
    ConnectionFailed,
    ConnectionNotMade,
    ConnectionPool,
    HttpExchange,
)
from waiting import WAIT_S

pytestmark = pytest.mark.anyio

REQUEST = b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nsec\r\n3;x=y\r\nond\r\n0\r\nX-Trailer: 1\r\n\r\n"


@dataclass(slots=True)
class Script:
    """A server that answers each request with the next of `replies`, and hangs up after those in `then_ends`."""

    replies: list[bytes]
    then_ends: frozenset[int] = frozenset()
    requests: list[int] = field(default_factory=list)
    """For each request the number of the connection that it came over."""
    ended: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[str]:
        listener = socket.create_server(("127.0.0.1", 0))
        threads: list[threading.Thread] = []

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threads.append(threading.Thread(target=self._serve, args=(connection, len(threads)), daemon=True))
                threads[-1].start()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            for thread in (accepting, *threads):
                thread.join(WAIT_S)

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection:
            received = b""
            while True:
                try:
                    received += (more := connection.recv(65_536))
                except OSError:
                    return
                if not more:
                    return
                if not received.endswith(REQUEST[-6:]):
                    continue
                received = b""
                self.requests.append(number)
                turn = len(self.requests) - 1
                try:
                    connection.sendall(self.replies[turn])
                except OSError:
                    return
                if turn in self.then_ends:
                    with suppress(OSError):  # the client may have been first
                        connection.shutdown(socket.SHUT_RDWR)
                    self.ended.set()
                    return


async def body_of(pool: ConnectionPool) -> bytes:
    async with pool.exchange(REQUEST) as answer:
        body = b""
        while part := await answer.read():
            body += part
        return body


async def bodies(script: Script, times: int) -> list[bytes]:
    with script.running() as url:
        pool = ConnectionPool(url, max_connections=4)
        try:
            return [await body_of(pool) for _ in range(times)]
        finally:
            await pool.aclose()


async def test_one_connection_carries_one_answer_after_the_other() -> None:
    script = Script([PLAIN, CHUNKED, b"HTTP/1.1 204 No Content\r\n\r\n", PLAIN])
    assert await bodies(script, 4) == [b"first", b"second", b"", b"first"]
    assert script.requests == [0, 0, 0, 0]


async def test_what_only_announces_an_answer_is_none() -> None:
    script = Script([b"HTTP/1.1 100 Continue\r\nX-Early: 1\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" + PLAIN, PLAIN])
    assert await bodies(script, 2) == [b"first", b"first"]
    assert script.requests == [0, 0]


async def test_an_answer_may_last_until_the_connection_ends() -> None:
    script = Script([b"HTTP/1.1 200 OK\r\n\r\nwhole", PLAIN], then_ends=frozenset({0}))
    assert await bodies(script, 2) == [b"whole", b"first"]
    assert script.requests == [0, 1]


async def test_a_large_answer_is_read_in_parts() -> None:
    content = b"x" * 5_000_000
    script = Script([b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n" + content, PLAIN])
    assert await bodies(script, 2) == [content, b"first"]
    assert script.requests == [0, 0]


async def test_a_second_answer_behind_the_first_meets_no_other_request() -> None:
    poison = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
    script = Script([PLAIN + poison, PLAIN])
    with script.running() as url:
        pool = ConnectionPool(url, max_connections=4)
        with pytest.raises(ConnectionFailed):
            await body_of(pool)
        assert await body_of(pool) == b"first"
        await pool.aclose()
    assert script.requests == [0, 1]


async def test_what_arrives_unasked_ends_the_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        pool = ConnectionPool(f"http://127.0.0.1:{listener.getsockname()[1]}/", max_connections=4)

        def answer_twice() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(PLAIN)
                go_on.wait(WAIT_S)
                connection.sendall(PLAIN)
                connection.recv(1)  # returns when the client has hung up

        go_on = threading.Event()
        thread = threading.Thread(target=answer_twice, daemon=True)
        thread.start()
        assert await body_of(pool) == b"first"
        go_on.set()
        await anyio.to_thread.run_sync(thread.join, WAIT_S)
        assert not thread.is_alive()
        await pool.aclose()


async def test_a_connection_that_the_server_ended_is_not_used_again() -> None:
    script = Script([PLAIN, PLAIN], then_ends=frozenset({0}))
    with script.running() as url:
        pool = ConnectionPool(url, max_connections=4)
        assert await body_of(pool) == b"first"
        await anyio.to_thread.run_sync(script.ended.wait, WAIT_S)
        await anyio.wait_all_tasks_blocked()
        assert await body_of(pool) == b"first"
        await pool.aclose()
    assert script.requests == [0, 1]


async def test_an_answer_that_nobody_read_to_its_end_spoils_no_other() -> None:
    script = Script([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", PLAIN])
    with script.running() as url:
        pool = ConnectionPool(url, max_connections=4)
        async with pool.exchange(REQUEST) as answer:
            assert await answer.read() == b"half"
        assert await body_of(pool) == b"first"
        await pool.aclose()
    assert script.requests == [0, 1]


async def test_requests_wait_for_a_connection_when_all_are_in_use() -> None:
    script = Script([PLAIN] * 8)
    found: list[bytes] = []
    with script.running() as url:
        pool = ConnectionPool(url, max_connections=1)

        async def ask() -> None:
            found.append(await body_of(pool))

        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(ask)
        await pool.aclose()
    assert found == [b"first"] * 8
    assert set(script.requests) == {0}


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhalf",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nfirst",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\nA: " + b"a" * (FRAME_BYTES + 1),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"x" * (20 * FRAME_BYTES) + b"\r\nx\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 60_000 + PLAIN,
        b"SSH-2.0-OpenSSH_9.9\r\n",
    ],
    ids=lambda reply: reply[:50].decode(),
)
async def test_what_is_no_whole_answer_is_a_failure(reply: bytes) -> None:
    script = Script([reply], then_ends=frozenset({0}))
    with pytest.raises(ConnectionFailed) as failure:
        await bodies(script, 1)
    assert not isinstance(failure.value, ConnectionNotMade)
    assert script.requests == [0]


async def test_a_server_that_is_not_there_was_sent_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    pool = ConnectionPool(f"http://127.0.0.1:{port}/", max_connections=4)
    with pytest.raises(ConnectionNotMade):
        await body_of(pool)
    await pool.aclose()


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "http:///mcp", "127.0.0.1:80"])
async def test_only_web_addresses_are_servers(url: str) -> None:
    with pytest.raises(ValueError, match="URL"):
        ConnectionPool(url, max_connections=1)


async def test_the_target_and_the_host_are_those_of_the_url() -> None:
    pool = ConnectionPool("https://[::1]:8443/a path/é?q=1 2", max_connections=1)
    assert (pool.authority, pool.target) == ("[::1]:8443", "/a%20path/%C3%A9?q=1%202")
    assert ConnectionPool("https://tools.example", max_connections=1).authority == "tools.example"
    assert ConnectionPool("https://tools.example", max_connections=1).target == "/"


@pytest.mark.parametrize("token", ["a\r\nX-Api-Key: b", "a\nb", "a\0b"])
async def test_a_credential_cannot_bring_a_header_of_its_own(token: str) -> None:
    with pytest.raises(ValueError, match="line end"):
        HttpExchange("http://127.0.0.1/", token=token, max_bytes=1, max_connections=1)
