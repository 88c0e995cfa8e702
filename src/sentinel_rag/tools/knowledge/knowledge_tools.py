"""`search_knowledge_base` over the store of this process: its arguments as a question to the library, a wrong one told
with what is close to it. Results are documented in `contracts.knowledge_tools`.

What the caller may not read is left out in the store's own queries, of the counts too, and what is said of an empty
answer depends on nothing else: to this caller it does not exist.

Names are taken in any case, since "high" can only mean "High"; nothing else is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from difflib import get_close_matches
from typing import Annotated, Any, TypeVar

import anyio
import anyio.to_thread
import msgspec

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.knowledge_tools import (
    COLLECTIONS,
    CUT_MARK,
    DEFAULT_HITS,
    KNOWLEDGE_TOOLS,
    MAX_DOCUMENT_CHARACTERS,
    MAX_HIT_CHARACTERS,
    MAX_HIT_ENTITIES,
    MAX_HITS,
    MAX_LISTED,
    MAX_LISTED_CHARACTERS,
    MAX_QUESTION_CHARACTERS,
)
from sentinel_rag.contracts.query_results import QueryFailedError, format_time, invalid_argument, notes_form
from sentinel_rag.contracts.servers import readers_in, row_labels_meta
from sentinel_rag.contracts.tool_schemas import CLASSIFICATION_REASONS, INCIDENT_STATUSES, SEVERITIES
from sentinel_rag.knowledge.documents import Collection, Facets
from sentinel_rag.knowledge.documents.incidents import incident_id
from sentinel_rag.knowledge.embedding import Embedder
from sentinel_rag.knowledge.incident_ingestion import StoredIncident, held_versions, version_from_text
from sentinel_rag.knowledge.search import (
    KnowledgeSearch,
    SearchAnswer,
    SearchHit,
    Similarity,
    by_words_alone,
    question_of,
)
from sentinel_rag.knowledge.stores.port import EmbeddingMismatchError, KnowledgeStore, StoredChunk, Wanted
from sentinel_rag.language.attack import known_tactics, known_techniques
from sentinel_rag.language.notes import CodedNote, note
from sentinel_rag.tools.knowledge.knowledge_base import KnowledgeBase, OpenedStore
from sentinel_rag.tools.mcp_frame import ToolAnswer, answer_of, read_arguments

T = TypeVar("T")

TOOL = "search_knowledge_base"

_Name = Annotated[str, msgspec.Meta(max_length=MAX_DOCUMENT_CHARACTERS)] | None
_Text = Annotated[str, msgspec.Meta(max_length=200)] | None
_TECHNIQUE = re.compile(r"T\d{4}(\.\d{3})?")
_INCIDENT_NUMBER = re.compile(r"(?:incident[\s-]*|#)?(\d{1,10})(?:@([\w.-]{1,40}))?", re.IGNORECASE)
_CLOSE = 0.6
_MOST_OFFERED = 5


class _Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    query: Annotated[str, msgspec.Meta(max_length=MAX_QUESTION_CHARACTERS)] | None = None
    collection: _Text = None
    severity: _Text = None
    status: _Text = None
    classification: _Text = None
    technique: _Text = None
    tactic: _Text = None
    since: _Text = None
    until: _Text = None
    like_incident: _Text = None
    document: _Name = None
    section: _Name = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=MAX_HITS)] | None = None


@dataclass(frozen=True, slots=True)
class LikeIncident:
    """The incident that is asked about; `workspace` is empty where it was not named."""

    number: int
    workspace: str = ""

    def __str__(self) -> str:
        return f"{self.number}@{self.workspace}" if self.workspace else str(self.number)


@dataclass(frozen=True, slots=True)
class KnowledgeQuery:
    """What is looked for: `query`, or more like the incident `like`, or both; at least one is there. Or `document`
    alone, which is read from `section` on, from its beginning where that is empty. Or the playbooks that there are,
    with `listed`, at most `limit`."""

    query: str | None
    like: LikeIncident | None
    wanted: Wanted
    limit: int
    document: str = ""
    section: str = ""
    listed: bool = False


def read_question(arguments: Mapping[str, Any], readers: frozenset[str]) -> KnowledgeQuery:
    """The question of a caller who may read as `readers`. Raises QueryFailedError that names the argument."""
    given = read_arguments(_Arguments, TOOL, arguments)
    if given.document is not None or given.section is not None:
        return _one_document(given, readers)
    query = (given.query or "").strip()
    like = _incident(given.like_incident)
    if given.query is None and like is None and _named(given) == ["collection"]:
        collections = _few("collection", given.collection, COLLECTIONS, Collection)
        if collections == {Collection.PLAYBOOKS}:
            most = MAX_LISTED if given.limit is None else given.limit
            return KnowledgeQuery(None, None, Wanted(readers=readers, collections=collections), most, listed=True)
    if not query and like is None:
        raise invalid_argument(
            "query",
            f"{TOOL} needs something to look for: query is {'missing' if given.query is None else 'blank'}.",
            "Give query in plain words, or like_incident with an incident's number.",
        )
    since, until = _moment("since", given.since), _moment("until", given.until)
    if since is not None and until is not None and since > until:
        raise invalid_argument("until", "until lies before since, so nothing can be in between.", "Exchange the two.")
    wanted = Wanted(
        readers=readers,
        collections=_few("collection", given.collection, COLLECTIONS, Collection) or frozenset(Collection),
        severities=_few("severity", given.severity, SEVERITIES, str),
        statuses=_few("status", given.status, INCIDENT_STATUSES, str),
        classifications=_few("classification", given.classification, tuple(CLASSIFICATION_REASONS), str),
        techniques=_technique(given.technique),
        tactics=_tactic(given.tactic),
        since=since,
        until=until,
    )
    return KnowledgeQuery(query or None, like, wanted, given.limit or DEFAULT_HITS)


def _one_document(given: _Arguments, readers: frozenset[str]) -> KnowledgeQuery:
    """A document that is read, which nothing else can go with."""
    document = (given.document or "").strip()
    if not document:
        raise invalid_argument(
            "document", "section is a part of a document, and document names none.", "Give document."
        )
    beside = [name for name in _named(given) if name not in ("document", "section")]
    if beside:
        raise invalid_argument(
            beside[0],
            f"document reads one document whole, so {beside[0]} cannot go with it.",
            "Leave document out to search, or the rest out to read.",
        )
    limit = given.limit or DEFAULT_HITS
    return KnowledgeQuery(None, None, Wanted(readers=readers), limit, document, (given.section or "").strip())


def _named(given: _Arguments) -> list[str]:
    """The arguments that were given, beside how many hits to return."""
    return [name for name in given.__struct_fields__ if name != "limit" and getattr(given, name) is not None]


def _few(field: str, text: str | None, allowed: Sequence[str], kind: Callable[[str], T]) -> frozenset[T]:
    """The one value of a filter, spelled as it is stored; none where it is left out."""
    if text is None:
        return frozenset()
    spelled = {name.casefold(): name for name in allowed}
    found = spelled.get(text.strip().casefold())
    if found is None:
        close = get_close_matches(text.casefold(), spelled, 1, _CLOSE)
        meant = f" Did you mean {spelled[close[0]]}?" if close else ""
        raise invalid_argument(
            field,
            f"{field} cannot be {_shown(text)}.{meant}",
            f"Use one of: {', '.join(allowed)}.",
            allowed=tuple(allowed),
        )
    return frozenset({kind(found)})


def _technique(text: str | None) -> frozenset[str]:
    if text is None:
        return frozenset()
    name = text.strip().upper()
    if _TECHNIQUE.fullmatch(name):
        return frozenset({name})
    known = known_techniques()
    said = text.strip().casefold()
    named = [each for each in known.values() if said and said in each.name.casefold()][:_MOST_OFFERED]
    offered = ", ".join(f"{each.id} ({each.name})" for each in named)
    raise invalid_argument(
        "technique",
        f"technique cannot be {_shown(text)}: it is an ATT&CK id such as T1566 or T1566.001.",
        f"By that name there are: {offered}." if named else "Give the id, or put the name into query.",
        allowed=tuple(each.id for each in named),
    )


def _tactic(text: str | None) -> frozenset[str]:
    return _few("tactic", None if text is None else re.sub(r"[\s_-]", "", text), known_tactics(), str)


def _incident(text: str | None) -> LikeIncident | None:
    if text is None:
        return None
    found = _INCIDENT_NUMBER.fullmatch(text.strip())
    if found is None:
        raise invalid_argument(
            "like_incident",
            f"like_incident cannot be {_shown(text)}: it is the number of a Sentinel incident, such as 42 or 42@prod.",
            "Look the number up with query_incidents.",
        )
    return LikeIncident(int(found[1]), (found[2] or "").lower())


def _moment(field: str, text: str | None) -> datetime | None:
    """A time with its zone; a date alone is its first moment, or as `until` its last, in UTC."""
    if text is None:
        return None
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        return _zoned(field, text)
    return datetime.combine(day, time.min if field == "since" else time.max, UTC)


def _zoned(field: str, text: str) -> datetime:
    fault: QueryFailedError = invalid_argument(
        field, f"{field} cannot be {_shown(text)}.", "Write ISO 8601 with a zone, such as 2026-11-28T09:30:00Z."
    )
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise fault from None
    if moment.tzinfo is None:
        raise fault
    return moment


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")


# Incidents of a store that are another workspace's, and would be taken for those of the workspaces that are served.
# Each workspace counts from 1. In a store that homes share, another's may bear the name of this home's; in a store of
# one home, what was read in of the sample estate stays until the person's own workspace is read in. Neither is shown:
# whoever ingests is told what helps.
class Namesakes:
    """Knows the workspaces that are served: by name in a store of one home, by `workspace_ids` (their ids by name) in a
    shared one. Without either, nothing is another's."""

    def __init__(self, served: Sequence[str], workspace_ids: Mapping[str, str]) -> None:
        self._served = frozenset(served)
        self._ids = workspace_ids
        self._ours: set[str] = set()

    def among(self, store: KnowledgeStore, document_ids: Iterable[str]) -> dict[str, str]:
        """Those of the documents that are another workspace's incidents, each with that workspace's name. One of an
        earlier version, or of another origin, tells no workspace and is none of them."""
        asked = [document for document in dict.fromkeys(document_ids) if self._is_open(document)]
        found = {}
        for entry in store.entries(Collection.INCIDENTS, asked):
            document, version = entry.document.id, version_from_text(entry.document.etag)
            if version is None:
                continue
            if self._is_other(_name_in(document), version):
                found[document] = version.workspace
            elif version.workspace_id:
                self._ours.add(_name_in(document))
        return found

    def own(self, store: KnowledgeStore) -> int:
        """How many incidents of the served workspaces a store of one home holds."""
        return sum(version.workspace in self._served for version in held_versions(store).values())

    def of(self, store: KnowledgeStore, document_id: str, workspace: str) -> bool:
        """Whether a store of one home holds this incident of `workspace` under an id that does not name it, as it does
        where that one alone was read in."""
        held = () if self._ids else store.entries(Collection.INCIDENTS, [document_id])
        versions = [version_from_text(entry.document.etag) for entry in held]
        return any(version is not None and version.workspace == workspace for version in versions)

    def remark(self, names: Iterable[str]) -> CodedNote:
        """What is said where hits of workspaces of these names were left out."""
        return note("namesakes_left_out" if self._ids else "other_workspaces_left_out", workspaces=sorted(set(names)))

    def _is_open(self, document_id: str) -> bool:
        """All of a name are of one workspace in a shared store, so it is asked once for each name."""
        if not document_id.startswith("incident-"):
            return False
        name = _name_in(document_id)
        return name in self._ids and name not in self._ours if self._ids else bool(self._served)

    def _is_other(self, name: str, version: StoredIncident) -> bool:
        if self._ids:
            return version.workspace_id not in ("", self._ids[name])
        return version.workspace not in self._served


def _name_in(document_id: str) -> str:
    return document_id.partition("@")[2]


AT_ONCE = 2
"""Searches that run at once; a model takes all cores anyway."""
PER_DOCUMENT = 3
_INCIDENT = re.compile(r"incident-\d{1,10}(?:@[\w.-]{1,40})?")
"""The id of a past incident; every other document is a playbook, by its file."""
INGEST_COMMAND = "sentinel knowledge ingest"
MOST_SECTIONS = 50


class KnowledgeTools:
    """Answers the tools of `contracts.KNOWLEDGE_TOOLS`."""

    def __init__(self, base: KnowledgeBase) -> None:
        self._base = base
        self._threads = anyio.CapacityLimiter(AT_ONCE)
        self._namesakes = Namesakes(base.workspaces, base.workspace_ids)

    async def call(self, name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any]) -> ToolAnswer:
        """Run a tool by its name for the caller whose readers the gateway tells in `meta`. Never raises for a bad
        argument or for what became of the store."""

        async def run() -> ToolAnswer:
            asked = read_question(arguments, readers_in(meta))
            return await anyio.to_thread.run_sync(self._answer, asked, limiter=self._threads)

        return await answer_of(name, KNOWLEDGE_TOOLS, run)

    def _answer(self, asked: KnowledgeQuery) -> ToolAnswer:
        opened = self._base.opened()
        readable = opened.store.readable(asked.wanted.readers)
        hits: Sequence[SearchHit]
        characters = MAX_HIT_CHARACTERS
        if asked.listed:
            characters = MAX_LISTED_CHARACTERS
            hits, remarks = playbook_list(opened.store, asked, readable[Collection.PLAYBOOKS])
        elif asked.document:
            if self._namesakes.among(opened.store, [asked.document]):
                raise _no_document()
            hits, remarks, characters = _parts_of(asked, opened)
        else:
            alike = _chunks_of(asked, opened, self._base.workspaces, self._namesakes)
            found = self._search(asked, opened, alike)
            others = self._namesakes.among(opened.store, (hit.chunk.document_id for hit in found.hits))
            hits = [hit for hit in found.hits if hit.chunk.document_id not in others]
            if others and not self._base.workspace_ids:
                own = self._namesakes.own(opened.store)
                readable = {**readable, Collection.INCIDENTS: min(own, readable[Collection.INCIDENTS])}
            remarks = [*found.remarks, *_remarks(asked, hits, readable)]
            if others:
                remarks.append(self._namesakes.remark(others.values()))
        as_of = self._base.incidents_as_of()
        value: dict[str, JsonValue] = {
            "query": asked.query,
            **({} if asked.like is None else {"like_incident": str(asked.like)}),
            **({"document": asked.document} if asked.document else {}),
            "total": len(hits),
            "hits": [hit_form(hit, characters) for hit in hits],
            **notes_form("remarks", remarks),
            "freshness": {
                "incidents": readable[Collection.INCIDENTS],
                "playbooks": readable[Collection.PLAYBOOKS],
                "incidents_as_of": None if as_of is None else format_time(as_of),
            },
        }
        return ToolAnswer(value, f"{len(hits)} hits.", meta=row_labels_meta(hit.label for hit in hits))

    def _search(self, asked: KnowledgeQuery, opened: OpenedStore, alike: Sequence[StoredChunk]) -> SearchAnswer:
        query = question_of(alike, asked.query) if alike else asked.query or ""
        like = _like(asked, alike)
        itself = (alike[0].collection, alike[0].document_id) if alike else None

        def search(embedder: Embedder | None) -> SearchAnswer:
            store = KnowledgeSearch(opened.store, embedder)

            def ranked(wanted: Wanted, limit: int, per_document: int) -> SearchAnswer:
                return store.search(query, wanted, limit=limit, per_document=per_document, like=like, without=itself)

            if not alike or len(asked.wanted.collections) == 1 or asked.limit == 1:
                return ranked(asked.wanted, asked.limit, PER_DOCUMENT)
            # What happened before and what is to be done are two questions: neither takes the places of the other.
            steps = ranked(replace(asked.wanted, collections=frozenset({Collection.PLAYBOOKS})), asked.limit // 2, 1)
            left = asked.limit - len(steps.hits)
            past = ranked(replace(asked.wanted, collections=frozenset({Collection.INCIDENTS})), left, PER_DOCUMENT)
            return SearchAnswer((*past.hits, *steps.hits), tuple(dict.fromkeys((*past.remarks, *steps.remarks))))

        embedder = self._base.embedder()
        because = ""
        if embedder is None and opened.lacking:
            because = f"{opened.lacking} {opened.next_step}"
        elif embedder is None and opened.embedder is not None:
            because = f"The store holds no vectors yet; make them with: {INGEST_COMMAND}"
        try:
            found = search(embedder)
        except EmbeddingMismatchError as mismatch:
            found, because = search(None), f"{mismatch} {mismatch.next_step}"
        if not because:
            return found
        others = (remark for remark in found.remarks if remark.code != "searched_by_words")
        return SearchAnswer(found.hits, (by_words_alone(because=because), *others))


def _parts_of(asked: KnowledgeQuery, opened: OpenedStore) -> tuple[list[SearchHit], list[CodedNote], int]:
    """The parts of one document in their order, a remark if it goes on, and how much of each part is told. Where no
    section, or more than one, fits, those that there are come instead. Raises QueryFailedError if the caller may read
    no such document."""
    collection = Collection.INCIDENTS if _INCIDENT.fullmatch(asked.document) else Collection.PLAYBOOKS
    chunks = opened.store.document_chunks(collection, asked.document, asked.wanted.readers)
    if not chunks:
        raise _no_document()
    first: dict[tuple[str, ...], int] = {}
    for place, chunk in enumerate(chunks):
        first.setdefault(chunk.path, place)
    fitting = _sections(asked, list(first)) if asked.section else [chunks[0].path]
    if len(fitting) != 1:
        # As hits and in no refusal: a refusal carries no label, and a document may say anything.
        listed = [SearchHit(chunks[first[path]], 0.0, NOT_RANKED) for path in fitting or first]
        told = note("several_sections" if fitting else "no_such_section")
        return listed[:MOST_SECTIONS], [told], MAX_LISTED_CHARACTERS
    begin = first[fitting[0]]
    shown = chunks[begin:][: asked.limit]
    hits = [SearchHit(chunk, 0.0, NOT_RANKED) for chunk in shown]
    more = len(chunks) - begin - len(shown)
    remarks = [note("document_goes_on", count=more)] if more else []
    if any(len(chunk.text) > MAX_HIT_CHARACTERS for chunk in shown):
        remarks.append(note("parts_cut", characters=MAX_HIT_CHARACTERS))
    return hits, remarks, MAX_HIT_CHARACTERS


def _sections(asked: KnowledgeQuery, paths: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """The sections that `asked` names: by the whole path, before it the document as a citation has it, or the end of
    the path."""
    wanted = [part.strip().casefold() for part in asked.section.split(">")]
    if wanted[0] == asked.document.casefold() and len(wanted) > 1:
        wanted = wanted[1:]
    told = {path: [part.strip().casefold() for part in " > ".join(path).split(">")] for path in paths}
    whole = [path for path in paths if told[path] == wanted]
    return whole or [path for path in paths if told[path][-len(wanted) :] == wanted]


def _no_document() -> QueryFailedError:
    return invalid_argument(
        "document", "There is no such document.", "Search for it by words; a hit's document_id is its name."
    )


def _chunks_of(
    asked: KnowledgeQuery, opened: OpenedStore, workspaces: Sequence[str], namesakes: Namesakes
) -> Sequence[StoredChunk]:
    """The incident that the hits shall be like; none where none is asked for. Raises QueryFailedError if it is not
    there, or several workspaces have one with that number."""
    like = asked.like
    if like is None:
        return ()
    found: dict[str, Sequence[StoredChunk]] = {}
    unnamed = incident_id(like.number, "")
    for workspace in [like.workspace] if like.workspace else ["", *workspaces]:
        chunks = opened.store.document_chunks(
            Collection.INCIDENTS, incident_id(like.number, workspace), asked.wanted.readers
        )
        if not chunks and like.workspace and namesakes.of(opened.store, unnamed, workspace):
            chunks = opened.store.document_chunks(Collection.INCIDENTS, unnamed, asked.wanted.readers)
        if chunks and not namesakes.among(opened.store, [chunks[0].document_id]):
            found[f"{like.number}@{workspace}" if workspace else str(like.number)] = chunks
    if not found:
        raise invalid_argument(
            "like_incident",
            f"Incident {like} is not in the knowledge base.",
            f"Describe it in query instead, or bring past incidents up to date: {INGEST_COMMAND}",
        )
    if len(found) > 1:
        raise invalid_argument(
            "like_incident",
            f"Incident {like} may be one of several: {', '.join(found)}.",
            "Say which of them.",
            allowed=tuple(found),
        )
    (chunks,) = found.values()
    return chunks


def _like(asked: KnowledgeQuery, alike: Sequence[StoredChunk]) -> Facets:
    """What a hit may share with the question beside its words: the incident's facets, and what was filtered by."""
    facets = alike[0].facets if alike else Facets()
    return replace(
        facets,
        techniques=(*facets.techniques, *sorted(asked.wanted.techniques)),
        tactics=(*facets.tactics, *sorted(asked.wanted.tactics)),
    )


def _remarks(
    asked: KnowledgeQuery, hits: Sequence[SearchHit], readable: Mapping[Collection, int]
) -> Iterator[CodedNote]:
    cut = sum(len(hit.chunk.text) > MAX_HIT_CHARACTERS for hit in hits)
    if cut:
        yield note("hits_cut", count=cut, characters=MAX_HIT_CHARACTERS)
    empty = [each for each in sorted(asked.wanted.collections) if not readable[each]]
    if Collection.INCIDENTS in empty:
        yield note("no_past_incidents", command=INGEST_COMMAND)
    if Collection.PLAYBOOKS in empty:
        yield note("no_playbooks", command=INGEST_COMMAND)
    if not hits and len(empty) < len(asked.wanted.collections):
        yield note("nothing_fits")


# A hit as the object that `contracts.knowledge_tools` describes, bounded in size whatever the document holds.


_LONGEST_NAME = 300
"""Characters of a title, a heading or an entity, as a hit shows them."""
_MOST_TAGS = 50


def hit_form(hit: SearchHit, characters: int = MAX_HIT_CHARACTERS) -> Mapping[str, JsonValue]:
    """One entry of `hits`, with at most so many characters of its text."""
    chunk, facets, why = hit.chunk, hit.chunk.facets, hit.why
    incident = chunk.collection is Collection.INCIDENTS
    shared = [_short(name) for name in why.entities]
    entities = dict.fromkeys([*shared, *map(_short, facets.entities[: MAX_HIT_ENTITIES * 2])])
    return {
        "citation": _short(hit.citation),
        "collection": chunk.collection.value,
        "document_id": _short(chunk.document_id),
        "title": _short(chunk.title),
        "section": "" if incident else _short(" > ".join(chunk.path)),
        "text": cut(chunk.text, characters),
        # Finer ones would tell how common a word is in documents that this caller may not read: BM25 weighs by that.
        "score": round(hit.score, 1),
        "severity": facets.severity,
        "status": facets.status,
        "classification": facets.classification,
        "techniques": list(facets.techniques[:_MOST_TAGS]),
        "tactics": list(facets.tactics[:_MOST_TAGS]),
        "time": None if facets.time is None else format_time(facets.time),
        "entities": list(entities)[:MAX_HIT_ENTITIES],
        "why": {
            "by_words": why.by_words,
            "by_meaning": why.by_meaning,
            "words": list(why.words[:_MOST_TAGS]),
            "techniques": list(why.techniques[:_MOST_TAGS]),
            "entities": shared[:MAX_HIT_ENTITIES],
            "tactics": list(why.tactics[:_MOST_TAGS]),
        },
    }


def cut(text: str, characters: int) -> str:
    """`text`, or its beginning with the mark that it goes on."""
    return text if len(text) <= characters else text[: characters - len(CUT_MARK)] + CUT_MARK


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


# The playbooks that a caller may read, as hits: each by its file, with its first part.


MOST_LOOKED_AT = 1_000
"""Documents; where a caller may read few of very many, the list ends here and says so."""
NOT_RANKED = Similarity(None, None, (), (), ())


def playbook_list(
    store: KnowledgeStore, asked: KnowledgeQuery, readable: int
) -> tuple[list[SearchHit], list[CodedNote]]:
    """At most `asked.limit` playbooks, and a remark if the caller may read more; `readable` is how many that are."""
    hits: list[SearchHit] = []
    for name in sorted(store.versions(Collection.PLAYBOOKS))[:MOST_LOOKED_AT]:
        if len(hits) == min(asked.limit, readable):
            break
        chunks = store.document_chunks(Collection.PLAYBOOKS, name, asked.wanted.readers)
        if chunks:
            hits.append(SearchHit(chunks[0], 0.0, NOT_RANKED))
    more = readable - len(hits)
    return hits, [note("more_playbooks", count=more)] if more > 0 else []
