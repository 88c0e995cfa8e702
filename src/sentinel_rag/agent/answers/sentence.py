"""A sentence as the check sees it: its literals, the words around them, its clauses, and what they make of each other.

Words are the lexicon's; nothing here knows a row. `ReadSentence` is the part of a unit that one citation stands for, or
the whole unit.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

from sentinel_rag.agent.answers.evidence import RUN, ReadResults, demands
from sentinel_rag.agent.answers.markup import UnitKind
from sentinel_rag.contracts.tool_schemas import SEVERITIES
from sentinel_rag.language.lexicon import date_names, date_words, fold, plain_words
from sentinel_rag.language.literals import Kind, Literal, Moment, Word, key, scan, tokens

STRONG_NAMES = frozenset({Kind.ID, Kind.NAME, Kind.TEXT})
STATES = frozenset({Kind.STATE, Kind.SPOKEN})
DOMAINS = ("severity", "status", "classification")
_MARKED = frozenset({Kind.ID, Kind.TEXT, Kind.NAME, Kind.MOMENT})
_UNSTATED = ("possible", "not", "negative")
_Part = TypeVar("_Part", Literal, Word)
_QUESTION = re.compile(r"\?(?=[\s*_|)]|$)")
_LONGEST_LABEL = 60
_LONGEST_BID = 24
"""Words of a sentence that may ask with its last one."""
_MOST_RANKS = 100
LARGE = 10_000
_FEW_WORDS = 6
"""Words of a manner of speaking between quotation marks."""
"""From this on a number is as good as a name."""
_CLAUSE_MARK = re.compile(r"[,;:–(]\s|\s[–—-]\s")
_LIST_NUMBER = re.compile(r"[\s*_|]*(?:\[\d{1,2}\]|\d{1,2}[.)](?=\s))")
_COLON = re.compile(r":(?=[*_\s])")
_CELL = re.compile(r"\|")
_SLOT = re.compile(r"[^\w|]*\d+\s*[-–—]\s*\d+[^\w|]*")
_CODE = re.compile(r"(?<!\w)[A-Z]{2}(?!\w)")
_HERE = frozenset({"here", "hier", "aquí", "aqui", "ici"})
_ORDINAL = re.compile(r"\.?(?!\w)")
_SUFFIX = re.compile(r"(?:st|nd|rd|th)\b")
_STATE_WORDS = frozenset({"severity", "priority", "incidents", "alerts"})
_STOP_OF_COUNT = re.compile(r"[,;:|(]")


class ReadSentence:
    """A text with its literals, read against the names of the workspace."""

    def __init__(self, text: str, kind: UnitKind, evidence: ReadResults, *, advises: bool = False) -> None:
        self.text = text
        self.kind = kind
        self.evidence = evidence
        self.scan = scan(text, evidence.names)
        listed = _LIST_NUMBER.match(text)
        dated = listed is not None and any(each.start < listed.end() < each.end for each in self.scan.literals)
        self._opens = 0 if listed is None or dated else listed.end()  # `24. November` is a day
        self.lexicon = self.scan.lexicon
        self.words = tuple(
            Word(_bare(word.text), word.start, word.end)
            for word in self.scan.words
            if not (word.end - word.start == 2 and text[word.start : word.end].isupper() and not text.isupper())
        )  # `NO` among small letters is a code, of a country say, and no word
        self._starts = [word.start for word in self.words]
        self.literals = tuple(
            each
            for each in self.scan.literals
            if each.start >= self._opens and text[each.start - 1 : each.end + 1] != f"[{each.raw}]"  # an item's number
        )
        names = [each for each in self.literals if each.kind is Kind.NAME and " " in each.raw]
        self.literals = tuple(
            self._day(each) or self._as_word(each) or each
            for each in self.literals
            # `Azure Active Directory` is no state
            if each.kind not in STATES or not any(name.start <= each.start and each.end <= name.end for name in names)
        )
        self.literals = tuple(each for each in self.literals if not self._is_degree(each))
        self.bag = frozenset(word.text for word in self.words)
        colon = _COLON.search(text)
        label = -1 if colon is None else colon.start()
        self.bids = self._bids(
            label if advises or len(self.words_before(label, 5)) < 5 else -1
        ) or self._sets_condition(label)
        """Asks the reader to do something: `Ask Tomasz which rule he meant`."""
        self.supposes = any(self.says(word, "condition") for word in self.words[:1])  # `If 126 was not Åsa, then ...`
        self.advises = advises or self.bids or self.supposes
        """Stands where the writer judges, advises or supposes, or does so itself."""
        self._negated: dict[Literal, bool] = {}

    # -- words ------------------------------------------------------------------------------------------------------
    def _bids(self, label: int) -> bool:
        """Whether it asks for something with its first word (behind a label of advice, a `then`, a condition), or with
        its last one, where a language's infinitive stands there."""
        opening = [word for word in self.words[:3] if word.start >= self._opens]
        first = opening[: 2 if opening and self.says(opening[0], "then") else 1]
        words = [*first, *(self.words_after(label, 1) if 0 <= label < _LONGEST_LABEL else ())]
        if first and self.says(first[0], "whether", "purpose"):
            words += [word for at in self._clauses[1:] for word in self.words_after(at - 1, 1)]
        last = self.words[-1:] if len(self.words) <= _LONGEST_BID else ()
        ends = self._clauses[1:] if self.kind is UnitKind.ITEM else ()
        last = (*last, *(word for end in ends for word in self.words_before(end, 1)))
        return any(map(self._asks, words)) or any(self.says(word, "bids_last") for word in last)

    def _sets_condition(self, label: int) -> bool:
        """`Fine if ...: then reclassify it`, `Closes it if: ...`: a condition in front of what is to be done."""
        before = [word for word in self.words if word.start < label < _LONGEST_BID * _LONGEST_LABEL]
        after = self.words_after(label, 2) if before else ()
        asks = any(map(self._asks, after[1:] if after and self.says(after[0], "then") else after[:1]))
        conditions = [word for word in before if self.says(word, "condition")]
        return bool(conditions) and (asks or conditions[-1] == before[-1])

    def _asks(self, word: Word) -> bool:
        if not self.says(word, "bids"):
            return False
        following = self.words_after(word.start, 3)
        things = [each.text in self.lexicon.things for each in following]
        told = (self.says(each, "that") and not (at and things[at - 1]) for at, each in enumerate(following))
        if following and self.says(following[0], "others", "article"):  # `Check other tools that read it`
            return True
        noun = following and self.lexicon.has("part_of", following[0].text)  # `Review of the supplier accounts`
        state = word.text in self.lexicon.spoken and any(things[:1])  # `Open incidents: 124`
        return not (any(told) or noun or state)  # `Keep in mind that 124 has 9 alerts` tells

    @property
    def asks(self) -> bool:
        """Whether one of its clauses asks, or asks for something."""
        return (
            self.bids
            or bool(_QUESTION.search(self.text))
            or any(self._asks(word) for at in self._clauses for word in self.words_after(at - 1, 1))
        )

    def bids_with(self, part: Literal | Word) -> bool:
        """Whether the clause or the cell of a table that a literal or a word stands in asks for something."""
        starts = {self.clause_start(part.start), self.text.rfind("|", 0, part.start) + 1}
        return any(self._asks(word) for start in starts for word in self.words_after(start - 1, 1))

    # -- words ------------------------------------------------------------------------------------------------------
    def has(self, *tables: str) -> frozenset[str]:
        """The words of tables of claims that the sentence uses."""
        found = self.bag & self.lexicon.claims[tables[0]] if tables else frozenset()
        for table in tables[1:]:
            found |= self.bag & self.lexicon.claims[table]
        return found

    def says(self, word: Word, *tables: str) -> bool:
        """Whether a word stands in one of the tables of claims."""
        claims, text = self.lexicon.claims, word.text
        return any(text in claims[table] for table in tables)

    def inside(self, place: int, parts: Iterable[_Part]) -> tuple[_Part, ...]:
        """Those literals or words that stand in the clause of a place."""
        start, end = self.clause_start(place), self.clause_end(place)
        return tuple(each for each in parts if start <= each.start < end)

    def words_before(self, place: int, most: int) -> tuple[Word, ...]:
        """Up to `most` words that begin before a place, in their order."""
        end = bisect_right(self._starts, place - 1)
        return self.words[max(0, end - most) : end]

    def words_after(self, place: int, most: int) -> tuple[Word, ...]:
        """Up to `most` words that begin behind a place."""
        start = bisect_right(self._starts, place)
        return self.words[start : start + most]

    @cached_property
    def key(self) -> str:
        """All words between blanks."""
        return f" {key(self.text)} "

    @cached_property
    def _clauses(self) -> list[int]:
        """Where clauses begin."""
        starts = {0, *(match.end() for match in _CLAUSE_MARK.finditer(self.text))}
        joining = self.lexicon.claims["clause"]
        starts.update(word.end for word in self.words if word.text in joining)
        return sorted(starts)

    def clause_start(self, place: int) -> int:
        """The start of the clause that a place is in."""
        return self._clauses[bisect_right(self._clauses, place) - 1]

    def clause_end(self, place: int) -> int:
        """The end of the clause that a place is in."""
        at = bisect_right(self._clauses, place)
        return self._clauses[at] if at < len(self._clauses) else len(self.text)

    def is_label(self, literal: Literal) -> bool:
        """Whether a literal stands before the first colon, in the first cell of a row, or alone in brackets: it says
        what the rest is about."""
        around = self.text[literal.start - 1 : literal.start] + self.text[literal.end : literal.end + 1]
        return around == "()" or literal.end <= self.label_end

    @cached_property
    def label_end(self) -> int:
        """Where the first colon stands, of a row of a table the end of its first cell; -1 if there is none."""
        label = (_CELL if self.kind is UnitKind.ROW else _COLON).search(self.text)
        return -1 if label is None else label.start()

    @cached_property
    def codes(self) -> tuple[Literal, ...]:
        """Words of two capitals, which may be a country's."""
        return tuple(Literal(Kind.NAME, fold(match[0]), match[0], *match.span()) for match in _CODE.finditer(self.text))

    # -- what literals are ------------------------------------------------------------------------------------------
    def counted(self, literal: Literal) -> str:
        """The class of the thing that a number counts (`three alerts`); empty if it counts none."""
        later = (each.start for each in self.literals if each.kind is Kind.NUMBER and each.start > literal.start)
        stop, before = next(later, len(self.text)), ""
        for word in self.words_after(literal.start, 3):
            if word.start > stop or _STOP_OF_COUNT.search(self.text, literal.start, word.start):
                return ""
            article = self.says(word, "article") and not self.lexicon.has("part_of", before)
            if self.lexicon.has("one", word.text) or article:
                return ""  # `50053 a locked account`, `In 124 the same address`
            before = word.text
            if word.text in self.lexicon.things:
                return self.lexicon.things[word.text]
        return ""

    def is_thing_number(self, literal: Literal) -> bool:
        """Whether a number names a thing: behind its word (incident 4711, known or not), or as a row has it."""
        if literal.kind is not Kind.NUMBER:
            return False
        before = self.words_before(literal.start, 1)
        between = self.text[before[0].end : literal.start] if before else ""
        if before and before[0].text in self.lexicon.number_of and len(between) <= 3 and "," not in between:
            return True
        return self.evidence.is_named_number(literal) and not self.counted(literal)

    def _day(self, literal: Literal) -> Literal | None:
        """`Tag 28`, `Sunday 15`, `am 29.`, `the 20th`: a number that stands for a day of the month."""
        if literal.kind is not Kind.NUMBER or not literal.raw.isdigit() or not 1 <= literal.number <= 31:
            return None
        before = [each for each in self.words_before(literal.start, 1) if literal.start - each.end <= 1]
        word = before[0].text if before else ""
        ordinal = _ORDINAL.match(self.text, literal.end) is not None
        dated = ordinal and word in date_words("before") and not self.counted(literal)
        named = word in date_names() or self.lexicon.time_units.get(word) == 86_400  # `Sunday 15`, `Tag 28`
        if not (dated or named or _SUFFIX.match(self.text, literal.end)):
            return None
        return replace(literal, kind=Kind.MOMENT, value=Moment(day=int(literal.number)))

    def _is_degree(self, literal: Literal) -> bool:
        """`three accounts are too low as a threshold`: no state."""
        before = self.words_before(literal.start, 1) if literal.kind in STATES and literal.raw.islower() else ()
        return any(self.says(word, "excess") for word in before)

    def _as_word(self, literal: Literal) -> Literal | None:
        """`New security info registered`: at the start of a text or cell any word has a capital, and a state before an
        ordinary word may be none."""
        if literal.kind is not Kind.STATE or self.text[: literal.start].rstrip('*_ "“„«')[-1:] not in ("", "|"):
            return None
        after = [word for word in self.words_after(literal.end - 1, 1) if word.start - literal.end == 1]
        word = after[0].text if after else ""
        known = (self.lexicon.things, self.lexicon.spoken, self.lexicon.numbers, self.lexicon.concepts, plain_words())
        columns = any(word in words for words in self.lexicon.columns.values())
        claims = any(word in words for words in self.lexicon.claims.values())
        lower = self.text[after[0].start].islower() if after else False
        ordinary = lower and not (columns or claims or any(word in table for table in known))
        return replace(literal, kind=Kind.SPOKEN) if ordinary and word not in _STATE_WORDS else None

    @cached_property
    def thing_numbers(self) -> frozenset[Literal]:
        """The numbers that name a thing."""
        return frozenset(literal for literal in self.literals if self.is_thing_number(literal))

    def of_kind(self, *kinds: Kind) -> tuple[Literal, ...]:
        """The literals of some kinds."""
        return tuple(each for each in self.literals if each.kind in kinds)

    @cached_property
    def anchors(self) -> tuple[Literal, ...]:
        """The literals that name a thing."""
        return tuple(each for each in self.literals if each.kind in STRONG_NAMES or each in self.thing_numbers)

    @cached_property
    def labels(self) -> tuple[Literal, ...]:
        """The literals that choose rows: names, states, times, and numbers that are as good as names."""
        return tuple(
            each
            for each in self.literals
            if each.kind in STRONG_NAMES
            or each.kind in STATES
            or each.kind is Kind.MOMENT
            or (each.kind is Kind.NUMBER and (each in self.thing_numbers or each.number >= LARGE))
        )

    def clause_labels(self, place: int) -> tuple[Literal, ...]:
        """The labels of the clause of a place."""
        return self.inside(place, self.labels)

    def sort(self, literal: Literal) -> str:
        """What sort of thing a literal names."""
        return "thing" if literal in self.thing_numbers else literal.domain or literal.kind.value

    def negated(self, literal: Literal) -> bool:
        """`not High`: a word of denial up to three words before, in the same clause."""
        denied = self._negated.get(literal)
        if denied is None:
            start = self.clause_start(literal.start)
            denied = self._negated[literal] = any(
                word.start >= start and self.lexicon.has("not", word.text)
                for word in self.words_before(literal.start, 3)
            )
        return denied

    def reach(self, state: Literal) -> frozenset[str]:
        """The states that a state stands for: `Medium or lower` are three severities."""
        if state.value not in SEVERITIES:
            return frozenset({str(state.value)})
        behind = " ".join(word.text for word in self.words_after(state.end - 1, 3)) + " "
        at = SEVERITIES.index(str(state.value))
        for table, reached in (("or_less", SEVERITIES[: at + 1]), ("or_more", SEVERITIES[at:])):
            if any(behind.startswith(f"{phrase} ") for phrase in self.lexicon.claims[table]):
                return frozenset(reached)
        return frozenset({str(state.value)})

    @cached_property
    def unshown(self) -> int:
        """From where on it tells how far the reading went: behind `no row shows`, `nothing shows`."""
        for word in self.words:
            behind = self.words_after(word.start, 2) if self.says(word, "negative") else ()
            if (
                behind
                and any(self.says(each, "shows") for each in behind)
                and (self.says(behind[0], "records", "shows") or behind[0].text in _HERE)
            ):
                return word.start
        return len(self.text)

    def states(self, word: Word) -> bool:
        """Whether the clause of a word states it rather than denies, doubts or advises it."""
        if word.start > self.unshown:
            return False
        stated = not any(self.says(each, *_UNSTATED) for each in self.inside(word.start, self.words))
        return stated and not self.advises

    @cached_property
    def quotes(self) -> bool:
        """Whether it gives a quotation, or a code span of several words."""
        texts = (each for each in self.of_kind(Kind.TEXT) if each.quoted_by != "`" or " " in each.raw.strip("` "))
        return any(not self.is_emphasis(literal) for literal in texts)

    def is_emphasis(self, literal: Literal) -> bool:
        """A few plain words between quotation marks that no row holds, and that nobody is said to have said: a
        manner of speaking (`the “clean” host`, `no “same attack”`)."""
        letters = literal.raw[1:-1].replace(" ", "")
        few = len(str(literal.value).split()) <= (_FEW_WORDS if self.part != "comment" else 2)
        words = literal.kind is Kind.TEXT and few and literal.quoted_by != "`"
        opens = not self.text[: literal.start].strip("*_ ")
        if not words or not (letters.isalpha() and letters[opens:].islower()) or self.has("tells"):
            return False
        return not self.evidence.holders(literal)

    def refers(self, literal: Literal) -> bool:
        """A number that counts no rows: `the two`, `all three` were told before or are named in the sentence; `step 10`
        and the rank that opens a row of a table are the writer's own."""
        if literal.kind is Kind.NUMBER and literal not in self.thing_numbers and literal.number < _MOST_RANKS:
            before = self.words_before(literal.start, 1)
            if before and self.says(before[0], "steps"):
                return True
            ahead, behind = self.text[: literal.start].strip("*_[(# "), self.text[literal.end :].lstrip("*_]). ")
            if self.kind is UnitKind.ROW and not ahead and behind[:1] in ("|", ","):
                return True
            if literal.end <= self.label_end and _SLOT.fullmatch(self.text[: self.label_end]):
                return True  # `5-15 | Disable ...`
        if literal.kind is not Kind.NUMBER or not literal.raw.isalpha():
            return False
        before = self.words_before(literal.start, 2)
        rest = len(before) == 2 and self.says(before[0], "article") and self.says(before[1], "others")
        times = [each.value for each in self.of_kind(Kind.MOMENT) if each.start > literal.start]
        if rest or (before and self.says(before[-1], "these")) or literal.number == len(times) > 1:
            return True  # `the other five`, `these two alerts`, `two comments, at 16:56 and at 11:56`
        if self.counted(literal) not in ("", "other"):
            return False
        if before and self.says(before[-1], "article", "universal"):
            return True
        sorts = [sort for sort, _ in {(self.sort(each), each.value) for each in self.anchors}]
        return literal.number >= 2 and literal.number in [float(sorts.count(sort)) for sort in set(sorts)]

    @cached_property
    def reading(self) -> bool:
        """Tells what its writer read, or did not see: `I opened all ten`, `what came before I cannot see`."""
        mine = [word.start for word in self.words if self.says(word, "i", "we")]
        clause = self.inside(mine[0], self.words) if mine else ()
        unseen = any(self.says(each, "not", "negative") for each in clause)
        read = any(self.says(each, "reads", *(("sees",) if unseen else ())) for each in clause)
        return read and self.inside(mine[0], self.literals) == self.literals

    @cached_property
    def part(self) -> str:
        """The part of a dossier that it speaks of: alert, comment; empty for none."""
        found = (self.lexicon.things.get(word.text, "") for word in self.words)
        return next((thing for thing in found if thing in ("alert", "comment")), "")

    # -- deeds ------------------------------------------------------------------------------------------------------
    @cached_property
    def own_deed(self) -> bool:
        """`I have closed 124`: the writer claims a deed, which only the result of a call that writes can hold."""
        for at, word in enumerate(self.words):
            if not self.says(word, "i", "we"):
                continue
            end = self.clause_end(word.start)
            clause = [each for each in self.words[at + 1 :] if each.start < end]
            if any(self.says(each, *_UNSTATED) for each in clause):
                continue
            for place, each in enumerate(clause):
                if not self.says(each, "acts") or self.lexicon.concepts.get(each.text) == "open":
                    continue  # `I opened 123`: it was read
                following = clause[place + 1].text if place + 1 < len(clause) else ""
                adjective = following in self.lexicon.things  # `I see closed incidents`
                between = [other for other in clause[:place] if other.text not in plain_words()]
                if not between or (not adjective and all(map(self._names_a_thing, between))):
                    return True
        return False

    def _names_a_thing(self, word: Word) -> bool:
        """Whether a word says what was done to: not the one of `I called the encryption blocked`."""
        return word.text in self.lexicon.things or any(each.start <= word.start < each.end for each in self.literals)

    @cached_property
    def demands(self) -> frozenset[str]:
        """What it asks for or states; nothing of what it denies or quotes, of a question, and of one that tells what
        somebody else wrote."""
        if self.has("tells") or self.text.rstrip().endswith("?"):
            return frozenset()
        denials = [word.start for word in self.words if self.says(word, "not", "negative")]
        if denials and any(self.says(word, "whether") for word in self.words[:1]):
            return frozenset()  # `That it is a test, nobody has confirmed`

        def said(part: Literal | Word) -> bool:
            return all(place >= self.clause_end(part.start) for place in denials)

        states = (each for each in self.of_kind(*STATES) if said(each))
        return demands(self.lexicon.orders, filter(said, self.words), (*states, *self.thing_numbers))

    # -- words of others ----------------------------------------------------------------------------------------------
    @cached_property
    def length(self) -> int:
        """How many words it has outside ids, quotations, names and times."""
        marked = sum(len(tokens(each.raw)) for each in self.literals if each.kind in _MARKED)
        return len(self.key.split()) - marked

    def runs(self) -> list[str]:
        """Runs of four words, one for each place; empty where more than one is part of an id, name or time."""
        pieces: list[tuple[str, bool]] = []
        at = 0
        marked = [each for each in self.literals if each.kind in _MARKED]
        for literal in marked:
            if literal.start < at:
                continue
            pieces.extend((word, True) for word in tokens(self.text[at : literal.start]))
            if literal.kind is Kind.TEXT:
                pieces.append(("\n", True))
            else:
                pieces.extend((word, False) for word in tokens(self.text[literal.start : literal.end]))
            at = literal.end
        pieces.extend((word, True) for word in tokens(self.text[at:]))
        return [
            " ".join(word for word, _ in run) if sum(outside for _, outside in run) >= RUN - 1 else ""
            for run in (pieces[start : start + RUN] for start in range(len(pieces) - RUN + 1))
        ]


def _bare(word: str) -> str:
    """A word without an elided or possessive part (`it's`, `O'Brien's`), unless it denies or says who."""
    head, mark, tail = word.replace("’", "'").partition("'")
    if not mark or tail == "t" or head in ("i", "we", "j"):
        return word.replace("’", "'")
    return tail if len(head) == 1 and tail else head
