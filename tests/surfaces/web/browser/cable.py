"""A cable between a browser and a server that a test can cut and mend: a TCP relay on loopback.

The browser's own "offline" keeps connections that are open; a real network does not.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from waiting import WAIT_S


class Cable:
    """Relays connections at `url` to `port`, until it is cut: then those that are open end, and new ones do at once."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._whole = True
        self._open: set[asyncio.StreamWriter] = set()
        self._ended = asyncio.Event()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        self._call(self._cut)

    def mend(self) -> None:
        self._call(lambda: setattr(self, "_whole", True))

    def end(self) -> None:
        self._call(self._cut)
        self._loop.call_soon_threadsafe(self._ended.set)

    def run(self) -> None:
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    def _call(self, what: object) -> None:
        done = threading.Event()
        self._loop.call_soon_threadsafe(lambda: (what(), done.set()))  # type: ignore[operator]
        assert done.wait(WAIT_S)

    def _cut(self) -> None:
        self._whole = False
        for writer in self._open:
            writer.transport.abort()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._relay, sock=self._listener)
        await self._ended.wait()
        server.close()
        while self._open:
            await asyncio.sleep(0.01)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._whole:
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        ends = {writer, back}
        self._open |= ends
        try:
            await asyncio.gather(_copy(reader, back), _copy(there, writer))
        finally:
            self._open -= ends


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextmanager
def cable(url: str) -> Iterator[Cable]:
    line = Cable(urlsplit(url).port or 80)
    thread = threading.Thread(target=line.run, name="cable", daemon=True)
    thread.start()
    try:
        yield line
    finally:
        line.end()
        thread.join(WAIT_S)
        assert not thread.is_alive()
