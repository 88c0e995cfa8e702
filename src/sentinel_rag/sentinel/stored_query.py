"""The query that an analytic rule left in its alert, with the window in which the rule ran it.

Whoever can write an alert row (a product, an import) writes this text, so it is data: here it is only read and taken
apart. Whether it may run the KQL guard decides, and `alert_events` runs it.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sentinel_rag.contracts.query_results import TimeWindow, format_time
from sentinel_rag.sentinel.alerts import extended_properties
from sentinel_rag.sentinel.freeform_text import without_chart
from sentinel_rag.sentinel.stored_times import stored_span, stored_time

LONGEST_WINDOW = timedelta(days=31)
"""A rule looks back 14 days at most; a window that claims more is cut from its end."""
DEFAULT_MARGIN = timedelta(hours=1)
"""Around the alert's activity, where the alert tells neither window nor period."""

_PREAMBLE = re.compile(r"\s*(?://[^\r\n]*(?:\r\n|\r|\n|$)\s*)*")
_QUERY_NOW = re.compile(r"set\s+query_now\s*=\s*datetime\s*\(\s*[\"']?([^\"'()]{1,64})[\"']?\s*\)\s*;", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """`text` as the alert holds it; `candidates` are the forms of it that may run, the likeliest first.

    `window` is where the rule looked and `told_by` says how that is known; `query_now` is the moment that `ago()` and
    `now()` count from. `event_count` is how many rows the alert says there were.
    """

    text: str
    candidates: tuple[str, ...]
    window: TimeWindow
    told_by: str
    query_now: datetime
    event_count: int | None
    rule_name: str
    rule_query: str = ""


def stored_query(record: Mapping[str, Any]) -> StoredQuery | None:
    """From a newest row of SecurityAlert; None if it holds no query."""
    properties = _by_plain_name(extended_properties(record["ExtendedProperties"]))
    text = str(properties.get("query") or "").strip()
    rule_query = str(properties.get("originalquery") or "").strip()
    if not text:
        text, rule_query = rule_query, ""
    if not text:
        return None
    candidates = _candidates(text)
    if not candidates:
        return None
    window, told_by = _window(record, properties)
    assert window.end is not None
    query_now, _ = taken_apart(text)
    return StoredQuery(
        text=text,
        candidates=candidates,
        window=window,
        told_by=told_by,
        query_now=query_now or window.end,
        event_count=_count(properties),
        rule_name=str(properties.get("analyticrulename") or ""),
        rule_query=rule_query if rule_query != text else "",
    )


def taken_apart(text: str) -> tuple[datetime | None, str]:
    """The moment that `set query_now = ...` at the beginning names, and the query behind it.

    Every other `set` stays where it is, for the guard to refuse by name. A closing `;` and a `render` go.
    """
    begin = _PREAMBLE.match(text)
    setting = _QUERY_NOW.match(text, begin.end() if begin else 0)
    moment = None
    if setting is not None:
        moment = stored_time(setting[1])
        text = text[setting.end() :] if moment is not None else text
    return moment, without_chart(text.strip()).rstrip()


def _candidates(text: str) -> tuple[str, ...]:
    """The text itself, and what it may have been before something wrote it into a string a second time."""
    forms: list[Any] = [text]
    if "\\" in text:
        try:
            forms.append(json.loads(f'"{text}"', strict=False))
        except ValueError:
            quoted = text.replace('\\"', '"')
            forms += [quoted, quoted.replace("\\r\\n", "\n").replace("\\n", "\n").replace("\\t", "\t")]
    if "&" in text:
        forms.append(html.unescape(text))
    parts = (taken_apart(form)[1] for form in forms if isinstance(form, str))
    return tuple(part for part in dict.fromkeys(parts) if part)


def _window(record: Mapping[str, Any], properties: Mapping[str, Any]) -> tuple[TimeWindow, str]:
    start = stored_time(properties.get("querystarttimeutc") or properties.get("querystarttime"))
    end = stored_time(properties.get("queryendtimeutc") or properties.get("queryendtime"))
    period = stored_span(properties.get("queryperiod"))
    try:
        if start is not None and end is not None and start < end:
            if end - start > LONGEST_WINDOW:
                days = LONGEST_WINDOW.days
                told = f"the alert tells a window from {format_time(start)}; only its last {days} days were read"
                return TimeWindow(end - LONGEST_WINDOW, end), told
            return TimeWindow(start, end), "the window that the alert tells (Query Start Time UTC, Query End Time UTC)"
        length = min(period or DEFAULT_MARGIN, LONGEST_WINDOW)
        if end is not None and period is not None:
            return TimeWindow(end - length, end), "the end and the period that the alert tells"
        if start is not None and period is not None:
            return TimeWindow(start, start + length), "the start and the period that the alert tells"
        return _around_activity(record, length)
    except OverflowError:
        return _around_activity(record, DEFAULT_MARGIN)


def _around_activity(record: Mapping[str, Any], margin: timedelta) -> tuple[TimeWindow, str]:
    written = record["TimeGenerated"]
    first, last = record["StartTime"] or written, record["EndTime"] or record["StartTime"] or written
    first, last = min(first, last), max(first, last)
    if last - first > LONGEST_WINDOW:
        first = last - LONGEST_WINDOW
    hours = margin / timedelta(hours=1)
    told = (
        f"the alert tells no window of its query, so its activity (StartTime to EndTime) with {hours:g} "
        f"hour{'' if hours == 1 else 's'} on either side"
    )
    try:
        return TimeWindow(first - margin, last + margin), told
    except OverflowError:
        return TimeWindow(first, last), told


def _count(properties: Mapping[str, Any]) -> int | None:
    for name in ("searchqueryresultsoverallcount", "eventcount", "totalevents", "resultcount"):
        text = str(properties.get(name) or "").strip()
        if re.fullmatch(r"\d{1,12}", text):
            return int(text)
    return None


def _by_plain_name(properties: Mapping[str, Any] | None) -> dict[str, Any]:
    """By name in lower case without blanks and signs: products write `Query Start Time UTC` and `QueryStartTimeUtc`."""
    return {re.sub(r"[^a-z0-9]", "", str(name).lower()): value for name, value in (properties or {}).items()}
