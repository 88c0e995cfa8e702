"""A wire between the gateway and its tool server that can be broken: refused, silent, cut in the middle, whole again.

It passes bytes on and knows nothing of them. `mode` is what happens to connections that come from now on; setting it
ends those that are open.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum, auto

CUT_AFTER = 90
"""Bytes of an answer that pass before the wire is cut: the middle of its head."""


class Mode(Enum):
    """What a connection meets."""

    WHOLE = auto()
    REFUSED = auto()
    SILENT = auto()
    CUT = auto()


class Wire:
    """Listens at `port` and passes on to `target`."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._mode = Mode.WHOLE
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, args=[self._listener], daemon=True).start()

    def set(self, mode: Mode) -> None:
        """Change what connections meet, and end those that are open."""
        with self._lock:
            before, self._mode = self._mode, mode
            for each in self._open:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)  # wakes the threads that read it
                each.close()
            self._open.clear()
        if mode is Mode.REFUSED:
            self._end_listening()
        elif before is Mode.REFUSED:
            self._listener = socket.create_server(("127.0.0.1", self.port))
            threading.Thread(target=self._accept, args=[self._listener], daemon=True).start()

    def close(self) -> None:
        self.set(Mode.SILENT)
        self._end_listening()

    def _end_listening(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                caller, _ = listener.accept()
                with self._lock:
                    mode = self._mode
                    self._open.add(caller)
                if mode in (Mode.WHOLE, Mode.CUT):
                    self._join(caller, mode)

    def _join(self, caller: socket.socket, mode: Mode) -> None:
        server = socket.create_connection(("127.0.0.1", self._target))
        with self._lock:
            self._open.add(server)
        for source, sink, most in ((caller, server, None), (server, caller, CUT_AFTER if mode is Mode.CUT else None)):
            threading.Thread(target=self._pass_on, args=[source, sink, most], daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, most: int | None) -> None:
        with suppress(OSError):
            while part := source.recv(65_536):
                sink.sendall(part if most is None else part[:most])
                if most is not None:
                    break
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open -= {source, sink}
        sink.close()


@contextmanager
def wire_to(port: int) -> Iterator[Wire]:
    """A wire to the server on a loopback port."""
    wire = Wire(port)
    try:
        yield wire
    finally:
        wire.close()
