"""What a sentence says: features by type, its time, and the words that nothing read."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import timedelta

from sentinel_rag.language.frames.phrases import Item


@dataclass
class Frame:
    """Features (type -> values, in their order), the time, and what is not understood."""

    text: str
    """The sentence as it was read: mended, numbers as digits."""
    said: str = ""
    """The sentence as it was said."""
    language: str = "en"
    features: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    window: dict[str, str] = field(default_factory=dict)
    """The window as arguments of a tool."""
    other_window: bool = False
    second_window: dict[str, str] = field(default_factory=dict)
    """A second time that is said beside the first, such as the week that this one is compared with."""
    later_window: dict[str, str] = field(default_factory=dict)
    """The second of two whole periods that the window joins ("june and july")."""
    around: timedelta | None = None
    time_said: str = ""
    duration: str = ""
    """The length of time that was said, as a time span ("2h", "3d")."""
    time_problem: str = ""
    time_instead: tuple[tuple[str, str], ...] = ()
    """What is said of a time that is not clear, and what could stand in its place."""
    unread: list[str] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    """Unknown words that hardly narrow what is asked for; an answer says that they were left out."""
    kinds: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The kinds of thing that a name may be by its shape or by the workspace."""
    whole: dict[str, str] = field(default_factory=dict)
    """A name as it was said, with the one that the workspace knows it by."""
    polar: bool = False
    """Whether yes or no is asked for."""
    items: tuple[Item, ...] = ()
    """What was read as what, before composition."""

    def name_kinds(self, name: str) -> tuple[str, ...]:
        """The kinds of thing that `name` may be, the likeliest first: as it was said, then by its shape."""
        said = self.one("of_kind")
        shape = self.kinds.get(name, ())
        return (said, *(("sender",) if said == "account" else ())) if said else shape

    def all(self, type_: str) -> list[str]:
        """The values of a type, in their order."""
        return self.features.get(type_, [])

    def one(self, type_: str) -> str | None:
        """The first value of a type."""
        values = self.all(type_)
        return values[0] if values else None

    def has(self, *senses: str) -> bool:
        """True if the frame holds one of `senses`, each a type or type:value."""
        for sense in senses:
            type_, _, value = sense.partition(":")
            if (value in self.all(type_)) if value else bool(self.all(type_)):
                return True
        return False

    def tell(self, type_: str, value: str) -> None:
        """Add a feature."""
        if value not in self.features[type_]:
            self.features[type_].append(value)

    def copy(self) -> Frame:
        """A frame of its own that can be changed."""
        features: dict[str, list[str]] = defaultdict(list)
        features.update({type_: list(values) for type_, values in self.features.items()})
        return replace(
            self, features=features, kinds=dict(self.kinds), whole=dict(self.whole), window=dict(self.window)
        )
