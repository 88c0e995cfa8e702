"""Web addresses, normalised as RFC 3986 section 6.2 says, and no further.

The parser is our own: the standard library's drops tabs and new lines and accepts what browsers read differently.
What two programs read differently is refused: user names, backslashes, an encoded slash, `..;`, an empty segment,
encoding twice, bytes that are no UTF-8. The fragment is dropped, because it is never sent: kept, it would make
`url == '...'` fail for an address that the server cannot tell from the one meant.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from sentinel_rag.gateway.argument_formats.hosts import canonical_host
from sentinel_rag.gateway.argument_formats.refusals import NotCanonical, refuse_look_alikes, refuse_unseen

MAX_URL = 8_192

_FORM = re.compile(
    r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?(?:#.*)?", re.I
)
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>[1-9][0-9]{0,4})?)?")
_DEFAULT_PORT = {"http": "80", "https": "443"}
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")

UNRESERVED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
_PATH_PLAIN = UNRESERVED | frozenset("!$&'()*+,=:@")
"""Written out in a path, whether they came encoded or not: no server that we know reads the two differently."""
_PATH_KEPT = _PATH_PLAIN | frozenset("/;")
_QUERY_KEPT = UNRESERVED | frozenset("!$&'()*+,;=:@/?")


def canonical_url(text: str) -> str:
    """An http or https URL: `https://host/path?query`, scheme and host in lower case, no default port, no dot
    segments, escapes only where they are needed and in upper case, no fragment, no empty query."""
    if len(text) > MAX_URL:
        raise NotCanonical(f"a URL has at most {MAX_URL} characters")
    refuse_unseen(text, "a URL")
    if " " in text or "\\" in text:
        raise NotCanonical("a URL may not hold blanks or backslashes")
    match = _FORM.fullmatch(text)
    if match is None:
        raise NotCanonical("a URL must begin with http:// or https://")
    scheme = match["scheme"].lower()
    path = _remove_dot_segments(_normal_escapes(match["path"] or "/", _PATH_PLAIN, _PATH_KEPT, in_path=True))
    query = _normal_escapes(match["query"] or "", UNRESERVED, _QUERY_KEPT, in_path=False)
    return f"{scheme}://{_authority(match['authority'], scheme)}{path}" + (f"?{query}" if query else "")


def _authority(text: str, scheme: str) -> str:
    if "@" in text or "%" in text:
        raise NotCanonical("a URL may not hold a user name, a password or an encoded host")
    match = _AUTHORITY.fullmatch(text)
    if match is None or not match["host"] or int(match["port"] or 1) > 65_535:
        raise NotCanonical("a URL needs a host and may name a port from 1 to 65535")
    host = canonical_host(match["host"])
    if ":" in host:
        host = f"[{host}]"
    port = match["port"]
    return host if port is None or port == _DEFAULT_PORT[scheme] else f"{host}:{port}"


def _normal_escapes(text: str, plain: frozenset[str], kept: frozenset[str], *, in_path: bool) -> str:
    """Escapes written in one way: none for `plain`, upper case for the rest, UTF-8 for what stands in neither."""
    if "%" in _ESCAPE.sub("", text):
        raise NotCanonical("a % in a URL must begin an escape of two hexadecimal digits")
    _check_meaning(text, in_path=in_path)

    def written(match: re.Match[str]) -> str:
        letter = chr(int(match[1], 16))
        return letter if letter in plain else match[0].upper()

    return "".join(
        part if part.startswith("%") else _encoded(part, kept)
        for part in re.split(r"(%[0-9A-F]{2})", _ESCAPE.sub(written, text))
    )


def _encoded(text: str, kept: frozenset[str]) -> str:
    return "".join(letter if letter in kept else "".join(f"%{byte:02X}" for byte in letter.encode()) for letter in text)


def _check_meaning(text: str, *, in_path: bool) -> None:
    """Refuse what a server might decode to something else than it seems."""
    try:
        decoded = unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise NotCanonical("the escapes of a URL must be UTF-8") from None
    refuse_unseen(decoded, "a URL")
    if not in_path:  # a query may carry a whole URL as a value, escapes and all
        return
    if _ESCAPE.search(decoded):
        raise NotCanonical("the path of a URL may not be escaped twice")
    refuse_look_alikes(decoded, "the path of a URL")
    if re.search(r"%(?:2f|5c|3b)", text, re.I) or "\\" in decoded:
        raise NotCanonical("the path of a URL may not hold an escaped slash, backslash or semicolon")
    segments = decoded.split("/")[1:]
    if any(segment == "" for segment in segments[:-1]):
        raise NotCanonical("the path of a URL may not hold an empty part")
    if any(";" in segment and segment.partition(";")[0] in (".", "..") for segment in segments):
        raise NotCanonical("a . or .. in the path of a URL may not carry parameters")


def _remove_dot_segments(path: str) -> str:
    """RFC 3986 5.2.4; `path` begins with a slash."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)
