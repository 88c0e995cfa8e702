"""What is said where no row is asked for: help, invented rows, the gateway's decisions, what lies outside the job."""

from __future__ import annotations

from sentinel_rag.agent.planner.plan import Reply
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.language.frames.phrases import LANGUAGES, WORD, phrase_book
from sentinel_rag.language.lexicon import fold

CAN_DO = (
    "I read Microsoft Sentinel for you: incidents (lists, counts, one in detail with its "
    "alerts, entities, comments and "
    "timeline), alerts (by time, severity, status, product, tactic, or by a host, account, "
    "address, hash, file or URL that "
    "they name), trends over time, the entities that most alerts name, a situation report, named KQL queries, and what "
    "data there is. Where the policy offers it, I ask for a change of one incident that you name (close, reopen, "
    "assign, severity, comment). Below each answer stand the calls I made, the time window and how many rows I saw."
)
HELP_SUGGESTIONS = (
    "List the incidents still open, newest first",
    "How many high severity alerts are there?",
    "Top accounts by distinct alerts",
    "What data do you have?",
)
HELP = Reply(Outcome.ANSWERED, CAN_DO, HELP_SUGGESTIONS)
ELSEWHERE = Reply(
    Outcome.OUT_OF_SCOPE,
    "That lies outside my watchtower: the only clouds I watch are the ones that log to Sentinel. " + CAN_DO,
    HELP_SUGGESTIONS,
)
SAMPLE_SENTENCE = "I'm not allowed to provide example data to prevent context poisoning. Let me query some real data..."
WHERE_IT_STANDS = (
    "That the gateway decides, by the rules of its policy, and I see no more of it than was shown. The rule and the "
    "audit id stand below that answer. `sentinel audit show --decision deny` lists what was denied; `sentinel policy "
    "explain TOOL NAME=VALUE` says what the rules make of a call; `sentinel approvals list` what waits for a person."
)
"""The agent sees neither the policy nor the journal, and a query about denied sign-ins would answer something else."""


def wants_sample(text: str) -> bool:
    """True if invented data is asked for."""
    found = list(WORD.finditer(text))
    book = phrase_book(LANGUAGES[0])
    _, items = book.cover([fold(match[0]) for match in found], [match.span() for match in found], text)
    return any(item.sense("meta", frozenset({"sample"})) for item in items)
