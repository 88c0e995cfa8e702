"""The outcome of resolving one question: its text with ids in the place of references, or a question back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sentinel_rag.agent.references.state import AskedQuestion
from sentinel_rag.agent.things import QUESTION, ListItem, joined_words, shown_words


@dataclass(frozen=True, slots=True)
class Resolved:
    """The words `said` mean `items`; `[start, end)` is where `Resolution.text` names them."""

    said: str
    items: tuple[ListItem, ...]
    start: int
    end: int

    @property
    def named(self) -> bool:
        """False if the text keeps the person's words, because the thing has no words that may stand there."""
        return joined_words(self.items) is not None


@dataclass(frozen=True, slots=True)
class Resolution:
    """`text` is the question with each reference replaced by what it stands for; the question itself where nothing is
    resolved. `ask`, if not empty, is a question back, and `choices` what it lets the person choose from under
    `numbers`; `question` is then what waits for the choice."""

    text: str
    resolved: tuple[Resolved, ...] = ()
    ask: str = ""
    choices: tuple[ListItem, ...] = ()
    numbers: tuple[int, ...] = ()
    question: AskedQuestion | None = None
    screen: int = 0
    """The number of the list that was pointed into, if it is not the one on the screen."""

    @property
    def items(self) -> tuple[ListItem, ...]:
        """Every thing that is meant, each once, in the order of the text."""
        return tuple({item.key: item for each in self.resolved for item in each.items}.values())

    @property
    def readable(self) -> str:
        """The text with spaces in the place of references that have no words: their thing is in `items`."""
        text = self.text
        for each in self.resolved:
            if not each.named:
                text = text[: each.start] + " " * (each.end - each.start) + text[each.end :]
        return text

    @property
    def asks_again(self) -> bool:
        """True if the text is a whole question that was offered and is now picked."""
        return any(item.kind == QUESTION for item in self.items)

    @property
    def footnote(self) -> str:
        """`References: “[2]” = incident 31`, for a person; empty where nothing was resolved."""
        return _told(self.resolved)

    @property
    def named_footnote(self) -> str:
        """The same without things whose names may not stand in a sentence, for a model."""
        return _told(each for each in self.resolved if each.named)


def _told(resolved: Iterable[Resolved]) -> str:
    pairs = [
        f"“{each.said}” = {', '.join(shown_words(item) for item in each.items)}"
        for each in resolved
        if each.items[0].kind != QUESTION and each.said
    ]
    return f"References: {'; '.join(pairs)}" if pairs else ""
