"""A query request of the Log Analytics API, read strictly: body, timespan, Prefer header. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

DEFAULT_WAIT_S = 180
MAX_WAIT_S = 600


class QueryBody(msgspec.Struct, frozen=True):
    """The JSON body. azure-monitor-query always sends all three keys."""

    query: str
    timespan: str | None = None
    workspaces: list[str] | None = None


@dataclass(frozen=True, slots=True)
class RequestPreferences:
    """What the Prefer header asked for; `applied` is the text of Preference-Applied."""

    wait_s: int = DEFAULT_WAIT_S
    statistics: bool = False
    render: bool = False
    applied: str = ""


def parse_prefer(header: str) -> RequestPreferences:
    """`wait=600,include-statistics=true`; an empty header is what the SDK sends when it wants nothing."""
    wait, statistics, render = DEFAULT_WAIT_S, False, False
    applied: list[str] = []
    for part in header.replace(";", ",").split(","):
        name, _, value = part.strip().partition("=")
        name, value = name.strip().lower(), value.strip().strip('"').lower()
        if name == "wait" and value.isdigit() and int(value) > 0:
            wait = min(int(value), MAX_WAIT_S)
            applied.append(f"wait={wait}")
        elif name == "include-statistics" and value == "true":
            statistics = True
            applied.append("include-statistics=true")
        elif name == "include-render" and value == "true":
            render = True
            applied.append("include-render=true")
    return RequestPreferences(wait, statistics, render, ",".join(applied))
