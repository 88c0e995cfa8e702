"""The names of hosts and accounts in the workspace, to catch a mistyped one.

Fetched once a session, and only after a name found nothing. A near name is proposed, never put in the place of the one
that was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sentinel_rag.agent.planner.plan import PlannedCall
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.language.frames.phrases import distance

KINDS = ("account", "host")
CALLS = tuple(PlannedCall("get_top_entities", {"kind": kind, "limit": 100}) for kind in KINDS)
MAX_NEAR = 5


def names_of(runs: Sequence[ToolRun]) -> dict[str, tuple[str, ...]]:
    """Names by kind from the runs of `CALLS`; a call that failed gives none."""
    return {
        str(run.call.arguments["kind"]): tuple(str(row["name"]) for row in run.rows if row.get("name")) for run in runs
    }


def near_names(value: str, directory: Mapping[str, Sequence[str]]) -> list[tuple[str, str]]:
    """(kind, name) of names that differ from `value` by a slip or two, or hold it; nearest first."""
    asked = _short(value)
    found: list[tuple[int, str, str]] = []
    limit = 1 if len(asked) <= 5 else 2 if len(asked) <= 9 else 3
    for kind, names in directory.items():
        for name in names:
            short = _short(name)
            steps = min(distance(asked, short, limit), distance(value.lower(), name.lower(), limit))
            if steps == 0:
                continue
            if steps <= limit:
                found.append((steps, kind, name))
            elif len(asked) >= 4 and (asked in short or _core(asked) == _core(short)):
                found.append((limit + 1, kind, name))
    return [(kind, name) for _, kind, name in sorted(found)[:MAX_NEAR]]


def _short(name: str) -> str:
    """The part that people type: the host name of an FQDN, the user of a UPN or of `DOMAIN\\user`."""
    name = name.lower().rpartition("\\")[2]
    return name.partition("@")[0] if "@" in name else name.partition(".")[0] if name.count(".") > 1 else name


def _core(name: str) -> str:
    """A name without separators and leading zeros of its numbers: `fin-ws-41` and `fin-ws-041` are alike."""
    parts = "".join(character if character.isalnum() else " " for character in name).split()
    return "".join(part.lstrip("0") for part in parts)
