"""Which model answers: a small one for simple questions, a large one for hard ones. A rule, and not a model, decides.

The rule is a list of reasons for the large model, in order; the first that holds is kept and shown. No reason: the
small one. Pure functions over the question's words and what the conversation knows of itself; docs/models.md states
the same list, and a test keeps the two equal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from sentinel_rag.language.frames.orders import Act, read_order
from sentinel_rag.language.phrases import phrases, says


class Tier(StrEnum):
    """Two models, by what they are for."""

    SMALL = "small"
    LARGE = "large"


class TierReason(StrEnum):
    """Why the large model was chosen; the values are the sentences that a footnote shows."""

    CONTESTED = "the last answer was contested"
    LAST_FAILED = "the last answer held claims without evidence, or failed"
    MANY_ROUNDS = "the question has taken several rounds of tool calls"
    LONG_CONTEXT = "the conversation is long"
    ACTION = "the question asks for a change"
    REASONING = "the question asks for an explanation or a judgement"
    SEVERAL_PARTS = "the question has several parts"
    LONG_QUESTION = "the question is long"
    FOLLOW_UP = "it follows up on an answer of the large model"
    SIMPLE = "nothing asks for the large model"


@dataclass(frozen=True, slots=True)
class QuestionFeatures:
    """What the rule reads of a question."""

    words: int
    parts: int
    reasons: bool
    acts: bool
    contests: bool
    refers_back: bool


@dataclass(frozen=True, slots=True)
class TierChoice:
    """The decision and its one reason."""

    tier: Tier
    reason: TierReason


LONG_QUESTION_WORDS = 60
LONG_CONTEXT_TOKENS = 32_000
MANY_ROUNDS = 3

_LINE = re.compile(r"\[\d{1,3}\]")
_SPLIT = re.compile("|".join((r"\?|;|\n+", *(each.pattern for each in phrases("questions", "goes_on")))), re.IGNORECASE)


def features_of(question: str) -> QuestionFeatures:
    """Read a question, which is at most `contracts.ports.MAX_QUESTION_CHARACTERS` long."""
    order = read_order(question)
    contests = says(question, "questions", "contests") and not says(question, "questions", "counts")
    return QuestionFeatures(
        words=len(question.split()),
        parts=sum(1 for part in _SPLIT.split(question) if len(part.split()) >= 2) or 1,
        reasons=says(question, "questions", "reasons"),
        acts=order is not None and order.act not in (Act.HOW, Act.REFUSED),
        contests=contests,
        refers_back=says(question, "questions", "refers_back") or _LINE.search(question) is not None,
    )


def choose_tier(
    question: QuestionFeatures,
    *,
    last_tier: Tier | None = None,
    last_failed: bool = False,
    rounds: int = 0,
    context_tokens: int = 0,
) -> TierChoice:
    """The tier for the next request, by the question and what the conversation knows of itself: `rounds` of tool calls
    of this turn so far, `context_tokens` that would be sent. Total and monotonic: a further reason never leads back to
    the small model."""
    reasons = {
        TierReason.CONTESTED: question.contests and last_tier is not None,
        TierReason.LAST_FAILED: last_failed,
        TierReason.MANY_ROUNDS: rounds >= MANY_ROUNDS,
        TierReason.LONG_CONTEXT: context_tokens > LONG_CONTEXT_TOKENS,
        TierReason.ACTION: question.acts,
        TierReason.REASONING: question.reasons,
        TierReason.SEVERAL_PARTS: question.parts > 1,
        TierReason.LONG_QUESTION: question.words > LONG_QUESTION_WORDS,
        TierReason.FOLLOW_UP: question.refers_back and last_tier is Tier.LARGE,
    }
    reason = next((reason for reason, holds in reasons.items() if holds), None)
    return TierChoice(Tier.SMALL, TierReason.SIMPLE) if reason is None else TierChoice(Tier.LARGE, reason)
