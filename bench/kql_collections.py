"""Queries out of any folder of hunting or detection rules: files in, distinct KQL texts out.

Used by `bench_kql_collections`; knows file forms only and nothing of KQL. Text of a collection is read and counted,
never written anywhere.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_FENCE = re.compile(r"^[ \t]*```[ \t]*(\w*)[^\n`]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
_KQL_FENCES = frozenset({"", "c", "kql", "kusto", "csl", "sentinel"})  # "C#" colours KQL well, so some write that
_LICENCES = {"MIT License": "MIT", "BSD 3-Clause": "BSD-3-Clause", "BSD 2-Clause": "BSD-2-Clause"}
_LICENCES |= {"Apache License": "Apache-2.0", "GNU GENERAL PUBLIC": "GPL", "Creative Commons": "CC"}


@dataclass(frozen=True)
class Candidate:
    """A text that may be one query; `divisible` if it is a file that may hold several, with blank lines between."""

    text: str
    divisible: bool


@dataclass(frozen=True)
class Collection:
    """What a folder holds. `name` is owner/name where the folder says so."""

    name: str
    commit: str
    licence: str
    files: int
    candidates: tuple[Candidate, ...]


def read_collection(folder: Path) -> Collection:
    """Every candidate of every .kql, .csl, .txt, .md, .yaml and .yml file below `folder`, each text once."""
    files = 0
    candidates: dict[str, Candidate] = {}
    for path in sorted(folder.rglob("*")):
        if ".git" in path.parts or not path.is_file():
            continue
        found = list(_candidates(path))
        files += bool(found)
        for candidate in found:
            candidates.setdefault(candidate.text, candidate)
    return Collection(
        name=folder.name.replace("+", "/"),
        commit=_commit(folder),
        licence=_licence(folder),
        files=files,
        candidates=tuple(candidates.values()),
    )


def pieces(text: str) -> list[str]:
    """The parts of `text` between blank lines, without those that are comment only."""
    parts = re.split(r"\n[ \t]*\n", text)
    return [part.strip() for part in parts if re.search(r"^\s*(?!//)\S", part, re.MULTILINE)]


def _candidates(path: Path) -> Iterator[Candidate]:
    suffix = path.suffix.lower()
    if suffix not in (".kql", ".csl", ".txt", ".md", ".yaml", ".yml"):
        return
    text = path.read_text(encoding="utf-8", errors="replace").lstrip("\ufeff").replace("\r\n", "\n")
    if suffix == ".md":
        for language, block in _FENCE.findall(text):
            if language.lower() in _KQL_FENCES and block.strip():
                yield Candidate(block.strip(), divisible=False)
    elif suffix in (".yaml", ".yml"):
        for query in _yaml_queries(text):
            yield Candidate(query.strip(), divisible=False)
    elif text.strip():
        yield Candidate(text.strip(), divisible=True)


def _yaml_queries(text: str) -> Iterator[str]:
    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError:
        return
    stack: list[Any] = documents
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, dict):
            if isinstance(node.get("query"), str):
                yield node["query"]
            stack.extend(value for value in node.values() if isinstance(value, (dict, list)))


def _commit(folder: Path) -> str:
    if not (folder / ".git").exists():
        return ""
    asked = subprocess.run(["git", "-C", str(folder), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return asked.stdout.strip()


def _licence(folder: Path) -> str:
    for path in sorted(folder.glob("LICENSE*")):
        text = path.read_text(encoding="utf-8", errors="replace")[:400]
        return next((name for words, name in _LICENCES.items() if words in text), "see its LICENSE")
    return "none stated"
