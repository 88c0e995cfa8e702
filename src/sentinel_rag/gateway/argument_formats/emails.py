"""E-mail addresses: the plain form `name@domain` and no other."""

from __future__ import annotations

import re

from sentinel_rag.gateway.argument_formats.hosts import canonical_host
from sentinel_rag.gateway.argument_formats.refusals import NotCanonical

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
