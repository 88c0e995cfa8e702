"""MITRE ATT&CK Enterprise as knowledge needs it: which technique ids there are, their names and their tactics.

The list is a data file of this package. Tactics are spelled as Sentinel spells them (`InitialAccess`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Technique:
    """One technique; a sub-technique's name has its parent's before it, as `Phishing: Spearphishing Link`."""

    id: str
    name: str
    tactics: tuple[str, ...]


@cache
def known_techniques() -> Mapping[str, Technique]:
    """All techniques that are neither revoked nor deprecated, by id."""
    found: dict[str, Technique] = {}
    text = (files("sentinel_rag.knowledge") / "attack_techniques.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        technique, name, tactics = line.split("\t")
        parent = found.get(technique.partition(".")[0])
        full = name if parent is None else f"{parent.name}: {name}"
        found[technique] = Technique(technique, full, tuple(map(_as_sentinel_spells, tactics.split(","))))
    return found


@cache
def known_tactics() -> tuple[str, ...]:
    """All tactics, in the alphabet's order."""
    return tuple(sorted({tactic for each in known_techniques().values() for tactic in each.tactics}))


def _as_sentinel_spells(tactic: str) -> str:
    return "".join(word.capitalize() for word in tactic.split("-"))
