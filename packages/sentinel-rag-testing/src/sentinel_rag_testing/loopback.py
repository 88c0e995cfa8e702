"""Run an ASGI application on a real loopback socket for the length of a `with` block.

Tests and examples talk to the returned URL over TCP, as a stranger would; nothing is patched. The server lives in its
own thread with its own event loop, and the block ends only after that loop has ended.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import anyio
import anyio.lowlevel
import uvicorn

from sentinel_rag.app.serving import BoundedHttp

STARTUP_SECONDS = 300.0
SHUTDOWN_SECONDS = 5
END_SECONDS = 300.0


@contextmanager
def serve(app: Any, *, host: str = "127.0.0.1") -> Iterator[str]:
    """Serve `app` on a free port of `host`, a loopback address, and yield its base URL: `http://127.0.0.1:40123`.

    The socket is bound before the thread starts, so a client that connects at once waits instead of being refused.
    Raises RuntimeError if the application's lifespan fails to start, or if its loop does not end with the block.
    """
    # The protocol is named because asyncio sets TCP_NODELAY only then; without it an answer waits 40 ms for an ACK.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind((host, 0))
    config = uvicorn.Config(
        app,
        http=BoundedHttp,
        ws="none",  # whatever library for it may be on the path
        log_config=None,  # to set up logging is most of making a server
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        lifespan="auto",
        timeout_keep_alive=75,  # as the product's servers: longer than its clients keep one, so none is lost in use
    )
    server = _ThreadedServer(config)
    thread = threading.Thread(target=server.run, args=([listener],), name="loopback", daemon=True)
    thread.start()
    try:
        if not server.settled.wait(STARTUP_SECONDS) or not server.started:
            raise RuntimeError("the application did not start: its lifespan failed or took too long")
        yield f"http://{host}:{listener.getsockname()[1]}"
    finally:
        server.stop()
        thread.join(END_SECONDS)
        listener.close()
        if thread.is_alive():
            raise RuntimeError("the application did not end: something in it never lets the event loop run")


class _ThreadedServer(uvicorn.Server):
    """A server that tells when start-up has ended, well or not, leaves the process's signals alone, and stops when it
    is told to: uvicorn looks ten times a second whether it should, and then waits once more. Tests start thousands."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.settled = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told = anyio.Event()

    def stop(self) -> None:
        """End the serving soon. Called from another thread, once."""
        self.should_exit = True
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended by itself
                self._loop.call_soon_threadsafe(self._told.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.settled.set()

    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        tenths = 0
        while not await self.on_tick(tenths):
            tenths += 10
            with anyio.move_on_after(1):
                await self._told.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listening in (*self.servers, *(sockets or ())):
            listening.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        with anyio.move_on_after(SHUTDOWN_SECONDS):
            await anyio.lowlevel.checkpoint()  # what was accepted last is counted as a connection now
            while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110  # uvicorn tells nobody
                await anyio.sleep(0.002)
        for task in self.server_state.tasks:
            task.cancel()
        await self.lifespan.shutdown()

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            with suppress(SystemExit):  # how uvicorn ends when the lifespan fails; `started` tells the caller
                super().run(sockets)
        finally:
            self.settled.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
