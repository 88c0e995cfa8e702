"""Web sites of the tests on loopback: scripted bytes over TCP or TLS, and a fetcher that may go there."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from sentinel_rag.tools.web.fetching import FetchBounds, PageFetcher

Reply = bytes | Iterable[bytes]


def response(body: bytes = b"", *, status: int = 200, content_type: str | None = "text/html", **headers: str) -> bytes:
    """One HTTP/1.1 response; a header's `_` stands for `-`."""
    fields = {"Content-Length": str(len(body)), **{name.replace("_", "-"): text for name, text in headers.items()}}
    if content_type is not None:
        fields["Content-Type"] = content_type
    head = "".join(f"{name}: {text}\r\n" for name, text in fields.items())
    return f"HTTP/1.1 {status} Said\r\n{head}\r\n".encode() + body


@dataclass
class Site:
    """A server that answers each path with scripted bytes; `requests` holds the heads of what arrived."""

    pages: Mapping[str, Reply | Callable[[], Reply]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    port: int = 0

    @asynccontextmanager
    async def running(self, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> AsyncIterator[Site]:
        server = await asyncio.start_server(self._serve, host, 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            self.requests.append(head)
            reply: Any = self.pages.get(head.split(" ")[1], response(status=404))
            reply = reply() if callable(reply) else reply
            for part in [reply] if isinstance(reply, bytes) else reply:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client has had enough
        finally:
            writer.close()


class Names:
    """A DNS of the test's own: each name's answers, given out one after the other, the last one repeating."""

    def __init__(self, answers: Mapping[str, Sequence[Sequence[str]]]) -> None:
        self._answers = {name: list(each) for name, each in answers.items()}
        self.asked: list[str] = []

    async def lookup(self, name: str) -> Sequence[str]:
        self.asked.append(name)
        answers = self._answers.get(name)
        if not answers:
            raise OSError("no such name")
        return answers.pop(0) if len(answers) > 1 else answers[0]


PUBLIC = "127.0.0.1"
"""The one address that stands for the public internet in these tests; 127.0.0.2 stands for the inside."""
INSIDE = "127.0.0.2"


def fetcher(names: Names, *ports: int, **options: Any) -> PageFetcher:
    """A fetcher for which `PUBLIC` is public and no other loopback address is."""
    trusted = options.pop("trusted", None)
    return PageFetcher(
        FetchBounds(ports=frozenset(ports), **options),
        lookup=names.lookup,
        may_connect=lambda address: address == PUBLIC,
        **({} if trusted is None else {"trusted": trusted}),
    )
