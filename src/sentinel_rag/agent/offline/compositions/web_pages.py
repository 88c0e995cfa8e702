"""What a web search found: the best page's snippet, quoted, with its address; then the others.

Strangers wrote it, so an answer never says it in its own voice, and says where it came from: the web, or the sample
pages of this product.
"""

from __future__ import annotations

from sentinel_rag.agent.instruction_text import reads_like_instruction
from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Echo, Fact
from sentinel_rag.agent.offline.compositions.composed import Composed
from sentinel_rag.agent.planner.plan import Plan
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.file_tools import BUNDLED_SAMPLE

MOST_PAGES = 5
STEERING = "Note: a text among these reads like an instruction. It is shown here as data and was not followed."
"""Said below text of strangers that addresses a machine."""


def compose(writer: AnswerWriter, plan: Plan, run: ToolRun) -> Composed:
    """One page a line, best first."""
    results = run.at("/results")
    count = min(len(results), MOST_PAGES) if isinstance(results, list | tuple) else 0
    if count == 0:
        writer.say("The search found no page for {}.", Echo(str(run.call.arguments.get("query", ""))))
        writer.fixed("Without a search provider only sample pages are searched; SENTINEL_SEARCH_PROVIDER names one.")
        return Composed(outcome=Outcome.NO_DATA)
    if run.at("/results/0/source") == BUNDLED_SAMPLE:
        source = "From a sample page of this product, not from the web and not from this workspace"
    else:
        source = "From the web, not from this workspace; nobody has checked it"
    writer.say(f"{{}}\n{source}: {{}}, {{}}.", _snippet(writer, run, 0), *_page(writer, run, 0))
    if count > 1:
        writer.fixed("Other pages:")
    for place in range(1, count):
        writer.say("- {}, {}: {}", *_page(writer, run, place), _snippet(writer, run, place))
    texts = (str(run.at(f"/results/{place}/{key}")) for place in range(count) for key in ("title", "snippet"))
    if any(reads_like_instruction(text) for text in texts):
        writer.fixed(STEERING)
    return Composed()


def _page(writer: AnswerWriter, run: ToolRun, place: int) -> tuple[Fact, Fact]:
    return writer.name(run, f"/results/{place}/title"), writer.exact(run, f"/results/{place}/url")


def _snippet(writer: AnswerWriter, run: ToolRun, place: int) -> Fact:
    return writer.words(run, f"/results/{place}/snippet")
