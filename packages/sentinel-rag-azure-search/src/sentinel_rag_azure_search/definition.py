"""The two indexes as the service is told of them: fields, how text becomes words, how vectors are compared.

`NAME` holds chunks, beside them one head for each document, the store's own record and the puts that are under way.
`NAME-vectors` keeps vectors by the hash of their text; they are plain data there, so they cost no vector quota.
Vectors are compared one by one (`exhaustiveKnn`): nothing near is missed, filtered or not, and no graph is kept in
memory. A model's vectors have a field of their own, named by the space, so that two can stand side by side while
everything is embedded anew.
"""

from __future__ import annotations

import hashlib
from typing import Any

from sentinel_rag.knowledge.stores.port import VectorSpace

ANALYZER = "knowledge-words"
PROFILE = "every-vector"
_VECTOR_PREFIX = "vector_"


def vector_field(space: VectorSpace) -> str:
    """The name of the field that holds the vectors of a space."""
    return _VECTOR_PREFIX + hashlib.sha256(f"{space.model}\n{space.dimensions}".encode()).hexdigest()[:16]


def knowledge_index(name: str) -> dict[str, Any]:
    """The index of chunks, without vectors: their size is known when the first ones come."""
    return {
        "name": name,
        "fields": [
            _field("key", key=True, filterable=True, sortable=True),
            _field("kind", filterable=True),
            _field("collection", filterable=True),
            # The id itself may be longer than what the service filters by.
            _field("document_key", filterable=True),
            _field("document"),
            _field("title"),
            _field("source"),
            _field("path", "Collection(Edm.String)"),
            _field("number", "Edm.Int32"),
            _field("place", "Edm.Int32"),
            _field("text"),
            _field("search_text", searchable=True, analyzer=ANALYZER),
            _field("search_hash", filterable=True),
            _field("readers", "Collection(Edm.String)", filterable=True),
            _field("techniques", "Collection(Edm.String)", filterable=True),
            _field("tactics", "Collection(Edm.String)", filterable=True),
            _field("severity", filterable=True),
            _field("status", filterable=True),
            _field("classification", filterable=True),
            # Microseconds since 1970: the service's own times are cut to milliseconds.
            _field("time", "Edm.Int64", filterable=True),
            _field("facets"),
            _field("label"),
            _field("content_hash"),
            _field("etag"),
            _field("put", filterable=True),
            _field("retired", filterable=True),
            _field("began", "Edm.Int64"),
            _field("writer"),
            _field("model"),
            _field("dimensions", "Edm.Int32"),
        ],
        "similarity": {"@odata.type": "#Microsoft.Azure.Search.BM25Similarity"},
        "analyzers": [
            {
                "@odata.type": "#Microsoft.Azure.Search.CustomAnalyzer",
                "name": ANALYZER,
                # Addresses and technique ids stay whole words; accents and word forms are evened out.
                "tokenizer": "standard_v2",
                "tokenFilters": ["lowercase", "asciifolding", "porter_stem"],
            }
        ],
        "vectorSearch": {
            "algorithms": [
                {
                    "name": "exhaustive",
                    "kind": "exhaustiveKnn",
                    "exhaustiveKnnParameters": {"metric": "cosine"},
                }
            ],
            "profiles": [{"name": PROFILE, "algorithm": "exhaustive"}],
        },
    }


def vector_field_definition(space: VectorSpace) -> dict[str, Any]:
    """The field that is added to the index of chunks for a space."""
    return {
        "name": vector_field(space),
        "type": "Collection(Edm.Single)",
        "searchable": True,
        "retrievable": False,
        "dimensions": space.dimensions,
        "vectorSearchProfile": PROFILE,
    }


def vectors_index(name: str) -> dict[str, Any]:
    """The index of kept vectors: `data` is base64 of little-endian float32."""
    return {
        "name": name,
        "fields": [
            _field("key", key=True, filterable=True, sortable=True),
            _field("space", filterable=True),
            _field("data"),
        ],
    }


def _field(name: str, kind: str = "Edm.String", **wanted: Any) -> dict[str, Any]:
    """A field with every attribute told, since the service's defaults are generous and cost storage."""
    return {
        "name": name,
        "type": kind,
        "searchable": False,
        "filterable": False,
        "sortable": False,
        "facetable": False,
        "retrievable": True,
        **wanted,
    }
