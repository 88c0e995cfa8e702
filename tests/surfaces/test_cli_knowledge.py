"""`sentinel knowledge`: playbooks in, sections out, and every refusal with its next step."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sentinel_rag.knowledge.embedding import local_installation
from sentinel_rag.surfaces.cli import main
from sentinel_rag.testing.embedding_model import embedding_model

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(clean_environment: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*words: str) -> tuple[int, str, str]:
        code = main(["knowledge", *words])
        out, err = capsys.readouterr()
        return code, out, err

    return command


@pytest.fixture
def without_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine on which the tokenizer was never installed."""
    monkeypatch.setattr(local_installation, "default_tokenizer", lambda: tmp_path / "nowhere" / "tokenizer.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "books"
    made.mkdir()
    (made / "mail.md").write_text(
        "---\nseverity: High\ntechniques: [T1566]\n---\n# Mail\n\n## Contain\n\nPurge the mail.\n"
    )
    (made / "shell.md").write_text("# Shell\n\nTake the server off the network.\n")
    return made


@pytest.mark.requirement("KNOW-3")
def test_playbooks_are_put_in_and_found_by_words(run: Run, folder: Path, without_model: None) -> None:
    code, out, _ = run("ingest", str(folder))
    assert code == 0
    assert "2 new, 0 changed, 0 as before, 0 removed; 2 chunks, 0 embedded." in out
    assert "Run: sentinel knowledge install" in out
    code, out, _ = run("search", "purge", "mails")
    assert code == 0
    assert out.startswith("[1] mail.md > Mail > Contain (line or page 9)\n    by words: 1, by meaning: -; has purge\n")
    assert "    Purge the mail." in out
    assert "Searched by words only" in out
    assert run("search", "purge", "--severity", "Low")[0] == 3
    code, out, _ = run("search", "purge server", "--technique", "T1566", "--json")
    assert [hit["citation"] for hit in json.loads(out)["hits"]] == ["mail.md > Mail > Contain"]
    assert json.loads(out)["hits"][0]["label"] == {"sensitivity": "MEDIUM", "integrity": "UNTRUSTED"}
    code, out, _ = run("status")
    assert code == 0
    assert "playbooks            2 documents, 2 chunks" in out
    assert "vectors  none: found by words only" in out


@pytest.mark.requirement("KNOW-5")
def test_with_the_model_they_are_found_by_meaning_after_a_rebuild(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    embedding_model()
    with monkeypatch.context() as patch:
        patch.setattr(local_installation, "default_tokenizer", lambda: tmp_path / "nowhere")
        assert run("ingest", str(folder))[0] == 0
        code, _, err = run("rebuild")
        assert (code, "Run: sentinel knowledge install" in err) == (1, True)
    code, _, err = run("ingest", str(folder))
    assert code == 1
    assert "holds no vectors" in err
    assert "Run: sentinel knowledge rebuild" in err
    code, out, _ = run("rebuild")
    assert (code, out.startswith("2 texts embedded; the store holds vectors of all-MiniLM-L6-v2")) == (0, True)
    code, out, _ = run("search", "get rid of a phishing e-mail", "--json")
    assert json.loads(out)["hits"][0]["by_meaning"] == 1
    assert json.loads(out)["hits"][0]["citation"] == "mail.md > Mail > Contain"
    with monkeypatch.context() as patch:
        patch.setattr(local_installation, "default_tokenizer", lambda: tmp_path / "nowhere")
        code, _, err = run("ingest", str(folder))
        assert (code, "that model is not here" in err) == (1, True)
        assert run("search", "purge")[0] == 0


def test_the_shipped_playbooks_are_the_default(run: Run, without_model: None) -> None:
    code, out, _ = run("ingest", "--json")
    report = json.loads(out)
    assert code == 0
    assert (report["added"], report["told"], report["by_words_only"]) == (10, [], True)
    code, out, _ = run("search", "T1505.003", "--json", "--limit", "3")
    assert {hit["citation"].partition(" > ")[0] for hit in json.loads(out)["hits"]} == {"web-shell.md"}


def test_a_file_that_cannot_be_read_is_a_line_and_an_exit_code(run: Run, folder: Path, without_model: None) -> None:
    (folder / "evil\x1b[31m.md").write_bytes(b"\0")
    code, out, _ = run("ingest", str(folder))
    assert code == 2
    assert "It is no text: it holds zero bytes." in out
    assert "\x1b" not in out
    assert "2 new" in out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("ingest", "/no/such/folder"), 2, "There is no folder /no/such/folder."),
        (("search", "anything"), 3, ""),
        (("search", " "), 2, "There is nothing to search for."),
    ],
)
def test_what_cannot_be_is_said(
    run: Run, words: tuple[str, ...], code: int, said: str, without_model: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.read", lambda: "", raising=False)
    found, _, err = run(*words)
    assert found == code
    assert said in err


def test_an_empty_folder_is_told(run: Run, tmp_path: Path, without_model: None) -> None:
    (tmp_path / "empty").mkdir()
    code, out, _ = run("ingest", str(tmp_path / "empty"))
    assert code == 2
    assert ".: nothing there. The folder holds no file." in out
