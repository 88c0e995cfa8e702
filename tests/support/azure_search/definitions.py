"""Definitions of indexes: what the service refuses in one, and what may change in one that exists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.azure_search.faults import ServiceFaultError, invalid, unknown_here

VECTOR = "Collection(Edm.Single)"
_TYPES = frozenset({"Edm.String", "Edm.Int32", "Edm.Int64", "Collection(Edm.String)", VECTOR})
_INDEX_NAME = re.compile(r"(?!.*--)[a-z0-9][a-z0-9-]{0,126}[a-z0-9]")
_FIELD_NAME = re.compile(r"(?!azureSearch)[A-Za-z][A-Za-z0-9_]{0,127}")
_ATTRIBUTES = frozenset(
    {
        "name",
        "type",
        "key",
        "searchable",
        "filterable",
        "sortable",
        "facetable",
        "retrievable",
        "analyzer",
        "dimensions",
        "vectorSearchProfile",
    }
)
_PARTS = frozenset({"name", "fields", "similarity", "analyzers", "vectorSearch", "@odata.etag", "@odata.context"})
_TOKEN_FILTERS = frozenset({"lowercase", "asciifolding", "porter_stem"})


@dataclass(frozen=True, slots=True)
class Field:
    """A field as far as the double knows it. `token_filters` are those of its analyzer."""

    name: str
    type: str
    key: bool
    searchable: bool
    filterable: bool
    sortable: bool
    retrievable: bool
    dimensions: int
    token_filters: tuple[str, ...]


def fields_of(name: str, definition: Mapping[str, Any]) -> dict[str, Field]:
    """The fields of a definition. Raises ServiceFaultError for one that the service would refuse."""
    if not _INDEX_NAME.fullmatch(name) or definition.get("name") != name:
        raise invalid(f"Invalid index name: '{definition.get('name')}'.", "definition")
    for part in definition.keys() - _PARTS:
        raise unknown_here(f"the part {part!r} of an index")
    if definition.get("similarity", {}).get("@odata.type") not in (None, "#Microsoft.Azure.Search.BM25Similarity"):
        raise unknown_here("another similarity than BM25")
    analyzers = {each["name"]: _filters(each) for each in definition.get("analyzers", ())}
    profiles = _profiles(definition.get("vectorSearch", {}))
    found: dict[str, Field] = {}
    for each in definition.get("fields", ()):
        field = _field(each, analyzers, profiles)
        if field.name in found:
            raise invalid(f"The field name '{field.name}' is used more than once.", "definition")
        found[field.name] = field
    if [field.type for field in found.values() if field.key] != ["Edm.String"]:
        raise invalid("Exactly one field must be the key, and it must be of type Edm.String.", "definition")
    return found


def check_change(before: Mapping[str, Field], after: Mapping[str, Field]) -> None:
    """Raises ServiceFaultError if fields that exist would change or go."""
    for name, field in before.items():
        if after.get(name) != field:
            raise ServiceFaultError(
                400, "OperationNotAllowed", f"Existing field '{name}' cannot be changed or deleted."
            )


def _field(told: Mapping[str, Any], analyzers: Mapping[str, tuple[str, ...]], profiles: frozenset[str]) -> Field:
    for attribute, value in told.items():
        if attribute not in _ATTRIBUTES and value not in (None, []):
            raise unknown_here(f"the attribute {attribute!r} of a field")
    name, kind = str(told.get("name")), told.get("type")
    if not _FIELD_NAME.fullmatch(name):
        raise invalid(f"Invalid field name: '{name}'.", "definition")
    if kind not in _TYPES:
        raise unknown_here(f"fields of type {kind!r}")
    is_vector = kind == VECTOR
    is_text = kind in ("Edm.String", "Collection(Edm.String)")
    many = str(kind).startswith("Collection")
    # The service's defaults; a vector is neither filtered nor sorted by, and not told unless that is asked for.
    field = Field(
        name=name,
        type=str(kind),
        key=told.get("key") is True,
        searchable=told.get("searchable", is_text or is_vector) is True,
        filterable=told.get("filterable", not is_vector) is True,
        sortable=told.get("sortable", not many) is True,
        retrievable=told.get("retrievable", not is_vector) is True,
        dimensions=int(told.get("dimensions") or 0),
        token_filters=_filters_of(told.get("analyzer"), analyzers),
    )
    if is_vector and (not 2 <= field.dimensions <= 4096 or told.get("vectorSearchProfile") not in profiles):
        raise invalid(
            f"The vector field '{name}' must have the properties 'dimensions' and 'vectorSearchProfile' set.",
            "definition",
        )
    if is_vector and (field.filterable or field.sortable or told.get("facetable") or not field.searchable):
        raise invalid(f"The vector field '{name}' can only be searchable.", "definition")
    if field.searchable and not (is_text or is_vector):
        raise invalid(f"Field '{name}' of type '{kind}' cannot be searchable.", "definition")
    if many and field.sortable:
        raise invalid(f"The collection '{name}' cannot be sortable.", "definition")
    if field.key and not field.retrievable:
        raise invalid(f"The key field '{name}' must be retrievable.", "definition")
    if told.get("analyzer") is not None and not (field.searchable and is_text):
        raise invalid(f"The field '{name}' is not searchable, so it can have no analyzer.", "definition")
    return field


def _filters_of(analyzer: str | None, analyzers: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    if analyzer is None or analyzer == "standard.lucene":
        return ("lowercase",)
    if analyzer not in analyzers:
        raise invalid(f"The analyzer '{analyzer}' is not defined.", "definition")
    return analyzers[analyzer]


def _filters(analyzer: Mapping[str, Any]) -> tuple[str, ...]:
    if analyzer.get("@odata.type") != "#Microsoft.Azure.Search.CustomAnalyzer":
        raise unknown_here(f"analyzers of {analyzer.get('@odata.type')!r}")
    if analyzer.get("tokenizer") != "standard_v2" or analyzer.get("charFilters"):
        raise unknown_here("another tokenizer than standard_v2, or character filters")
    for name in analyzer.get("tokenFilters", ()):
        if name not in _TOKEN_FILTERS:
            raise unknown_here(f"the token filter {name!r}")
    return tuple(analyzer.get("tokenFilters", ()))


def _profiles(vector_search: Mapping[str, Any]) -> frozenset[str]:
    algorithms: set[str] = set()
    for each in vector_search.get("algorithms", ()):
        parameters = each.get("exhaustiveKnnParameters" if each.get("kind") == "exhaustiveKnn" else "hnswParameters")
        if each.get("kind") not in ("exhaustiveKnn", "hnsw") or (parameters or {}).get("metric", "cosine") != "cosine":
            raise unknown_here(f"the vector algorithm {each!r}")
        algorithms.add(each["name"])
    for each in vector_search.get("profiles", ()):
        if each.get("algorithm") not in algorithms:
            raise invalid(f"The profile '{each.get('name')}' names no algorithm.", "definition")
    return frozenset(each["name"] for each in vector_search.get("profiles", ()))
