"""Links in free text. A text that names a host can carry data to it as soon as somebody's browser or mail client draws
it, so a link counts as a way out (EchoLeak, CVE-2025-32711, left through an image in Markdown).

A link is whatever some reader draws as one: an address with a scheme, and just as well a bare host under a top-level
domain that there is, an e-mail address, an IP address, the markup of a chat. Finding one may only make a decision
stricter: a text in which none is found is judged by its label as before. So where readers differ about the host of a
link, every reading counts; `tests/attacks/test_attacks_link_readers.py` holds this against public linkifiers.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Collection, Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import unquote

from sentinel_rag.contracts.json_values import JsonValue

MAX_UNFOLDING = 3
"""How often percent and HTML escapes are taken away: what is nested deeper is no link to any reader."""

MAX_AUTHORITY = 512
"""Characters of a link's authority. Whoever writes more there hides something: that is no known host."""

_LINK = re.compile(
    r"""(?: [a-z][a-z0-9+.-]{1,20}:[/\\]{1,16}   # scheme://host, also with too many or the wrong slashes
          | \b(?:mailto|sips?|xmpp|callto|https?|ftp|wss?|tel|sms|data|javascript|magnet):(?![/\\\s])  # https:host
          | (?<![a-z0-9:/\\]) [/\\]{2,16}        # //host and \\host
          | (?=www\.)                            # www.host, whatever stands before it
          | (?: \]\( \s{0,8} | \b(?:src|href|srcset|background|action)\s{0,8}=\s{0,8}["']?+ )
            (?! \s | [a-z][a-z0-9+.-]{0,20}:)    # Markdown and HTML; a scheme is found above
        )
        (?=(?P<word>[^\ \t\r\n\f/\\?\#<>]{0,512}))""",
    re.VERBOSE | re.IGNORECASE,
)
_BARE = re.compile(
    r"(?<![\w@.-])(?P<host>(?:[\w-]{1,63}\.){1,127}(?:xn--[a-z0-9-]{1,59}|[^\W\d_]{2,24}))(?=[/:?#][^\s])",
    re.IGNORECASE,
)
_DOMAINS = frozenset((Path(__file__).with_name("top_level_domains.txt")).read_text("utf-8").split())
"""The top-level domains of more than two letters, in both forms, and those that are reserved. Of two letters all count:
each is, or may be, that of a country."""

_UNDER_DOMAIN = re.compile(r"\.(?P<domain>xn--[a-z0-9-]{1,59}|[^\W\d_]{2,63})(?![^\W_]|-)", re.IGNORECASE)
"""A dot with what may be a domain."""

MAX_HOST = 253
_NO_LABEL = frozenset(map(chr, [*range(0x2D), *b"/:;<=>?@[\\]^`{|}~"]))
_EMAIL = re.compile(r"(?<=[^\s@])@(?P<host>(?:[\w-]{1,63}\.){1,127}[\w-]{1,63})")
"""An e-mail address, under whatever domain."""
_GOES_ON = re.compile(r"\.?[\w.-]*")
_IPV4 = re.compile(r"(?<!\d)(?<!\d\.)(?:\d{1,3}\.){3}\d{1,3}(?!\d|\.\d)")
_IPV6 = re.compile(
    r"(?<![\w:.])(?=[0-9a-f]{0,4}:)[0-9a-f:]{2,39}(?:(?<=:)\d{1,3}(?:\.\d{1,3}){3})?(?![\w:])", re.IGNORECASE
)

_ATTRIBUTE = re.compile(r"""=\s{0,8}(?:"(?P<one>[^"]{1,4096})"|'(?P<two>[^']{1,4096})')""")
_UNSEEN = str.maketrans(dict.fromkeys("\t\r\n"))
"""What a browser takes out of an address before it reads it."""

_LONGEST = re.compile(r"(?:\\[ \t\n]|[^ \t\r\n\f/?#]){1,512}")
"""An authority as the most lenient reader takes it: brackets and backslashes may stand in a user name,
and behind a backslash a blank."""
_BETWEEN = {quote: re.compile(rf"[^\n/?#{end}]{{1,512}}") for quote, end in (('"', '"'), ("'", "'"), ("<", ">"))}
"""Between quotes a user name may hold anything but the quote, blanks too."""

_MARKDOWN_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_UNSEEN_REFERENCE = re.compile(r"&(?:#0{0,8}(?:9|10|13)(?!\d)|#x0{0,8}[9ad](?![\da-f])|Tab|NewLine);?", re.IGNORECASE)
_CSS_ESCAPE = re.compile(r"\\([0-9a-f]{1,5})[ \t]?", re.IGNORECASE)
_DOTS = str.maketrans(dict.fromkeys("\u3002\uff61", "."))
"""Dots of other scripts, which IDNA reads as dots."""

_NAME = re.compile(r"[a-z0-9._-]+")
_AROUND = ".,;:!\"'`(){}[]|*^~"
"""What a sentence, Markdown or JSON may put behind a host."""


def linked_hosts(value: JsonValue) -> frozenset[str]:
    """The hosts, in lower case, that links in the texts of `value` name; with what cannot be read as a host, too."""
    return frozenset(host for text in texts_in(value) for form in _forms(text) for host in _hosts(form))


def is_allowed(host: str, allowed: frozenset[str]) -> bool:
    """Whether `host` is one of `allowed` or a name below it."""
    if not _NAME.fullmatch(host):
        return False
    labels = host.split(".")
    return any(".".join(labels[index:]) in allowed for index in range(len(labels)))


def without(text: str, addresses: Collection[str]) -> tuple[str, frozenset[str]]:
    """The text with a blank for every link that is one of `addresses` and nothing more, as it stands there letter for
    letter; and which of them it was.

    A reader of HTML goes on reading behind a line break, so where there may be any, the address has to stand between
    two marks; in plain words the end of the word is its end.
    """
    tagged = any("<" in form for form in _forms(text))
    found: set[str] = set()

    def blank(match: re.Match[str]) -> str:
        before, word, behind = match["before"], match["word"], match["behind"]
        if before:
            # Without a mark of its own a program that makes links of words reads on to the next blank.
            whole = word in addresses and behind == _MARKS[before] and _ENDS.match(text, match.end()) is not None
        else:
            word = word if word in addresses or word[-1] not in ".,;:!?" else word[:-1]
            whole = word in addresses and not tagged and not behind
        if not whole:
            return match[0]
        found.add(word)
        return " "

    return _WORD.sub(blank, text), frozenset(found)


_MARKS = {'"': '"', "'": "'", "(": ")", "<": ">", "[": "]", "`": "`", "*": "*"}
_ENDS = re.compile(r"\s|>|[.,;:!?)](?:\s|\Z)|\Z")
_WORD = re.compile(r"""(?P<before>["'(<\[`*]?)(?P<word>[^\s"'()<>\[\]`*]{4,2048}+)(?P<behind>["')>\]`*(<\[]?)""")


def _hosts(text: str) -> Iterator[str]:
    for match in _LINK.finditer(text):
        if match["word"]:
            yield _host_of(match["word"])
        # A backslash at the end of the slashes may belong to a blank behind it.
        readings = [_LONGEST.match(text, match.end() - text.endswith("\\", 0, match.end()))]
        if match.start() and (between := _BETWEEN.get(text[match.start() - 1])):
            readings.append(between.match(text, match.end()))
        yield from (_host_of(reading[0]) for reading in readings if reading and "@" in reading[0])
    for match in _BARE.finditer(text):
        yield match["host"].lower()
    yield from _bare_hosts(text)


def _bare_hosts(text: str) -> Iterator[str]:
    """Hosts and IP addresses that stand in a text by themselves."""
    for match in _EMAIL.finditer(text):
        yield match["host"].rstrip("-_").lower()
    last: re.Match[str] | None = None
    for match in _UNDER_DOMAIN.finditer(text):
        if not _is_under_domain(text, match):
            continue
        # Of "docs.microsoft.com" the whole is meant, although .microsoft is a domain too.
        if last is not None and not _GOES_ON.fullmatch(text, last.end(), match.start()):
            yield _bare_host(text, last.end())
        last = match
    if last is not None:
        yield _bare_host(text, last.end())
    for sign, pattern in ((".", _IPV4), (":", _IPV6)):
        for match in pattern.finditer(text) if text.count(sign) > 1 else ():
            with suppress(ValueError):
                yield str(ip_address(match[0]))


def _is_under_domain(text: str, match: re.Match[str]) -> bool:
    """Whether there is a label before the dot and such a domain behind it."""
    before = text[match.start() - 1 : match.start()]
    if not before or before in _NO_LABEL or before == "." or before.isspace():
        return False
    domain = match["domain"].lower()
    return len(domain) == 2 or domain in _DOMAINS or domain.startswith("xn--")


def _bare_host(text: str, end: int) -> str:
    """The host that ends there. Behind a sign such as a quotation mark of print it begins anew, if that leaves one."""
    least = max(0, end - MAX_HOST)
    plain = end
    while plain > least and (text[plain - 1].isalnum() or text[plain - 1] in ".-_"):
        plain -= 1
    host = text[plain:end].lstrip(".-")
    if "." not in host:
        start = plain
        while start > least and text[start - 1] not in _NO_LABEL and not text[start - 1].isspace():
            start -= 1
        host = text[start:end]
    return host.lower()


def _host_of(authority: str) -> str:
    """The host of `user:password@host:port`; what is too long stays whole."""
    if len(authority) >= MAX_AUTHORITY:
        return authority.lower()
    host = authority.rpartition("@")[2]
    if not host.startswith("["):
        host = host.partition(":")[0]
    return host.rstrip(_AROUND).lower() or authority.lower()


def _forms(text: str) -> Iterator[str]:
    """The text as it is, and as a reader's software may see it."""
    for _ in range(MAX_UNFOLDING):
        yield from _as_read(text)
        seen = _UNSEEN_REFERENCE.sub("", text)
        if seen != text:
            yield from _as_read(seen)
        unfolded = "".join(
            character
            for character in unicodedata.normalize("NFKC", html.unescape(unquote(text))).translate(_DOTS)
            if unicodedata.category(character) != "Cf"
        )
        if unfolded == text:
            return
        text = unfolded
    yield from _as_read(text)


def _as_read(text: str) -> Iterator[str]:
    """The text, its Markdown and its style sheets without their escapes, and its attributes as a browser reads
    addresses."""
    yield text
    if "\\" in text:
        yield from {
            _CSS_ESCAPE.sub(lambda match: chr(int(match[1], 16)), text),
            _MARKDOWN_ESCAPE.sub(r"\1", text),
        } - {text}
    for match in _ATTRIBUTE.finditer(text):
        value = match["one"] or match["two"]
        if value.translate(_UNSEEN) != value:
            yield f'="{value.translate(_UNSEEN).strip()}"'


def texts_in(value: JsonValue) -> Iterator[str]:
    """Every text in a value, keys of objects too."""
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
