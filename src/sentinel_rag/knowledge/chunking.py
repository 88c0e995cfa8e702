"""Cut documents into the chunks that are embedded and found: along sections, never through a table."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sentinel_rag.knowledge.documents.model import BlockKind, Collection, Document, DocumentBlock, DocumentSection

# A chunk is a run of blocks of one section; of an incident, whose sections are a few lines each, one of as many
# sections as fit. Its search text begins with the document's title and the headings, so that "containment" is found as
# that of phishing. Only what no store could hold in one piece is parted after all, between rows or lines and with its
# head repeated (see `WHOLE`).
TARGET = 1_200
"""Characters that a chunk of prose grows to: about what the local model reads of a text (256 word pieces)."""
WHOLE = 20_000
"""Characters up to which a table or a code block stays in one piece, whatever the target."""
_MOST_HEADINGS = 400
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|\n")


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece. `number` counts from 0 in its document; `path` are the headings over it; `place` as in Block.
    `text` is Markdown as it was written, `search_text` what is embedded and indexed. In an incident's text each section
    begins with its heading as a line of its own; `path` is empty where there are several."""

    number: int
    path: tuple[str, ...]
    place: int
    text: str
    search_text: str

    @property
    def search_hash(self) -> str:
        """SHA-256 of `search_text`: equal texts have equal vectors, so they are embedded once."""
        return hashlib.sha256(self.search_text.encode("utf-8", "surrogatepass")).hexdigest()


def chunks_of(document: Document, *, target: int = TARGET, whole: int = WHOLE) -> tuple[Chunk, ...]:
    """The chunks of a document in reading order; none for a document without text. Every character of every block is in
    exactly one chunk, less white space at cuts and plus repeated heads."""
    found: list[Chunk] = []
    incident = document.collection is Collection.INCIDENTS
    for section in _merged(document.sections, target) if incident else document.sections:
        head = _head(document.title, section)
        for blocks in _runs(section.blocks, target, whole):
            text = _joined(blocks)
            found.append(Chunk(len(found), section.path, blocks[0].place, text, f"{head}\n\n{text}"))
    return tuple(found)


def _merged(sections: Sequence[DocumentSection], target: int) -> Iterator[DocumentSection]:
    """Neighbours put together up to `target`, each under its heading: as chunks of their own, the sections of 50,000
    incidents would be a quarter of a million."""
    blocks: list[DocumentBlock] = []
    paths: list[tuple[str, ...]] = []
    for section in sections:
        # The heading is part of the first block, so that no cut parts the two.
        first = replace(section.blocks[0], text=f"## {' > '.join(section.path)}\n\n{section.blocks[0].text}")
        more = [first, *section.blocks[1:]]
        if blocks and sum(len(each.text) for each in (*blocks, *more)) > target:
            yield DocumentSection(paths[0] if len(paths) == 1 else (), tuple(blocks))
            blocks, paths = [], []
        blocks += more
        paths.append(section.path)
    if blocks:
        yield DocumentSection(paths[0] if len(paths) == 1 else (), tuple(blocks))


def _head(title: str, section: DocumentSection) -> str:
    """The title, then the headings; the title is not said twice."""
    headings = section.path[1:] if section.path[:1] == (title,) else section.path
    return "\n".join(filter(None, (title, " > ".join(headings)[:_MOST_HEADINGS])))


def _joined(blocks: Sequence[DocumentBlock]) -> str:
    """Blocks parted by a blank line, items of a list by a line's end."""
    texts = [blocks[0].text]
    for before, block in pairwise(blocks):
        in_list = before.kind is block.kind is BlockKind.LIST_ITEM
        texts += ["\n" if in_list else "\n\n", block.text]
    return "".join(texts)


def _runs(blocks: Sequence[DocumentBlock], target: int, whole: int) -> Iterator[list[DocumentBlock]]:
    """Blocks put together up to `target`. A table or a code block stays with the text that leads to it where both
    fit, since that text says what it is for."""
    run: list[DocumentBlock] = []
    length = 0
    for block in (piece for each in blocks for piece in _pieces(each, target, whole)):
        if run and length + len(block.text) > target:
            leads = block.whole and not run[-1].whole and len(run) > 1
            kept = [run.pop()] if leads and len(run[-1].text) + len(block.text) <= target else []
            yield run
            run, length = kept, sum(len(each.text) for each in kept)
        run.append(block)
        length += len(block.text)
    if run:
        yield run


def _pieces(block: DocumentBlock, target: int, whole: int) -> Iterator[DocumentBlock]:
    """The block, or its parts if it is too long for a chunk."""
    if block.whole:
        if len(block.text) <= whole:
            yield block
        else:
            yield from _parted_lines(block, whole)
    elif len(block.text) <= target:
        yield block
    else:
        yield from _parted_prose(block, target)


def _parted_prose(block: DocumentBlock, target: int) -> Iterator[DocumentBlock]:
    """Parts that end with a sentence or a line, else with a word, else (a text without any blank) anywhere."""
    text, line = block.text, block.place
    while len(text) > target:
        ends = [match.start() for match in _SENTENCE_END.finditer(text, target // 2, target)]
        cut = ends[-1] if ends else text.rfind(" ", 1, target)
        cut = target if cut <= 0 else cut
        yield DocumentBlock(block.kind, text[:cut].rstrip(), line)
        text = text[cut:].lstrip()
    if text:
        yield DocumentBlock(block.kind, text, line)


def _parted_lines(block: DocumentBlock, whole: int) -> Iterator[DocumentBlock]:
    """A giant table by rows under its head, a giant code block by lines inside its fences."""
    lines = block.text.split("\n")
    fenced = re.match(r"\s*(`{3,}|~{3,})", lines[0])
    if block.kind is BlockKind.TABLE:
        head, body, foot = lines[:2], lines[2:], list[str]()
    elif fenced is not None:
        closed = lines[-1].strip() == fenced[1]
        head, body, foot = lines[:1], lines[1:-1] if closed else lines[1:], [fenced[1]]
    else:
        head, body, foot = [], lines, []
    room = max(1_000, whole - sum(len(line) + 1 for line in (*head, *foot)))
    part: list[str] = []
    length, first = 0, block.place
    place = block.place + len(head)
    for line in (piece for each in body for piece in _short(each, room)):
        if part and length + len(line) + 1 > room:
            yield DocumentBlock(block.kind, "\n".join((*head, *part, *foot)), first)
            part, length, first = [], 0, place
        part.append(line)
        length += len(line) + 1
        place += 1
    if part:
        yield DocumentBlock(block.kind, "\n".join((*head, *part, *foot)), first)


def _short(line: str, room: int) -> Iterator[str]:
    """The line, or pieces of one that is longer than a whole chunk (a row of base64)."""
    for start in range(0, max(1, len(line)), room):
        yield line[start : start + room]


def head_of(chunk: Chunk) -> str:
    """What stands over the text in the search text; all of it where it does not end with the text."""
    return chunk.search_text.removesuffix(f"\n\n{chunk.text}")


def search_text(head: str, text: str, search_hash: str) -> str:
    """The search text that `head_of` parted."""
    joined = f"{head}\n\n{text}"
    return joined if hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest() == search_hash else head
