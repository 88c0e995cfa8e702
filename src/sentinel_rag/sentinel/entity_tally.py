"""Entities counted over alerts: one count for each alert, however often and under whatever spelling it names them.

Union-find over strong keys; afterwards each identity that has only weak keys joins the one merged group that owns the
same weak key, if there is exactly one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sentinel_rag.sentinel.entities import Entity
from sentinel_rag.sentinel.entity_identity import EntityIdentity, identity_of


@dataclass(slots=True)
class TalliedEntity:
    """One entity with the distinct alerts (SystemAlertId) that name it, and how each of them writes it."""

    kind: str
    name: str
    alerts: set[str] = field(default_factory=set)
    sightings: list[Entity] = field(default_factory=list)


class EntityTally:
    """Add entities with their alert, then read the entities of a kind, most alerts first."""

    def __init__(self) -> None:
        self._sightings: dict[str, list[tuple[EntityIdentity, Entity, str]]] = defaultdict(list)

    def add(self, entities: Iterable[Entity], alert_id: str) -> None:
        for entity in entities:
            self._sightings[entity.kind].append((identity_of(entity), entity, alert_id))

    def kinds(self) -> tuple[str, ...]:
        return tuple(sorted(self._sightings))

    def ranked(self, kind: str) -> list[TalliedEntity]:
        """All entities of `kind`, by distinct alerts falling, then by name."""
        sightings = self._sightings.get(kind, [])
        groups = merge_identities([identity for identity, _, _ in sightings])
        entities: dict[int, TalliedEntity] = {}
        names: dict[int, Counter[tuple[int, str]]] = defaultdict(Counter)
        for (identity, sighting, alert_id), group in zip(sightings, groups, strict=True):
            entity = entities.setdefault(group, TalliedEntity(kind, identity.name))
            entity.alerts.add(alert_id)
            entity.sightings.append(sighting)
            names[group][(identity.rank, identity.name)] += 1
        for group, entity in entities.items():
            # The best kind of name, then the commonest spelling, then a stable one.
            entity.name = max(names[group].items(), key=lambda item: (item[0][0], item[1], item[0][1]))[0][1]
        return sorted(entities.values(), key=lambda entity: (-len(entity.alerts), entity.name.casefold()))


def merge_identities(identities: Sequence[EntityIdentity]) -> list[int]:
    """A group number for each identity; equal numbers are one entity. All identities are of one kind."""
    parents = list(range(len(identities)))

    def root(index: int) -> int:
        while parents[index] != index:
            parents[index] = parents[parents[index]]
            index = parents[index]
        return index

    first_with: dict[str, int] = {}
    owners: dict[str, list[int]] = defaultdict(list)
    for index, identity in enumerate(identities):
        for key in identity.strong:
            parents[root(index)] = root(first_with.setdefault(key, index))
        if identity.strong:
            for key in identity.weak:
                owners[key].append(index)
    first_weak: dict[str, int] = {}
    for index, identity in enumerate(identities):
        if identity.strong:
            continue
        for key in identity.weak:
            groups = {root(owner) for owner in owners[key]}
            target = groups.pop() if len(groups) == 1 else first_weak.setdefault(key, index)
            parents[root(index)] = root(target)
    return [root(index) for index in range(len(identities))]
