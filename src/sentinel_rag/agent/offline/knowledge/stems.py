"""Words of a question and of a hit by their stems, and how much of the one stands in the other.

Words that stand in one sentence or one row of a table belong together; the same words spread over a page may not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile(r"[^\W\d_]{3,}")
_ENDINGS = ("ations", "ation", "ings", "ing", "ions", "ion", "ed", "es", "ly", "s", "e")
_SHORTEST_STEM = 3
_PREFIX = 5
_LITTLE = """
    the and for with from that this these those they them their there then than which who whom whose what when where how
    why are was were been being has have had does did done not but its his her our your you she him into onto upon over
    under also only just very such same other another each every any all some more most both per via out off about
    would could should shall must may might can cannot will one first next after before while during until once here
    says say said tell tells told according recommend recommends recommended recommend suggest suggests suggested advise
    advises advised require requires required describe describes mention mentions mentioned name names named list lists
    listed ask asks warn warns warned note notes state states stated call calls let lets playbook playbooks runbook
    runbooks section sections step steps file document procedure guide incident incidents past case cases alert alerts
    question questions fit fits here's it's isn't
"""
_SAYS_LITTLE = frozenset(_LITTLE.split())


def stems_of(text: str) -> frozenset[str]:
    """The stems of the telling words of a text."""
    return frozenset(stem(word) for word in _WORD.findall(text.lower()) if word not in _SAYS_LITTLE)


def stem(word: str) -> str:
    """A word without its ending: "revoking" and "revokes" become one."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            word = word.removesuffix(ending)
            break
    return word[:-1] if len(word) > _SHORTEST_STEM and word[-1] == word[-2] else word


def share(claim: frozenset[str], held: Iterable[str]) -> float:
    """How much of a claim stands in `held`; words with five letters in common at their beginning are the same."""
    if not claim:
        return 1.0
    held = frozenset(held)
    beginnings = {each[:_PREFIX] for each in held if len(each) >= _PREFIX}
    return sum(word in held or word[:_PREFIX] in beginnings for word in claim) / len(claim)


def said_in_one_line(wanted: frozenset[str], text: str) -> float:
    """How much of a line the wanted stems are, from 0 to 1, in the line that holds them all and least else; 0 if no
    line holds all of two or more."""
    if len(wanted) < 2:
        return 0.0
    lines = (stems_of(line) for line in text.splitlines())
    return max((len(wanted) / max(len(line), len(wanted)) for line in lines if share(wanted, line) == 1), default=0.0)
