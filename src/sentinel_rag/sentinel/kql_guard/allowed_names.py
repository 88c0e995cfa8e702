"""What freeform KQL may use, by name, out of `allowed_names.toml`; whatever is not listed is refused."""

from __future__ import annotations

from collections.abc import Mapping

from sentinel_rag.language.text import toml_beside
from sentinel_rag.sentinel.kql_guard.analysis import words

_DATA = toml_beside(__package__, "allowed_names.toml")

STATEMENTS = words(_DATA["statements"])
OPERATORS: Mapping[str, str] = _DATA["operators"]
"""Kind in Microsoft's parser -> the word that people write."""
REFUSED_WORDS: Mapping[str, str] = _DATA["refused"]
PLUGINS = words(_DATA["plugins"])
AGGREGATES = words(_DATA["aggregates"])
FUNCTIONS = words(_DATA["functions"])
SYNTAX = (
    STATEMENTS
    | OPERATORS.keys()
    | {f"{name}Expression" for name in words(_DATA["expressions"])}
    | words(_DATA["syntax"])
)
