"""What is said to questions that need no data: help, and what lies outside the job."""

from __future__ import annotations

from sentinel_rag.agent.planner.plan import Reply
from sentinel_rag.contracts.evidence import Outcome

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
