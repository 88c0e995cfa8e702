"""What a choice among things ends in, and what it is made with. The rules that all ways of choosing share stand here.

The rule throughout: what was talked about last is meant, unless a list came after it; then one line that fits is meant
and several are asked back. Nothing is chosen because it is likely.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sentinel_rag.agent.references.mention_forms import Mention
from sentinel_rag.agent.references.state import References
from sentinel_rag.agent.references.wording import ENTITY_NOUNS
from sentinel_rag.agent.things import ALERT, INCIDENT, QUESTION, ListItem

MOST_TOGETHER = 10
"""Things that "them" may stand for in one question; above that the person names the lines."""
MOST_CHOICES = 9


@dataclass(frozen=True, slots=True)
class Found:
    """The things that are meant; `screen` is the number of the list in which they were pointed at, 0 for none."""

    items: tuple[ListItem, ...]
    screen: int = 0


@dataclass(frozen=True, slots=True)
class Unclear:
    """A question back; `choices` are the things that may be meant, none where they are too many or unknown."""

    sentence: str
    choices: tuple[ListItem, ...] = ()


Choice = Found | Unclear | None
"""None if the words point at nothing here and need not."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a choice is made in: `masked` is the whole question without its quotations."""

    references: References
    masked: str
    now: datetime

    def around(self, mention: Mention) -> str:
        """The question without the mention."""
        return f"{self.masked[: mention.start]} {self.masked[mention.end :]}"


def unique(items: Iterable[ListItem]) -> tuple[ListItem, ...]:
    """Each thing once, in their order; questions to pick from are no things."""
    return tuple({item.key: item for item in items if item.kind != QUESTION}.values())


def of_kinds(items: Iterable[ListItem], kinds: Sequence[str]) -> tuple[ListItem, ...]:
    """`unique`, of these kinds alone; of every kind where none is named."""
    return unique(item for item in items if not kinds or item.of_kind in kinds)


def which(noun: str, pool: Sequence[ListItem]) -> Unclear:
    """The question back, with the things of `pool` as choices where they are few."""
    if len(pool) > MOST_CHOICES:
        return Unclear(
            f"Which {noun} do you mean? {len(pool)} fit. Answer with the number of its line, or with its name."
        )
    return Unclear(f"Which {noun} do you mean?", tuple(pool))


_ASKS_INCIDENT = (
    r"owners?|owns?|owned|assigned|assignee|comments?|tasks?|classifi\w+|bookmarks?|closed\s+(?:it|by)|who\s+closed"
)
_ASKS_OF_ALERT = r"(?:which|what|whose)\s+incident|part\s+of|belongs?|events?\s+behind|raw\s+events?"
_NOT_ALERTS = (INCIDENT, *sorted(ENTITY_NOUNS))


def wanted_kinds(mention: Mention, context: Context) -> tuple[str, ...]:
    """The kinds that the rest of the question can be asked of; none where it says nothing about that."""
    around = context.around(mention)
    if re.search(rf"\b(?:{_ASKS_OF_ALERT})\b", around, re.IGNORECASE):
        return (ALERT, *sorted(ENTITY_NOUNS))
    if re.search(rf"\b(?:{_ASKS_INCIDENT})\b", around, re.IGNORECASE):
        return (INCIDENT,)
    return _NOT_ALERTS if re.search(r"\balerts\b", around, re.IGNORECASE) else ()


def kinds_for(mention: Mention, context: Context) -> tuple[str, ...]:
    """The kind that the mention says, or else `wanted_kinds`."""
    return (mention.kind,) if mention.kind else wanted_kinds(mention, context)
