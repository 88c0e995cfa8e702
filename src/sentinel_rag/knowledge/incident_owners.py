"""Which incidents of a store are those of one workspace, by its id where several people share the store.

A name says nothing there: everybody's first workspace is `default`. What an earlier version stored says only the name;
it is a workspace's own if its list shows the same incidents, by their GUIDs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.incident_versions import IncidentVersion, version_from_text
from sentinel_rag.knowledge.stores.port import KnowledgeStore

Held = Mapping[str, IncidentVersion]
"""Versions by document id."""


@dataclass(frozen=True, slots=True)
class HeldIncidents:
    """What a store holds for one workspace: `own` is surely its own, `unclaimed` has its name and tells no id."""

    own: Held
    unclaimed: Held

    def with_claimed(self, name: str, listed: Mapping[str, IncidentVersion]) -> HeldIncidents:
        """The same once it is known what the workspace called `name` lists: all that is unclaimed is its own if some of
        it is in the list. Raises ConfigurationError if an incident of another workspace stands where one of these
        belongs."""
        guids = {version.name.lower() for version in listed.values()}
        for document, version in self.unclaimed.items():
            if document in listed and listed[document].name.lower() != version.name.lower():
                raise _taken(name)
        if any(version.name.lower() in guids for version in self.unclaimed.values()):
            return HeldIncidents({**self.own, **self.unclaimed}, {})
        return self


def held_versions(store: KnowledgeStore) -> dict[str, IncidentVersion]:
    """Of all incidents of a store that a way of reading like this one put there."""
    return dict(_known(store))


def _known(store: KnowledgeStore) -> Iterator[tuple[str, IncidentVersion]]:
    for document, held in store.versions(Collection.INCIDENTS).items():
        version = version_from_text(held.etag)
        if version is not None:
            yield document, version


def incidents_of(store: KnowledgeStore, name: str, workspace_id: str) -> HeldIncidents:
    """Those of the workspace called `name`. `workspace_id` is empty in a store of one home, where the name is enough.

    Raises ConfigurationError if the store knows another workspace by this name, or this one by another.
    """
    held = held_versions(store)
    named = {document: version for document, version in held.items() if version.workspace == name}
    if not workspace_id:
        return HeldIncidents(named, {})
    if any(version.workspace_id not in ("", workspace_id) for version in named.values()):
        raise _taken(name)
    for version in held.values():
        if version.workspace_id == workspace_id and version.workspace != name:
            raise ConfigurationError(
                f"The shared knowledge store knows the workspace {name} as {version.workspace}, and one workspace has "
                "one name there.",
                next_step=f"Name it {version.workspace} in this home too (see docs/workspaces.md).",
            )
    return HeldIncidents(
        {document: version for document, version in named.items() if version.workspace_id},
        {document: version for document, version in named.items() if not version.workspace_id},
    )


def _taken(name: str) -> ConfigurationError:
    return ConfigurationError(
        f"The shared knowledge store holds incidents of another workspace that is named {name} too, so these were not "
        "read in.",
        next_step=(
            "Give this workspace a name that is free: on Azure SENTINEL_WORKSPACE_ID=NAME=GUID (the Resource ID "
            "likewise); an embedded one by the name of its folder and SENTINEL_WORKSPACE=NAME."
        ),
    )
