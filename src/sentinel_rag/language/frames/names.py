"""Names of the workspace, with the short forms that people say: first names, short hosts, spelled letters."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sentinel_rag.language.frames.phrases import PhraseBook, distance
from sentinel_rag.language.lexicon import fold

_SHORTEST_PART, _SHORTEST_START = 3, 4
MOST_WORDS = 8


@dataclass(frozen=True, slots=True)
class Known:
    """A name as the workspace writes it, and what it is."""

    name: str
    kind: str


def short_name(name: str) -> str:
    """The part that people type: the host name of an FQDN, the user of a UPN or of `DOMAIN\\user`."""
    name = name.rpartition("\\")[2]
    return name.partition("@")[0] if "@" in name else name.partition(".")[0] if name.count(".") > 1 else name


def _squashed(text: str) -> str:
    return "".join(re.findall(r"[^\W_]+", fold(text)))


@dataclass(frozen=True)
class WorkspaceNames:
    """The names of one workspace by every form in which they are said."""

    whole: Mapping[str, tuple[Known, ...]] = field(default_factory=dict)
    """Squashed whole names and their part before the domain."""
    parts: Mapping[str, tuple[Known, ...]] = field(default_factory=dict)
    """Parts of accounts' names."""

    @classmethod
    def of(cls, names: Mapping[str, Sequence[str]]) -> WorkspaceNames:
        """Names by their kind ("account", "host", ...)."""
        whole: dict[str, dict[Known, None]] = defaultdict(dict)
        parts: dict[str, dict[Known, None]] = defaultdict(dict)
        for kind, all_ in names.items():
            for name in all_:
                known = Known(name, kind)
                short = name.rpartition("\\")[2].partition("@")[0]
                short = short.partition(".")[0] if kind == "host" else short
                for form in (name, short):
                    whole[_squashed(form)][known] = None
                if kind == "account":
                    for part in re.findall(r"[^\W\d_]+", fold(short)):
                        if len(part) >= _SHORTEST_PART:
                            parts[part][known] = None
        return cls({k: tuple(v) for k, v in whole.items()}, {k: tuple(v) for k, v in parts.items()})

    def exact(self, text: str) -> tuple[Known, ...]:
        """The names that the text is, however it is punctuated."""
        return self.whole.get(_squashed(text), ())

    def meant(self, text: str) -> tuple[Known, ...]:
        """The names that the text is, or is a part of."""
        return self.exact(text) or self.parts.get(fold(text), ())

    def near(self, text: str) -> list[str]:
        """Names a slip away from the text, or that hold it."""
        low = _squashed(text)
        far = 2 if len(text) >= 8 else 1
        forms = {**self.parts, **self.whole}
        found = {
            known.name
            for form, all_ in forms.items()
            if (len(low) >= _SHORTEST_START and low in form)
            or (len(low) >= _SHORTEST_START and abs(len(form) - len(low)) <= far and distance(low, form, far) <= far)
            for known in all_
        }
        return sorted(found)

    def window(self, words: Sequence[str], book: PhraseBook) -> tuple[int, Known] | None:
        """The longest run of words at the start of `words` that is one name: "s r v file zero one"."""
        if not self.whole:
            return None
        for count in range(min(MOST_WORDS, len(words)), 0, -1):
            said = words[:count]
            if count == 1 and (book.knows(said[0]) or said[0].isdecimal()):
                continue
            said = [word for place, word in enumerate(said) if not (0 < place < count - 1 and word in book.dots)]
            numbers = [book.digits.get(word, book.numbers.get(word)) for word in said]
            if all(book.knows(word) and len(word) > 1 and n is None for word, n in zip(said, numbers, strict=True)):
                continue
            form = "".join(word if n is None else str(n) for word, n in zip(said, numbers, strict=True))
            found = self.whole.get(form) or (self.parts.get(form) if count == 1 else None)
            if found and len(found) == 1 and len(form) >= _SHORTEST_PART:
                return count, found[0]
        return None
