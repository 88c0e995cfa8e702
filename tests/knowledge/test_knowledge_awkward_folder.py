"""One folder with every awkward file that people have: each a clear line, and the rest brought in and found."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_files import Typed, made_pdf
from store_contract import by_words

from sentinel_rag.knowledge.documents import Collection
from sentinel_rag.knowledge.ingestion import IngestReport, ingest_folder
from sentinel_rag.knowledge.stores import LocalStore

PAGES = 400


def long_pdf() -> bytes:
    return made_pdf(
        [[Typed(f"Chapter {n}", 18, 740), Typed(f"Do the step numbered {n} zephyr.", 11, 700)] for n in range(PAGES)]
    )


def twenty_megabytes() -> bytes:
    section = "## Step\n\n" + "Look at the sign-in logs of the account. " * 5_000 + "\n\n"
    return ("# Huge quagga\n\n" + section * (20_000_000 // len(section) + 1)).encode()


@pytest.mark.requirement("KNOW-1")
@pytest.mark.requirement("KNOW-2")
def test_each_awkward_file_is_a_line_and_the_rest_is_brought_in(tmp_path: Path) -> None:
    folder = tmp_path / "books"
    (folder / "empty folder").mkdir(parents=True)
    files = {
        "a good.md": b"# Good\n\nkangaroo\n",
        "b huge.md": twenty_megabytes(),
        "c long.pdf": long_pdf(),
        "d scanned.pdf": made_pdf([[], []], picture=True),
        "e broken.html": b"<html><body><h1>Broken</h1><p>wallaby <b>bold<table><tr><td>x</html",
        "f western.md": "# Été\n\nwombat déjà vu\n".encode("cp1252"),
        "g utf16.md": "# Sixteen\n\nplatypus\n".encode("utf-16"),
        "h binary.md": b"half\x00written",
        "i nothing.md": b"",
        "j vanishes.md": b"# Soon gone\n\nthylacine\n",
        "k last.md": b"# Last\n\nechidna\n",
        "l office.docx": b"PK\x03\x04",
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)

    def while_it_reads(_: IngestReport) -> None:
        (folder / "j vanishes.md").unlink(missing_ok=True)

    with LocalStore(tmp_path / "knowledge.db") as store:
        report = ingest_folder(store, None, folder, listener=while_it_reads)
        held = sorted(store.versions(Collection.PLAYBOOKS))
        found = {
            word: by_words(store, word)
            for word in ("kangaroo", "wallaby", "wombat", "platypus", "echidna", "thylacine")
        }
        assert len(by_words(store, f"step numbered {PAGES - 1}")) > 0
        assert by_words(store, "quagga")[:1] == ["b huge.md"]
    said = {each.source: each.line for each in report.told}
    assert held == [
        "a good.md",
        "b huge.md",
        "c long.pdf",
        "e broken.html",
        "f western.md",
        "g utf16.md",
        "k last.md",
    ]
    assert found == {
        "kangaroo": ["a good.md"],
        "wallaby": ["e broken.html"],
        "wombat": ["f western.md"],
        "platypus": ["g utf16.md"],
        "echidna": ["k last.md"],
        "thylacine": [],
    }
    assert "run character recognition over it first" in said.pop("d scanned.pdf")
    assert "read as Windows-1252" in said.pop("f western.md")
    assert "It is no text: it holds zero bytes." in said.pop("h binary.md")
    assert "It holds nothing." in said.pop("i nothing.md")
    assert "vanished" in said.pop("j vanishes.md")
    assert "Files that are read end in" in said.pop("l office.docx")
    assert said == {}
    assert {each.source for each in report.faults} == {"d scanned.pdf", "h binary.md", "i nothing.md", "j vanishes.md"}
