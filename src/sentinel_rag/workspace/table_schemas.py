"""The Azure Monitor tables that a new workspace starts with: names, columns and KQL types.

Read from `table_schemas.txt` beside this module, which explains its own notation. These are facts about the service;
what a workspace really holds is asked of its store, because imports add tables and columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType

_SUFFIXES = {
    "": "string",
    "b": "bool",
    "i": "int",
    "l": "long",
    "r": "real",
    "m": "decimal",
    "t": "datetime",
    "s": "timespan",
    "g": "guid",
    "d": "dynamic",
}

TableSchema = Mapping[str, str]
"""Column name -> KQL type, in the order of the table."""


@cache
def known_tables() -> Mapping[str, TableSchema]:
    """Every known table by name."""
    text = resources.files(__package__).joinpath("table_schemas.txt").read_text(encoding="utf-8")
    tables: dict[str, TableSchema] = {}
    columns: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line.endswith(" ="):
            columns = {}
            tables[line.removesuffix(" =")] = MappingProxyType(columns)
            continue
        for word in line.split():
            name, _, suffix = word.partition(":")
            columns[name] = _SUFFIXES[suffix]
    return MappingProxyType(tables)
