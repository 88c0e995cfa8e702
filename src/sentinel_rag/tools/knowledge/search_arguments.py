"""The arguments of `search_knowledge_base` as a question to the library; a wrong one is told with what is close to it.

Names are taken in any case, since "high" can only mean "High"; nothing else is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from difflib import get_close_matches
from typing import Annotated, Any, TypeVar

import msgspec

from sentinel_rag.contracts.knowledge_tools import (
    COLLECTIONS,
    DEFAULT_HITS,
    MAX_DOCUMENT_CHARACTERS,
    MAX_HITS,
    MAX_LISTED,
    MAX_QUESTION_CHARACTERS,
)
from sentinel_rag.contracts.query_results import QueryFailedError, invalid_argument
from sentinel_rag.contracts.tool_schemas import CLASSIFICATION_REASONS, INCIDENT_STATUSES, SEVERITIES
from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.stores.port import Wanted
from sentinel_rag.language.attack import known_tactics, known_techniques
from sentinel_rag.tools.tool_answer import read_arguments

T = TypeVar("T")

TOOL = "search_knowledge_base"

_Name = Annotated[str, msgspec.Meta(max_length=MAX_DOCUMENT_CHARACTERS)] | None
_Text = Annotated[str, msgspec.Meta(max_length=200)] | None
_TECHNIQUE = re.compile(r"T\d{4}(\.\d{3})?")
_INCIDENT = re.compile(r"(?:incident[\s-]*|#)?(\d{1,10})(?:@([\w.-]{1,40}))?", re.IGNORECASE)
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
    found = _INCIDENT.fullmatch(text.strip())
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
