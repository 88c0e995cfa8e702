"""A tool's definition as one document with one hash: all that its server says of it and that may steer a model or the
check of a call. Order of keys and white space do not count; every character of a text does."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from sentinel_rag.contracts.json_values import JsonObject, canonical_json
from sentinel_rag.gateway.upstream import UpstreamTool


@dataclass(frozen=True, slots=True)
class Definition:
    """`document` has name, description, inputSchema, outputSchema and annotations; `sha256` is over its canonical
    JSON, in hex."""

    sha256: str
    document: JsonObject = field(repr=False)

    @property
    def encoded(self) -> bytes:
        return canonical_json(self.document)


def definition_of(tool: UpstreamTool) -> Definition:
    """The definition that a server gives now. Raises ValueError for what JSON cannot hold."""
    document: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
        "annotations": tool.annotations,
    }
    return Definition(hashlib.sha256(canonical_json(document)).hexdigest(), document)
