"""What a tool server answers the gateway, over a real socket: a stream of events however it is cut, or any bytes.

The gateway's own client asks a server on the loopback, whose answers the fuzzer makes. One event loop does both, so
that an input always meets the same client in the same state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.fuzz.target import Check, Target, Violation, expect

from sentinel_rag.gateway.upstream.mcp_http import (
    ConnectionFailed,
    HttpExchange,
    SessionLost,
    TooLarge,
    UnusableAnswer,
)
from sentinel_rag.gateway.upstream.mcp_messages import Message, UpstreamProtocol, call_message

_MAX_BYTES = 20_000
_REQUEST_ID = 7
_HANGS_AFTER_S = 60.0
_TURNS_TO_READ = 3
"""Turns of the loop in which a client on the same loop has taken what was sent to it over the loopback."""
_STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_TAKEN = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"


class _Server:
    """Answers a call with `answer` and ends the connection; takes whatever else a client says."""

    def __init__(self) -> None:
        self.answer: Sequence[bytes] = ()
        """Its pieces: each is sent when the client has read the one before."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
                body = await reader.readexactly(length)
                if b'"tools/call"' in body:
                    for piece in self.answer:
                        if writer.is_closing():
                            break
                        writer.write(piece)
                        for _ in range(_TURNS_TO_READ):
                            await asyncio.sleep(0)
                    break
                writer.write(_TAKEN)
        writer.close()


@contextmanager
def _asking() -> Iterator[tuple[_Server, asyncio.AbstractEventLoop, HttpExchange]]:
    loop = asyncio.new_event_loop()
    server = _Server()
    listening = loop.run_until_complete(asyncio.start_server(server.serve, "127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/mcp"
    exchange = HttpExchange(url, token="fuzz", max_bytes=_MAX_BYTES, max_connections=2)  # of this server
    try:
        yield server, loop, exchange
    finally:
        loop.run_until_complete(exchange.aclose())
        listening.close()
        loop.run_until_complete(listening.wait_closed())
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


async def _outcome(exchange: HttpExchange, message: Message) -> str:
    """How the call ended, as one text."""
    try:
        answer = await asyncio.wait_for(exchange.send(message), _HANGS_AFTER_S)
    except (SessionLost, TooLarge, ConnectionFailed) as ended:
        return type(ended).__name__
    except UnusableAnswer as ended:
        return f"{ended} {ended.status}"
    except TimeoutError:
        raise Violation("the client waits although the server has ended the connection") from None
    expect(answer.document.get("id") in (_REQUEST_ID, None), "an answer to another request was taken")
    expect("result" in answer.document or "error" in answer.document, "what is no answer was taken for one")
    return f"{answer.document!r} {answer.status} {answer.session}"


@contextmanager
def _opened_stream(_: Path) -> Iterator[Check]:
    with _asking() as (server, loop, exchange):
        message = call_message(UpstreamProtocol.STATELESS, _REQUEST_ID, "search", b"{}")

        def ended(body: bytes, step: int) -> str:
            parts = [body[place : place + step] for place in range(0, len(body), step)]
            server.answer = [_STREAM, *(b"%x\r\n%s\r\n" % (len(part), part) for part in parts), b"0\r\n\r\n"]
            return loop.run_until_complete(_outcome(exchange, message))

        def check(content: bytes) -> None:
            body = content[1:]
            step = content[0] % 31 + 1 if content else 1
            whole, cut = ended(body, len(body) + 1), ended(body, step)
            expect(whole == cut, f"cut into pieces it ends otherwise: {whole[:80]!r} and {cut[:80]!r}")

        yield check


@contextmanager
def _opened_answer(_: Path) -> Iterator[Check]:
    with _asking() as (server, loop, exchange):
        message = call_message(UpstreamProtocol.STATELESS, _REQUEST_ID, "search", b"{}")

        def check(content: bytes) -> None:
            server.answer = [content]
            loop.run_until_complete(_outcome(exchange, message))
            server.answer = [_PLAIN]  # whatever came, the next call is answered by its own answer
            after = loop.run_until_complete(_outcome(exchange, message))
            expect("'fine'" in after, "what a server said before spoils the next call")

        yield check


_RESULT = b'{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"fine"}],"structuredContent":{"a":1}}}'
_ASKS = b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}'
_PROGRESS = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}'
_PLAIN = (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(_RESULT)) + _RESULT


def _stream_seeds() -> Sequence[bytes]:
    event = b"event: message\ndata: %s\n\n"
    return [
        b"\x00" + event % _RESULT,
        b"\x03" + event % _PROGRESS + event % _ASKS + event % _RESULT,
        b"\x07: a comment\r\n\r\nid: 1\r\ndata: {\r\ndata: }\r\n\r\ndata:" + _RESULT + b"\r\n\r\n",
        b"\x01data: " + _RESULT.replace(b"7", b"8") + b"\r\r" + event % _RESULT,
        b"\x05" + event % _RESULT + b": keep-alive\n",
    ]


def _answer_seeds() -> Sequence[bytes]:
    return [
        _PLAIN,
        _STREAM + b"%x\r\ndata: %s\n\n\r\n0\r\n\r\n" % (len(_RESULT) + 8, _RESULT),
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nMcp-Session-Id: s\r\n\r\n" + _RESULT,
        b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n" + _PLAIN,
        b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{}{}{}",
    ]


_TOKENS = (
    *(b"data: ", b"data:", b"event: ", b"id: ", b"retry: 1\n", b": x\n", b"\n\n", b"\r\r", b"\r\n\r\n", b"\r"),
    *(b"\xef\xbb\xbf",),
    *(_RESULT, _ASKS, _PROGRESS, b'"id":7', b'"id":null', b'"error":{}', b'"method":"ping"', b"\xe2\x80\xa8"),
    *(b"\x85", b"\xff"),
    *(b"[" * 2_000, b"NaN", b"1e999", b"\\ud800", b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'),
)

EVENT_STREAM = Target(
    name="event-stream",
    promise="A tool server's stream of events ends the call in the same way however it is cut into pieces: with the "
    "answer that has the call's id, or with one of the errors that the gateway knows; the client never waits for a "
    "server that is gone.",
    opened=_opened_stream,
    seeds=_stream_seeds,
    tokens=_TOKENS,
)

TOOL_SERVER_ANSWER = Target(
    name="tool-server-answer",
    promise="Whatever bytes a tool server sends in place of HTTP, the call ends with an answer that has its id or with "
    "an error that the gateway knows, and the next call is answered by its own answer.",
    opened=_opened_answer,
    seeds=_answer_seeds,
    tokens=(
        *_TOKENS,
        *(b"HTTP/1.1 200 OK\r\n", b"Content-Length: 0\r\n", b"Content-Length: 99999999\r\n", b"Content-Length: -1\r\n"),
        *(b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip\r\n", b"Connection: close\r\n"),
        *(b"Upgrade: x\r\n",),
        *(b"0\r\n\r\n", b"ffffffffffffffff\r\n", b"1;x=y\r\n", b"Content-Encoding: gzip\r\n", b"a" * 2_000, b"\x00"),
    ),
)
