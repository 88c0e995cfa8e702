"""A network between a gateway and its PostgreSQL that fails when it is told to: all at once, or in one commit.

with PostgresProxy(server.port) as proxy:
    proxy.cut_commit(b'"kind":"intent"', after=True)   # it happens, and nobody hears of it
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType

_PIECE = 65_536


@dataclass(frozen=True, slots=True)
class _Cut:
    needle: bytes
    after: bool


class PostgresProxy:
    """Forwards `port` to the server's `server_port`, both on loopback. In plain text: no TLS passes through it."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._cut: _Cut | None = None
        self._away = False
        self.cuts = threading.Semaphore(0)
        """One more for each commit that was cut."""
        self._accepting = threading.Thread(target=self._accept, name="postgres-proxy", daemon=True)
        self._accepting.start()

    def __enter__(self) -> PostgresProxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        self.cut_all()

    def url(self, url: str) -> str:
        """The address of the server, through here."""
        return url.replace(f":{self._server_port}/", f":{self.port}/")

    def cut_all(self) -> None:
        """End every connection; new ones are taken."""
        with self._lock:
            lost, self._open = self._open, set()
        for each in lost:
            _end(each)

    @contextmanager
    def away(self) -> Iterator[None]:
        """For the block there is no server: every connection ends, and new ones at once."""
        self._away = True
        self.cut_all()
        try:
            yield
        finally:
            self._away = False

    def cut_commit(self, needle: bytes, *, after: bool) -> None:
        """End the connection at the next commit of a transaction that sent `needle`: once the server has committed it,
        or before the server hears of it."""
        self._cut = _Cut(needle, after)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._away:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self._server_port))
            with self._lock:
                self._open |= {client, server}
            threading.Thread(target=self._to_server, args=[client, server], daemon=True).start()
            threading.Thread(target=self._pump, args=[server, client], daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        sent = b""
        with suppress(OSError):
            while piece := client.recv(_PIECE):
                sent += piece
                if b"\x00COMMIT\x00" in piece:
                    cut, transaction, sent = self._cut, sent, b""
                    if cut is not None and cut.needle in transaction:
                        self._cut = None
                        self._end_in_commit(client, server, piece, cut)
                        break
                server.sendall(piece)
        self._drop(client, server)

    def _end_in_commit(self, client: socket.socket, server: socket.socket, piece: bytes, cut: _Cut) -> None:
        """The client hears nothing any more; only then may the server commit."""
        client.shutdown(socket.SHUT_WR)
        if cut.after:
            server.sendall(piece)
        self.cuts.release()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(_PIECE):
                with suppress(OSError):  # a client that hears nothing any more, while the server still answers
                    target.sendall(piece)
        self._drop(source, target)

    def _drop(self, *ends: socket.socket) -> None:
        with self._lock:
            self._open -= set(ends)
        for each in ends:
            _end(each)


def _end(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
