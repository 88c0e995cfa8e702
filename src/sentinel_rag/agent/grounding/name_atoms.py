"""Names in an answer that have no form of their own: quotations, code spans, names of results, capitalised names.

A name that no result holds is how an invented person, actor or product shows, so words with a capital inside a sentence
are looked up unless they are everyday words of this trade.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sentinel_rag.agent.grounding.atoms import Atom, Kind
from sentinel_rag.agent.grounding.everyday_words import KNOWN_WORDS

_CODE = re.compile(r"`([^`\n]{1,2000})`")
_QUOTED = re.compile(
    r"“([^”\n]{1,400})”|\"([^\"\n]{1,400})\"|(?<![\w])[‘']([^’'\n]{3,200})[’'](?!\w)|«([^»\n]{1,400})»"
)
_LABELLED = re.compile(
    r"\b(?:[Hh]ost|[Dd]evice|[Mm]achine|[Ss]erver|[Ww]orkstation|[Ee]ndpoint|[Aa]ccount|[Uu]ser(?:name)?|[Mm]ailbox|"
    r"[Uu]ser account|[Hh]ostname|[Aa]ssigned to|[Oo]wned by|[Oo]wner(?: is|:)?|[Bb]elongs to|[Aa]ssignee(?: is|:)?)\s+"
    r"[*_`]*(?P<name>(?=[\w.$-]*[\d._$-])[A-Za-z][\w.$-]*[\w$]|[A-Z][\w’'-]+(?:[ -][A-Z][\w’'-]+)*)"
)
_CAPITALISED = re.compile(
    r"(?<![\w.@\\/#-])[A-Z][A-Za-z0-9]*(?:[’'-][A-Za-z0-9]+)*(?:[ ](?:(?:of|and|the|for|de|"
    r"van|von)[ ])?[A-Z][A-Za-z0-9]*(?:[’'-][A-Za-z0-9]+)*)*"
)
_TOKEN = re.compile(r"(?<![\w])(?=[\w.:$@\\/+-]*\d)(?=[\w.:$@\\/+-]*[A-Za-z])[A-Za-z0-9_$][\w.:$@\\/+-]*[\w$…]")
_SHAPED = re.compile(r"(?<![\w.@\\/-])(?:[a-z]+[_$][\w$]*|[A-Z]{2,}-[A-Z][A-Z0-9-]+|svc-[\w-]+|adm-[\w-]+)(?![\w])")


def code_spans_in(text: str) -> Iterator[Atom]:
    """Code spans; the value is what stands inside."""
    for match in _CODE.finditer(text):
        yield Atom(Kind.CODE, match[0], match.start(), match.end(), match[1].strip())


def quotations_in(text: str) -> Iterator[Atom]:
    """Texts in quotation marks; the value is what stands inside."""
    for match in _QUOTED.finditer(text):
        inside = next(group for group in match.groups() if group is not None)
        yield Atom(Kind.QUOTE, match[0], match.start(), match.end(), inside.strip())


def labelled_names_in(text: str) -> Iterator[Atom]:
    """Names behind a word such as "host" or "assigned to"."""
    for match in _LABELLED.finditer(text):
        name = match["name"]
        if name.split(" ")[0].lower() not in KNOWN_WORDS:
            yield Atom(Kind.NAME, name, match.start("name"), match.end("name"), name)


def shaped_names_in(text: str) -> Iterator[Atom]:
    """Words with a digit among letters, and words whose shape is no English word's: `svc_backup`, `DC-PROD`."""
    for pattern in (_TOKEN, _SHAPED):
        for match in pattern.finditer(text):
            word = match[0].rstrip(".:/")
            if word.lower() not in KNOWN_WORDS and not _ORDINAL.fullmatch(word):
                yield Atom(Kind.TOKEN, word, match.start(), match.start() + len(word), word.rstrip("…"))


_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th|x|s)|\d{1,2}h|[Qq][1-4]|v\d+(?:\.\d+)*", re.IGNORECASE)


def capitalised_names_in(text: str, *, begins: bool) -> Iterator[Atom]:
    """Capitalised words inside a sentence that are not everyday words of this trade. `begins` if `text` begins a
    sentence, whose first word has its capital from there."""
    for match in _CAPITALISED.finditer(text):
        words, start = match[0].split(" "), match.start()
        if (begins and not text[:start].strip(' *_`(“"#>-–—|[]0123456789.)')) or re.search(
            r"[.!?:;]\s+[*_“\"]*$|[|–—•·]\s*[*_`]*$", text[:start]
        ):
            # The first word of a sentence may be any word.
            start += len(words[0]) + 1
            words = words[1:]
        while words and _everyday(words[0]):
            start += len(words[0]) + 1
            words = words[1:]
        while words and _everyday(words[-1]):
            words = words[:-1]
        name = " ".join(words)
        if name and not all(_everyday(word) for word in words):
            yield Atom(Kind.NAME, name, start, start + len(name), name)


def _everyday(word: str) -> bool:
    word = word.lower().replace("’", "'").removesuffix("'s")
    return (
        len(word) < 2
        or word in KNOWN_WORDS
        or (word.endswith("s") and word[:-1] in KNOWN_WORDS)
        or all(part in KNOWN_WORDS for part in re.split(r"[-']", word))
    )
