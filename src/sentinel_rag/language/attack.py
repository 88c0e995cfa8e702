"""MITRE ATT&CK Enterprise: which technique ids there are, their names and tactics, and what a term of it means.

The list is a data file of this package. Tactics are spelled as Sentinel spells them (`InitialAccess`).
"""

from __future__ import annotations

import re
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
    text = (files(__package__) / "attack_techniques.txt").read_text(encoding="utf-8")
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


def meant_by(term: str) -> tuple[str, ...]:
    """What a technique, by its id or name, or a tactic is, in sentences; empty if no such thing is known."""
    wanted = _squashed(term)
    techniques = known_techniques()
    tactic = next((each for each in known_tactics() if _squashed(each) == wanted), None)
    if tactic is not None:
        main = [each for each in techniques.values() if tactic in each.tactics and "." not in each.id]
        shown = ", ".join(f"{each.id} {each.name}" for each in main[:_MOST_SHOWN])
        more = f" and {len(main) - _MOST_SHOWN} more" if len(main) > _MOST_SHOWN else ""
        return (f"{_spaced(tactic)} is a tactic of MITRE ATT&CK, with the techniques {shown}{more}.",)
    exact = [each for each in techniques.values() if wanted in (_squashed(each.id), _squashed(_own_name(each)))]
    found = exact or [each for each in techniques.values() if wanted and wanted in _squashed(_own_name(each))]
    return tuple(_told(each) for each in found[:_MOST_MEANT])


_MOST_SHOWN = 8
_MOST_MEANT = 3


def _told(technique: Technique) -> str:
    below = [each for each in known_techniques().values() if each.id.startswith(f"{technique.id}.")]
    parts = f" Its sub-techniques: {', '.join(_own_name(each) for each in below[:_MOST_SHOWN])}." if below else ""
    tactics = ", ".join(_spaced(each) for each in technique.tactics)
    kind = "sub-technique" if "." in technique.id else "technique"
    return f"{technique.id} is {technique.name}, a {kind} of MITRE ATT&CK; what it serves: {tactics}.{parts}"


def _own_name(technique: Technique) -> str:
    return technique.name.rpartition(": ")[2]


def _spaced(tactic: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", tactic).capitalize()


def _squashed(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())
