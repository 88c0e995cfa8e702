"""Notes: what a code and its values say, in whole, in brief, and of one workspace among several."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from string import Formatter

import pytest

import sentinel_rag
from sentinel_rag.contracts.query_results import CodedNote
from sentinel_rag.language.notes import brief, catalogue, in_workspace, note

ROOT = Path(sentinel_rag.__file__).parent


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (note("entities_unreadable", count=1, uncounted=False), "The entities of 1 alert do not parse as JSON."),
        (
            note("entities_unreadable", count=2, uncounted=True),
            "The entities of 2 alerts do not parse as JSON and are not counted.",
        ),
        (note("number_of_defender", number="7", incidents=[4, 5]).partition("; ")[2],
         "it is the Defender id of Sentinel incident 4, 5."),
        (note("read_since", start=datetime(2026, 11, 3, tzinfo=UTC)),
         "So no row from before 2026-11-03T00:00:00Z was read."),
        (note("more_rows_match", count=1000).partition(",")[0], "More than 1"),
    ],
)  # fmt: skip
def test_a_note_says_its_values(told: str, sentence: str) -> None:
    assert told == sentence


def test_a_note_is_known_by_its_code_and_its_values_as_json() -> None:
    told = note("retention_over", table="SigninLogs", oldest=datetime(2026, 1, 2, tzinfo=UTC))
    assert (told.code, told.values) == ("retention_over", {"table": "SigninLogs", "oldest": "2026-01-02T00:00:00Z"})


def test_in_brief_a_note_leaves_out_what_it_explains() -> None:
    told = note("closed_and_open_again", numbers=[4, 5])
    short = "Incidents 4, 5 carry a closing time but the newest version is not closed."
    assert told.startswith(f"{short[:-1]}: ")
    assert brief(told) == short
    assert brief(in_workspace(told, "prod")) == f"prod: {short}"


def test_a_note_of_another_version_is_told_as_it_came() -> None:
    for told in (
        CodedNote("All: of it.", "of_a_newer_server"),
        CodedNote("All: of it.", "closed_and_open_again", {"number": 4}),
    ):
        assert brief(told) == "All: of it."


def test_a_note_without_a_code_can_be_of_a_workspace_too() -> None:
    assert in_workspace("Said elsewhere.", "prod") == "prod: Said elsewhere."


@pytest.mark.parametrize("code", ["no_such_code", "retention_over"])
def test_what_the_catalogue_lacks_is_an_error(code: str) -> None:
    with pytest.raises(KeyError):
        note(code, table="SigninLogs")


def test_the_product_uses_every_note_with_exactly_its_values() -> None:
    """A value that no call gives would be an error in front of a person; one that no text shows is not said."""
    used: dict[str, set[str]] = {}
    for code, values in _calls():
        used.setdefault(code, set()).update(values)
    shown = {code: set(_slots(text)) for code, text in catalogue().items()}
    assert used.keys() - shown.keys() == set()
    named_by_enum = {code for code in shown if code.startswith("name_")}
    assert shown.keys() - used.keys() == named_by_enum
    spread = {code for code in used if "**" in used[code]}
    assert {code: used[code] for code in used.keys() - spread} == {code: shown[code] for code in used.keys() - spread}


def _slots(text: str | Mapping[str, str]) -> Iterator[str]:
    for part in [text] if isinstance(text, str) else text.values():
        yield from (name for _, name, _, _ in Formatter().parse(part) if name)


def _calls() -> Iterator[tuple[str, set[str]]]:
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "note" and node.args:
                given = {each.arg or "**" for each in node.keywords}
                for each in ast.walk(node.args[0]):
                    if isinstance(each, ast.Constant) and isinstance(each.value, str):
                        yield each.value, given
