"""What a judging module says of one atom."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sentinel_rag.agent.grounding.records import Leaf


class Support(StrEnum):
    """Where an atom has its right to stand from."""

    RESULT = "stands in a result"
    DERIVED = "follows from results"
    PERSON = "is the person's own word"
    NONE = "has no support"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`leaf` is the value, or one of those from which `formula` computes it. For an atom without support, `right` is
    the one right value as it is written, if there is exactly one, with its `leaf`; `reason` says what is wrong."""

    support: Support
    leaf: Leaf | None = None
    formula: str = ""
    reason: str = ""
    right: str = ""

    @property
    def supported(self) -> bool:
        return self.support is not Support.NONE


def in_result(leaf: Leaf) -> Verdict:
    """Supported by `leaf`."""
    return Verdict(Support.RESULT, leaf)


def derived(leaf: Leaf | None, formula: str) -> Verdict:
    """Computed from results; `leaf` is where the computation begins."""
    return Verdict(Support.DERIVED, leaf, formula)


FROM_PERSON = Verdict(Support.PERSON)
NOT_TIED = Verdict(Support.DERIVED, None, "no result ties the two")
HARMLESS = Verdict(Support.DERIVED, None, "states nothing about the data")


def unsupported(reason: str, leaf: Leaf | None = None, right: str = "") -> Verdict:
    """No support; with `right`, it can be put right."""
    return Verdict(Support.NONE, leaf, "", reason, right)
