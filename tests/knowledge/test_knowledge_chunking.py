"""Chunks: along sections, nothing lost, nothing torn."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel_rag.knowledge.chunking import TARGET, chunks_of
from sentinel_rag.knowledge.documents import BlockKind, Collection, Document, DocumentBlock, DocumentSection

TABLE = "| a | b |\n| --- | --- |\n" + "\n".join(f"| {n} | x |" for n in range(300))
QUERY = "```kql\n" + "\n".join(f"| where Column{n} == {n}" for n in range(200)) + "\n```"


def document(*sections: DocumentSection, title: str = "Mail") -> Document:
    return Document("a.md", Collection.PLAYBOOKS, title, "a.md", sections)


def prose(text: str, place: int = 1) -> DocumentBlock:
    return DocumentBlock(BlockKind.PARAGRAPH, text, place)


@pytest.mark.requirement("KNOW-3")
def test_a_chunk_names_its_title_and_headings_and_crosses_no_section() -> None:
    found = chunks_of(
        document(
            DocumentSection(("Mail", "Triage"), (prose("Ask."), prose("Look.", 3))),
            DocumentSection(("Mail", "Contain"), (prose("Purge.", 9),)),
        )
    )
    assert [(each.number, each.path, each.place, each.text) for each in found] == [
        (0, ("Mail", "Triage"), 1, "Ask.\n\nLook."),
        (1, ("Mail", "Contain"), 9, "Purge."),
    ]
    assert [each.search_text for each in found] == ["Mail\nTriage\n\nAsk.\n\nLook.", "Mail\nContain\n\nPurge."]


@pytest.mark.parametrize(("kind", "text"), [(BlockKind.TABLE, TABLE), (BlockKind.CODE, QUERY)])
def test_a_table_or_query_longer_than_a_chunk_stays_whole(kind: BlockKind, text: str) -> None:
    assert len(text) > TARGET
    found = chunks_of(
        document(DocumentSection(("Mail",), (prose("x. " * 300), DocumentBlock(kind, text, 5), prose("After.", 400))))
    )
    assert [each.text for each in found] == [("x. " * 300), text, "After."]


def test_a_list_item_with_a_query_in_it_stays_whole() -> None:
    item = DocumentBlock(BlockKind.LIST_ITEM, f"1. Run:\n\n   {QUERY}", 1, whole=True)
    assert [each.text for each in chunks_of(document(DocumentSection((), (item,))))] == [item.text]


def test_a_query_stays_with_the_sentence_that_leads_to_it() -> None:
    query = DocumentBlock(BlockKind.CODE, "```kql\n" + "T | take 1\n" * 60 + "```", 9)
    found = chunks_of(document(DocumentSection((), (prose("y. " * 300), prose("Who clicked:", 7), query))))
    assert [each.text for each in found] == ["y. " * 300, f"Who clicked:\n\n{query.text}"]


def test_a_giant_table_is_parted_between_rows_under_its_head() -> None:
    rows = [f"| {n} | {'x' * 90} |" for n in range(1_000)]
    text = "\n".join(("| a | b |", "| --- | --- |", *rows))
    found = chunks_of(document(DocumentSection((), (DocumentBlock(BlockKind.TABLE, text, 1),))))
    assert len(found) > 4
    assert all(each.text.startswith("| a | b |\n| --- | --- |\n") for each in found)
    assert [row for each in found for row in each.text.split("\n")[2:]] == rows


def test_a_giant_code_block_keeps_its_fences() -> None:
    lines = [f"line {n} {'x' * 90}" for n in range(1_000)]
    found = chunks_of(
        document(DocumentSection((), (DocumentBlock(BlockKind.CODE, "\n".join(("```", *lines, "```")), 1),)))
    )
    assert all(each.text.startswith("```\n") and each.text.endswith("\n```") for each in found)
    assert [line for each in found for line in each.text.split("\n")[1:-1]] == lines


words = st.text(alphabet="ab .\n", min_size=1, max_size=400).filter(str.strip)
blocks = st.builds(DocumentBlock, st.sampled_from(BlockKind), words, st.just(1), st.booleans())
sections = st.builds(DocumentSection, st.just(("Mail",)), st.lists(blocks, min_size=1, max_size=8).map(tuple))


@settings(max_examples=60, deadline=None)
@given(st.lists(sections, max_size=4))
def test_nothing_is_lost_and_nothing_whole_is_torn(found: list[DocumentSection]) -> None:
    """For any blocks: the words come out in their order, and a whole block lies in one chunk as it was."""
    chunks = chunks_of(document(*found), target=100, whole=1_000)
    said = "".join("".join(chunk.text.split()) for chunk in chunks)
    assert said == "".join("".join(block.text.split()) for section in found for block in section.blocks)
    for block in (block for section in found for block in section.blocks if block.whole):
        assert any(block.text in chunk.text for chunk in chunks)
    assert [chunk.number for chunk in chunks] == list(range(len(chunks)))
