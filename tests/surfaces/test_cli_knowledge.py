"""`sentinel knowledge`: playbooks in, sections out, and every refusal with its next step."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.embedding_model import embedding_model

from sentinel_rag.knowledge.embedding import minilm
from sentinel_rag.knowledge.ingestion import IngestLock
from sentinel_rag.surfaces.cli import main
from sentinel_rag_testing.scripted_model import ScriptedModel
from sentinel_rag_testing.scripted_model.replies import Reply, json_reply
from sentinel_rag_testing.scripted_model.server import ModelHttpRequest

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
    monkeypatch.setattr(minilm, "default_tokenizer", lambda: tmp_path / "nowhere" / "tokenizer.json")


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
    assert "2 new, 0 changed, 0 as before, 0 removed; 2 chunks, 0 texts embedded, " in out
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
        patch.setattr(minilm, "default_tokenizer", lambda: tmp_path / "nowhere")
        assert run("ingest", str(folder))[0] == 0
        code, _, err = run("rebuild")
        assert (code, "Run: sentinel knowledge install" in err) == (1, True)
    code, out, _ = run("rebuild")
    assert (code, out.startswith("2 texts embedded; the store holds vectors of all-MiniLM-L6-v2")) == (0, True)
    assert run("ingest", str(folder))[0] == 0
    code, out, _ = run("search", "get rid of a phishing e-mail", "--json")
    assert json.loads(out)["hits"][0]["by_meaning"] == 1
    assert json.loads(out)["hits"][0]["citation"] == "mail.md > Mail > Contain"
    with monkeypatch.context() as patch:
        patch.setattr(minilm, "default_tokenizer", lambda: tmp_path / "nowhere")
        code, _, err = run("ingest", str(folder))
        assert (code, "The store holds vectors of all-MiniLM-L6-v2" in err) == (1, True)
        assert "Next: Run: sentinel knowledge install" in err
        assert run("search", "purge")[0] == 0


@pytest.mark.requirement("KNOW-5")
def test_vectors_for_what_was_found_by_words_are_counted(run: Run, folder: Path) -> None:
    embedding_model()
    assert run("ingest", str(folder), "--by-words")[0] == 0
    done = run("ingest", str(folder))[1]
    assert "0 new, 0 changed, 2 as before, 0 removed; 0 chunks, 2 texts embedded, " in done
    assert "0 chunks, 0 texts embedded, " in run("ingest", str(folder))[1]


@pytest.mark.requirement("KNOW-4")
def test_what_is_closed_is_found_under_the_readers_of_the_settings_and_told_otherwise(
    run: Run, folder: Path, without_model: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "secret.md").write_text("---\nreaders: [tier2]\n---\n# Secret\n\nThe zebrafish plan.\n")
    assert run("ingest", str(folder))[0] == 0
    code, out, _ = run("search", "zebrafish")
    told = "1 document is closed to the names in SENTINEL_READERS (nobody, since it is not set) and not searched."
    assert (code, told in out, "plan" in out) == (3, True, False)
    assert told in json.loads(run("search", "mail", "--json")[1])["remarks"]
    monkeypatch.setenv("SENTINEL_READERS", "tier2")
    code, out, _ = run("search", "zebrafish")
    assert (code, out.startswith("[1] secret.md > Secret"), "closed" in out) == (0, True, False)


@pytest.mark.parametrize("signs", ["*", '""', "?!", "\u2026 -- ()"])
def test_signs_alone_find_nothing_and_it_says_why(run: Run, folder: Path, signs: str) -> None:
    embedding_model()
    assert run("ingest", str(folder))[0] == 0
    code, out, _ = run("search", signs)
    assert (code, out.startswith("The question holds no word or number to look for.")) == (3, True)


@pytest.mark.requirement("KNOW-5")
def test_a_service_of_the_settings_makes_the_vectors(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Azure OpenAI, played by a scripted server: 1,024 dimensions, the key in its header, texts sent once."""

    def answer(request: ModelHttpRequest) -> Reply:
        size = request.body["dimensions"]
        vectors = [[1.0, float("mail" in text), *[0.0] * (size - 2)] for text in request.body["input"]]
        return json_reply({"data": [{"index": n, "embedding": vector} for n, vector in enumerate(vectors)]})

    server = ScriptedModel(key="canary-of-a-key", models=frozenset({"embed-large"}), respond=answer)
    with server.running() as url:
        monkeypatch.setenv("SENTINEL_EMBEDDINGS", "azure")
        monkeypatch.setenv("SENTINEL_EMBEDDINGS_NAME", "embed-large")
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", url)
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "canary-of-a-key")
        assert run("ingest", str(folder))[0] == 0
        assert "0 new, 0 changed, 2 as before" in run("ingest", str(folder))[1]
        code, out, _ = run("search", "unrelated mail", "--json")
        assert (code, json.loads(out)["hits"][0]["by_meaning"]) == (0, 1)
        assert "vectors  embed-large (1024 dimensions)" in run("status")[1]
        monkeypatch.setenv("SENTINEL_EMBEDDINGS_DIMENSIONS", "512")
        code, _, err = run("search", "mail")
        assert (code, "holds vectors of embed-large (1024 dimensions)" in err) == (1, True)
        assert run("rebuild")[0] == 0
        assert "vectors  embed-large (512 dimensions)" in run("status")[1]
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "another-canary")
        code, out, err = run("search", "mail")
        assert code == 0  # by words, and it says why
        assert "lets nobody in with this key" in out
        assert "canary" not in out + err
    assert [len(request.body["input"]) for request in server.requests] == [2, 1, 1, 2]
    assert {request.path for request in server.requests} == {"/openai/v1/embeddings"}


def test_none_is_words_only_and_has_nothing_to_rebuild(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENTINEL_EMBEDDINGS", "none")
    code, out, _ = run("ingest", str(folder))
    assert (code, "Next" in out) == (0, False)
    assert run("search", "purge")[0] == 0
    code, _, err = run("rebuild")
    assert (code, "there is no model to embed with" in err) == (1, True)


def test_the_shipped_playbooks_are_the_default(run: Run, without_model: None) -> None:
    code, out, _ = run("ingest", "--only", "playbooks", "--json")
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
        (("ingest", ".", "--only", "incidents"), 2, "A folder holds playbooks, and --only incidents leaves them out."),
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


@pytest.mark.requirement("KNOW-2")
def test_incidents_of_an_interceptor_elsewhere_are_read_in_there(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENTINEL_URL", "https://gateway.example.test")
    monkeypatch.setenv("SENTINEL_API_KEY", "a-key-of-the-tests-0123456789")
    code, out, err = run("ingest", "--only", "incidents")
    assert (code, out) == (1, "")
    assert "knowledge is read in on that machine" in err
    assert "Next: Run there: sentinel knowledge ingest" in err


@pytest.mark.parametrize("days", ["0", "3651", "a week", "-1"])
def test_days_are_a_number_of_days(run: Run, capsys: pytest.CaptureFixture[str], days: str) -> None:
    with pytest.raises(SystemExit) as raised:
        run("ingest", "--days", days)
    assert raised.value.code == 2
    assert "is not a number of days from 1 to 3650" in capsys.readouterr().err


@pytest.mark.requirement("KNOW-2")
def test_a_second_ingest_of_playbooks_is_told_who_is_at_it(run: Run, folder: Path, clean_environment: Path) -> None:
    with IngestLock(clean_environment / "knowledge" / "ingest.lock").hold("the refresh that runs by itself"):
        code, _, err = run("ingest", str(folder))
    assert code == 1
    assert "Another ingest is running: the refresh that runs by itself, process " in err
    assert run("ingest", str(folder))[0] == 0


@pytest.mark.requirement("KNOW-2")
def test_status_says_what_the_next_ingest_would_do(run: Run, folder: Path, without_model: None) -> None:
    assert "next     sentinel knowledge ingest reads in past incidents, which was never done" in run("status")[1]
    run("ingest", "--only", "playbooks")
    told = json.loads(run("status", "--json")[1])
    assert (told["incidents_as_of"], told["newest_incident"], told["workspaces"]) == (None, None, [])
    assert told["next_ingest"] == [
        "sentinel knowledge ingest reads in past incidents, which was never done for this store."
    ]


def test_the_next_ingest_knows_the_folder_of_the_last_one(run: Run, folder: Path, without_model: None) -> None:
    """Else a person's own playbooks would give way to the shipped ones with the first `ingest` that names none."""
    assert run("ingest", str(folder))[0] == 0
    told = f"next     sentinel knowledge ingest reads 1 playbooks of {folder} anew."
    assert told not in run("status")[1]
    (folder / "shell.md").rename(folder / "shells.md")
    assert told in run("status")[1]
    code, out, _ = run("ingest", "--only", "playbooks")
    assert (code, f"Playbooks of {folder}: 1 new, 0 changed, 1 as before, 0 removed" in out) == (0, True)
    assert "1 playbooks that are not in this folder stay; to remove them: sentinel knowledge ingest --replace" in out
    code, out, _ = run("ingest", "--only", "playbooks", "--replace")
    assert (code, f"Playbooks of {folder}: 0 new, 0 changed, 2 as before, 1 removed" in out) == (0, True)
    folder.rename(folder.with_name("away"))
    code, _, err = run("ingest", "--only", "playbooks")
    assert (code, "a folder that is not there now" in err) == (2, True)
    assert "the shipped ones lie in" in err
    assert "finds no folder" in run("status")[1]


@pytest.mark.requirement("KNOW-3")
def test_playbooks_are_listed_and_those_that_are_named_are_removed_and_no_other(
    run: Run, folder: Path, without_model: None
) -> None:
    assert run("list")[0] == 3
    run("ingest", str(folder))
    code, out, _ = run("list", "--json")
    assert code == 0
    assert json.loads(out) == [
        {"name": "mail.md", "title": "Mail", "techniques": ["T1566"]},
        {"name": "shell.md", "title": "Shell", "techniques": []},
    ]
    code, _, err = run("remove", "mail.md", "nowhere.md")
    assert code == 2
    assert "There is no playbook nowhere.md." in err
    assert len(json.loads(run("list", "--json")[1])) == 2  # one that is not there removes none
    assert run("remove", "mail.md") == (0, "Removed: mail.md\n", "")
    assert [each["name"] for each in json.loads(run("list", "--json")[1])] == ["shell.md"]
