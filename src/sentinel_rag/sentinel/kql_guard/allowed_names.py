"""What freeform KQL may use, by name, out of `allowed_names.toml`; whatever is not listed is refused."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from sentinel_rag.sentinel.kql_guard.analysis import words

_DATA: Mapping[str, Any] = tomllib.loads(
    files(__package__).joinpath("allowed_names.toml").read_text(encoding="utf-8"),
)

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
