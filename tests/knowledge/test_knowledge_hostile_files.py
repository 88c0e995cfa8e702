"""Any bytes under any ending: one reading, no exception; and the default path opens no socket."""

from __future__ import annotations

import random
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_files import Typed, made_pdf
from tests.support.embedding_model import embedding_model

from sentinel_rag.knowledge.chunking import chunks_of
from sentinel_rag.knowledge.documents import FileReading, read_folder
from sentinel_rag.knowledge.ingestion import ingest_folder
from sentinel_rag.knowledge.search import KnowledgeSearch
from sentinel_rag.knowledge.stores import LocalStore, Wanted

ENDINGS = (".md", ".html", ".pdf", ".txt")
PIECES = [
    "# ",
    "\n",
    "```",
    "|a|b|\n|-|-|\n",
    "- ",
    "> ",
    "<!--",
    "-->",
    "<table>",
    "<tr><td>",
    "<pre>",
    "</p>",
    "---\n",
    "<h1>",
    "<div hidden>",
    "&#0;",
    "\x00",
    "\ufffe",
    "a b",
    "title: [",
    "\t",
    "~~~",
    "1. ",
    "<svg>",
    "é",
]
MARKUP = st.lists(st.sampled_from(PIECES), max_size=60).map(lambda parts: "".join(parts).encode())


def reading(folder: Path, ending: str, content: bytes) -> FileReading:
    path = folder / f"file{ending}"
    path.write_bytes(content)
    (found,) = read_folder(folder)
    path.unlink()
    return found


def assert_sound(found: FileReading) -> None:
    """A document with chunks, or a line that says why not."""
    if found.document is None:
        assert found.said
    else:
        assert chunks_of(found.document)
        assert found.document.content_hash
    assert "\n" not in found.line


@pytest.mark.requirement("KNOW-1")
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.sampled_from(ENDINGS), st.one_of(st.binary(max_size=300), MARKUP))
def test_any_bytes_are_one_reading(tmp_path: Path, ending: str, content: bytes) -> None:
    """The attacker writes the file."""
    assert_sound(reading(tmp_path, ending, content))


def test_a_pdf_with_bytes_changed_anywhere_is_one_reading(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The attacker writes a PDF that is nearly one: bytes changed, cut off, or doubled."""
    whole = made_pdf([[Typed("Heading", 18, 700), Typed("Body text (more).", 11, 660)]] * 3, title="T")
    picked = random.Random(6)
    outcomes = set()
    for _ in range(150):
        content = bytearray(whole)
        for _ in range(picked.randrange(1, 8)):
            content[picked.randrange(len(content))] = picked.randrange(256)
        cut = picked.randrange(len(content))
        changed = picked.choice([bytes(content), bytes(content[:cut]), bytes(content[:cut] + content[cut // 2 :])])
        found = reading(tmp_path, ".pdf", changed)
        assert_sound(found)
        outcomes.add(found.outcome)
    assert len(outcomes) > 1
    assert caplog.text == ""


@pytest.mark.requirement("KNOW-5")
def test_the_default_path_opens_no_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, playbooks: Path) -> None:
    model = embedding_model()
    model.embed_query("loaded")

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket.socket, "connect_ex", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    folder = tmp_path / "books"
    folder.mkdir()
    (folder / "dos.md").write_bytes((playbooks / "denial-of-service.md").read_bytes()[:3_000])
    with LocalStore(tmp_path / "knowledge.db") as store:
        assert ingest_folder(store, model, folder).ingested.embedded > 0
        found = KnowledgeSearch(store, model).search("our site is flooded with requests", Wanted())
    assert found.hits[0].why.by_meaning == 1
