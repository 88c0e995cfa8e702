"""The typed conditions of a declassification: forms of values that are looked up and read as no sentence.

A form bounds what a value can carry and does not make it harmless: 64 bytes fit into the writing of a SHA-512."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping

from sentinel_rag.gateway.policy.model import PublicKind

_HASH = re.compile(r"(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{96}|[0-9a-f]{128})", re.IGNORECASE)
_DOMAIN = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,8}[a-z]{2,24}")
_LOCAL_SUFFIXES = (".local", ".internal", ".lan", ".corp", ".home", ".localdomain", ".intranet", ".private", ".arpa")


def is_public_ip(text: str) -> bool:
    """A globally routable address in its canonical text; private, mapped, documentation and zone forms are none."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and (
        address.ipv4_mapped or address.sixtofour or address.teredo or address.scope_id
    ):
        return False
    return address.is_global and not address.is_multicast and str(address) == text


def is_hash(text: str) -> bool:
    """The hexadecimal text of an MD5, SHA-1, SHA-256, SHA-384 or SHA-512."""
    return _HASH.fullmatch(text) is not None


def is_domain(text: str) -> bool:
    """A DNS name of ASCII letters in lower case with a public-looking end; no IDNA, no name of an inner network."""
    return _DOMAIN.fullmatch(text) is not None and not text.endswith(_LOCAL_SUFFIXES) and "xn--" not in text


FORMS: Mapping[PublicKind, Callable[[str], bool]] = {
    PublicKind.PUBLIC_IP: is_public_ip,
    PublicKind.HASH: is_hash,
    PublicKind.DOMAIN: is_domain,
}
