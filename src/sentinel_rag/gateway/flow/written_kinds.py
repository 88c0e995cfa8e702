"""Values of a policy's own kinds in a user's words: where one is written, and whether its noun stands beside it.

Two things name nothing, whatever the kind: a word of the closed classes of a language (articles, prepositions,
pronouns; `language.lexicon` has them as data), and the first word of a clause, since its place and its capital are the
sentence's. Both may stand between quotation marks, and then they are meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sentinel_rag.gateway.policy.kinds import MAX_VALUE, NamedKind
from sentinel_rag.language.lexicon import plain_words

_START = re.compile(r"(?<![\w])\w")
_QUOTES = "`'\"“”„«»#"
_BETWEEN = r"[`'\"“”„«»]?(?:\s{0,3},\s{0,3}(?:and\s{1,3}|or\s{1,3})?|\s{1,3}(?:and|or|&)\s{1,3})[`'\"“”„«»#]?"
_MAX_BETWEEN = 16
"""Characters of the longest text that `_BETWEEN` fits."""


def written(kind: NamedKind, clause: str) -> Iterator[str]:
    """The canonical texts of the values of `kind` that a clause names."""
    spans = list(_spans(kind, clause))
    if not kind.beside:
        chosen = spans
    else:
        nouns = "|".join(map(re.escape, kind.beside))
        before = re.compile(rf"(?i:\b(?:{nouns})\s{{1,3}}(?:named\s{{1,3}}|called\s{{1,3}})?)[{_QUOTES}]?\Z")
        after = re.compile(rf"[{_QUOTES}]?\s{{1,3}}(?i:(?:{nouns})\b)")
        joint = re.compile(_BETWEEN)
        known = [
            span
            for span in spans
            if before.search(clause, max(0, span[0] - 100), span[0]) or after.match(clause, span[1])
        ]
        chosen = list(known)
        listed, ends = set(known), {end for _, end in known}
        for span in spans:  # "the channels general, random and sales"
            near = ends.intersection(range(span[0] - _MAX_BETWEEN, span[0]))
            if any(joint.fullmatch(clause, end, span[0]) for end in near) and span not in listed:
                chosen.append(span)
                listed.add(span)
                ends.add(span[1])
    for start, end in chosen:
        text = clause[start:end]
        if not _is_of_the_sentence(clause, start, end):
            canonical = kind.canonical(text)
            if canonical is not None:
                yield canonical


def _is_of_the_sentence(clause: str, start: int, end: int) -> bool:
    """Whether a word stands there for the sentence's sake: it is in no quotation marks, and begins it or joins it."""
    text = clause[start:end]
    if not text.isalpha() or clause[start - 1 : start] in tuple(_QUOTES):
        return False
    return not clause[:start].strip() or text.lower() in plain_words()


def _spans(kind: NamedKind, clause: str) -> Iterator[tuple[int, int]]:
    """Where a value may stand: from the beginning of a word to the end of one."""
    for start in _START.finditer(clause):
        match = kind.start.search(clause[start.start() : start.start() + MAX_VALUE])
        if match is None or match.end() == 0:
            continue
        end = start.start() + match.end()
        if end == len(clause) or not (clause[end - 1].isalnum() and (clause[end].isalnum() or clause[end] == "_")):
            yield start.start(), end
