"""What every server here shares: the tool servers' names, who is answered, a client's disconnect, and what the gateway
and a tool server of this product tell each other in MCP's `_meta`.

A web page can make a browser send requests to 127.0.0.1 (DNS rebinding, cross-site forms). Such a request carries the
page's own name in Host or in Origin.

Only the gateway writes `READERS` and only it reads `ROW_LABELS`; neither is part of a tool's schema, so nothing
that an agent sends can become one of them. Servers of other makers are sent the one and believed the other never.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.labels import Label

OWN_SERVERS = ("sentinel", "knowledge", "files", "web")
"""A policy may not declare others by these names. Where zones run apart each listens on a port of its own, in this
order, so a new one comes at the end."""


LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
"""The names of this machine to itself; an IPv6 address stands without its brackets."""

_AUTHORITY = re.compile(r"(?:\[(?P<address>[0-9a-fA-F:.]+)\]|(?P<name>[^\s:@/\\?#\[\]]+))(?::\d{0,5})?")


def is_own_host(hosts: Sequence[str], own: Collection[str] = LOOPBACK_NAMES) -> bool:
    """True if there is exactly one Host header and it is `name` or `name:port` with a name of `own`."""
    return len(hosts) == 1 and _host_name(hosts[0]) in own


def is_own_origin(origins: Sequence[str], own: Collection[str] = LOOPBACK_NAMES) -> bool:
    """True unless an Origin header names a page of another host. Programs that are no browser send none."""
    return all(_host_name(origin.partition("://")[2]) in own for origin in origins)


def _host_name(authority: str) -> str | None:
    """The host in lower case; None for what is more than `host[:port]` or not well formed."""
    match = _AUTHORITY.fullmatch(authority)
    return (match["address"] or match["name"]).lower() if match else None


class Refused(Enum):
    """Why a server does not answer a request."""

    HOST = "host"
    ORIGIN = "origin"
    BEARER = "bearer"


@dataclass(frozen=True, slots=True)
class RequestAuthenticator:
    """Says which requests a server answers; each says no in its own words. Raises ValueError for a guessable token."""

    names: Collection[str] = LOOPBACK_NAMES
    """What the server goes by, in lower case."""
    token: str | None = None
    """None where callers show something of their own: a key, a sign-in."""

    def __post_init__(self) -> None:
        if self.token is not None and len(self.token) < 16:
            raise ValueError("a server's token must have at least 16 characters")

    def refused(self, headers: Iterable[tuple[bytes, bytes]]) -> Refused | None:
        """What is wrong with the headers of an ASGI scope. A web page is told so before a token is looked at."""
        headers = tuple(headers)
        if not is_own_host(_values(headers, b"host"), self.names):
            return Refused.HOST
        if not is_own_origin(_values(headers, b"origin"), self.names):
            return Refused.ORIGIN
        return None if self.token is None or self.is_shown_token(headers) else Refused.BEARER

    def is_shown_token(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """True if the one Authorization header bears the token."""
        given = _values(headers, b"authorization")
        return len(given) == 1 and same_secret(bearer_token(given[0]), self.token or "")


def _values(headers: Iterable[tuple[bytes, bytes]], wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in headers if name == wanted]


def bearer_token(header: str) -> str:
    """The token of an Authorization header as it was sent; empty for one that bears none."""
    scheme, _, token = header.partition(" ")
    return token if scheme.lower() == "bearer" else ""


def same_secret(given: str, expected: str) -> bool:
    """Compare without telling by time where two secrets differ; an empty one opens nothing."""
    return bool(expected) and hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


# The server puts one object for each connection into the ASGI scope; whoever works for that caller is called back. It
# belongs to one event loop, and knows neither the server nor the application.
_EXTENSION = "sentinel_rag.disconnect"


class ClientDisconnect:
    """The end of one connection, which comes once."""

    __slots__ = ("_gone", "_listeners")

    def __init__(self) -> None:
        self._gone = False
        self._listeners: list[Callable[[], None]] = []

    def tell(self) -> None:
        """The connection has ended: call back whoever listens. Further listeners are called at once."""
        self._gone = True
        for listener in self._listeners:
            listener()

    @contextmanager
    def heard_by(self, listener: Callable[[], None]) -> Iterator[None]:
        """`listener` is called if the connection ends within the block, or has ended before."""
        self._listeners.append(listener)
        if self._gone:
            listener()
        try:
            yield
        finally:
            self._listeners.remove(listener)

    def put_into(self, scope: MutableMapping[str, Any]) -> None:
        """Offer this to the application that answers a request of the connection."""
        scope.setdefault("extensions", {})[_EXTENSION] = self


def disconnect_of(scope: Mapping[str, Any]) -> ClientDisconnect | None:
    """What the server of an ASGI scope offers; None from one that offers nothing."""
    found: ClientDisconnect | None = (scope.get("extensions") or {}).get(_EXTENSION)
    return found


READERS = "sentinel-rag/readers"
"""Names under which the caller may read, as a list of texts. Absent: only what everybody may read."""

ROW_LABELS = "sentinel-rag/row-labels"
"""The label of each row of a result, in their order, each as `Label.to_dict`."""


def readers_in(meta: Mapping[str, Any] | None) -> frozenset[str]:
    """The caller's readers; none where they are absent or not a list of texts."""
    found = (meta or {}).get(READERS)
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        return frozenset()
    return frozenset(found)


def row_labels_meta(labels: Iterable[Label]) -> dict[str, JsonValue]:
    """The `_meta` of a result whose rows carry `labels`."""
    return {ROW_LABELS: [{**label.to_dict()} for label in labels]}


def row_labels_in(meta: Any) -> tuple[Label, ...] | None:
    """The labels that a result tells; None where there are none, or one of them is not exactly a label."""
    found = meta.get(ROW_LABELS) if isinstance(meta, Mapping) else None
    if not isinstance(found, list):
        return None
    labels: list[Label] = []
    for entry in found:
        if not isinstance(entry, dict) or entry.keys() != {"sensitivity", "integrity"}:
            return None
        try:
            labels.append(Label.from_dict(entry))
        except (KeyError, TypeError):
            return None
    return tuple(labels)
