"""Finding templates by words of a question, for list_kql_templates."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence

from sentinel_rag.sentinel.template_registry import KqlTemplate

_WORD = re.compile(r"[^\W_]+(?:\.\d+)?")
_JOINED = re.compile(r"[A-Z][a-z]+(?=[A-Z])|(?<=[a-z])[A-Z][a-z]+")
_NEAR_BEST = 0.75
_SHORTEST_STEM, _LONGEST_ENDING = 4, 3


def found_templates(search: str, templates: Sequence[KqlTemplate]) -> tuple[Sequence[KqlTemplate], bool]:
    """The templates that fit `search` best, best first, and whether one of them has every word. Without a
    word in `search` all templates; without a template for any word none.

    A word weighs more the fewer templates hold it, so that "country" counts for more than "by".
    """
    words = set(_words((search,)))
    if not words:
        return templates, True
    held = {template.name: frozenset(_words(_texts(template))) for template in templates}
    holders = {word: {name for name in held if _holds(held[name], word)} for word in words}
    weights = {word: math.log(1 + len(templates) / len(names)) for word, names in holders.items() if names}
    scores = {name: sum(weight for word, weight in weights.items() if name in holders[word]) for name in held}
    best = max(scores.values(), default=0)
    found = [template for template in templates if best and scores[template.name] >= _NEAR_BEST * best]
    found.sort(key=lambda template: -scores[template.name])
    return found, not found or (all(holders.values()) and best >= sum(weights.values()) * (1 - 1e-9))


def _texts(template: KqlTemplate) -> Iterable[str]:
    yield from (template.name, template.description)
    yield from (parameter.name for parameter in template.parameters)
    for texts in (template.tables, template.questions, template.tactics, template.techniques):
        yield from texts


def _words(texts: Iterable[str]) -> Iterable[str]:
    for text in texts:
        yield from _WORD.findall(text.casefold().replace("-", ""))
        yield from (part.casefold() for part in _JOINED.findall(text))


def _holds(held: Collection[str], word: str) -> bool:
    """Whether one of the words is `word` in another form: "countries" and "country", "signin" and "sign-ins"."""
    return word in held or any(_same_stem(*sorted((word, other), key=len)) for other in held)


def _same_stem(shorter: str, longer: str) -> bool:
    if not (shorter + longer).isalpha():
        return longer.startswith(f"{shorter}.")  # T1562 is no form of T1566, but T1566.001 is one
    common = next((place for place, letter in enumerate(shorter) if letter != longer[place]), len(shorter))
    return common >= max(_SHORTEST_STEM, len(shorter) - 1) and len(longer) - common <= _LONGEST_ENDING
