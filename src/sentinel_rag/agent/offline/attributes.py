"""Which property a question asks for, and its values in an entity of a result.

Reads `attribute_catalogue`; nothing here knows how values are told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sentinel_rag.agent.offline.attribute_catalogue import ADDRESSES, ATTRIBUTES, HASH_LENGTHS, Attribute
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.vocabulary import KIND_WORDS
from sentinel_rag.contracts.json_values import JsonValue


def attribute_of(reading: Reading) -> Attribute | None:
    """The property that the question asks for, or None."""
    asked = attributes_asked(reading)
    return asked[0] if asked else None


def attributes_asked(reading: Reading) -> list[Attribute]:
    """Properties in the order in which the question's words ask for them; the first is the one meant.

    They are looked for behind the last "what", "which", "identify", ... A word right before a value ("of file X") names
    that value and asks for nothing; "file hash" and "process id" begin with a word that alone asks for less.
    """
    text = _without_named(reading)
    for wanted in reversed([match.start() for match in _WANTED.finditer(text)] or [0]):
        found = _attributes_in(text[wanted:])
        if found:
            return found
    return _attributes_in(text)


def _without_named(reading: Reading) -> str:
    """The cue text without the named values and without the word of their kind: "host dc-01" asks for no host."""
    text = _NAMED.sub("", reading.core) if reading.names else reading.core
    if any(name.shaped for name in reading.names):
        text = _KIND_OF_SHAPED.sub(" ", text)
    for name in reading.names:
        if not name.shaped and not name.quoted:
            value = re.escape(name.value)
            text = re.sub(rf"\b(?:(?:{_KIND})s?\s+)?{value}(?![\w.-]*\w)", " ", text, flags=re.IGNORECASE)
    return text


def _attributes_in(text: str) -> list[Attribute]:
    found: list[tuple[int, int, Attribute]] = []
    for order, attribute in enumerate(ATTRIBUTES):
        match = _word(attribute).search(text)
        if match is not None:
            found.append((match.start(), order, attribute))
    ranked = sorted(found, key=lambda item: item[:2])
    if ranked:
        first = ranked[0][0]
        # A more specific property that begins with or right behind the first word takes its place.
        ranked.sort(key=lambda item: (item[0] > first + 9, item[1] if item[0] <= first + 9 else item[0]))
    return [attribute for _, _, attribute in ranked]


def is_search(reading: Reading) -> bool:
    """True if the question describes an alert in words and asks for one property of what it names.

    "What is the SID of the account that added an uncommon file to a Run key?" lists nothing and counts nothing.
    """
    if len(reading.words) < 7 or attribute_of(reading) is None or reading.has(_RANKED):
        return False
    core = reading.core
    wanted = [match.start() for match in _WANTED.finditer(core) if _attributes_in(core[match.start() :])]
    if not wanted:
        return False
    behind = reading.core[wanted[-1] :]
    first = min(
        (match.start() for each in ATTRIBUTES if (match := _word(each).search(behind)) is not None), default=None
    )
    noun = re.search(r"\b(?:incidents?|alerts|tables?|templates?|quer(?:y|ies))\b", behind, re.IGNORECASE)
    if first is None or (noun is not None and noun.start() < first):
        return False
    return not re.search(
        r"\b(?:top|most|rank\w*|busiest|how\s+many|number\s+of|per\s+day|trend|over\s+time|all)\b",
        behind[: first + 20],
        re.I,
    )


_RANKED = r"the\s+most(?!\s+(?:recent|likely))|most\s+(?:alerts|often|frequently|common(?:ly)?)|top\s+\d+|rank\w*"
_WANTED = re.compile(
    # "from which" and "the user who" begin a relative clause and ask for nothing.
    r"(?:^|[.?!:;,]\s*|\b(?:me|us|out|determine|identify|know|and)\s+)(?:which|who(?:se|m)?)\b|"
    r"\b(?:what|identify|provide|determine|find(?:\s+out)?|get|specify|tell\s+(?:me|us)|give\s+(?:me|us)|reveal|confirm)\b",
    re.IGNORECASE,
)


def _word(attribute: Attribute) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{attribute.cue})\b", re.IGNORECASE)


_KIND = "|".join(sorted((re.escape(word) for word in KIND_WORDS), key=len, reverse=True))
_KIND_OF_SHAPED = re.compile(rf"\b(?:{_KIND})\s{{3,}}", re.IGNORECASE)
"""The word of a kind right before a value that was blanked out: "hash 7fe7..." asks for no hash."""
_NAMED = re.compile(
    r"\b(?:of|for|by|from|did|does|has|have|was|is)\s+(?:the\s+)?(?:host|user|account|file|"
    r"machine|device|process|ip)\s{2,}",
    re.I,
)


def values_of(attribute: Attribute, entity: Mapping[str, JsonValue]) -> Iterator[tuple[str, JsonValue]]:
    """(JSON pointer inside the entity, value) of the attribute; nothing if the entity is of another kind."""
    if entity.get("kind") not in attribute.kinds:
        return
    found = False
    for key, value in entity.items():
        if plain_key(key) in attribute.keys and value not in (None, "", [], {}):
            for pointer, leaf in _leaves(f"/{escape(key)}", value):
                if _fits(attribute, pointer, leaf):
                    found = True
                    yield pointer, leaf
    if not found and entity.get("kind") == "filehash" and attribute.label in HASH_LENGTHS:
        name = entity.get("name")
        if isinstance(name, str) and _fits(attribute, "", name):
            yield "/name", name
    elif not found and _stands_by_name(attribute, entity):
        yield "/name", entity["name"]


def _stands_by_name(attribute: Attribute, entity: Mapping[str, JsonValue]) -> bool:
    name = entity.get("name")
    known = attribute.named and entity.get("kind") not in attribute.unnamed
    return known and bool(name) and _fits(attribute, "", name)


def _fits(attribute: Attribute, pointer: str, leaf: JsonValue) -> bool:
    if attribute.label in ADDRESSES:
        return isinstance(leaf, str) and "@" in leaf
    length = HASH_LENGTHS.get(attribute.label)
    return length is None or (isinstance(leaf, str) and re.fullmatch(rf"[0-9a-fA-F]{{{length}}}", leaf) is not None)


def _leaves(pointer: str, value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _leaves(f"{pointer}/{escape(key)}", part)
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from _leaves(f"{pointer}/{index}", part)
    elif value not in (None, ""):
        yield pointer, value


def plain_key(key: str) -> str:
    """A property name without case and punctuation."""
    return "".join(character for character in key.lower() if character.isalnum())


def escape(key: str) -> str:
    """A key as a token of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
