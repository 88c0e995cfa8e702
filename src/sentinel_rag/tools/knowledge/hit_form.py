"""A hit as the object that `contracts.knowledge_tools` describes, bounded in size whatever the document holds."""

from __future__ import annotations

from collections.abc import Mapping

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.knowledge_tools import CUT_MARK, MAX_HIT_CHARACTERS, MAX_HIT_ENTITIES
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.search import Hit

_LONGEST_NAME = 300
"""Characters of a title, a heading or an entity, as a hit shows them."""
_MOST_TAGS = 50


def hit_form(hit: Hit, characters: int = MAX_HIT_CHARACTERS) -> Mapping[str, JsonValue]:
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
