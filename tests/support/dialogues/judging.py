"""One turn of a dialogue judged from what a person and the gateway see of it: the footnote and the calls.

`right`: the things that the words mean, and no call about another one. `asked`: a question back, and no call about
anything. `wrong`: anything else. Nothing is read from the analyst's memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.tool_calls import ToolCall

_DIRECTORY = frozenset({"get_top_entities", "list_kql_templates", "list_workspaces"})


@dataclass(frozen=True, slots=True)
class Thing:
    """A thing as people see it. `kind` is incident, alert, or the entity's kind; `incident` the alert's own."""

    kind: str
    value: str
    incident: str = ""

    @property
    def words(self) -> str:
        return f"{self.kind} {self.value}".lower()


def judge(meant: Sequence[Thing], answer: Answer, calls: Iterable[ToolCall]) -> str:
    """`right`, `asked` or `wrong`; `meant` is empty where the words point at nothing, which is right if nothing is
    resolved."""
    told = resolved_things(answer)
    if not meant:
        return "wrong" if told else "right"
    wanted = {thing.words for thing in meant}
    ids = _ids(calls)
    if not told and not ids and answer.outcome is Outcome.CLARIFICATION:
        return "asked"
    allowed = {value.lower() for thing in meant for value in (thing.value, thing.incident) if value}
    if told - wanted or ids - allowed:
        return "wrong"
    named = {word.partition(" ")[2] for word in told} | ids
    return "right" if all(thing.value.lower() in named or thing.incident in ids for thing in meant) else "wrong"


def resolved_things(answer: Answer) -> set[str]:
    """What the footnote says that references stand for: {"incident 31", ...}."""
    for line in answer.footnote:
        if line.startswith("References: "):
            parts = re.split(r";?\s*“[^”]*” = ", line.removeprefix("References: "))
            return {each.strip().lower() for part in parts[1:] for each in part.split(", ")}
    return set()


def _ids(calls: Iterable[ToolCall]) -> set[str]:
    found: set[str] = set()
    for call in calls:
        if call.tool_name not in _DIRECTORY:
            arguments: Mapping[str, object] = call.arguments
            found |= {str(arguments[name]).lower() for name in ("incident", "alert_id", "entity") if name in arguments}
    return found
