"""A file's text line by line, and what a directory holds. Both are shown as data in a table, whatever they say."""

from __future__ import annotations

from sentinel_rag.agent.instruction_text import reads_like_instruction
from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Echo, Fact
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.offline.compositions.web_pages import STEERING
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.file_tools import BUNDLED_SAMPLE

MOST_LINES = 60
LINE_CHARACTERS = 400
_SAMPLE = "It is a sample that comes with this product; SENTINEL_FILES_ROOT names a folder of your own."


def compose_file(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """The beginning of the text."""
    path = writer.exact(run, "/file_path")
    content = str(run.at("/content") or "")
    if not content:
        writer.say("The file {} is empty.", path)
        return Composed(outcome=Outcome.NO_DATA)
    changed = writer.time(run, "/modified")
    writer.say("The file {} ({} bytes, changed {}) says:", path, writer.number(run, "/size_bytes"), changed)
    lines = content.splitlines()
    # The text is one value with one pointer: evidence on each line would repeat the whole of it for each.
    shown = [[Fact(plain(line, limit=LINE_CHARACTERS))] for line in lines[:MOST_LINES]]
    writer.table(plain(path.text.strip("`")), ("text",), shown)
    if len(lines) > MOST_LINES or run.at("/next_offset") is not None:
        writer.fixed("Only its beginning is shown here.")
    if run.at("/source") == BUNDLED_SAMPLE:
        writer.fixed(_SAMPLE)
    if reads_like_instruction(content):
        writer.fixed(STEERING)
    return Composed()


def compose_list(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """Names, kinds and sizes."""
    entries = run.at("/entries")
    count = len(entries) if isinstance(entries, list | tuple) else 0
    asked = Echo(str(run.call.arguments.get("directory", "")))
    if count == 0:
        writer.say_none([run], "There is nothing in {}.", asked)
        return Composed(outcome=Outcome.NO_DATA)
    total: Fact = writer.number(run, "/total")
    writer.say("{} entries in {}.", total, asked)
    rows = [
        [
            writer.cell(run, f"/entries/{place}/path"),
            writer.cell(run, f"/entries/{place}/type"),
            writer.cell(run, f"/entries/{place}/size_bytes"),
            writer.time_cell(run, f"/entries/{place}/modified"),
        ]
        for place in range(count)
    ]
    writer.table("", ("Path", "Type", "Bytes", "Changed"), rows)
    if run.at("/next_offset") is not None:
        writer.fixed("Only the first of them are shown here.")
    if run.at("/source") == BUNDLED_SAMPLE:
        writer.fixed("They are samples that come with this product; SENTINEL_FILES_ROOT names a folder of your own.")
    return Composed()
