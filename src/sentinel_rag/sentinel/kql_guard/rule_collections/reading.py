"""Rule files: which files of a folder are read, and the queries of one.

Nothing is passed over in silence: a file that should hold queries and cannot be read is told with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sentinel_rag.sentinel.kql_guard.rule_collections.found_query import FilePlaces, FoundQuery
from sentinel_rag.sentinel.kql_guard.rule_collections.markdown import looks_like_kql, queries_in_markdown
from sentinel_rag.sentinel.kql_guard.rule_collections.yaml_rules import queries_in_yaml

LARGEST_BYTES = 4_000_000
_PLAIN = frozenset({".kql", ".csl", ".kusto", ".txt"})
_MARKDOWN = frozenset({".md", ".markdown"})
_YAML = frozenset({".yaml", ".yml"})
_JSON = frozenset({".json"})
SUFFIXES = _PLAIN | _MARKDOWN | _YAML | _JSON
_BEGINNING = re.compile(
    r"(?:let|set|declare|alias|union|print|range|datatable|search|find|externaldata)\b|\(|"
    r"(?:[\w.*-]+|\[[\"'][^\]]+\])\s*(?:$|\||\(|//)"
)
_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


@dataclass(frozen=True, slots=True)
class RuleFile:
    """The queries of one file. `fault` is one sentence if it could not be read, with its line (0 for none)."""

    path: Path
    queries: tuple[FoundQuery, ...]
    places: FilePlaces
    fault: str = ""
    fault_line: int = 0


def rule_paths(folder: Path) -> Iterator[Path]:
    """The files of a folder and of those in it that may hold queries, sorted; hidden folders are left out."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name == "node_modules":
            continue
        if path.is_dir() and not path.is_symlink():
            yield from rule_paths(path)
        elif path.suffix.lower() in SUFFIXES and path.is_file():
            yield path


def read_rule_file(path: Path, *, named: bool = False) -> RuleFile:
    """The queries of `path`. A `.txt` of a folder counts only if it looks like KQL; one that is `named` always does."""
    text = _text_of(path)
    if isinstance(text, RuleFile):
        return text
    places = FilePlaces.of(text)
    suffix = path.suffix.lower()
    try:
        if suffix in _MARKDOWN:
            queries = tuple(queries_in_markdown(text))
        elif suffix in _YAML:
            queries = tuple(queries_in_yaml(text))
        elif suffix in _JSON:
            queries = tuple(queries_in_json(text))
        else:
            whole = FoundQuery("", text, ((0, 0),))
            queries = (whole,) if text.strip() and (suffix != ".txt" or named or _is_a_query(text)) else ()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        said = str(getattr(error, "problem", "") or error).splitlines()[0]
        return RuleFile(path, (), places, f"This is no YAML: {said}.", 0 if mark is None else mark.line + 1)
    except ValueError as error:
        return RuleFile(path, (), places, f"This is no JSON: {str(error).splitlines()[0]}.")
    except RecursionError:
        return RuleFile(path, (), places, "The file is nested too deep to be read.")
    return RuleFile(path, queries, places)


def _is_a_query(text: str) -> bool:
    """Whether a whole text is a query and not notes with one among them: it begins as a query does."""
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and not line.startswith("//")), "")
    return looks_like_kql(text) and _BEGINNING.match(first) is not None


def _text_of(path: Path) -> str | RuleFile:
    nothing = FilePlaces((0,))
    try:
        if path.stat().st_size > LARGEST_BYTES:
            return RuleFile(path, (), nothing, f"The file has more than {LARGEST_BYTES // 1_000_000} MB.")
        content = path.read_bytes()
    except OSError as error:
        return RuleFile(path, (), nothing, f"The file cannot be read: {error.strerror or error}.")
    encoding = next((each for mark, each in _BYTE_ORDER_MARKS if content.startswith(mark)), "utf-8")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        return RuleFile(path, (), nothing, f"The file is not {encoding.removesuffix('-sig').upper()} text.", line)


# Queries in JSON: analytics rules and saved searches as the portal exports them (ARM templates).
#
# An object holds a rule's query when it has a `query` and something that only rules have; queries of workbooks, whose
# text is filled in by the portal, are not taken, nor are texts that ARM computes (`[concat(...)]`).


_RULE_KEYS = frozenset({"severity", "tactics", "queryfrequency", "triggeroperator", "category", "suppressionduration"})
_TOKEN = re.compile(r'"query"\s*:\s*("(?:[^"\\]|\\.)*")', re.IGNORECASE)
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.")


def queries_in_json(text: str) -> Iterator[FoundQuery]:
    """Every rule's query in order. Raises ValueError where the file is no JSON."""
    titles = dict(_rules_of(json.loads(text)))
    for token in _TOKEN.finditer(text):
        kql = json.loads(token[1])
        if kql in titles:
            yield FoundQuery(titles[kql], kql, _segments(token[1], token.start(1)))


def _rules_of(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for each in value:
            yield from _rules_of(each)
    if isinstance(value, dict):
        keys = {str(key).casefold(): each for key, each in value.items()}
        kql = keys.get("query")
        if isinstance(kql, str) and kql.strip() and not kql.startswith("[") and _RULE_KEYS & keys.keys():
            yield kql, str(keys.get("displayname") or keys.get("name") or "")
        for each in value.values():
            yield from _rules_of(each)


def _segments(token: str, start: int) -> tuple[tuple[int, int], ...]:
    """Each escape is longer in the file than in the query, so a new run starts behind it."""
    segments, shorter = [(0, start + 1)], 1
    for escape in _ESCAPE.finditer(token):
        shorter += len(escape[0]) - 1
        segments.append((escape.end() - shorter, start + escape.end()))
    return tuple(segments)
