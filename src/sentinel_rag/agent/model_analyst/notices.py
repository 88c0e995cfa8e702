"""What code says above and below a model's words, whether or not the model thought of it.

Sentences that state nothing about data: how the answer came about, what to know of it, what can be asked next.
"""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.agent.instruction_text import suspicions
from sentinel_rag.agent.model_analyst.loop import Ended, Ending
from sentinel_rag.agent.model_analyst.plain_facts import CATALOGUES
from sentinel_rag.agent.model_analyst.turn import Turn
from sentinel_rag.agent.offline.sample_wishes import SAMPLE_SENTENCE, wants_sample
from sentinel_rag.agent.times import show_age
from sentinel_rag.contracts.conversations import Verbosity
from sentinel_rag.language.lexicon import fold, language_of

OUT_OF_ROUNDS = "Reached maximum tool rounds. Here's what I found so far."
CUT = "The model's answer was cut at its longest length; ask for the rest, or for less at once."
FILTERED = "The provider's content filter stopped the model's answer{} before its end. Ask in other words."
DEFANGED = "The provider's content filter stopped texts of these rows, so the model read them without those texts."
VERIFY = "This analysis must be verified by a person before acting."
OFFER = "Would you like me to analyze potential implications?"
SUSPECT = (
    "Note: a text in the rows that were read for this answer reads like an instruction to an assistant. It came from "
    "the logs and is data; judge the answer with that in mind."
)
READ_EARLIER = "This rests on what was read earlier in this conversation ({}) and may have changed since."
ASKED_NOTHING = "No tool was asked for this answer, so none of it could be compared with the workspace."
FEW_SOURCES = (
    "This model gives few sources: most statements below are not tied to a row. Treat them as its own words, and open "
    "the calls below for the rows."
)
SET_PHRASES = (VERIFY, OFFER, SAMPLE_SENTENCE)
"""What the rules suggest word for word; an answer of nothing else is none."""


def openings(turn: Turn, ended: Ended) -> list[str]:
    """What stands before the answer."""
    opening = [OUT_OF_ROUNDS] if ended.out_of_rounds else []
    if wants_sample(turn.question) and SAMPLE_SENTENCE not in ended.text:
        opening.append(SAMPLE_SENTENCE)
    return opening


def closings(turn: Turn, ended: Ended, body: str, cited: Sequence[str]) -> list[str]:
    """What stands behind it. `body` is the model's text, `cited` the calls that it cites."""
    said = []
    now = {run.call.call_id for run in turn.runs}
    earlier = [result for ref in dict.fromkeys(cited) if ref not in now and (result := turn.memory.results.get(ref))]
    if earlier:
        ages = (f"{each.ref}, {show_age(turn.now - each.read_at)} ago" for each in earlier if each.read_at is not None)
        said.append(READ_EARLIER.format("; ".join(ages)))
    if ended.ending is Ending.CUT:
        said.append(CUT)
    if ended.ending is Ending.FILTERED:
        said.append(filter_sentence(ended))
    if turn.memory.defanged and turn.runs:
        said.append(DEFANGED)
    if suspicions([run for run in turn.runs if run.call.tool_name not in CATALOGUES], most=1):
        said.append(SUSPECT)
    if turn.warning:
        said.append(turn.warning)
    analysed = turn.features.reasons
    if analysed and turn.runs and "verified by a person" not in body:
        said.append(VERIFY)
    detail = any(run.call.tool_name == "get_incident_detail" and len(run.rows) == 1 for run in turn.runs)
    brief = turn.verbosity is Verbosity.SHORT
    # An offer in English below an answer in another language helps nobody.
    english = language_of(fold(body).split()) in ("en", "")
    if detail and english and not analysed and not turn.acted and not brief and "implications" not in body:
        said.append(OFFER)
    return said


def filter_sentence(ended: Ended) -> str:
    """Why the answer ends where it does, if a provider's filter stopped it."""
    return FILTERED.format(f" ({', '.join(ended.filtered)})" if ended.filtered else "")
