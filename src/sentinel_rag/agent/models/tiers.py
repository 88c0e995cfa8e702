"""Which model answers: a small one for simple questions, a large one for hard ones. A rule, and not a model, decides.

The rule is a list of reasons for the large model, in order; the first that holds is kept and shown. No reason: the
small one. Pure functions over the question's words and what the conversation knows of itself; docs/models.md states
the same list, and a test keeps the two equal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


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
    SIMPLE = "the question is simple"


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

_REASONING = re.compile(
    r"\b(?:why|how come|explain|analy[sz]e|analysis|assess|evaluate|investigat\w+|correlat\w+|compar\w+|root cause"
    r"|implications?|likely|hypothes[ie]s|attack (?:path|chain|story)|kill chain|lateral movement|what happened"
    r"|timeline|reconstruct|recommend\w*|should (?:we|i)|prioriti[sz]e|summari[sz]e|summary|report|relat(?:ed|ion\w*)"
    r"|false positive|true positive|write (?:a |me )?(?:kql|query|rule)|hunt\w*)\b",
    re.IGNORECASE,
)
_ACTION = re.compile(
    r"\b(?:close|reopen|assign|escalate|re-?classify|classify|comment on|add (?:a )?(?:comment|note)|change|set|update"
    r"|isolate|disable|block)\b",
    re.IGNORECASE,
)
_CONTEST = re.compile(
    r"^\W*(?:no\b(?!\s+(?:incidents?|alerts?))|wrong|that(?:'s| is) (?:not|wrong)|not (?:right|correct|what)|incorrect"
    r"|are you sure|you missed|check again|try again|really\?)",
    re.IGNORECASE,
)
_BACK = re.compile(
    r"\b(?:it|its|that|those|these|them|they|this|more|again|also)\b"
    r"|\bthe (?:first|second|third|last|same|other)\b|\[\d{1,3}\]",
    re.IGNORECASE,
)
_SPLIT = re.compile(r"\?|;|\n+|\b(?:and then|then also|and also|as well as|after that)\b", re.IGNORECASE)


def features_of(question: str) -> QuestionFeatures:
    """Read a question, which is at most `contracts.ports.MAX_QUESTION_CHARACTERS` long."""
    return QuestionFeatures(
        words=len(question.split()),
        parts=sum(1 for part in _SPLIT.split(question) if len(part.split()) >= 2) or 1,
        reasons=_REASONING.search(question) is not None,
        acts=_ACTION.search(question) is not None,
        contests=_CONTEST.search(question) is not None,
        refers_back=_BACK.search(question) is not None,
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
