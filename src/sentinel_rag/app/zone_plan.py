"""One zone of a run as a value: what is started, what it is told, where it listens.

Listening sockets are opened here and inherited by the zones, so no port is guessed or lost to a race, and all zones can
start at once: one that is asked before it serves answers a little later.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from sentinel_rag.contracts.errors import UnavailableError, UsageError


@dataclass(frozen=True, slots=True)
class ListeningSocket:
    """A socket that listens on loopback already, and its base URL."""

    socket: socket.socket
    url: str


@dataclass(frozen=True, slots=True)
class ZonePlan:
    """One process to start: its module arguments, its configuration line and its whole environment."""

    name: str
    arguments: tuple[str, ...]
    configuration: Mapping[str, Any]
    environment: Mapping[str, str]
    listener: ListeningSocket
    needed: bool = True
    """False for a zone without which the others serve on: an embedded workspace beside the default one."""


class Listen(Protocol):
    """Opens the socket of one zone, by name; 0 takes a free port. Raises UnavailableError for a port in use, UsageError
    for one that needs special rights."""

    def __call__(self, name: str, port: int = 0) -> ListeningSocket: ...


def zone(
    name: str, configuration: Mapping[str, Any], environment: Mapping[str, str], listener: ListeningSocket
) -> ZonePlan:
    """A zone that `app.zones` builds under this name."""
    return ZonePlan(name, ("sentinel_rag.app", name), configuration, environment, listener)


def listening(stack: ExitStack) -> Listen:
    """Sockets on loopback that `stack` closes."""

    def listen(name: str, port: int = 0) -> ListeningSocket:
        listener = _listen(name, port)
        stack.callback(listener.socket.close)
        return listener

    return listen


def _listen(name: str, port: int) -> ListeningSocket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise UnavailableError(
                f"Port {port} for the {name} is in use by another program.",
                next_step="Choose another port, or take a free one: sentinel up" + (" --web" if name == "web" else ""),
            ) from None
        if isinstance(error, PermissionError):
            raise UsageError(
                f"Port {port} needs special rights.", next_step="Choose a port above 1023: sentinel up --port 8787"
            ) from None
        raise
    listener.listen(512)
    return ListeningSocket(listener, f"http://127.0.0.1:{listener.getsockname()[1]}")
