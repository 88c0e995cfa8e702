"""Queries: filtered first, then ranked by words, by vector, or listed by a field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from tests.support.azure_search.definitions import VECTOR, Field
from tests.support.azure_search.documents import Index, vector_length
from tests.support.azure_search.faults import ServiceFaultError, invalid, unknown_here
from tests.support.azure_search.odata import parsed
from tests.support.azure_search.words import bm25, phrases

MOST_ROWS = 1_000
MOST_SKIPPED = 100_000
_KNOWN = frozenset(
    {
        "search", "searchFields", "queryType", "searchMode", "filter", "orderby", "select", "top", "skip", "count",
        "vectorQueries", "vectorFilterMode", "sessionId",
    }
)  # fmt: skip


def answer(index: Index, query: Mapping[str, Any], *, most_rows: int = MOST_ROWS) -> dict[str, Any]:
    """The answer to a query. Raises ServiceFaultError for one that the service would refuse."""
    for name in query.keys() - _KNOWN:
        raise invalid(f"The property '{name}' does not exist on type 'SearchRequest', or not in this double.")
    top, skip = _number(query, "top", 50, 2**31), _number(query, "skip", 0, MOST_SKIPPED)
    selected = _selected(index, query)
    holds = parsed(query["filter"], index.fields) if query.get("filter") else (lambda _: True)
    kept = {key: document for key, document in index.found.items() if holds(document)}
    if query.get("vectorQueries"):
        scores = _by_vector(index, query, kept)
    elif query.get("search") in (None, "", "*"):
        scores = dict.fromkeys(kept, 1.0)
    else:
        scores = _by_words(index, query, kept)
    order = _ordered(index, query, scores)
    page = order[skip : skip + min(top, most_rows)]
    told: dict[str, Any] = {
        "value": [{"@search.score": scores[key], **{name: kept[key].get(name) for name in selected}} for key in page]
    }
    if query.get("count"):
        told["@odata.count"] = len(order)
    if len(page) < min(top, len(order) - skip):
        told["@search.nextPageParameters"] = {**query, "skip": skip + len(page), "top": top - len(page)}
    return told


def _by_words(index: Index, query: Mapping[str, Any], kept: Mapping[str, Any]) -> dict[str, float]:
    if query.get("queryType", "simple") != "simple" or query.get("searchMode", "any") != "any":
        raise unknown_here("another query syntax than simple, or searchMode all")
    named = [name.strip() for name in (query.get("searchFields") or "").split(",") if name.strip()]
    fields = named or [name for name, field in index.fields.items() if field.searchable and field.type != VECTOR]
    scores: dict[str, float] = {}
    for name in fields:
        field = index.fields.get(name)
        if field is None or not field.searchable or field.type == VECTOR:
            raise invalid(f"The field '{name}' in the search field list is not searchable.", "searchFields")
        texts = {key: fields_of[name] for key, fields_of in index.texts.items() if name in fields_of}
        for key, score in bm25(phrases(query["search"], field.token_filters), texts).items():
            scores[key] = scores.get(key, 0.0) + score
    return {key: score for key, score in scores.items() if key in kept}


def _by_vector(index: Index, query: Mapping[str, Any], kept: Mapping[str, Any]) -> dict[str, float]:
    (told, *more) = query["vectorQueries"]
    if more or query.get("search") is not None:
        raise unknown_here("several rankings in one query")
    for name in told.keys() - {"kind", "vector", "fields", "k", "exhaustive"}:
        raise unknown_here(f"the part {name!r} of a vector query")
    field: Field | None = index.fields.get(str(told.get("fields")))
    if told.get("kind") != "vector" or field is None or field.type != VECTOR:
        raise invalid("The vector query names no vector field.", "vectorQueries.fields")
    vector = np.asarray(told.get("vector"), dtype=np.float64)
    if vector.shape != (field.dimensions,):
        raise ServiceFaultError(400, "InvalidVectorQuery", vector_length(field, len(vector)))
    if not isinstance(told.get("k"), int) or told["k"] < 1:
        raise invalid("'k' must be a number above 0.", "vectorQueries.k")
    if query.get("vectorFilterMode", "preFilter") != "preFilter":
        raise unknown_here("filters after the vector query")
    held = {key: document[field.name] for key, document in kept.items() if document.get(field.name) is not None}
    if not held:
        return {}
    array = np.asarray(list(held.values()), dtype=np.float64)
    cosines = (array @ vector) / (np.linalg.norm(array, axis=1) * np.linalg.norm(vector) + 1e-30)
    nearest = sorted(zip(held, cosines, strict=True), key=lambda each: -each[1])[: told["k"]]
    return {key: float(1 / (2 - cosine)) for key, cosine in nearest}


def _ordered(index: Index, query: Mapping[str, Any], scores: Mapping[str, float]) -> list[str]:
    if not query.get("orderby"):
        return sorted(scores, key=lambda key: -scores[key])
    name, _, direction = query["orderby"].partition(" ")
    field = index.fields.get(name)
    if field is None or not field.sortable:
        raise invalid(f"The field '{name}' is not sortable.", "$orderby")
    if direction not in ("", "asc", "desc") or not field.key:
        raise unknown_here(f"the order {query['orderby']!r}")
    return sorted(scores, reverse=direction == "desc")


def _selected(index: Index, query: Mapping[str, Any]) -> list[str]:
    if not query.get("select"):
        return [name for name, field in index.fields.items() if field.retrievable]
    names = [name.strip() for name in query["select"].split(",")]
    for name in names:
        if name not in index.fields or not index.fields[name].retrievable:
            raise invalid(
                f"Invalid expression: Could not find a property named '{name}' on type 'search.document'.", "$select"
            )
    return names


def _number(query: Mapping[str, Any], name: str, usual: int, most: int) -> int:
    value = query.get(name, usual)
    if not isinstance(value, int) or not 0 <= value <= most:
        raise invalid(f"Value must be between 0 and {most}.", f"${name}")
    return value
