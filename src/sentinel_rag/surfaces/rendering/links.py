"""Addresses in texts of others: which host would be asked, and whether it is an address at all that a person may open.

A host is shown as DNS is asked for it (`xn--...`), because letters of two scripts can look the same. Only `http` and
`https` are addresses; whatever else a browser would run or open (`javascript:`, `data:`, `file:`) is text.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_HOST = re.compile(r"(?<=://)[^\s/?#\\]+")
_ADDRESS = re.compile(r"https?://[^\x00-\x20\x7f<>\"'`\\]+", re.IGNORECASE)


def with_ascii_hosts(text: str) -> str:
    """`text` with each host behind `://` that is not ASCII in its form for DNS."""
    return _HOST.sub(_authority, text) if "://" in text else text


def hosts_spelled_anew(text: str) -> list[tuple[int, int, str]]:
    """Start, end and new form of each host that `with_ascii_hosts` changes."""
    found = ((host.start(), host.end(), _authority(host)) for host in _HOST.finditer(text))
    return [(start, end, put) for start, end, put in found if text[start:end] != put]


def host_in_ascii(host: str) -> str:
    """The host as a browser asks DNS for it; labels that no registry takes are encoded alike, so that all is ASCII."""
    if host.isascii():
        return host
    import idna

    try:
        return idna.encode(host, uts46=True).decode("ascii")
    except idna.IDNAError:
        return ".".join(
            label if label.isascii() else "xn--" + label.encode("punycode").decode("ascii")
            for label in re.split("[.\u3002\uff0e\uff61]", host)
        )


def opened_host(target: str) -> str | None:
    """The host that following `target` would ask, in ASCII; None for anything but a plain http or https address."""
    if not _ADDRESS.fullmatch(target):
        return None
    try:
        host = urlsplit(target).hostname
    except ValueError:
        return None
    return host_in_ascii(host) if host else None


def _authority(found: re.Match[str]) -> str:
    if found.group().isascii():
        return found.group()
    person, at, place = found.group().rpartition("@")
    host, colon, port = place.partition(":")
    return f"{person}{at}{host_in_ascii(host)}{colon}{port}"
