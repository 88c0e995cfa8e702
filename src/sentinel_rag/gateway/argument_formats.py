"""Canonical forms of argument texts, by the `format` that a policy declares for one: paths, hosts, web addresses.

A condition such as `file_path.startswith('confidential/')` is only worth something if every spelling of one place reads
the same. The canonical form is what rules see *and* what is forwarded. A text that has no single meaning (a percent
escape in a path, a look-alike letter, an octal address, what two programs read differently) is refused rather than
guessed at. Every form is idempotent. Symbolic links are not known here: the tool server resolves them.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from urllib.parse import unquote_to_bytes

_UNSEEN = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")


class NotCanonical(ValueError):
    """The text has no canonical form; the message says why without repeating it."""


def refuse_unseen(text: str, what: str) -> None:
    """Refuse control, invisible, private and unassigned characters, and all white space but the plain blank."""
    for character in text:
        category = unicodedata.category(character)
        if category in _UNSEEN or (category == "Zs" and character != " "):
            raise NotCanonical(f"{what} may not hold control or invisible characters")


def refuse_look_alikes(text: str, what: str) -> None:
    """Refuse what Unicode's compatibility form writes differently: full width, ligatures, decomposed letters."""
    if not text.isascii() and unicodedata.normalize("NFKC", text) != text:
        raise NotCanonical(f"{what} may not hold look-alike or decomposed letters")


MAX_HOST = 253
MAX_LABEL = 63
MAX_ADDRESS = 45
"""Characters of the longest IPv6 address, with an IPv4 address inside."""

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
_DOTTED = re.compile(r"(?:0|[1-9][0-9]{0,2})(?:\.(?:0|[1-9][0-9]{0,2})){3}")


def canonical_ip(text: str) -> str:
    """An IPv4 address in four decimal numbers, or an IPv6 address as RFC 5952 writes it.

    An IPv4 address mapped into IPv6 becomes the IPv4 address: a connection to it reaches that very host, so a rule
    about `10.0.0.1` must see it. A zone (`fe80::1%eth0`) means another host on each machine and is refused.
    """
    if len(text) > MAX_ADDRESS:
        raise NotCanonical("this is no IP address")
    if not text.isascii() or text.strip() != text:
        raise NotCanonical("an address is written in plain digits and letters")
    if ":" not in text:
        if not _DOTTED.fullmatch(text):
            raise NotCanonical("write an IPv4 address as four decimal numbers without leading zeros")
        try:
            return str(ipaddress.IPv4Address(text))
        except ValueError:
            raise NotCanonical("the numbers of an IPv4 address go to 255") from None
    if "%" in text:
        raise NotCanonical("an address may not name a zone")
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        raise NotCanonical("this is no IP address") from None
    return str(address.ipv4_mapped or address)


def canonical_host(text: str) -> str:
    """A host name in lower case A-labels without its last dot, or an IP address; `[::1]` and `::1` are both `::1`."""
    if len(text) > MAX_HOST + 1:
        raise NotCanonical(f"a host name has at most {MAX_HOST} characters")
    if text.startswith("[") and text.endswith("]") and ":" in text:
        return canonical_ip(text[1:-1])
    if ":" in text:
        return canonical_ip(text)
    refuse_unseen(text, "a host name")
    refuse_look_alikes(text, "a host name")
    labels = text.removesuffix(".").split(".")
    if _NUMERIC.fullmatch(labels[-1]):
        return canonical_ip(text.removesuffix("."))
    host = ".".join(map(_canonical_label, labels))
    if len(host) > MAX_HOST:
        raise NotCanonical(f"a host name has at most {MAX_HOST} characters")
    return host


def _canonical_label(label: str) -> str:
    label = label.lower()
    if len(label) > MAX_LABEL:  # before IDNA, whose time grows with the square of the length
        raise NotCanonical(f"a part of a host name has at most {MAX_LABEL} characters")
    if not label.isascii() or label.startswith("xn--"):
        import idna  # its tables are big, and most hosts never need them

        try:
            unicode = idna.ulabel(label)
            label = idna.alabel(unicode).decode()
        except (idna.IDNAError, UnicodeError):
            raise NotCanonical("a host name holds letters that no domain may have") from None
        if unicode.isascii():
            raise NotCanonical("a host name hides plain letters behind xn--")
        return label
    if not _LABEL.fullmatch(label) or label[2:4] == "--":
        raise NotCanonical("a part of a host name has 1 to 63 letters, digits and hyphens, not at its ends")
    return label


ROOT = "."
"""The canonical form of the root itself, which has no part to be named by."""

MAX_PATH = 4_096

_PERCENT = re.compile(r"%(?:[0-9A-Fa-f]{2}|[uU][0-9A-Fa-f]{4})")
_SCHEME_OR_DRIVE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_SHORT_NAME = re.compile(r"~[0-9]")
_NOT_ON_WINDOWS = frozenset(':*?"<>|')


def canonical_path(text: str) -> str:
    """A relative path with `/` between its parts, without `.`, `..` or empty parts; a trailing `/` is kept.

    Letter case stays, because on most servers two cases name two files; `path-any-case` is for the others.
    """
    if len(text) > MAX_PATH:
        raise NotCanonical(f"a path has at most {MAX_PATH} characters")
    refuse_unseen(text, "a path")
    if "\\" in text:
        raise NotCanonical("write a path with / and not with backslashes")
    if _PERCENT.search(text):
        raise NotCanonical("write a path without percent escapes")
    refuse_look_alikes(text, "a path")
    if text.startswith(("/", "~")) or _SCHEME_OR_DRIVE.match(text):
        raise NotCanonical("a path must be relative")
    parts: list[str] = []
    for part in text.split("/"):
        if part == "..":
            if not parts:
                raise NotCanonical("a path may not leave its root")
            parts.pop()
        elif part.rstrip(". ") != part and part != ".":
            raise NotCanonical("a part of a path may not end in a dot or a space")
        elif part not in ("", "."):
            parts.append(part)
    if not parts:
        return ROOT
    path = "/".join(parts) + ("/" if text.endswith("/") else "")
    if path.startswith("~") or _SCHEME_OR_DRIVE.match(path):  # `./C:x` and `a/../~x` name what `C:x` and `~x` name
        raise NotCanonical("a path must be relative")
    return path


def canonical_path_any_case(text: str) -> str:
    """`canonical_path` for a store that takes two cases for one name (Windows, macOS): letters in lower case.

    Also refused is what such a store takes for another name: `PROGRA~1`, `file:stream`, and letters whose upper and
    lower case are not each other's (`ı`, `ß`), on which stores differ.
    """
    path = canonical_path(text)
    if _SHORT_NAME.search(path) or any(letter in _NOT_ON_WINDOWS for letter in path):
        raise NotCanonical('a path may not hold ~1, :, *, ?, ", <, > or |')
    folded = path.lower()
    if any(_has_no_one_case(letter) for letter in path):
        raise NotCanonical("a path may not hold letters without one lower and one upper case")
    return folded


def _has_no_one_case(letter: str) -> bool:
    lower, upper = letter.lower(), letter.upper()
    return len(lower) != 1 or len(upper) != 1 or upper.lower() != lower or letter.casefold() != lower


MAX_URL = 8_192

_WEB_ADDRESS = re.compile(
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
    match = _WEB_ADDRESS.fullmatch(text)
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


_FORM = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})[Tt](?P<time>(?:[01][0-9]|2[0-3]):[0-9]{2}(?::[0-9]{2})?)"
    r"(?:\.(?P<fraction>[0-9]{1,6}))?(?P<zone>[Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def canonical_time(text: str) -> str:
    """RFC 3339 in UTC, always with six digits after the seconds, so that the order of texts is the order of moments.

    A time without a zone means another moment on each machine and is refused, as are `24:00` and leap seconds.
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise NotCanonical("write a time as 2026-11-28T09:30:00Z, with its zone")
    zone = match["zone"].upper().replace("Z", "+00:00")
    try:
        moment = datetime.fromisoformat(f"{match['date']}T{match['time']}{zone}").astimezone(UTC)
    except (ValueError, OverflowError):
        raise NotCanonical("there is no such time") from None
    seconds = moment.replace(tzinfo=None).isoformat(timespec="seconds")
    return f"{seconds}.{(match['fraction'] or '').ljust(6, '0')}Z"


_TEMPLATE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")


def canonical_template(text: str) -> str:
    """The name as the template registry writes it: lower case letters, digits and underscores, no blanks around."""
    name = text.strip(" ")
    if not _TEMPLATE.fullmatch(name):
        raise NotCanonical("a template is named by letters, digits and underscores")
    return name.lower()


_WORKSPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}")


def canonical_workspace(text: str) -> str:
    """The name as the settings write it: lower case letters, digits, - and _, no blanks around."""
    name = text.strip(" ")
    if not _WORKSPACE.fullmatch(name):
        raise NotCanonical("a workspace is named by letters, digits, - and _")
    return name.lower()


_LOCAL = re.compile(r"(?=.{1,64}\Z)[A-Za-z0-9#$&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9#$&'*+/=?^_`{|}~-]+)*")


def canonical_email(text: str) -> str:
    """The address in lower case, its domain as `canonical_host` writes it.

    Also the part before the @: RFC 5321 lets a server tell cases apart, none that we know does, and a rule about one
    person must not be passed by with a capital letter. Refused are quoted names, comments, display names, a route
    (`%`, `!`), addresses in brackets and letters beyond ASCII before the @.
    """
    local, at, domain = text.rpartition("@")
    if not at or not _LOCAL.fullmatch(local):
        raise NotCanonical("an e-mail address is written name@domain, without quotes, comments or routes")
    host = canonical_host(domain)
    if ":" in host or host.rpartition(".")[2].isdigit():
        raise NotCanonical("the domain of an e-mail address may not be an IP address")
    return f"{local.lower()}@{host}"


FORMATS: Mapping[str, Callable[[str], str]] = {
    "path": canonical_path,
    "path-any-case": canonical_path_any_case,
    "url": canonical_url,
    "host": canonical_host,
    "ip": canonical_ip,
    "email": canonical_email,
    "time": canonical_time,
    "kql-template": canonical_template,
    "workspace": canonical_workspace,
}
"""The known values of `format`; each function raises NotCanonical."""
