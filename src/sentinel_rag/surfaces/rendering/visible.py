"""Text of others as plain text, HTML text and CSV: unsafe characters as visible escapes, hosts as DNS asks for them.

Which characters are unsafe says `contracts.visible_text`, for the agent too. A host is shown as DNS is asked for it
(`xn--...`), because letters of two scripts can look the same. A cell that a spreadsheet could take for a formula gets a
single quote before it (OWASP, "CSV Injection").
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import accumulate
from urllib.parse import urlsplit

from sentinel_rag.contracts.visible_text import shown_characters, visible

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


def safe(text: str) -> str:
    """`text` with every unsafe character written as an escape, and hosts of addresses as DNS is asked for them; new
    lines and tabs stay where the caller wants lines."""
    return visible(text) if text.isascii() else with_ascii_hosts(visible(text))


def plain(value: object) -> str:
    """A JSON value on one line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def plain_cell(value: object) -> str:
    """A JSON value on one line, null as nothing."""
    return "" if value is None else plain(value)


def safe_cell(text: str) -> str:
    """`safe` on one line, for a table cell."""
    return safe(text).replace("\n", " ").replace("\t", " ")


def safe_with_places(text: str, also: str = "") -> tuple[str, list[int]]:
    """`safe(text)`, and where each place of `text` lies in it, the end included; within a host, at its start. The
    characters of `also` are escaped too."""
    characters = shown_characters(text, also)
    places = list(accumulate(map(len, characters), initial=0))
    written = "".join(characters)
    if text.isascii():
        return written, places
    shift = number = 0
    for start, end, put in hosts_spelled_anew(written):
        while places[number] <= start:
            places[number] += shift
            number += 1
        while places[number] < end:
            places[number] = start + shift
            number += 1
        shift += len(put) - (end - start)
    places[number:] = [place + shift for place in places[number:]]
    return with_ascii_hosts(written), places


def html_text(text: object) -> str:
    """`text` as HTML text, with unsafe characters as in a terminal."""
    return escape(safe(str(text)), quote=True)


_FORMULA = re.compile(r"[\s\"'`\ufeff\u00a0\u3000]*(?:[=+\-@|%\uff1d\uff0b\uff0d\uff20\u2212]|\\x0[9d])")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


def csv_cell(value: object) -> str:
    """The value as the text of a cell; numbers stay numbers."""
    text = "" if value is None else safe(str(value))
    if _NUMBER.fullmatch(text):
        return text
    return "'" + text if text[:1] in ("\t", "\n") or _FORMULA.match(text) else text


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A whole file (RFC 4180, every cell quoted)."""
    written = io.StringIO()
    writer = csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow([csv_cell(name) for name in columns])
    writer.writerows([csv_cell(value) for value in row] for row in rows)
    return written.getvalue()
