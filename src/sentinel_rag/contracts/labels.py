"""Labels: how secret a value is, whether an attacker may have written it, and who may read it.

`Label` is the product of two chains and so a lattice: `join` takes the worse of each side, `flows_to` is its order.
The terms are those of Denning, "A lattice model of secure information flow" (1976). Labels are held by the gateway;
nothing that an agent sends is ever read as a label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class Sensitivity(IntEnum):
    """How secret: the `taint_level` of the policy file, by the same names."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2


class Integrity(IntEnum):
    """Who may have written it: UNTRUSTED text may try to steer whoever reads it."""

    TRUSTED = 0
    UNTRUSTED = 1


_SENSITIVITY_NAMES = tuple(level.name for level in Sensitivity)
_INTEGRITY_NAMES = tuple(level.name for level in Integrity)


@dataclass(frozen=True, slots=True)
class Label:
    """A point of the lattice. `Label()` is the bottom: public and trusted."""

    sensitivity: Sensitivity = Sensitivity.LOW
    integrity: Integrity = Integrity.TRUSTED

    def join(self, other: Label) -> Label:
        """The least label that both flow to."""
        if other.flows_to(self):  # nearly always: labels rise seldom
            return self
        return Label(max(self.sensitivity, other.sensitivity), max(self.integrity, other.integrity))

    def flows_to(self, ceiling: Label) -> bool:
        """True if data with this label may go where `ceiling` is accepted."""
        return self.sensitivity <= ceiling.sensitivity and self.integrity <= ceiling.integrity

    def to_dict(self) -> dict[str, str]:
        return {
            "sensitivity": _SENSITIVITY_NAMES[self.sensitivity],
            "integrity": _INTEGRITY_NAMES[self.integrity],
        }

    @classmethod
    def from_dict(cls, data: dict[str, str]) -> Label:
        """Inverse of `to_dict`. Raises KeyError for a missing side or an unknown name."""
        return cls(Sensitivity[data["sensitivity"]], Integrity[data["integrity"]])


BOTTOM = Label()
TOP = Label(Sensitivity.HIGH, Integrity.UNTRUSTED)


def join_all(labels: Iterable[Label]) -> Label:
    """The join of all labels; `BOTTOM` for none."""
    result = BOTTOM
    for label in labels:
        result = result.join(label)
    return result


# Names under which a caller may read: people, teams or tiers, as front matter and the terms of a key spell them. They
# are compared letter for letter. The name that stands for everybody is no name that a key can have.
_NAME = re.compile(r"[^\W_](?:[\w .@/-]{0,62}\w)?")
READER_NAMES = "It is 1 to 64 letters, digits, blanks or . _ @ / -, with a letter or digit at both ends."


def is_reader_name(text: str) -> bool:
    """Whether a key can read under that name."""
    return _NAME.fullmatch(text) is not None
