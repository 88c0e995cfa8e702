"""The entities of all alerts of an incident, each once under its best name, and how many there are of each kind."""

from __future__ import annotations

from collections.abc import Iterable

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.sentinel.alerts import Alert
from sentinel_rag.sentinel.entity_properties import LONGEST_TEXT, merged_properties
from sentinel_rag.sentinel.entity_tally import EntityTally
from sentinel_rag.sentinel.results import one_line


def incident_entities(alerts: Iterable[Alert]) -> tuple[dict[str, JsonValue], dict[str, JsonValue]]:
    """`{kind -> [{name, alerts, ...}]}`, most alerts first, and `{kind -> count}` of all there are.

    `alerts` of an item counts distinct alerts; its other keys are those of `entity_properties.merged_properties`.
    """
    tally = EntityTally()
    for alert in alerts:
        tally.add(alert.entities.entities, alert.alert_id)
    ranked = {kind: tally.ranked(kind) for kind in tally.kinds()}
    listed: dict[str, JsonValue] = {
        kind: [
            {
                "name": one_line(entity.name, LONGEST_TEXT),
                "alerts": len(entity.alerts),
                **merged_properties(entity.sightings),
            }
            for entity in entities
        ]
        for kind, entities in ranked.items()
    }
    return listed, {kind: len(entities) for kind, entities in ranked.items()}
