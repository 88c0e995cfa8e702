"""From words to one frame: shapes, names of the workspace, time, the best cover by phrases, then composition.

Total and pure: any text gives a frame; what is not understood is told in `unread`.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from string import digits

from sentinel_rag.language.frames.asides import asides as said_beside
from sentinel_rag.language.frames.clauses import asides, loose, tags, taken_back, told_apart, without
from sentinel_rag.language.frames.frame import (
    AS_SAID,
    NAMES,
    Frame,
    Token,
    WorkspaceNames,
    compose,
    refang,
    shaped_tokens,
)
from sentinel_rag.language.frames.phrases import (
    ANY_NUMBER,
    ANY_OF_TIME,
    LANGUAGES,
    SILENT,
    WORD,
    Item,
    PhraseBook,
    phrase_book,
    phrases_of,
    sections,
    settings,
    words_of,
)
from sentinel_rag.language.lexicon import fold, months
from sentinel_rag.language.text import blank
from sentinel_rag.language.times import TimeReading

_HEADING = re.compile(r"\s*[-–—:]\s|[.,]\s+(?=[^\W\d])")
"""Between a number and what is asked of it: "18 - hosts", "ok, 7. who has it"."""
_LINKS = ("meta", "follow", "talk")
"""Types of words that may stand before it."""
_BREAKS = re.compile(r"[,;:]")
_SAID_AGAIN = re.compile(r"\b(\w+)(?=,[^,.?!]*,\s*\1\b)", re.IGNORECASE)
_DENIAL = re.compile(r"(?<=[,;])\s*\w[^,;.?!]*")
_A_NUMBER = re.compile(rf"(?<!\d){ANY_NUMBER}(?:{'|'.join(one[1:] for one in ANY_OF_TIME)})?(?!\d)")
_DASHED = re.compile(r"(?<![\w.#-])[^\W\d_]{2,}(?:-[^\W\d_]{2,})+(?![\w.@-])")
_LONGEST_UNIT = 3
"""Letters of a part of such a name that tells a site or a department, whatever else it means."""
_MAYBE_WORDS = ("host", "user", "template", "table", "operation")
"""Shapes that a word of the language may have."""
_LEVELS = ("severity", "status", "class")
"""What a field holds, and no title does: "informational" in quotes."""
_LISTED = ("kind", "topic", "severity", "status", "class", "owner", "threat", "know", "prop")
"""What a relative clause may stand behind."""
_NAMED = "\0"
"""Stands for each letter of a name where a time is looked for."""
_JOINS = ("follow", "ask", "op")
_NEAR_ENOUGH = 0.7
"""The share of the words that the best language knows, below which another is not tried."""
_BEFORE_A_NOUN = ("status", "severity", "owner", "f", "class", "threat")
_SEVERITY = frozenset({"severity"})
_RANKED = frozenset({"top"})
_MEANT = frozenset({"instead"})
_SEVERAL = frozenset({"them", "ones"})
_PERSON = frozenset({"account"})
_PRONOUNS, _ROWS = frozenset({"it", "they"}), frozenset({"incident", "alert"})
ReadTime = Callable[[str], TimeReading]


@dataclass(frozen=True)
class Reader:
    """Reads sentences about one workspace; `read_time` knows the clock."""

    read_time: ReadTime
    names: WorkspaceNames = field(default_factory=WorkspaceNames)
    languages: tuple[str, ...] = LANGUAGES

    def read(self, text: str) -> Frame:
        """The frame of one sentence, in the language that reads most of it."""
        text = refang(" ".join(text.replace("’", "'").split()))
        words = [fold(match[0]) for match in WORD.finditer(text)]
        first = self.languages[0]
        if phrase_book(first).known(words) >= _NEAR_ENOUGH * len(words):
            attempt = _Attempt(text, phrase_book(first), self)
            if not attempt.strange:
                return attempt.frame(first)
        known = {name: phrase_book(name).known(words) for name in self.languages}
        # Mending the words of another language is dear, and one that knows much fewer of them reads nothing right.
        enough = min(_NEAR_ENOUGH * max(known.values()), max(known.values()) - 1)
        best: _Attempt | None = None
        for name in (first, *sorted(self.languages[1:], key=lambda name: -known[name])):
            # Of a sentence that the first one mostly knows, one word more may be a name: `user agents of mira`.
            more = name == first or known[name] > known[first] + (known[first] >= _NEAR_ENOUGH * len(words))
            level = best is not None and known[name] >= known[best.book.language]  # and mends fewer words
            if more and known[name] >= enough and (best is None or best.strange or level):
                other = _Attempt(text, phrase_book(name), self)
                if best is None or other.worth(known) < best.worth(known):
                    best = other
        best = best or _Attempt(text, phrase_book(first), self)
        return best.frame(best.book.language)


class _Attempt:
    """One text under the phrases of one language."""

    def __init__(self, text: str, book: PhraseBook, reader: Reader) -> None:
        self.book, self.reader, self.said = book, reader, text
        self.text = self._mended(text)
        self.tokens = self._tokens(self.text)
        joined = list(self._joined_spans())
        masked = self.text
        for start, end in joined:
            masked = blank(masked, start, end)
        for one in self.tokens:  # no blanks: what stands before a name says no bound ("desde 10.0.0.5 ayer")
            masked = masked[: one.start] + _NAMED * (one.end - one.start) + masked[one.end :]
        masked = self._undenied(masked)
        self.time = reader.read_time(masked)
        self.rest = self.time.rest.replace(_NAMED, " ")
        for start, end in joined:
            self.rest = self.rest[:start] + self.text[start:end] + self.rest[end:]
        self.cost, covered = self._cover()
        covered = without(covered, [*tags(covered, self.text), *taken_back(covered, self.text)])
        beside = asides(covered, self.text)
        self.items, self.beside = told_apart(without(covered, beside), self.text, book)
        if beside and self.time.window:
            for first, last in beside:
                masked = blank(masked, covered[first].start, covered[last - 1].end)
            apart = reader.read_time(masked)
            self.time = apart if apart.window else self.time
        self.strange = sum(item.type == "text" for item in self.items)
        self.items = list(self._qualified())

    def worth(self, known: Mapping[str, int]) -> tuple[int, float, int]:
        """How well the text was read, the best first; of equals the language that knows more of the words."""
        return self.strange, self.cost, -known[self.book.language]

    def frame(self, language: str) -> Frame:
        """The frame of what was covered."""
        time = self.time
        frame = Frame(
            self.text,
            self.said,
            language,
            window=time.window.arguments() if time.window else {},
            other_window=bool(time.other),
            second_window=time.other_window.arguments() if time.other_window else {},
            listed_times=bool(time.other) and self._listed(*time.between),
            later_window=time.later.arguments() if time.later else {},
            around=time.around,
            time_said=_said(self.text, self.rest, self.tokens),
            duration=_duration(_said(self.text, self.rest, self.tokens), self.book),
            time_problem=time.question.sentence if time.question else "",
            time_instead=tuple((time.question.said, one) for one in time.question.replacements)
            if time.question
            else (),
            items=tuple(self.items),
        )
        for one in self.tokens:
            known = self.reader.names.exact(one.value) if one.shape in NAMES or one.shape == "known" else ()
            if one.shape == "known" and not known:
                known = self.reader.names.meant(one.value)
            kind = known[0].kind if len(known) == 1 else ""
            frame.kinds[one.value] = (kind,) if kind else NAMES.get(one.shape, ())
            frame.whole[one.value] = known[0].name if len(known) == 1 else one.value
            frame.kinds.setdefault(frame.whole[one.value], frame.kinds[one.value])
        for item in self.items:
            if (program := item.sense("program")) is not None:
                frame.kinds[item.text] = NAMES["file"][::-1]
                frame.whole[item.text] = item.text if program == AS_SAID else program[1]
        frame.polar = _polar(self.text, self.book)
        _mark_one(self.items, frame, self.book)
        _mark_definite(self.items, frame)
        beside = [*self.beside, *loose(self.items, self.text, self.book)]
        frame.loose = [item.text for item in beside]
        compose(_telling([item for item in self.items if item not in beside], language), frame)
        possessed = re.compile(r"'s?\s")
        for name in list(frame.all("name")):
            end = frame.text.find(name) + len(name)
            person = frame.name_kinds(name)[:1] == ("account",) and frame.has("kind:incident")
            if person and (possessed.match(frame.text, end) or self._has(name, frame)):
                frame.features["name"].remove(name)
                frame.tell("whose", name)
        for name in frame.all("whose"):
            # "The incidents of Ines" are those that she owns, "the alerts of Ines" those that name her.
            owned = frame.has("kind:incident") and not frame.has("kind:alert", "topic", "owner", "rel:involve")
            frame.tell("owner" if owned else "name", name)
        for title in frame.all("title"):
            if re.search(rf"(?<!['\w]){re.escape(title)}(?:'s|')\s", frame.text):
                frame.tell("problem", f"whose: {title}")
        frame.features["incident"].sort(key=frame.text.find)
        if not frame.has("ref") and any(_holds_pronoun(item, self.book) for item in self.items):
            frame.tell("ref", "within")
        return frame

    def _has(self, name: str, frame: Frame) -> bool:
        """Whether the list is of what a person has: "incidents that X has", "X, which cases does she have?"."""
        if frame.has("rel", "attr", "kind:alert", "topic", "status:Closed", "op:count") or frame.unread:
            return False
        said, start = settings(self.book.language, "has"), self.text.find(name)
        ends = [start + len(name), *(item.end for item in self.items if ("that", "account") in item.senses)]
        beside = [*words_of(self.text[:start])[-1:], *(word for end in ends for word in words_of(self.text[end:])[:1])]
        return not said.isdisjoint(beside)

    def _listed(self, start: int, end: int) -> bool:
        """Whether the words between two times only say that the same is asked of both."""
        between = [item for item in self.items if start <= item.start < end]
        return any(item.type in _JOINS for item in between) and all(
            item.silent or any(item.sense(type_) for type_ in (*_JOINS, "kind", "of", "do", "did")) for item in between
        )

    def _tokens(self, text: str) -> list[Token]:
        """Tokens by shape, and beside them the names that the workspace itself knows."""
        shaped = [token for one in shaped_tokens(text) if (token := self._as_token(one)) is not None]
        words = [match for match in WORD.finditer(text) if not any(t.start <= match.start() < t.end for t in shaped)]
        folded = [fold(match[0]) for match in words]
        known: list[Token] = []
        place = 0
        while place < len(words):
            found = self.reader.names.window(folded[place:], self.book)
            if found is None:
                place += 1
                continue
            start, end = words[place].start(), words[place + found[0] - 1].end()
            said = folded[place : place + found[0]]
            spelled = any(len(word) == 1 or word in self.book.digits or word in self.book.dots for word in said)
            value = found[1].name if spelled else text[start:end]
            if not any(t.start < end and start < t.end for t in shaped):
                known.append(Token("known", value, start, end))
            place += found[0]
        taken = [(one.start, one.end) for one in (*shaped, *known)]
        placed = [
            Token("host", match[0], *match.span())
            for match in _DASHED.finditer(text)
            if self._names_a_place(text, match) and not any(a < match.end() and match.start() < b for a, b in taken)
        ]
        return sorted([*shaped, *known, *placed], key=lambda one: one.start)

    def _names_a_place(self, text: str, dashed: re.Match[str]) -> bool:
        """Whether a word with a dash is a host though it holds no digit: it stands where one does ("on mb-winclient"),
        and its longer parts are no words."""
        before = words_of(text[: dashed.start()])[-1:]
        parts = [part for part in words_of(dashed[0]) if len(part) > _LONGEST_UNIT]
        strange = all(not self.book.senses(part) and self.book.mend(part) == part for part in parts)
        return bool(parts) and strange and bool(before) and before[0] in settings(self.book.language, "target")

    def _as_token(self, token: Token) -> Token | None:
        """The token, unless it is a word of the language; a number that is written to its noun is one ("inc-124")."""
        if token.shape == "quoted":
            senses = self.book.senses(*words_of(token.value))
            return None if senses and senses[0][0] in _LEVELS else token
        if token.shape not in _MAYBE_WORDS:
            return token
        words = words_of(token.value)
        if self.book.knows(*words) or all(
            self.book.knows(word) and len(word) > 1 for word in words if not word.isdecimal()
        ):
            head = self.book.senses(*words[:1])
            if token.shape == "host" and "-" in token.value and (("kind", "host") in head or words[-1][0] == "0"):
                return token  # "ws-01", "server-7", "web-03"
            if len(words) > 1 and words[-1].isdecimal() and ("kind", "incident") in head:
                return Token("number", token.value[len(words[0]) + 1 :], token.start, token.end)
            return token if token.shape == "template" else None
        glued = re.fullmatch(r"([^\W\d_]+)[-_]?(\d[\d-]*)", token.value)
        if glued and self.book.senses(fold(glued[1])) and not self.reader.names.exact(token.value):
            if ("kind", "incident") in self.book.senses(fold(glued[1])):
                return Token("number", glued[2], token.start, token.end)
            if len(glued[1]) > 2 and token.shape == "host" and "-" not in token.value:
                return None
        return token

    def _joined_spans(self) -> Iterator[tuple[int, int]]:
        found = list(WORD.finditer(self.text))
        words = [fold(match[0]) for match in found]
        for place in range(len(found)):
            for last in range(place + 1, min(place + self.book.longest_joined, len(found)) + 1):
                if tuple(words[place:last]) in self.book.joined:
                    yield found[place].start(), found[last - 1].end()

    def _undenied(self, text: str) -> str:
        """The text without a time that a clause of its own denies ("since 1 July, not 30 days"), that another one puts
        right ("yesterday, no wait, today"), and without the word that is said again ("since, let me think, since")."""
        text = _SAID_AGAIN.sub(lambda again: " " * len(again[0]), text)
        for mark in said_beside(text, "correction", "mark"):
            wrong, right = self.reader.read_time(text[: mark.start()]), text[mark.end() :]
            if wrong.window and self.reader.read_time(right).window:
                text = wrong.rest + " " * len(mark[0]) + right
        for clause in _DENIAL.finditer(text):
            first, *others = words_of(clause[0])
            denied = others and ("not", "not") in self.book.senses(first) and ("f", "f") not in self.book.senses(first)
            if denied and self.reader.read_time(clause[0]).window is not None:
                text = blank(text, *clause.span())
        return text

    def _mended(self, text: str) -> str:
        """Slips of spelling put right, spoken numbers as digits, phrases of time as the reader of times knows them."""
        parts, at = [], 0
        for token in self._tokens(text):
            parts += [self._mended_part(text[at : token.start]), text[token.start : token.end]]
            at = token.end
        return "".join([*parts, self._mended_part(text[at:])])

    def _mended_part(self, part: str) -> str:
        found: list[re.Match[str]] = []
        words: list[str] = []
        for match in WORD.finditer(part):
            # A capital within a sentence makes a name where nouns have none ("Russie" is no slip of "réussie").
            within = part[: match.start()].rstrip()[-1:] not in ("", ".", "?", "!", ":", "¿", "¡")
            name = within and match[0].istitle() and not self.book.capitals
            for word in self.book.mend(fold(match[0]), name=name).split():  # a compound is its parts
                found.append(match)
                words.append(word)
        out: list[str] = []
        at = place = 0
        while place < len(found):
            count, said = self._replaced(words, place)
            match = found[place]
            if count == 0:
                said = match[0] if words[place] == fold(match[0]) else words[place]
                count = 1
            between = part[at : match.start()] if at <= match.start() else " "
            if said in months() and between.strip() == "." and out and out[-1][-1:].isdecimal():
                between = " "  # "3. Juli"
            out += [between, said]
            place += count
            at = found[place - 1].end()
        return "".join([*out, part[at:]])

    def _replaced(self, words: list[str], place: int) -> tuple[int, str]:
        """How many words from `place` on are said otherwise, and how."""
        first = words[place]
        glued = ANY_NUMBER + first.lstrip(digits) if first[0].isdecimal() else ""
        anything = [one for one in (ANY_NUMBER, *ANY_OF_TIME) if self._matched((one,), [first])]
        begun = [told for one in (first, *anything, glued) for told in self.book.instead.get(one, ())]
        for phrase, said in sorted(begun, key=lambda told: -len(told[0])):
            number = self._matched(phrase, words[place : place + len(phrase)])
            if number is not None:
                between = itertools.zip_longest(_A_NUMBER.split(said), number, fillvalue="")
                return len(phrase), "".join(part + value for part, value in between)
        return spoken_number(words[place:], self.book, words[place - 1] if place else "")

    def _matched(self, phrase: tuple[str, ...], words: list[str]) -> list[str] | None:
        """The numbers, days and months that stand where the phrase has any; None if the words are others."""
        numbers: list[str] = []
        if len(words) < len(phrase):
            return None
        for wanted, word in zip(phrase, words, strict=True):
            value = None
            if wanted == ANY_NUMBER:
                told = (self.book.number(word), self.book.digits.get(word), _ordinals().get(word))
                value = next((one for one in told if one is not None), None)
            elif wanted[0] == ANY_NUMBER and word[0].isdecimal() and word.lstrip(digits) == wanted[1:]:
                value = int(word.removesuffix(wanted[1:]))  # "18h"
            digit = word if word.isdecimal() else str(value)  # "0800" is a time of day
            said = self.book.of_time(wanted, word) if value is None else digit
            if said:
                numbers.append(said)
            elif wanted != word:
                return None
        return numbers

    def _qualified(self) -> Iterator[Item]:
        """The items without signs that join, and with unknown words that only qualify a noun as no words of a title."""
        ends = {item.end for item in self.items}
        for item, behind in itertools.zip_longest(self.items, self.items[1:]):
            if item.text == "+" and item.start - 1 in ends and behind is not None and behind.start == item.end + 1:
                continue  # "new + unassigned" joins, "medium+" bounds
            qualifies = item.type == "text" and item.text.islower() and item.text.endswith(self.book.qualifying)
            if qualifies and behind is not None and behind.sense("kind") and behind.start - item.end <= 1:
                item = replace(item, senses=(("qualifier", ""),))
            yield item

    def _cover(self) -> tuple[float, list[Item]]:
        pieces: list[tuple[int, int, str, Token | None]] = [
            (m.start(), m.end(), fold(m[0]), None)
            for m in WORD.finditer(self.rest)
            if not any(one.start <= m.start() < one.end for one in self.tokens)
        ]
        pieces += [(one.start, one.end, "", one) for one in self.tokens]
        items: list[Item] = []
        words: list[str] = []
        spans: list[tuple[int, int]] = []
        cost = 0.0

        def flush() -> float:
            paid, covered = self.book.cover(words, spans, self.text)
            items.extend(covered)
            words.clear()
            spans.clear()
            return paid

        last_end = 0
        for start, end, word, token in sorted(pieces, key=lambda piece: piece[0]):
            if token is not None:
                cost += flush()
                kinds = NAMES.get(token.shape, ())
                known = (
                    self.reader.names.meant(token.value)
                    if token.shape == "known"
                    else self.reader.names.exact(token.value)
                )
                kinds = tuple(dict.fromkeys(one.kind for one in known)) or kinds
                senses = (("lit", token.shape), *(("name", kind) for kind in kinds))
                items.append(Item(senses, token.value, start, end))
            else:
                if _BREAKS.search(self.text[last_end:start]):
                    cost += flush()
                words.append(word)
                spans.append((start, end))
            last_end = end
        cost += flush()
        first = next((at for at, one in enumerate(items) if not one.silent and one.type not in _LINKS), None)
        if first is not None and items[first].sense("digits") and _HEADING.match(self.text, items[first].end):
            items[first] = replace(items[first], senses=(("lit", "number"),))
        return cost, items


def spoken_number(words: list[str], book: PhraseBook, before: str) -> tuple[int, str]:
    """How many words at the start say one number, and its digits: "one oh six", "one hundred and twenty four".

    A single small number stays a word; an ordinal is one of a date ("twenty sixth", "november third").
    """
    ordinals = _ordinals()
    values: list[int] = []
    place = 0
    while place < len(words) and len(values) < 4:
        word = words[place]
        value = book.digits.get(word, None if word.isdecimal() else book.number(word))
        joined = values and (values[-1] == 100 or (20 <= values[-1] < 100 and book.language != "en"))
        if value is None and word in _joints() and joined and place + 1 < len(words):
            after = book.digits.get(words[place + 1], book.numbers.get(words[place + 1]))
            if after is not None and _goes_on(values, after):
                place += 1
                continue
        ordinal = ordinals.get(word)
        if ordinal is not None and values and 20 <= values[-1] < 100 and ordinal < 10:
            return place + 1, f"{_number_of(values) + ordinal}th"
        if value is None or not _goes_on(values, value):
            break
        values.append(value)
        place += 1
    if not values:
        ordinal = ordinals.get(words[0])
        dated = before in months() or _month_follows(words, book)
        return (1, f"{ordinal}th") if ordinal is not None and (dated or ordinal > 9) else (0, "")
    if values[-1] == 0 or (len(values) == 1 and values[0] < (20 if book.language == "en" else 2)):
        return 0, ""  # small numbers in English words are known to the reader of times
    return place, str(_number_of(values))


def _month_follows(words: list[str], book: PhraseBook) -> bool:
    """Whether a month stands behind an ordinal, at most other ordinals and fillers between them."""
    for word in words[1:6]:
        if word in months():
            return True
        if word not in _ordinals() and not any(type_ in (*SILENT, "of", "follow") for type_, _ in book.senses(word)):
            return False
    return False


def _goes_on(values: list[int], value: int) -> bool:
    """Whether `value` goes on a number: "one" "twenty" "four", "one" "oh" "six"; "two three" are two numbers."""
    if not values:
        return value > 0
    last = values[-1]
    if last in (0, 100):
        return value < 100
    if 20 <= last < 100:
        return 0 < value < 10
    return last < 10 and len(values) == 1 and (value in (0, 100) or 10 <= value < 100)


def _number_of(values: list[int]) -> int:
    if len(values) > 1 and values[0] < 10:
        rest = [value for value in values[1:] if value != 100]
        return values[0] * 100 + sum(rest)
    return sum(values)


@cache
def _joints() -> list[str]:
    return [word for language in LANGUAGES for word in sections(language).get("spoken", {}).get("and", ())]


@cache
def _ordinals() -> dict[str, int]:
    return {
        phrase[0]: int(value)
        for language in LANGUAGES
        for value, patterns in sections(language).get("ordinal", {}).items()
        for pattern in patterns
        for phrase in phrases_of(pattern)
    }


def _said(text: str, rest: str, tokens: list[Token]) -> str:
    """The words of time: what the reader of times took out of the text."""
    taken = [
        letter if left == " " and not any(t.start <= at < t.end for t in tokens) else " "
        for at, (letter, left) in enumerate(zip(text, rest, strict=False))
    ]
    return " ".join("".join(taken).split())


def _duration(said: str, book: PhraseBook) -> str:
    """The first number of hours, days or the like in words of time."""
    words = words_of(re.sub(r"(\d)(?=[^\W\d])", r"\1 ", said))
    for number, unit in itertools.pairwise(words):
        value = book.number(number)
        if value is not None and unit[0] in "mhd" and unit[:2] != "mo":
            return f"{value}{unit[0]}"
        if value is not None and unit[0] == "w":
            return f"{7 * value}d"
    return ""


def _polar(text: str, book: PhraseBook) -> bool:
    """True if the text begins as a question for yes or no does."""
    words = words_of(text)
    while words and any(type_ in ("pad", "follow", "meta") for type_, _ in book.senses(words[0])):
        words = words[1:]
    return any(words[: len(phrase)] == phrase for phrase in _polar_phrases(book.language))


@cache
def _polar_phrases(language: str) -> frozenset[tuple[str, ...]]:
    patterns = [one for patterns in sections(language).get("polar", {}).values() for one in patterns]
    return frozenset(phrase for pattern in patterns for phrase in phrases_of(pattern))


def _relative(items: list[Item], place: int, begins: frozenset[tuple[str, ...]]) -> bool:
    """True for the "that" of "incidents that are open" and the "they" behind them, which point at nothing outside."""
    item, listed = (
        items[place],
        any((one.type in _LISTED or one.sense("op", _RANKED)) and not one.sense("ref") for one in items[:place]),
    )
    if _told_behind(items, place):
        return True
    if item.sense("ref", frozenset({"them"})) is not None:
        # "Find open incidents and list them", but "alerts of them".
        before = items[place - 1]
        return listed and not (item.sense("that") or before.silent or before.sense("of") or before.sense("rel"))
    if item.sense("ref", frozenset({"they", "its"})) is not None:
        person = any(one.sense("name") or one.sense("kind", _PERSON) for one in items[:place])
        return person if item.sense("that", _PERSON) else listed  # "which apps did he use" has nobody for "he"
    if item.sense("ref", frozenset({"it"})) is not None and (
        (listed and _told_before(items, place)) or any(one.sense("talk", _MEANT) for one in items[place:])
    ):
        return True  # "is it better, alerts per day I mean"
    if place and item.sense("relative") and (items[place - 1].sense("ref", _SEVERAL) or items[place - 1].sense("cmp")):
        return True  # "only those that are closed"
    if place and (items[place - 1].sense("of") or (item.sense("ref") and words_of(items[place - 1].text) in begins)):
        return False  # "which incident is that part of", "which of that"
    return item.sense("relative") is not None and listed and place + 1 < len(items)


def _told_behind(items: list[Item], place: int) -> bool:
    """True for a pronoun whose noun its own sentence tells: "which alert was it that", "did they end, the cases"."""
    if items[place].sense("ref", _PRONOUNS) is None or len(items) < place + 2:
        return False
    before, behind = items[:place], items[place + 1 :]
    if any(one.sense("kind") for one in before):
        return (
            before[-1].silent
            and any(one.sense("ask") for one in before)
            and bool(behind[0].sense("relative") or behind[0].sense("ask"))
        )
    apart = next((at for at in range(1, len(behind)) if behind[at].start - behind[at - 1].end > 1), len(behind))
    told = any(one.sense("kind", _ROWS) or one.sense("topic") for one in behind[apart:])
    named = any(one.sense("lit") or one.type in ("topic", "threat") for one in (*before, *behind[:apart]))
    return told and not named and not any(one.sense("ref", _PRONOUNS) or one.sense("ask") for one in behind[apart:])


def _told_before(items: list[Item], place: int) -> bool:
    """True for an "it" behind the clause that names what it is: "any case reopened after we closed it"."""
    behind = items[place + 1] if place + 1 < len(items) else None
    if behind is not None and behind.sense("kind") and behind.start - items[place].end <= 1:
        return False  # "that user"
    named = False
    for before, item in itertools.pairwise(items[: place + 1]):
        named |= before.sense("kind") is not None or before.type in ("topic", "threat")
        if named and (item.start - before.end > 1 or item.type in ("bound", "ask", "aside")):
            return True
    return False


def _mark_one(items: list[Item], frame: Frame, book: PhraseBook) -> None:
    """Tell that one row is wanted: "the newest open incident", but not "newest incidents"."""
    for place, item in enumerate(items):
        order = item.sense("order")
        if order is None or order[1] == "updated":
            continue
        if any(_definite(one, frame.text, book) for one in items[:place]):
            frame.tell("singular", "one")
        for later in items[place + 1 : place + 5]:
            if later.sense("kind", frozenset({"incident", "alert", "thing"})) is not None:
                if later.sense("plural") is None:
                    frame.tell("singular", "one")
                break
            if later.type not in _BEFORE_A_NOUN and later.sense("attr", _SEVERITY) is None:
                break


def _holds_pronoun(item: Item, book: PhraseBook) -> bool:
    """True for a phrase that asks something of what a pronoun in it means: "who has it", "in it"."""
    return item.type in ("attr", "rel") and any(book.senses(word) == (("ref", "it"),) for word in words_of(item.text))


_BETWEEN = ("text", "threat", "severity", "status", "class", "topic", "pad", "name")
"""Types of words that stand between an article and its noun."""


def _mark_definite(items: list[Item], frame: Frame) -> None:
    """Tell that one incident is meant, told by words: "the phishing incident", but not "the phishing incidents"."""
    for place, item in enumerate(items):
        if item.sense("kind", frozenset({"incident"})) is None or item.sense("plural") is not None:
            continue
        before = items[:place]
        while before and before[-1].sense("definite") is None and before[-1].type in _BETWEEN:
            before = before[:-1]
        if before and before[-1].sense("definite") is not None:
            frame.tell("singled", "incident")


def _definite(item: Item, text: str, book: PhraseBook) -> bool:
    """True for one thing with a definite article, as in "the host with the newest alert"."""
    last = words_of(item.text)[-1:]
    if item.sense("kind") is None or any(type_ == "plural" for type_, _ in book.senses(*last)):
        return False
    words = (*words_of(text[: item.start])[-1:], *words_of(item.text)[:1])
    return any(("definite", "the") in book.senses(word) for word in words)


def part_of(frame: Frame, start: int, end: int) -> Frame:
    """What a stretch of the text of `frame` says by itself; the time and the names are those of the whole."""
    return part_with(frame, [item for item in frame.items if start <= item.start < end])


def part_with(frame: Frame, items: list[Item]) -> Frame:
    """What some of the words of `frame` say by themselves; the time and the names are those of the whole."""
    part = replace(frame.copy(), features=defaultdict(list), unread=[], items=tuple(items))
    compose(_telling(items, frame.language), part)
    return part


def _telling(items: list[Item], language: str) -> list[Item]:
    """The items that say something, neighbouring unknown words as one."""
    begins = _polar_phrases(language)
    return _joined(
        [item for place, item in enumerate(items) if not item.silent and not _relative(items, place, begins)]
    )


def _joined(items: list[Item]) -> list[Item]:
    """Neighbouring words that are no words of the grammar, as one: a title or a person's name."""
    joined: list[Item] = []
    for item in items:
        beside = bool(joined) and item.start - joined[-1].end <= 1
        if beside and item.type in ("text", "threat") and joined[-1].type in ("text", "threat"):
            before = joined.pop()
            both = "threat" if "threat" in (item.type, before.type) else "text"
            item = replace(item, senses=((both, ""),), text=f"{before.text} {item.text}", start=before.start)
        joined.append(item)
    return joined
