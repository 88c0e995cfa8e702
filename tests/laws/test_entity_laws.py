"""Whatever a row holds in Entities: reading it never fails, every entity has a name, merging is a partition."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.contracts.tool_schemas import ENTITY_KINDS
from sentinel_rag.sentinel.entities.entities import (
    EntityTally,
    entity_name,
    identifying_values,
    identity_of,
    merge_identities,
    parse_entities,
)

SCALARS = (
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "1", "a", "A", "a.b", "S-1-5-21-1-2-3-4"])
)
PARTS = ("ImageFile", "Key", "FileHashes")
NAMES = ("Name", "HostName", "DnsDomain", "FQDN", "UPNSuffix", "NTDomain", "Sid", "AadUserId", "UserPrincipalName")
KEYS = st.sampled_from(("$id", "$ref", "Type", "Url", "Address", "CommandLine", "Directory", *PARTS, *NAMES))
KINDS = st.sampled_from([*ENTITY_KINDS, "novelty", "", 5, None])
OBJECTS = st.deferred(
    lambda: st.builds(
        lambda kind, rest: {"Type": kind, **rest},
        KINDS,
        st.dictionaries(KEYS, SCALARS | OBJECTS | st.lists(SCALARS | OBJECTS, max_size=2), max_size=5),
    )
)
ELEMENTS = st.lists(OBJECTS | st.builds(lambda i: {"$ref": str(i)}, st.integers(0, 3)) | SCALARS, max_size=6)


@given(elements=ELEMENTS | SCALARS | OBJECTS)
def test_reading_never_fails_and_every_entity_has_a_name(elements: Any) -> None:
    parsed = parse_entities(json.dumps(elements))
    for entity in parsed.entities:
        assert entity.kind
        assert entity_name(entity)
        assert identity_of(entity).strong or identity_of(entity).weak
        assert all(value == value.casefold() and value for value in identifying_values(entity))


@given(elements=ELEMENTS)
def test_pointing_at_an_entity_again_changes_nothing(elements: list[Any]) -> None:
    before = parse_entities(json.dumps(elements))
    ids = [element.properties["$id"] for element in before.entities if element.properties.get("$id") is not None]
    again = parse_entities(json.dumps([*elements, *({"$ref": known} for known in ids)]))
    assert [entity.properties for entity in again.entities] == [entity.properties for entity in before.entities]
    assert again.dangling == before.dangling


@given(rows=st.lists(ELEMENTS, max_size=4))
def test_an_entity_never_counts_more_alerts_than_there_are(rows: list[list[Any]]) -> None:
    tally = EntityTally()
    seen: set[tuple[str, str]] = set()
    for number, elements in enumerate(rows):
        entities = parse_entities(json.dumps(elements)).entities
        tally.add(entities, str(number))
        seen.update((entity.kind, str(number)) for entity in entities)
    for kind in tally.kinds():
        ranked = tally.ranked(kind)
        assert all(1 <= len(entity.alerts) <= len(rows) for entity in ranked)
        assert {(kind, alert) for entity in ranked for alert in entity.alerts} == {
            pair for pair in seen if pair[0] == kind
        }


@given(elements=ELEMENTS)
def test_equal_strong_keys_are_one_entity(elements: list[Any]) -> None:
    identities = [
        identity_of(entity) for entity in parse_entities(json.dumps(elements)).entities if entity.kind == "account"
    ]
    groups = merge_identities(identities)
    for one, group in zip(identities, groups, strict=True):
        for other, other_group in zip(identities, groups, strict=True):
            if one.strong & other.strong:
                assert group == other_group
