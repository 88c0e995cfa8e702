"""Text of a playbook or a past incident, quoted: its paragraphs and lists as a quotation, its tables as tables.

Others wrote it. Markup is taken off and what is left cannot become a link, an image or HTML; nothing of it is said in
our own voice. KQL stands in code blocks, and only where it was asked for. What is no table and no code is prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sentinel_rag.agent.knowledge_hits import KnowledgeHit
from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Fact, part_of
from sentinel_rag.agent.row_text import data_line, plain

MOST_LINES = 30
MOST_ROWS = 30
MOST_CODE_LINES = 120
LINE_CHARACTERS = 700
_FENCE = re.compile(r"^\s*(?P<fence>`{3,}|~{3,})\s*(?P<language>[\w-]*)")
_RULE = re.compile(r"^\s*\|?(?:\s*:?-{2,}:?\s*\|)+\s*:?-*:?\s*\|?\s*$")


@dataclass(frozen=True, slots=True)
class Prose:
    """Lines of one paragraph, list or quotation, each joined with those that only continue it."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: its head and its rows, cells as they stand."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Code:
    """A code block with the language that it names, in lower case."""

    language: str
    lines: tuple[str, ...]


Part = Prose | Grid | Code


def parts_of(text: str) -> list[Part]:
    """The parts of a chunk of Markdown, in order. Total: what is no table and no code is prose."""
    parts: list[Part] = []
    prose: list[str] = []
    lines = text.splitlines()
    at = 0

    def end_prose() -> None:
        if any(line.strip() for line in prose):
            parts.append(Prose(tuple(_joined(prose))))
        prose.clear()

    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence is not None:
            end_prose()
            ends = (p for p in range(at + 1, len(lines)) if lines[p].strip().startswith(fence["fence"]))
            close = next(ends, len(lines))
            parts.append(Code(fence["language"].lower(), tuple(lines[at + 1 : close])))
            at = close + 1
        elif "|" in lines[at] and at + 1 < len(lines) and _RULE.match(lines[at + 1]):
            end_prose()
            stop = next((p for p in range(at + 2, len(lines)) if "|" not in lines[p]), len(lines))
            columns = _cells(lines[at])
            rows = tuple((*_cells(line), *("",) * len(columns))[: len(columns)] for line in lines[at + 2 : stop])
            parts.append(Grid(columns, rows))
            at = stop
        else:
            prose.append(lines[at])
            at += 1
    end_prose()
    return parts


def _joined(lines: Sequence[str]) -> Iterator[str]:
    """Lines with the wrapped rest of a paragraph or list item behind its first line; empty lines part them."""
    open_line = ""
    for line in lines:
        begins = re.match(r"\s*(?:[-*+]|\d{1,3}[.)])\s+\S", line) is not None
        if open_line and (begins or not line.strip()):
            yield open_line
            open_line = ""
        if line.strip():
            open_line = f"{open_line} {line.strip()}" if open_line else line.strip()
    if open_line:
        yield open_line


def _cells(line: str) -> tuple[str, ...]:
    row = line.strip().removeprefix("|").removesuffix("|")
    return tuple(cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", row))


def kql_of(hit: KnowledgeHit) -> list[Code]:
    """The KQL blocks of a hit; blocks that name no language count where nothing else is code."""
    code = [part for part in parts_of(hit.text) if isinstance(part, Code)]
    return [part for part in code if part.language in ("kql", "kusto")] or [part for part in code if not part.language]


def say_section(writer: AnswerWriter, hit: KnowledgeHit) -> bool:
    """Quote the hit without its code; the first line carries the evidence, which is the whole text of the hit. True if
    there is code."""
    parts = parts_of(hit.text)
    for part in parts:
        if isinstance(part, Grid):
            _say_table(writer, hit, part)
    lines = [line for part in parts if isinstance(part, Prose) for line in part.lines]
    for place, text in enumerate(text for line in lines[:MOST_LINES] if (text := _shown(line))):
        if place == 0:
            writer.say("> {}", _quoted(hit, text))
        else:  # the whole text of the hit again with each line would make the answer large
            writer.say("> {}", Fact(text), cited=[(hit.run, f"{hit.pointer}/text")])
    if len(lines) > MOST_LINES:
        writer.fixed("> …")
    return any(isinstance(part, Code) for part in parts)


def say_kql(writer: AnswerWriter, hit: KnowledgeHit) -> None:
    """The KQL of a section as code, each block with the words that stand before it."""
    before, blocks = "", kql_of(hit)
    for part in parts_of(hit.text):
        if isinstance(part, Prose):
            before = part.lines[-1] if part.lines else ""
        elif part in blocks and isinstance(part, Code):
            if before and (text := _shown(before)):
                writer.say("> {}", _quoted(hit, text))
            code = "\n".join(("```kql", *(_code_line(line) for line in part.lines[:MOST_CODE_LINES]), "```"))
            writer.say("{}", Fact(code), cited=[(hit.run, f"{hit.pointer}/text")])
            before = ""


def closing_words(hits: Sequence[KnowledgeHit]) -> tuple[KnowledgeHit, str] | None:
    """How a past incident was closed, in the words of its record: the hit that tells it, and its sentences."""
    for hit in hits:
        told = [line.strip() for line in hit.text.splitlines()]
        said = [line for line in told if re.match(r"(?:Closed (?:on|before)|Classification:|Closing comment:)", line)]
        if any(not line.startswith("Closed on") for line in said) or (said and hit.heading.startswith("How it")):
            return hit, " ".join(said)
    return None


def _say_table(writer: AnswerWriter, hit: KnowledgeHit, grid: Grid) -> None:
    columns = tuple(plain(_without_markup(cell)) for cell in grid.columns)
    rows = [[plain(_without_markup(cell), limit=LINE_CHARACTERS) for cell in row] for row in grid.rows[:MOST_ROWS]]
    facts = [[Fact(cell) for cell in row] for row in rows]
    if facts and facts[0]:
        facts[0][0] = _quoted(hit, rows[0][0])
    writer.table(plain(hit.citation), columns, facts)


def _quoted(hit: KnowledgeHit, text: str) -> Fact:
    return part_of(hit.run, f"{hit.pointer}/text", text)


def _shown(line: str) -> str:
    """One line of prose, safe to stand in an answer: a list's mark stays, all other markup goes."""
    mark = re.match(r"\s*([-*+]|\d{1,3}[.)])\s+(?=\S)", line)
    if mark is None:
        return data_line(_without_markup(line.lstrip("> ")), limit=LINE_CHARACTERS)
    sign = "-" if mark[1] in "-*+" else mark[1]
    return f"{sign} {data_line(_without_markup(line[mark.end() :]), limit=LINE_CHARACTERS)}"


def _without_markup(text: str) -> str:
    text = re.sub(
        r"!?\[([^\]\n]*)\]\(\s*([^)\s]*)[^)]*\)", lambda m: m[1] if m[2] in ("", m[1]) else f"{m[1]} ({m[2]})", text
    )
    text = re.sub(r"\*\*|__|`", "", text)
    return re.sub(r"(?<!\w)\*([^*\s][^*\n]*)\*(?!\w)", r"\1", text)


def _code_line(line: str) -> str:
    """A line of code with its indentation, unable to end its block."""
    indent = len(line) - len(line.lstrip(" \t"))
    return " " * min(indent, 40) + plain(line, limit=2_000).replace("`", "ˋ")
