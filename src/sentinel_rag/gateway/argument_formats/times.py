"""Moments, so that a rule may compare them as texts: `start_time >= '2026-11-01T00:00:00Z'`."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from sentinel_rag.gateway.argument_formats.refusals import NotCanonical

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
