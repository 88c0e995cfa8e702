"""Read a Markdown file: its front matter into facets and readers, its CommonMark blocks into sections."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import yaml

from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.contracts.tool_schemas import SEVERITIES
from sentinel_rag.knowledge.documents.model import (
    BlockKind,
    DocumentBlock,
    DocumentSection,
    Facets,
    Heading,
    sections_of,
)
from sentinel_rag.language.attack import known_tactics, known_techniques

if TYPE_CHECKING:
    from markdown_it.token import Token


# Keys that are not known here are left alone, since other tools keep theirs there too. A value that is not what its key
# asks for is told as a remark and left out; the playbook is read all the same. Only what says who may read it is never
# left out: where that cannot be understood, or stands where it is not looked for, nobody may.
LONGEST = 20_000
_KEYS = "title, techniques, tactics, severity, reviewed, readers and sensitivity"
_CLOSES = r"(?:readers?|sensitivity)[\"']?[ \t]*[:=]"
_CLOSED = re.compile(rf"\b{_CLOSES}", re.IGNORECASE)
"""Words by which somebody meant to close the file."""
_CLOSED_LINE = re.compile(rf"^[ \t]*(?:[-*][ \t]+)?[\"']?{_CLOSES}", re.IGNORECASE | re.MULTILINE)
_OPENS = re.compile(r"\s*^---[ \t]*\n", re.MULTILINE)
_ENDS = re.compile(r"^(---|\.\.\.)[ \t]*$", re.MULTILINE)
_HEADING = re.compile(r"^#{1,6}[ \t]", re.MULTILINE)
_CODE = re.compile(r"^[ \t]*(`{3,}|~{3,})", re.MULTILINE)
_KNOWN_LINE = re.compile(r"^(title|techniques|tactics|severity|reviewed)[ \t]*:", re.IGNORECASE | re.MULTILINE)
_FIRST_LINES = 30
_CLOSING_KEYS = frozenset({"reader", "readers", "sensitivity"})
_NOBODY: frozenset[str] = frozenset()
_TECHNIQUE = re.compile(r"T\d{4}(\.\d{3})?")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """What it says. `readers` is None where it names none, `sensitivity` where it says nothing; `lines` is how many
    lines it takes; `remarks` are sentences about what could not be taken."""

    title: str = ""
    facets: Facets = field(default_factory=Facets)
    readers: frozenset[str] | None = None
    sensitivity: Sensitivity | None = None
    lines: int = 0
    remarks: tuple[str, ...] = ()


def read_front_matter(text: str) -> tuple[FrontMatter, str]:
    """The front matter of a text with line feeds as line ends, and the text behind it; an empty one where there is
    none."""
    opened = _OPENS.match(text)
    if opened is None:
        return _none(text, _beginning(text)), text
    begin = opened.end()
    end = _ENDS.search(text, begin, begin + LONGEST)
    if end is None:  # a line across the page, and no front matter
        return _none(text, begin + LONGEST), text
    head, rest = text[begin : end.start()], text[end.end() :].removeprefix("\n")
    lines = text.count("\n", 0, end.start()) + 1
    if not text.startswith("---") and not _KNOWN_LINE.search(head) and not _CLOSED.search(head):
        return FrontMatter(), text  # text between two lines across the page
    try:
        found = yaml.safe_load(head)
    except (yaml.YAMLError, ValueError, RecursionError):
        return _not_understood(head, lines, "Its front matter is not valid YAML and was left out."), rest
    if found is None:
        return FrontMatter(lines=lines), rest
    if not isinstance(found, Mapping):
        remark = f"Its front matter is not a list of keys (known ones: {_KEYS}) and was left out."
        return _not_understood(head, lines, remark), rest
    return _taken(found, lines), rest


def _beginning(text: str) -> int:
    """Where the first lines of a text end: at its first heading or code."""
    end = min(len("".join(text[:LONGEST].splitlines(keepends=True)[:_FIRST_LINES])), LONGEST)
    return min((match.start() for pattern in (_HEADING, _CODE) if (match := pattern.search(text, 0, end))), default=end)


def _none(text: str, end: int) -> FrontMatter:
    """Of a text without front matter: closed, if a line before `end` names readers, since somebody wrote them there who
    meant to close the file."""
    if not _CLOSED_LINE.search(text, 0, end):
        return FrontMatter()
    remark = (
        "It begins with readers or sensitivity outside of front matter (the first line is ---, and so is the line "
        "behind the keys): nobody will find it."
    )
    return FrontMatter(readers=_NOBODY, remarks=(remark,))


def _not_understood(head: str, lines: int, remark: str) -> FrontMatter:
    if _CLOSED.search(head):
        return FrontMatter(readers=_NOBODY, lines=lines, remarks=(remark, "It names readers, so nobody will find it."))
    return FrontMatter(lines=lines, remarks=(remark,))


def _taken(written: Mapping[Any, Any], lines: int) -> FrontMatter:
    # "Readers" and "reader" can only mean one thing, and to pass them over would open the file.
    found = {name if (name := str(key).casefold()) != "reader" else "readers": value for key, value in written.items()}
    remarks: list[str] = []
    techniques = tuple(_techniques(found.get("techniques"), remarks))
    tactics = tuple(_tactics(found.get("tactics"), remarks))
    severity = ""
    if found.get("severity") is not None:
        spelled = {each.casefold(): each for each in SEVERITIES}
        given = found["severity"]
        # Only of a text: what else YAML can build may be endless once it is written out.
        severity = spelled.get(given.casefold(), "") if isinstance(given, str) else ""
        if not severity:
            remarks.append(f"severity is not one of {', '.join(SEVERITIES)} and was left out.")
    time = _moment(found.get("reviewed"))
    if found.get("reviewed") is not None and time is None:
        remarks.append("reviewed is not a date such as 2026-11-28 and was left out.")
    readers = None
    if "readers" in found:
        names = frozenset(_texts(found["readers"]))
        # An empty or unreadable list must not open what somebody meant to close.
        readers = names
        if not names:
            remarks.append("readers names nobody, so nobody will find it; leave the key out for everyone.")
    elif _names_closing_key(found):
        readers = _NOBODY
        remarks.append(
            "readers or sensitivity stands inside another key, where it is not read: nobody will find it. "
            "Write it at the beginning of a line."
        )
    sensitivity = None
    if "sensitivity" in found:
        given = found["sensitivity"]
        sensitivity = {each.name: each for each in Sensitivity}.get(given.upper() if isinstance(given, str) else "")
        if sensitivity is None:
            sensitivity = Sensitivity.HIGH
            remarks.append("sensitivity is not one of LOW, MEDIUM, HIGH and was taken as HIGH.")
    title = found.get("title")
    return FrontMatter(
        title=" ".join(str(title).split())[:300] if isinstance(title, str | int | float) else "",
        facets=Facets(techniques=techniques, tactics=tactics, severity=severity, time=time),
        readers=readers,
        sensitivity=sensitivity,
        lines=lines,
        remarks=tuple(remarks),
    )


def _names_closing_key(found: Mapping[str, Any]) -> bool:
    """Whether a key below the first level means to close the file. What YAML builds may hold itself."""
    below, seen = list(found.values()), set[int]()
    while below:
        value = below.pop()
        if not isinstance(value, Mapping | list) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, list):
            below += value
        elif any(str(key).casefold() in _CLOSING_KEYS for key in value if isinstance(key, str)):
            return True
        else:
            below += value.values()
    return False


def _techniques(value: Any, remarks: list[str]) -> Iterator[str]:
    for text in _texts(value):
        name = text.upper()
        if not _TECHNIQUE.fullmatch(name):
            remarks.append(f"techniques: {text[:40]!r} is no ATT&CK technique (T1566 or T1566.001) and was left out.")
            continue
        if name not in known_techniques():
            remarks.append(f"techniques: {name} is not in ATT&CK as shipped here; it was taken as written.")
        yield name


def _tactics(value: Any, remarks: list[str]) -> Iterator[str]:
    """Tactics as Sentinel spells them (InitialAccess); "Initial Access" and "initial-access" are taken too."""
    spelled = {name.casefold(): name for name in known_tactics()}
    for text in _texts(value):
        found = spelled.get(re.sub(r"[\s_-]", "", text).casefold())
        if found is None:
            remarks.append(f"tactics: {text[:40]!r} is no tactic of ATT&CK and was left out.")
        else:
            yield found


def _texts(value: Any) -> tuple[str, ...]:
    """A list of texts, or one text with commas; each once."""
    items = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    texts = (str(item).strip() for item in items if isinstance(item, str | int | float))
    return tuple(dict.fromkeys(text for text in texts if text))


def _moment(value: Any) -> datetime | None:
    """Midnight UTC of a date; YAML makes dates of most spellings itself."""
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return None


# The parser works on blocks and their lines only; each block keeps its Markdown as it was written. HTML comments are
# left out, since they are text that a person never sees and a machine would.
_KINDS = {
    "paragraph_open": BlockKind.PARAGRAPH,
    "blockquote_open": BlockKind.PARAGRAPH,
    "html_block": BlockKind.PARAGRAPH,
    "table_open": BlockKind.TABLE,
    "fence": BlockKind.CODE,
    "code_block": BlockKind.CODE,
    "list_item_open": BlockKind.LIST_ITEM,
}
_LISTS = ("bullet_list_open", "ordered_list_open")
_HEADING_MARKS = re.compile(r"`|\*\*|__|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)")
_LINK = re.compile(r"!?\[([^\[\]]{0,500})\]\([^()\s]{0,2000}\)")


@dataclass(frozen=True, slots=True)
class MarkdownText:
    """Its sections, and the text of its first level-1 heading (empty if there is none)."""

    title: str
    sections: tuple[DocumentSection, ...]


def read_markdown(text: str, *, first_line: int = 1) -> MarkdownText:
    """The sections of Markdown with line feeds as line ends. Any text is Markdown. `first_line` is where it begins in
    its file, after front matter."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    parts = list(_parts(parser.parse(text), text.split("\n"), first_line))
    title = next((part.text for part in parts if isinstance(part, Heading) and part.level == 1), "")
    return MarkdownText(title, sections_of(parts))


def _parts(tokens: Sequence[Token], lines: list[str], first_line: int) -> Iterator[Heading | DocumentBlock]:
    """Headings and blocks in order. Lists are opened up to their items; all else inside a block belongs to it."""
    for place, token in enumerate(tokens):
        in_list = token.type == "list_item_open" and token.level == 1
        if token.map is None or (token.level and not in_list) or token.type in _LISTS:
            continue
        start, end = token.map
        if token.type == "heading_open":
            yield Heading(int(token.tag[1]), heading_text(tokens[place + 1].content), first_line + start)
            continue
        kind = _KINDS.get(token.type)
        if kind is None:  # a thematic break
            continue
        written = "\n".join(lines[start:end]).rstrip()
        if kind is not BlockKind.CODE and "<!--" in written:
            written = without_comments(written).strip("\n")
        if written.strip():
            yield DocumentBlock(kind, written, first_line + start, _holds_whole(tokens, place))


def _holds_whole(tokens: Sequence[Token], place: int) -> bool:
    """Whether a table or code stands inside the block that opens at `place` (of a quote, an item of a list)."""
    opened = tokens[place]
    if opened.nesting != 1:
        return False
    for inner in range(place + 1, len(tokens)):
        token = tokens[inner]
        if token.level == opened.level and token.nesting == -1:
            return False
        if token.type in ("fence", "code_block", "table_open"):
            return True
    return False


def heading_text(markdown: str) -> str:
    """A heading as it is read aloud: no marks of emphasis, code or links."""
    return " ".join(_HEADING_MARKS.sub("", _LINK.sub(r"\1", markdown)).split())


def without_comments(text: str) -> str:
    """`text` less its HTML comments; an unclosed one takes the rest, as in a browser."""
    kept: list[str] = []
    place = 0
    while (start := text.find("<!--", place)) >= 0:
        kept.append(text[place:start])
        end = text.find("-->", start + 4)
        if end < 0:
            return "".join(kept)
        place = end + 3
    return "".join((*kept, text[place:]))
