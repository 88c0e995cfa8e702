"""Links in free text. A text that names a host can carry data to it as soon as somebody's browser or mail client draws
it, so a link counts as a way out (EchoLeak, CVE-2025-32711, left through an image in Markdown).

Finding one may only make a decision stricter: a text in which none is found is judged by its label as before.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

from sentinel_rag.contracts.json_values import JsonValue

MAX_UNFOLDING = 3
"""How often percent and HTML escapes are taken away: what is nested deeper is no link to any reader."""

_LINK = re.compile(
    r"""(?: [a-z][a-z0-9+.-]{1,20}:[/\\]{1,4}   # scheme://host, also with too many or the wrong slashes
          | (?<![a-z0-9:/\\]) [/\\]{2}          # //host and \\host
          | mailto:[^@\s]{0,256}@
          | (?<![a-z0-9@.-]) (?=www\.)          # www.host
          | \]\( \s{0,8} | \b(?:src|href|srcset|background|action)\s{0,8}=\s{0,8}["']?  # Markdown and HTML
        )
        (?:[^@/\\?\#\s"'<>()\[\]]{0,256}@)?
        (?P<host>\[[0-9a-f:.]{2,60}\] | [^\s/\\?\#:"'<>()\[\]{}|^`,;]{1,253})""",
    re.VERBOSE | re.IGNORECASE,
)
_BARE = re.compile(r"(?<![\w@.-])(?P<host>(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24})(?=[/:?#][^\s])", re.IGNORECASE)


def linked_hosts(value: JsonValue) -> frozenset[str]:
    """The hosts, in lower case, that links in the texts of `value` name; with what cannot be read as a host, too."""
    return frozenset(host for text in _texts(value) for form in _forms(text) for host in _hosts(form))


def is_allowed(host: str, allowed: frozenset[str]) -> bool:
    """Whether `host` is one of `allowed` or a name below it."""
    labels = host.split(".")
    return any(".".join(labels[index:]) in allowed for index in range(len(labels)))


def _hosts(text: str) -> Iterator[str]:
    for pattern in (_LINK, _BARE):
        for match in pattern.finditer(text):
            yield match["host"].rstrip(".").lower()


def _forms(text: str) -> Iterator[str]:
    """The text as it is, and as a reader's software may see it."""
    for _ in range(MAX_UNFOLDING):
        yield text
        unfolded = "".join(
            character
            for character in unicodedata.normalize("NFKC", html.unescape(unquote(text)))
            if unicodedata.category(character) != "Cf"
        )
        if unfolded == text:
            return
        text = unfolded
    yield text


def _texts(value: JsonValue) -> Iterator[str]:
    left = [value]
    while left:
        part = left.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            left += part.keys()
            left += part.values()
        elif isinstance(part, list):
            left += part
