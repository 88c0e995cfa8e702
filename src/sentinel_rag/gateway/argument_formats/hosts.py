"""Host names and IP addresses.

A host name is judged in the form that DNS asks for (RFC 5891 A-labels, lower case), so a look-alike letter shows as
another name. A number that some programs read as an address and some as a name is refused (WHATWG URL, "ends in a
number"): `0x7f.1`, `2130706433`, `127.1`, `010.0.0.1`.
"""

from __future__ import annotations

import ipaddress
import re

from sentinel_rag.gateway.argument_formats.refusals import NotCanonical, refuse_look_alikes, refuse_unseen

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
