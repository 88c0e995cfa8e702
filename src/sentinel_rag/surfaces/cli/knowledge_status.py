"""`sentinel knowledge status`: what the store holds, as of when, and what the next ingest would do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sentinel_rag.app.knowledge_access import (
    knowledge_place,
    open_embedder,
    open_knowledge,
    playbook_owner,
    shipped_playbooks,
    workspace_id_in_store,
)
from sentinel_rag.app.knowledge_zone import ingest_files
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.settings import load_settings
from sentinel_rag.surfaces.cli._safe_text import safe_cell

if TYPE_CHECKING:
    from sentinel_rag.knowledge.ingest_record import WorkspaceRecord
    from sentinel_rag.knowledge.stores import Version

INGEST = "sentinel knowledge ingest"


@dataclass(frozen=True, slots=True)
class Newest:
    """The incident that was created last, of those that the store holds, and how many of them lack details."""

    incident: str
    created: datetime
    partial: int


def status(*, as_json: bool) -> int:
    """Print it; 0 whatever it is."""
    from sentinel_rag.knowledge.documents import Collection
    from sentinel_rag.knowledge.ingest_record import incidents_as_of, playbooks_folder, read_ingest_record

    settings = load_settings()
    with open_embedder(settings.embeddings) as in_use, open_knowledge(settings) as store:
        state = store.state()
        incidents = store.versions(Collection.INCIDENTS)
        playbooks = store.versions(Collection.PLAYBOOKS)
    held = state.documents[Collection.INCIDENTS]
    files = ingest_files(settings)
    as_of = incidents_as_of(files.record, held=held)
    record = read_ingest_record(files.record) if as_of is not None or held else ()
    here = {
        each.workspace: _own(incidents, each.workspace, workspace_id_in_store(settings, each.workspace))
        for each in record
    }
    place = knowledge_place(settings)
    space = None if in_use.embedder is None else in_use.embedder.space
    model = None if space is None else str(space)
    newest = _newest(incidents)
    folder = playbooks_folder(files.playbooks) or shipped_playbooks()
    owner = playbook_owner(settings, folder)
    owned = {owner.path_of(name): version for name, version in owner.of(playbooks).items()}
    words_only = state.space is None and space is not None
    pending = tuple(_pending(record, newest, folder, owned, words_only=words_only))
    if as_json:
        collections = {
            each.value: {"documents": state.documents[each], "chunks": state.chunks[each]} for each in state.documents
        }
        told: dict[str, JsonValue] = {
            "store": place,
            "collections": dict(collections),
            "vectors": None if state.space is None else str(state.space),
            "model": model,
            "incidents_as_of": None if as_of is None else as_of.isoformat(),
            "newest_incident": None if newest is None else newest.incident,
            "workspaces": [_record(each, here[each.workspace]) for each in record],
            "next_ingest": list(pending),
        }
        print(json.dumps(told, indent=2))
        return 0
    print(f"store    {safe_cell(place)}")
    for each, documents in state.documents.items():
        print(f"{each.value:<20} {documents:,} documents, {state.chunks[each]:,} chunks")
    if newest is not None:
        print(f"newest   {safe_cell(newest.incident)}, created {newest.created:%Y-%m-%d %H:%M} UTC")
    for workspace in record:
        print(f"as of    {_as_of(workspace, here[workspace.workspace])}")
    print(f"vectors  {'none: found by words only' if state.space is None else safe_cell(str(state.space))}")
    lacking = f"{in_use.lacking} {in_use.next_step}" if in_use.lacking else "none"
    print(f"model    {safe_cell(model or lacking)}")
    for sentence in pending:
        print(f"next     {safe_cell(sentence)}")
    if space is not None and state.space not in (None, space):
        print("Vectors and model differ. Run: sentinel knowledge rebuild")
    return 0


def _newest(incidents: Mapping[str, Version]) -> Newest | None:
    from sentinel_rag.knowledge.incident_versions import version_from_text

    partial = 0
    newest: tuple[datetime, str] | None = None
    for name, held in incidents.items():
        version = version_from_text(held.etag)
        if version is None:
            continue
        partial += not version.whole
        created = version.created_at
        if created is not None and (newest is None or (created, name) > newest):
            newest = (created, name)
    return None if newest is None else Newest(newest[1], newest[0], partial)


def _own(incidents: Mapping[str, Version], workspace: str, workspace_id: str) -> int:
    """How many incidents of a workspace the store holds now; the record may know what somebody has removed since."""
    from sentinel_rag.knowledge.incident_versions import version_from_text

    versions = (version_from_text(held.etag) for held in incidents.values())
    return sum(
        version.workspace == workspace and (not workspace_id or version.workspace_id in ("", workspace_id))
        for version in versions
        if version is not None
    )


def _pending(
    record: Sequence[WorkspaceRecord],
    newest: Newest | None,
    folder: Path,
    playbooks: Mapping[str, Version],
    *,
    words_only: bool,
) -> Iterator[str]:
    """What `sentinel knowledge ingest` would do now, as far as this machine can tell without asking anybody."""
    if not folder.is_dir():
        yield f"{INGEST} finds no folder {folder}, which the playbooks were read from; name another one."
    else:
        changed = _changed_playbooks(folder, playbooks)
        if changed:
            yield f"{INGEST} reads {changed} playbooks of {folder} anew."
    if not record:
        yield f"{INGEST} reads in past incidents, which was never done for this store."
    elif newest is not None and newest.partial:
        yield f"{INGEST} reads alerts, entities and comments of {newest.partial:,} incidents that lack them for now."
    if words_only:
        yield f"{INGEST} makes vectors, so that all of it is found by meaning too."


def _changed_playbooks(folder: Path, held: Mapping[str, Version]) -> int:
    """How many of the folder are new or changed."""
    from sentinel_rag.knowledge.documents import read_folder

    read = [each.document for each in read_folder(folder) if each.document is not None]
    return sum(each.id not in held or held[each.id].content_hash != each.content_hash for each in read)


def _as_of(record: WorkspaceRecord, held: int) -> str:
    name = safe_cell(record.workspace)
    when = "never read to the end" if record.as_of is None else f"{record.as_of:%Y-%m-%d %H:%M} UTC"
    told = f"{when}: workspace {name}, {held:,} incidents, {record.days} days back"
    if record.fault:
        told += f"; the last try at {record.tried:%Y-%m-%d %H:%M} UTC failed: {safe_cell(record.fault)}"
    return told


def _record(record: WorkspaceRecord, held: int) -> JsonValue:
    return {
        "workspace": record.workspace,
        "as_of": None if record.as_of is None else record.as_of.isoformat(),
        "tried": record.tried.isoformat(),
        "incidents": held,
        "partial": record.partial,
        "days": record.days,
        "fault": record.fault,
    }
