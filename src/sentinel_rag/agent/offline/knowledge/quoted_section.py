"""Text of a playbook or a past incident, quoted: its paragraphs and lists as a quotation, its tables as tables.

Others wrote it. Markup is taken off and what is left cannot become a link, an image or HTML; nothing of it is said in
our own voice. KQL stands in code blocks, and only where it was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sentinel_rag.agent.knowledge_hits import KnowledgeHit
from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Fact, part_of
from sentinel_rag.agent.offline.knowledge.markdown_parts import Code, Grid, Prose, parts_of
from sentinel_rag.agent.row_text import data_line, plain

MOST_LINES = 30
MOST_ROWS = 30
MOST_CODE_LINES = 120
LINE_CHARACTERS = 700


def kql_of(hit: KnowledgeHit) -> list[Code]:
    """The KQL blocks of a hit; blocks that name no language count where nothing else is code."""
    code = [part for part in parts_of(hit.text) if isinstance(part, Code)]
    return [part for part in code if part.language in ("kql", "kusto")] or [part for part in code if not part.language]


def say_section(writer: AnswerWriter, hit: KnowledgeHit) -> bool:
    """Quote the hit without its code; the first line carries the evidence, which is the whole text of the hit. True if
    there is code."""
    lines: list[str] = []
    code = 0
    for part in parts_of(hit.text):
        match part:
            case Prose(lines=told):
                lines += told
            case Grid():
                _say_table(writer, hit, part)
            case Code():
                code += 1
    shown = [text for line in lines[:MOST_LINES] if (text := _shown(line))]
    for place, text in enumerate(shown):
        if place == 0:
            writer.say("> {}", _quoted(hit, text))
        else:  # the whole text of the hit again with each line would make the answer large
            writer.say("> {}", Fact(text), cited=[(hit.run, f"{hit.pointer}/text")])
    if len(lines) > MOST_LINES:
        writer.fixed("> …")
    return code > 0


def say_kql(writer: AnswerWriter, hit: KnowledgeHit, blocks: Sequence[Code]) -> None:
    """The blocks as code, each with the words that stand before it in the section."""
    before = ""
    for part in parts_of(hit.text):
        if isinstance(part, Prose):
            before = part.lines[-1] if part.lines else ""
        elif part in blocks and isinstance(part, Code):
            if before and (text := _shown(before)):
                writer.say("> {}", _quoted(hit, text))
            told = [_code_line(line) for line in part.lines[:MOST_CODE_LINES]]
            code = "\n".join(("```kql", *told, "```"))
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
    rows = tuple(
        tuple(plain(_without_markup(cell), limit=LINE_CHARACTERS) for cell in row) for row in grid.rows[:MOST_ROWS]
    )
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
