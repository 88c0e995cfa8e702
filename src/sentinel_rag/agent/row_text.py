"""Texts and times of rows as they may stand in an answer: made safe, and written for people.

Titles, command lines and names come from logs. What would steer a terminal or a browser in them, or would not be seen
(escape sequences, control, direction and invisible characters), is shown as a visible escape, since it is evidence too;
and they are quoted so that Markdown renders them literally. Surfaces sanitise again; this is the agent's one place.
Times are in UTC first, then in the session's time zone where it differs.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import groupby
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.query_results import TimeWindow, parse_time
from sentinel_rag.contracts.visible_text import visible

MAX_CHARACTERS = 300

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c|$)"  # OSC, DCS and friends up to their end
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|\x1b[@-Z\\-_]?",
    re.DOTALL,
)
_SPACES = re.compile(r"\s+")
_BLANKS = re.compile(r"(?:\r\n|[^\S\r\x0b\x0c\x1c-\x1f\x85\u2028\u2029])+")
"""Blank space and ends of lines, but none of the controls and separators among it, which are shown."""
_LONGEST_RUN = 8
_SHOWN_OF_RUN = 4
_MARKDOWN = re.compile(r"[\[\]<>*_#|!~\\&`{}]|https?:|://|www\.", re.IGNORECASE)
_DROPPED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def plain(text: str, *, limit: int = MAX_CHARACTERS) -> str:
    """One line in which controls, escapes, invisible and direction characters are written out; cut to `limit`
    characters with `…`.

    Safe as a table cell (cells are not Markdown). Visible characters of every script stay as they are.
    """
    return _cut(visible(_without_floods(_BLANKS.sub(" ", text))).strip(), limit)


def _without_floods(text: str) -> str:
    """The text with long runs of characters that are not seen by themselves cut to their first ones and a count: all of
    them, written out, would push the words behind them out of every table."""
    if text.isascii() and text.isprintable():
        return text
    parts: list[str] = []
    for hidden, run in groupby(text, key=_is_hidden):
        part = "".join(run)
        most = hidden and len(part) > _LONGEST_RUN
        parts.append(f"{part[:_SHOWN_OF_RUN]}(+{len(part) - _SHOWN_OF_RUN} hidden)" if most else part)
    return "".join(parts)


def _is_hidden(character: str) -> bool:
    return visible(character) != character or unicodedata.category(character)[0] == "M"


def read_plainly(text: str, *, limit: int = MAX_CHARACTERS) -> str:
    """One line as a reader takes it in, without what is not seen: for reading what a text says, not for showing it."""
    text = _SPACES.sub(" ", _ESCAPES.sub("", text))
    text = "".join(
        character
        for character in text
        if character == " " or unicodedata.category(character) not in _DROPPED_CATEGORIES
    )
    return _cut(_SPACES.sub(" ", text).strip(), limit)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def quoted(text: str, *, limit: int = MAX_CHARACTERS) -> str:
    """`plain` text in quotation marks, or in a code span where a Markdown reader could see markup in it."""
    text = plain(text, limit=limit)
    if _MARKDOWN.search(text):
        return code(text, limit=limit)
    return f"“{text}”"


def code(text: str, *, limit: int = MAX_CHARACTERS) -> str:
    """`plain` text as a code span: exact, and never a link, an image or HTML. A backtick becomes `ˋ`."""
    text = plain(text, limit=limit).replace("`", "ˋ")
    return f"`{text}`"


def data_line(text: str, *, limit: int = MAX_CHARACTERS) -> str:
    """`plain` text as it is for a line that is quoted already, in a code span where a Markdown reader could see markup
    in it."""
    text = plain(text, limit=limit)
    return code(text, limit=limit) if _MARKDOWN.search(text) else text


def zone_named(name: str) -> ZoneInfo:
    """The zone of an IANA name. Raises UsageError for one that is not known."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UsageError(
            f"{name!r} is not a time zone.", next_step="Give an IANA name such as Europe/Berlin or UTC."
        ) from error


def show_time(moment: datetime, zone: tzinfo = UTC) -> str:
    """`2024-07-02 09:45:00 UTC`, with the local time behind it where the session has another time zone."""
    text = moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    local = moment.astimezone(zone)
    if local.utcoffset() == timedelta(0):
        return text
    same_day = local.date() == moment.astimezone(UTC).date()
    return f"{text} ({local.strftime('%H:%M:%S' if same_day else '%Y-%m-%d %H:%M:%S')} {zone_name(local)})"


def zone_name(local: datetime) -> str:
    """`CEST`, or `UTC+05:30` where the zone has no letters for it."""
    name = local.tzname() or ""
    return name if name.isalpha() else "UTC" + local.strftime("%z")[:3] + ":" + local.strftime("%z")[3:5]


def show_value(text: str, zone: tzinfo = UTC) -> str:
    """`show_time` of an ISO time from a row; text that is none comes back as it is."""
    try:
        return show_time(parse_time(text), zone)
    except ValueError:
        return text


def show_window(window: TimeWindow, zone: tzinfo = UTC) -> str:
    """`from 2024-07-02 00:00:00 UTC to before 2024-07-03 00:00:00 UTC`; open sides are said in words."""
    if window.start is None and window.end is None:
        return "all retained data"
    if window.start is None:
        assert window.end is not None
        return f"everything before {show_time(window.end, zone)}"
    if window.end is None:
        return f"everything since {show_time(window.start, zone)}"
    return f"from {show_time(window.start, zone)} to before {show_time(window.end, zone)}"


def show_duration(seconds: float) -> str:
    """`2 days 3 hours`, `45 minutes`, `12 seconds`: the two largest units that are not zero."""
    return _in_units(round(seconds), 2) or "under a second"


def show_age(age: timedelta) -> str:
    """`3 minutes`, `5 hours`, `12 days`: whole units, the largest that fits."""
    return _in_units(max(0, int(age.total_seconds()) // 60 * 60), 1) or "under a minute"


def _in_units(left: int, most: int) -> str:
    parts: list[str] = []
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count, left = divmod(left, size)
        if count and len(parts) < most:
            parts.append(f"{count} {unit}{'' if count == 1 else 's'}")
    return " ".join(parts)
