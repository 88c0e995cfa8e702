"""Kinds of values that a policy defines: which texts are values of the kind, and how a user's words name one.

The built-in kinds (`model.ValueKind`) have grammars of their own in `gateway.flow.named_values`; one of these is a
regular expression and, if it asks for them, the nouns that must stand beside a value, so that "the general channel"
names the channel `general` and "in general" names none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sentinel_rag.gateway.policy.conditions.patterns import Regex

MAX_VALUE = 200
"""Characters of a value of such a kind."""


@dataclass(frozen=True, slots=True)
class NamedKind:
    """`pattern` is met by the whole of a value, and by nothing else; `regex` is its compiled form, anchored on both
    sides, `start` the one that is anchored at its beginning alone. `beside` are nouns in lower case, one of which
    stands directly before or after a value in words that name it; without any the value names itself. With `any_case`
    two values that differ in case are one."""

    name: str
    pattern: str
    regex: Regex = field(repr=False, compare=False)
    start: Regex = field(repr=False, compare=False)
    beside: tuple[str, ...] = ()
    any_case: bool = False

    def canonical(self, text: str) -> str | None:
        """The text by which a value is compared; None if it is no value of this kind."""
        text = text.strip()
        if not 0 < len(text) <= MAX_VALUE or self.regex.search(text) is None:
            return None
        return text.casefold() if self.any_case else text


NO_KINDS: Mapping[str, NamedKind] = {}
