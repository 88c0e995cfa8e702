"""A property that the best fitting alert does not tell, but another alert of the incident does of the same thing.

The alert says which account or host it was; the incident's entities hold what all its alerts say of that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sentinel_rag.agent.offline.alert_ranking import NEAR_BEST
from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Fact
from sentinel_rag.agent.offline.attribute_catalogue import Attribute
from sentinel_rag.agent.offline.attributes import escape, values_of
from sentinel_rag.agent.offline.compositions.listed_items import alert_item
from sentinel_rag.agent.offline.conversation import ListItem
from sentinel_rag.agent.tool_runs import ToolRun

MOST_THINGS = 6


def say_of_other_alerts(
    writer: AnswerWriter,
    ranked: Sequence[tuple[float, ToolRun, int]],
    details: Sequence[ToolRun],
    attribute: Attribute,
) -> list[ListItem]:
    """One line for each thing of the best alerts whose property stands elsewhere in the incident; those alerts."""
    best = ranked[0][0]
    told: set[str] = set()
    listed: list[ListItem] = []
    for score, run, place in ranked:
        if score < NEAR_BEST * best or len(told) >= MOST_THINGS:
            break
        row = run.rows[place]
        entities = row.get("entities")
        for index, entity in enumerate(entities if isinstance(entities, list | tuple) else ()):
            if not isinstance(entity, Mapping) or str(entity.get("name")).lower() in told:
                continue
            for detail, pointers in _elsewhere(details, str(entity.get("kind")), str(entity.get("name")), attribute):
                writer.say(
                    "{} of {}, which alert {} names: {} (told by other alerts of the incident).",
                    Fact(attribute.label),
                    writer.exact(run, f"/rows/{place}/entities/{index}/name"),
                    writer.name(run, f"/rows/{place}/name"),
                    [writer.exact(detail, pointer) for pointer in pointers],
                )
                told.add(str(entity.get("name")).lower())
                listed.append(alert_item(row))
    return listed


def _elsewhere(
    details: Sequence[ToolRun], kind: str, name: str, attribute: Attribute
) -> Iterator[tuple[ToolRun, list[str]]]:
    for detail in details:
        base = f"/rows/0/entities/{escape(kind)}"
        members = detail.at(base)
        for place, member in enumerate(members if isinstance(members, list | tuple) else ()):
            if not isinstance(member, Mapping) or str(member.get("name")).lower() != name.lower():
                continue
            found = [f"{base}/{place}{pointer}" for pointer, _ in values_of(attribute, {**member, "kind": kind})]
            if found:
                yield detail, found
                return
