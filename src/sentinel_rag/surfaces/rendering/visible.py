"""Text made visible and safe for any surface, and what the check says of an answer's sentences set into it.

Which characters are unsafe says `contracts.visible_text`, for the agent too. A host is shown as DNS is asked for it
(`xn--...`), because letters of two scripts can look the same. A cell that a spreadsheet could take for a formula gets a
single quote before it (OWASP, "CSV Injection").

Pure. Sentences come from elsewhere, so their places are clipped to the text and never trusted: whatever they say, each
character of the text is shown once. How a mark looks is each surface's.
"""

from __future__ import annotations

import csv
import io
import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from html import escape
from itertools import accumulate
from typing import Any
from urllib.parse import urlsplit

from sentinel_rag.contracts.evidence import Answer, Citation, CitedBy, Sentence, SentenceState
from sentinel_rag.contracts.visible_text import shown_characters, visible

_HOST = re.compile(r"(?<=://)[^\s/?#\\]+")
_ADDRESS = re.compile(r"https?://[^\x00-\x20\x7f<>\"'`\\]+", re.IGNORECASE)


def with_ascii_hosts(text: str) -> str:
    """`text` with each host behind `://` that is not ASCII in its form for DNS."""
    return _HOST.sub(_authority, text) if "://" in text else text


def hosts_spelled_anew(text: str) -> list[tuple[int, int, str]]:
    """Start, end and new form of each host that `with_ascii_hosts` changes."""
    found = ((host.start(), host.end(), _authority(host)) for host in _HOST.finditer(text))
    return [(start, end, put) for start, end, put in found if text[start:end] != put]


def host_in_ascii(host: str) -> str:
    """The host as a browser asks DNS for it; labels that no registry takes are encoded alike, so that all is ASCII."""
    if host.isascii():
        return host
    import idna

    try:
        return idna.encode(host, uts46=True).decode("ascii")
    except idna.IDNAError:
        return ".".join(
            label if label.isascii() else "xn--" + label.encode("punycode").decode("ascii")
            for label in re.split("[.\u3002\uff0e\uff61]", host)
        )


def opened_host(target: str) -> str | None:
    """The host that following `target` would ask, in ASCII; None for anything but a plain http or https address."""
    if not _ADDRESS.fullmatch(target):
        return None
    try:
        host = urlsplit(target).hostname
    except ValueError:
        return None
    return host_in_ascii(host) if host else None


def _authority(found: re.Match[str]) -> str:
    if found.group().isascii():
        return found.group()
    person, at, place = found.group().rpartition("@")
    host, colon, port = place.partition(":")
    return f"{person}{at}{host_in_ascii(host)}{colon}{port}"


def safe(text: str) -> str:
    """`text` with every unsafe character written as an escape, and hosts of addresses as DNS is asked for them; new
    lines and tabs stay where the caller wants lines."""
    return visible(text) if text.isascii() else with_ascii_hosts(visible(text))


def plain(value: object) -> str:
    """A JSON value on one line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def plain_cell(value: object) -> str:
    """A JSON value on one line, null as nothing."""
    return "" if value is None else plain(value)


def safe_cell(text: str) -> str:
    """`safe` on one line, for a table cell."""
    return safe(text).replace("\n", " ").replace("\t", " ")


def safe_with_places(text: str, also: str = "") -> tuple[str, list[int]]:
    """`safe(text)`, and where each place of `text` lies in it, the end included; within a host, at its start. The
    characters of `also` are escaped too."""
    characters = shown_characters(text, also)
    places = list(accumulate(map(len, characters), initial=0))
    written = "".join(characters)
    if text.isascii():
        return written, places
    shift = number = 0
    for start, end, put in hosts_spelled_anew(written):
        while places[number] <= start:
            places[number] += shift
            number += 1
        while places[number] < end:
            places[number] = start + shift
            number += 1
        shift += len(put) - (end - start)
    places[number:] = [place + shift for place in places[number:]]
    return with_ascii_hosts(written), places


def html_text(text: object) -> str:
    """`text` as HTML text, with unsafe characters as in a terminal."""
    return escape(safe(str(text)), quote=True)


_FORMULA = re.compile(r"[\s\"'`\ufeff\u00a0\u3000]*(?:[=+\-@|%\uff1d\uff0b\uff0d\uff20\u2212]|\\x0[9d])")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


def csv_cell(value: object) -> str:
    """The value as the text of a cell; numbers stay numbers."""
    text = "" if value is None else safe(str(value))
    if _NUMBER.fullmatch(text):
        return text
    return "'" + text if text[:1] in ("\t", "\n") or _FORMULA.match(text) else text


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A whole file (RFC 4180, every cell quoted)."""
    written = io.StringIO()
    writer = csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow([csv_cell(name) for name in columns])
    writer.writerows([csv_cell(value) for value in row] for row in rows)
    return written.getvalue()


WRONG = {SentenceState.NOT_FOUND: "!", SentenceState.CONTRADICTED: "✗"}
"""The states that a reader must see, with their signs."""
STATE_WORDS = {
    SentenceState.VALUES_FOUND: "compared",
    SentenceState.SOURCE_GIVEN: "sourced",
    SentenceState.NOT_FOUND: "not found",
    SentenceState.CONTRADICTED: "contradicted",
    SentenceState.OWN_WORDS: "own words",
}
"""In the order in which they are counted."""
_MARKUP_ALONE = re.compile(r"(?:[-*+_~>#|`\s]|\d{1,9}[.)])*")


_OF_WHOLE = re.compile(r"^/(?:summary/|coverage/)?")


class Seen(StrEnum):
    """How a literal stands to what is cited."""

    FOUND = "found"
    MISSING = "missing"
    OTHER = "other"
    """The cited cell holds another value."""


@dataclass(frozen=True, slots=True)
class LiteralSpan:
    """A literal, `Marked.text[start:end]`. Spans do not overlap."""

    start: int
    end: int
    seen: Seen


@dataclass(frozen=True, slots=True)
class Note:
    """What stands in a sentence or behind it, at `at`: `sources` by name, and behind it a `sign` with its `reason` if
    it is wrong."""

    at: int
    sources: tuple[str, ...] = ()
    sign: str = ""
    reason: str = ""
    about: str = ""
    """The sentence in short, for a reason that stands away from it."""


@dataclass(frozen=True, slots=True)
class Marked:
    """`text` is safe to show; spans and notes stand in its order."""

    text: str
    spans: tuple[LiteralSpan, ...] = ()
    notes: tuple[Note, ...] = ()

    def pieces(self, start: int, end: int) -> Iterator[tuple[str, Seen | None]]:
        """`text[start:end]` cut where spans begin and end."""
        at = start
        for span in self.spans[bisect_right(self.spans, start, key=lambda each: each.end) :]:
            if span.start >= end:
                break
            if span.start > at:
                yield self.text[at : span.start], None
            yield self.text[max(at, span.start) : min(span.end, end)], span.seen
            at = min(span.end, end)
        if at < end:
            yield self.text[at:end], None


@dataclass(slots=True)
class CitedSource:
    """A row, or a whole result, that sentences cite, with the cells that were compared."""

    citation: Citation
    cells: dict[str, Any] = field(default_factory=dict)
    given: bool = False
    """Whether the writer cited it; else it was found by the check."""

    @property
    def row(self) -> str:
        """Its number as it is cited, empty for a whole result."""
        return self.citation.ref.partition(".")[2]


def marked(text: str, sentences: Sequence[Sentence], named: Callable[[Citation], str], own: str = "") -> Marked:
    """The text with its marks; `named` is how a source is called. Characters of `own` are those of the surface's marks:
    where the text holds one, it is shown as an escape."""
    shown, places = safe_with_places(text, own)
    last = len(text)

    def placed(place: int) -> int:
        return places[min(max(place, 0), last)]

    spans: list[LiteralSpan] = []
    notes: list[Note] = []
    for sentence in sentences:
        end = placed(sentence.start) + len(shown[placed(sentence.start) : placed(sentence.end)].rstrip())
        sign = WRONG.get(sentence.state, "")
        behind = _where_written(sentence, placed, named, end)
        sources = behind.pop(end, ())
        notes += [Note(at, cited) for at, cited in behind.items()]
        if sources or sign:
            about = " ".join(shown[placed(sentence.start) : end].replace("|", " ").split())
            reason = safe_with_places(reason_of(sentence), own)[0]
            notes.append(Note(end, sources, sign, " ".join(reason.split()), about))
        if sentence.state is not SentenceState.OWN_WORDS:
            wrong = Seen.OTHER if sentence.state is SentenceState.CONTRADICTED else Seen.MISSING
            for mark in sentence.marks:
                spans.append(LiteralSpan(placed(mark.start), placed(mark.end), Seen.FOUND if mark.found else wrong))
    return Marked(shown, tuple(_apart(spans)), tuple(sorted(notes, key=lambda note: note.at)))


def _where_written(
    sentence: Sentence, placed: Callable[[int], int], named: Callable[[Citation], str], end: int
) -> dict[int, tuple[str, ...]]:
    """The sources by the place where the writer put them within the sentence; the others stand behind it, at `end`."""
    found: dict[int, dict[str, None]] = {}
    start = placed(sentence.start)
    for citation in sentence.citations:
        for at in citation.at or (sentence.end,):
            found.setdefault(min(max(placed(at), start), end), {})[named(citation)] = None
    return {at: tuple(names) for at, names in found.items()}


def reason_of(sentence: Sentence) -> str:
    """What is wrong with the sentence, for a person to read; empty if nothing is."""
    if sentence.state not in WRONG:
        return ""
    other = [mark for mark in sentence.marks if not mark.found and mark.pointer]
    cells = (f"{mark.pointer.rpartition('/')[2]}: {plain(mark.value)}" for mark in other)
    return sentence.reason or ", ".join(cells) or STATE_WORDS[sentence.state]


def sources_of(sentences: Iterable[Sentence]) -> list[CitedSource]:
    """What the sentences cite, each row and result once, in their order."""
    found: dict[tuple[str, str], CitedSource] = {}
    for sentence in sentences:
        for citation in sentence.citations:
            source = found.setdefault((citation.call_id, citation.pointer), CitedSource(citation))
            source.given = source.given or sentence.cited_by is not CitedBy.CHECK
    for sentence in sentences:
        for mark in sentence.marks:
            row = mark.pointer
            while row and (mark.call_id, row) not in found:
                row = row.rpartition("/")[0]
            if (cited := found.get((mark.call_id, row))) is not None and mark.call_id:
                cited.cells.setdefault(field_name(mark.pointer, row), mark.value)
    return list(found.values())


def counted(sentences: Iterable[Sentence]) -> str:
    """`12 compared, 2 sourced, 1 not found, 4 own words`."""
    states = Counter(sentence.state for sentence in sentences)
    return ", ".join(f"{states[state]} {words}" for state, words in STATE_WORDS.items() if states[state])


def found_alone(answer: Answer) -> tuple[Answer, int]:
    """The answer without its sentences that were not found or are contradicted, and how many those are."""
    text = answer.text
    hidden = [each for each in answer.sentences if each.state in WRONG]
    gone = _apart([_without_rest(text, each) for each in hidden])

    def moved(place: int) -> int:
        return place - sum(min(place, part.end) - part.start for part in gone if part.start < place)

    left = "".join(text[start:end] for start, end in _between(gone, len(text)))
    kept = tuple(each.moved(moved) for each in answer.sentences if each.state not in WRONG)
    return replace(answer, text=left, sentences=kept), len(hidden)


def _without_rest(text: str, sentence: Sentence) -> LiteralSpan:
    """The place of a sentence with what has no sense without it: spaces behind it, or the markup of its line."""
    start, end = (min(max(place, 0), len(text)) for place in (sentence.start, sentence.end))
    line_start, line_end = text.rfind("\n", 0, start) + 1, text.find("\n", end) % (len(text) + 1)
    if _MARKUP_ALONE.fullmatch(text[line_start:start]) and _MARKUP_ALONE.fullmatch(text[end:line_end]):
        return LiteralSpan(line_start, min(line_end + 1, len(text)), Seen.MISSING)
    return LiteralSpan(start, end + len(text[end:line_end]) - len(text[end:line_end].lstrip(" ")), Seen.MISSING)


def _apart(spans: Iterable[LiteralSpan]) -> list[LiteralSpan]:
    """The spans in order, cut so that no two overlap; empty ones are left out."""
    found: list[LiteralSpan] = []
    for span in sorted(spans, key=lambda each: (each.start, each.end)):
        start = max(span.start, found[-1].end if found else 0)
        if start < span.end:
            found.append(LiteralSpan(start, span.end, span.seen))
    return found


def _between(spans: Sequence[LiteralSpan], end: int) -> Iterator[tuple[int, int]]:
    yield from zip((0, *(span.end for span in spans)), (*(span.start for span in spans), end), strict=True)


def field_name(pointer: str, row: str) -> str:
    """The name of a cell, within its row; a result as a whole has its total alone."""
    inside = pointer.removeprefix(row).strip("/") if row else _OF_WHOLE.sub("", pointer)
    return inside.replace("~1", "/").replace("~0", "~") or "total"
