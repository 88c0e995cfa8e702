"""What a composer hands back beside the text: the outcome, the numbered list, the focus, offers and suggestions."""

from __future__ import annotations

from dataclasses import dataclass

from sentinel_rag.agent.planner import Option
from sentinel_rag.agent.things import ListItem
from sentinel_rag.contracts.evidence import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """`items` continue the list from `first`; `incident`, `alert` and `entity` become the focus where set."""

    outcome: Outcome = Outcome.ANSWERED
    items: tuple[ListItem, ...] = ()
    first: int = 0
    incident: str | None = None
    alert: ListItem | None = None
    entity: ListItem | None = None
    offers: tuple[Option, ...] = ()
    suggestions: tuple[str, ...] = ()
    shown: int = 0
