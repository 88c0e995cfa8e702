"""Canonical forms of argument texts, by the `format` that a policy declares for a parameter.

A condition such as `file_path.startswith('confidential/')` is only worth something if every spelling of one place reads
the same. The canonical form is what rules see *and* what is forwarded. A text that has no single meaning (a percent
escape in a path, a look-alike letter, an octal address) is refused rather than guessed at. Every form is idempotent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from sentinel_rag.gateway.argument_formats.hosts import canonical_host, canonical_ip
from sentinel_rag.gateway.argument_formats.paths import canonical_path, canonical_path_any_case
from sentinel_rag.gateway.argument_formats.refusals import NotCanonical
from sentinel_rag.gateway.argument_formats.urls import canonical_url

__all__ = ["FORMATS", "NotCanonical", "canonical_path"]


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
