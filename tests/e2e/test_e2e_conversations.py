"""A conversation that outlives its processes: listed, resumed, cleared, deleted, and told where its session is gone."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent
HIDDEN = "      - {path: /rows/*/title, mode: hide}\n"


@dataclass(frozen=True)
class Told:
    """What a person was shown in three chats of one home, each with processes of its own. Titles of incidents are
    hidden from the agent there."""

    product: Any
    first: str
    second: str
    third: str
    file: bytes
    """The conversations' file after the second chat."""


@pytest.fixture(scope="module")
def told(generated: Any, tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder = tmp_path_factory.mktemp("conversations")
    policy = (REPOSITORY / "config" / "sentinel_config.yaml").read_text()
    before, exposure, after = policy.partition("    exposure:\n")
    assert before.count("  - name: ") == 1
    assert "  - name: query_incidents\n" in before
    (folder / "policy.yaml").write_text(before + exposure + HIDDEN + after)
    copy = generated.copy(folder / "home")
    shutil.rmtree(copy.home / "agent", ignore_errors=True)  # what other tests said in that home before
    return _tell(replace(copy, settings={**copy.settings, "SENTINEL_CONFIG": str(folder / "policy.yaml")}))


def _tell(product: Any) -> Told:
    def chat(*arguments: str, lines: list[str]) -> str:
        done = product.run("chat", *arguments, stdin="\n".join(lines) + "\n")
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    first = chat(lines=["/tz Europe/Berlin", "/verbosity full", "list open incidents"])
    second = chat("--resume", lines=["/tz", "/verbosity", "/history", "/verbosity normal", "details of [2]", "/clear"])
    file = b"".join(each.read_bytes() for each in (product.home / "agent").iterdir())
    shutil.rmtree(product.home / "gateway")
    third = chat("--resume", lines=["/tz", "details of [2]"])
    return Told(product, first, second, third, file)


def _second_incident(text: str) -> str:
    found = re.search(r"\[2\]\s+│ (\d+)", text)
    assert found is not None, text
    return found[1]


@pytest.mark.requirement("CHAT-6")
def test_a_number_of_an_earlier_process_still_names_its_incident(told: Told) -> None:
    assert f"Incident {_second_incident(told.first)}:" in told.second


@pytest.mark.requirement("CHAT-7")
def test_preferences_are_kept_and_shape_the_answers(told: Told) -> None:
    assert "Evidence:" in told.first, "verbosity full shows the evidence"
    assert re.search(r"UTC \([\d:-]+( [\d:]+)? CES?T\)", told.first), "times stand in the zone of the person too"
    assert "Days and times are those of Europe/Berlin." in told.second
    assert "Answers are full;" in told.second
    assert "1 question was asked before; the last one: list open incidents" in told.second


def test_the_history_shows_questions_and_the_beginning_of_answers(told: Told) -> None:
    assert re.search(r"1\. [\d-]+ [\d:]+ UTC  list open incidents\n     \d+ incidents match", told.second)


@pytest.mark.requirement("CHAT-7")
def test_clear_shows_what_it_carries_on_with_source_and_time(told: Told) -> None:
    carried = told.second.partition("These facts are carried on, each as of its time")[2]
    assert re.search(
        r"  - .* \(query_incidents, as of [\d-]{10} [\d:]{8} UTC \((?:[\d-]{10} )?\d\d:\d\d Europe/Berlin\)\)",
        carried,
    )
    assert f"Incident {_second_incident(told.first)}" in carried


@pytest.mark.requirement("TAINT-3")
def test_a_value_that_is_hidden_from_the_agent_is_shown_to_the_person_and_never_stored(told: Told) -> None:
    titles = set(
        re.findall(r"(?:Port scan from the internet|Multi-stage attack: phishing, stolen session)", told.first)
    )
    assert titles, "the person sees the titles"
    assert [title for title in titles if title.encode() in told.file] == []
    assert "⟦r1#/rows/0/title⟧".encode() in told.file, "the handle is what is kept"
    assert "⟦" not in told.first + told.second


@pytest.mark.requirement("TAINT-2")
def test_where_the_session_is_gone_nothing_that_was_read_is_carried_on(told: Told) -> None:
    assert "The gateway no longer knows the session of this conversation" in told.third
    assert "Days and times are those of Europe/Berlin." in told.third, "preferences stay"
    assert f"Incident {_second_incident(told.first)}:" not in told.third


def test_kept_conversations_are_listed_and_deleted_without_any_zone(told: Told, tmp_path: Path) -> None:
    product = told.product.copy(tmp_path / "home")
    kept = product.json("chat", "--list")
    assert [entry["title"] for entry in kept] == ["details of [2]", "list open incidents"]
    assert kept[1] | {"turns": 2, "timezone": "Europe/Berlin", "verbosity": "normal"} == kept[1]
    old = kept[1]["session_id"]
    assert old[:8] in product.run("chat", "--list").stdout
    findings = {finding["name"]: finding for finding in json.loads(product.run("doctor", "--json").stdout)}
    assert findings["conversations"]["detail"].endswith("conversations.db: 2 kept")
    assert "is deleted" in product.run("chat", "--delete", old[:8]).stdout
    again = product.run("chat", "--delete", old[:8])
    assert (again.returncode, "No conversation begins with" in again.stderr) == (2, True)
    assert [entry["session_id"] for entry in product.json("chat", "--list")] == [kept[0]["session_id"]]
    assert product.run("chat", "--resume", "no-such-id").returncode == 2


@pytest.mark.requirement("CHAT-6")
def test_what_was_kept_before_can_be_deleted_where_nothing_is_kept_any_more(told: Told, tmp_path: Path) -> None:
    copy = told.product.copy(tmp_path / "home")
    kept = replace(copy, settings={**copy.settings, "SENTINEL_CHAT_KEEP_DAYS": "0"})
    entry, _ = kept.json("chat", "--list")
    assert "SENTINEL_CHAT_KEEP_DAYS is 0" in kept.run("chat", "--resume").stderr
    assert "is deleted" in kept.run("chat", "--delete", entry["session_id"]).stdout


def test_nothing_is_kept_where_that_is_set(told: Told, new_product: Callable[[str], Any]) -> None:
    empty = new_product("unkept")
    assert "No conversation is kept yet" in empty.run("chat", "--list").stdout
    assert json.loads(empty.run("chat", "--list", "--json").stdout) == []
    assert "No conversation is kept yet" in empty.run("chat", "--resume").stderr
    assert "--json goes with --list" in empty.run("chat", "--json").stderr
    assert not (empty.home / "agent").exists(), "looking makes no file"
    empty.settings["SENTINEL_CHAT_KEEP_DAYS"] = "0"
    for arguments in (["--list"], ["--resume"], ["--delete", "x"]):
        done = empty.run("chat", *arguments)
        assert (done.returncode, "SENTINEL_CHAT_KEEP_DAYS is 0" in done.stderr) == (2, True)
