"""Queries of a folder of detection rules: found in YAML and Markdown, each with its place in the file."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class FoundQuery:
    """One query. `segments` are (index in the query, index in the file) of runs that stand alike in both, in order."""

    title: str
    kql: str
    segments: tuple[tuple[int, int], ...]

    def part(self, start: int, stop: int) -> FoundQuery:
        """The query that stands between two indexes of this one."""
        first = self.file_index(start)
        inside = ((index - start, place) for index, place in self.segments if start < index < stop)
        return FoundQuery(self.title, self.kql[start:stop], ((0, first), *inside))

    def file_index(self, index: int) -> int:
        """Where in the file the character at `index` of the query stands."""
        segment = self.segments[max(bisect_right(self.segments, (index, 1 << 62)) - 1, 0)]
        return segment[1] + index - segment[0]


@dataclass(frozen=True, slots=True)
class FilePlaces:
    """Lines and columns of one file, both from 1."""

    starts: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> FilePlaces:
        return cls((0, *(index + 1 for index, character in enumerate(text) if character == "\n")))

    def locate(self, query: FoundQuery, line: int, column: int) -> tuple[int, int]:
        """The place in the file of a place in the query."""
        lines = query.kql.split("\n")
        before = sum(len(each) + 1 for each in lines[: line - 1])
        index = query.file_index(before + column - 1)
        number = bisect_right(self.starts, index)
        return number, index - self.starts[number - 1] + 1


def matched_lines(value: str, text: str, start: int, stop: int) -> tuple[tuple[int, int], ...]:
    """Segments for a value whose lines stand in `text[start:stop]`, whatever indents, folds or quotes them there."""
    segments: list[tuple[int, int]] = []
    cursor, index = 0, start
    for line in text[start:stop].splitlines(keepends=True):
        written = line.strip().strip("\"'").strip()
        found = value.find(written, cursor) if written else -1
        if found >= 0:
            segments.append((found, index + line.index(written)))
            cursor = found + len(written)
        index += len(line)
    if not segments or segments[0][0] > 0:
        segments.insert(0, (0, start))
    return tuple(segments)


# Collections label their fences KQL, kusto, C# (for its colours) or not at all, in lists and quotes too, so a block
# counts as KQL by its label or by a line that starts with a pipe and an operator.
_FENCE = re.compile(r"^(?P<indent>[ \t>]*)(?P<fence>`{3,}|~{3,})[ \t]*(?P<label>[^`\r\n]*?)[ \t]*\r?$")
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t#]*\r?$")
_KQL_LABELS = ("kql", "kusto", "csl")
_PIPED = re.compile(
    r"^\s*\|\s*(where|filter|extend|project|summarize|join|take|limit|top|sort|order|count|distinct|union|mv-expand"
    r"|mvexpand|parse|evaluate|lookup|make-series|render|invoke|search)\b",
    re.IGNORECASE | re.MULTILINE,
)


def looks_like_kql(text: str) -> bool:
    """Whether a text without a label is KQL: some line pipes into an operator."""
    return _PIPED.search(text) is not None


def queries_in_markdown(text: str) -> Iterator[FoundQuery]:
    """Every query block, titled by the heading above it. A fence that is never closed runs to the end."""
    heading, index = "", 0
    opened: tuple[str, str, str] | None = None
    lines: list[tuple[str, int]] = []
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\n")
        if opened is None:
            fence = _FENCE.match(bare)
            named = _HEADING.match(bare)
            if fence is not None:
                opened, lines = (fence["indent"], fence["fence"], fence["label"]), []
            elif named is not None:
                heading = named[1]
        elif _closes(bare, opened[1]):
            yield from _block(heading, opened[2], lines)
            opened = None
        else:
            cut = _indent_of(bare, opened[0])
            lines.append((bare[cut:], index + cut))
        index += len(line)
    if opened is not None:
        yield from _block(heading, opened[2], lines)


def _closes(line: str, fence: str) -> bool:
    bare = line.strip(" \t>\r")
    return len(bare) >= len(fence) and set(bare) == {fence[0]}


def _indent_of(line: str, indent: str) -> int:
    cut = 0
    while cut < min(len(indent), len(line)) and line[cut] in " \t>":
        cut += 1
    return cut


def _block(heading: str, label: str, lines: list[tuple[str, int]]) -> Iterator[FoundQuery]:
    kql = "\n".join(line for line, _ in lines)
    named = label.lower().lstrip("{. ").startswith(_KQL_LABELS)
    if not kql.strip() or not (named or looks_like_kql(kql)):
        return
    segments, start = [], 0
    for line, place in lines:
        segments.append((start, place))
        start += len(line) + 1
    yield FoundQuery(heading, kql, tuple(segments))


# Any mapping may hold one (a rule, a document of several, a function's `FunctionQuery`), so every `query` of a text is
# taken; PyYAML tells where its value stands.
_QUERY_KEYS = frozenset({"query", "functionquery", "kqlquery", "kql"})
_NAME_KEYS = ("name", "title", "displayname", "functionname", "id")


def queries_in_yaml(text: str) -> Iterator[FoundQuery]:
    """Every query of every document. Raises yaml.YAMLError where the file is no YAML."""
    for document in yaml.compose_all(text, Loader=yaml.SafeLoader):
        yield from _queries_of(document, text, set())


def _queries_of(node: Any, text: str, seen: set[int]) -> Iterator[FoundQuery]:
    if id(node) in seen:  # an alias may point back to what holds it
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _queries_of(each, text, seen)
    if isinstance(node, yaml.MappingNode):
        named = {str(key.value).casefold(): value for key, value in node.value if isinstance(key, yaml.ScalarNode)}
        title = next((str(named[key].value) for key in _NAME_KEYS if isinstance(named.get(key), yaml.ScalarNode)), "")
        for key, value in node.value:
            is_query = isinstance(key, yaml.ScalarNode) and str(key.value).casefold() in _QUERY_KEYS
            if is_query and isinstance(value, yaml.ScalarNode) and value.tag == "tag:yaml.org,2002:str":
                if value.value.strip():
                    yield _found(title, value, text)
            else:
                yield from _queries_of(value, text, seen)


def _found(title: str, value: yaml.ScalarNode, text: str) -> FoundQuery:
    start = value.start_mark.index
    if value.style in ("|", ">"):
        start = text.find("\n", start) + 1
    kql = str(value.value)
    if value.style == "|":
        return FoundQuery(title, kql, _literal_lines(kql, text, start))
    return FoundQuery(title, kql, matched_lines(kql, text, start, value.end_mark.index))


def _literal_lines(kql: str, text: str, start: int) -> tuple[tuple[int, int], ...]:
    """A literal block keeps its lines, each behind an indent."""
    segments, index, place = [], 0, start
    for line in kql.split("\n"):
        end = text.find("\n", place)
        written = text[place : len(text) if end < 0 else end].removesuffix("\r")
        segments.append((index, place + max(len(written) - len(line), 0)))
        index += len(line) + 1
        place = len(text) if end < 0 else end + 1
    return tuple(segments)


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
