"""A frame as a value, the grammar that tells which senses words have, shapes of sentences, and the workspace's names.

The best match is taken first, wherever its rule stands in the file: one that demands more, and says it more exactly,
is better. What no rule takes is told as it stands.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache, lru_cache

from sentinel_rag.language.frames.phrases import SILENT, Item, PhraseBook, Sense, distance
from sentinel_rag.language.lexicon import fold
from sentinel_rag.language.text import toml_beside


@dataclass
class Frame:
    """Features (type -> values, in their order), the time, and what is not understood."""

    text: str
    """The sentence as it was read: mended, numbers as digits."""
    said: str = ""
    """The sentence as it was said."""
    language: str = "en"
    features: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    window: dict[str, str] = field(default_factory=dict)
    """The window as arguments of a tool."""
    other_window: bool = False
    second_window: dict[str, str] = field(default_factory=dict)
    """A second time that is said beside the first, such as the week that this one is compared with."""
    listed_times: bool = False
    """Whether the second one only stands beside the first, as in "in May, and how many in June"."""
    later_window: dict[str, str] = field(default_factory=dict)
    """The second of two whole periods that the window joins ("june and july")."""
    around: timedelta | None = None
    time_said: str = ""
    duration: str = ""
    """The length of time that was said, as a time span ("2h", "3d")."""
    time_problem: str = ""
    time_instead: tuple[tuple[str, str], ...] = ()
    """What is said of a time that is not clear, and what could stand in its place."""
    unread: list[str] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    """Unknown words that hardly narrow what is asked for; an answer says that they were left out."""
    kinds: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The kinds of thing that a name may be by its shape or by the workspace."""
    whole: dict[str, str] = field(default_factory=dict)
    """A name as it was said, with the one that the workspace knows it by."""
    polar: bool = False
    """Whether yes or no is asked for."""
    items: tuple[Item, ...] = ()
    """What was read as what, before composition."""

    def name_kinds(self, name: str) -> tuple[str, ...]:
        """The kinds of thing that `name` may be, the likeliest first: as it was said, then by its shape."""
        said = self.one("of_kind")
        shape = self.kinds.get(name, ())
        return (said, *(("sender",) if said == "account" else ())) if said else shape

    def all(self, type_: str) -> list[str]:
        """The values of a type, in their order."""
        return self.features.get(type_, [])

    def one(self, type_: str) -> str | None:
        """The first value of a type."""
        values = self.all(type_)
        return values[0] if values else None

    def has(self, *senses: str) -> bool:
        """True if the frame holds one of `senses`, each a type or type:value."""
        for sense in senses:
            type_, _, value = sense.partition(":")
            if (value in self.all(type_)) if value else bool(self.all(type_)):
                return True
        return False

    def tell(self, type_: str, value: str) -> None:
        """Add a feature."""
        if value not in self.features[type_]:
            self.features[type_].append(value)

    def copy(self) -> Frame:
        """A frame of its own that can be changed."""
        features: dict[str, list[str]] = defaultdict(list)
        features.update({type_: list(values) for type_, values in self.features.items()})
        return replace(
            self, features=features, kinds=dict(self.kinds), whole=dict(self.whole), window=dict(self.window)
        )


_PASSED_OVER = (*SILENT, "modal", "ask", "op", "do", "of")
"""Types that may stand between the parts of a rule."""
_BY_TEXT, AS_SAID = ("lit", "text", "threat", "name"), ("program", "said")
"""Types of words, and a sense, that have no other value than the words."""
_ENDS = "?.!, "


@dataclass(frozen=True, slots=True)
class Part:
    """One element of a rule: `stays` for other rules, `next_to` the one before, `fits` the kind before it."""

    types: tuple[tuple[str, frozenset[str] | None], ...]
    stays: bool
    next_to: bool
    fits: bool

    def match(self, item: Item) -> Sense | None:
        """The sense of the item that this part takes."""
        for type_, values in self.types:
            found = item.sense(type_, values)
            if found is not None:
                return found
        return None


@dataclass(frozen=True, slots=True)
class Rule:
    """Parts in their order, and what the frame is told: `$n` is the value of the nth part, `#n` its text."""

    parts: tuple[Part, ...]
    then: tuple[str, ...]
    score: float


Match = list[tuple[int, Item, Sense]]


def rule_of(when: str, then: list[str], weight: float = 0) -> Rule:
    """A rule as it is written: types (type:value|value), `~` stays, `!` next to, `@` fits."""
    parts = tuple(map(_part, when.split()))
    exact = sum(1 for part in parts for _, values in part.types[:1] if values)
    close = sum(part.next_to + part.fits for part in parts)
    stay = sum(part.stays for part in parts)
    return Rule(parts, tuple(then), 10 * len(parts) + 3 * exact + 2 * close - 4 * stay + weight)


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, the best first."""
    told = toml_beside(__package__, "grammar.toml")["rules"]
    made = [rule_of(rule["when"], rule["then"], rule.get("weight", 0)) for rule in told]
    return tuple(sorted(made, key=lambda rule: -rule.score))


def _part(text: str) -> Part:
    stays, next_to, fits = text.startswith("~"), "!" in text, "@" in text
    types: list[tuple[str, frozenset[str] | None]] = []
    for told in text.strip("~!@").split("/"):
        type_, _, values = told.partition(":")
        types += [(one, frozenset(values.split("|")) if values else None) for one in type_.split("|")]
    return Part(tuple(types), stays, next_to, fits)


def compose(items: list[Item], frame: Frame) -> None:
    """Tell the frame what the items say together."""
    types = {type_ for item in items for type_, _ in item.senses}
    for rule in rules():
        # Of all rules a sentence has the beginnings of a few.
        if not types.isdisjoint(type_ for type_, _ in rule.parts[0].types):
            items = _applied(rule, items, frame)
    for item in items:
        _tell(item, frame)


def _applied(rule: Rule, items: list[Item], frame: Frame) -> list[Item]:
    place = 0
    while place < len(items):
        found = _match_at(rule.parts, items, place)
        if found is None:
            place += 1
            continue
        for feature in rule.then:
            type_, _, value = _filled(feature, found).partition("=")
            frame.tell(type_, value.strip(_ENDS) if type_ in ("title", "owner") else value)
        gone = {at for (at, _, _), part in zip(found, rule.parts, strict=True) if not part.stays}
        items = [item for at, item in enumerate(items) if at not in gone]
        if not gone:
            place += 1
    return items


def _match_at(parts: tuple[Part, ...], items: list[Item], place: int) -> Match | None:
    found: Match = []
    for number, part in enumerate(parts):
        while number and not part.next_to and place < len(items) and items[place].type in _PASSED_OVER:
            if part.match(items[place]):
                break
            place += 1
        if place >= len(items):
            return None
        sense = part.match(items[place])
        if sense is None or (part.next_to and items[place].start - found[-1][1].end > 1):
            return None
        if part.fits and items[place].sense("name", frozenset({found[0][2][1]})) is None:
            return None
        found.append((place, items[place], sense))
        place += 1
    return found


def _filled(value: str, found: Match) -> str:
    def fill(match: re.Match[str]) -> str:
        _, item, sense = found[int(match[0][1:]) - 1]
        return item.text if match[0][0] == "#" or sense[0] in _BY_TEXT or sense == AS_SAID else sense[1]

    return re.sub(r"[$#]\d", fill, value)


def _tell(item: Item, frame: Frame) -> None:
    if item.type in ("text", "qualifier"):
        frame.unread.append(item.text)
        return
    for type_, value in item.senses:
        if type_ == "threat":
            frame.tell("maybe_title" if item.sense("topic") else "title", item.text)
        elif type_ not in SILENT:
            frame.tell(type_, value)


def _any_of(words: str) -> str:
    return "|".join(toml_beside(__package__, "grammar.toml")[words].split())


_STANDS_FOR = {"LETTER": r"[^\W\d_]", "ENDINGS": _any_of("endings"), "DOMAINS": _any_of("top_domains")}
_FINDERS = tuple(
    (name, re.compile(re.sub("|".join(_STANDS_FOR), lambda found: _STANDS_FOR[found[0]], shape), re.IGNORECASE))
    for name, shape in toml_beside(__package__, "grammar.toml")["shapes"].items()
)
NAMES: Mapping[str, tuple[str, ...]] = {
    name: tuple(kinds) for name, kinds in toml_beside(__package__, "grammar.toml")["names"].items()
}
"""Shapes that name a thing, and as which kinds."""


@dataclass(frozen=True, slots=True)
class Token:
    """A stretch of a text that is something by its shape."""

    shape: str
    value: str
    start: int
    end: int


def refang(text: str) -> str:
    """The text with defanged addresses (`hxxp`, `[.]`) as they were."""
    text = re.sub(r"\bhxxp(s?)\b", r"http\1", text, flags=re.IGNORECASE)
    return text.replace("[.]", ".").replace("(.)", ".").replace("[:]", ":").replace("[@]", "@")


@lru_cache(maxsize=64)
def shaped_tokens(text: str) -> tuple[Token, ...]:
    """Tokens of `text`, none overlapping; an earlier shape wins. Several readers ask for the same, so it is kept."""
    taken: list[Token] = []
    for shape, finder in _FINDERS:
        for match in finder.finditer(text):
            start, end = match.span()
            if any(start < one.end and one.start < end for one in taken):
                continue
            value = next((group for group in match.groups() if group), match[0])
            if shape == "url":
                value = value.rstrip(".,;:!?)")
                end = start + len(value)
            if shape == "number":
                value = value.lstrip("# ")
            if shape == "quoted":
                inner = shaped_tokens(value)
                if len(inner) == 1 and inner[0].shape in NAMES and inner[0].value == value:
                    shape = inner[0].shape
            taken.append(Token(shape, value, start, end))
    return tuple(sorted(taken, key=lambda one: one.start))


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
