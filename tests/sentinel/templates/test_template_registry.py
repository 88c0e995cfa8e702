"""The registry loads all or nothing, and says in which file and line what is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.query_results import TimeWindow, parse_time
from sentinel_rag.sentinel.templates.template_registry import TEMPLATE_FOLDER, load_templates

SOUND = """\
name: sound
description: Something.
tables: [SigninLogs]
time_column: TimeGenerated
parameters:
  user: {type: string, required: true, description: Whom.}
  hosts: {type: list, default: [], description: Where.}
  since: {type: datetime, default: '2024-07-02T09:45:00Z', description: When.}
  ratio: {type: real, default: 0.5, min: 0, max: 1, description: How much.}
  only: {type: bool, default: false, description: Whether.}
questions: [Who?]
kql: |
  SigninLogs | where {window} and User == {user} and Host in {hosts} and T > {since} and R > {ratio} and {only}
"""


def written(folder: Path, text: str, name: str = "sound.yaml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.requirement("TOOL-4")
def test_slots_become_typed_literals(tmp_path: Path) -> None:
    template = load_templates(written(tmp_path, SOUND))["sound"]
    start = parse_time("2024-08-01T00:00:00Z")
    kql = template.render({"user": '" or true //{window}', "hosts": ["a'b", "c\\d"], "ratio": 1}, TimeWindow(start))
    assert kql == (
        "SigninLogs | where TimeGenerated >= datetime(2024-08-01T00:00:00.0000000Z) "
        'and User == "\\" or true //{window}" and Host in ("a\'b", "c\\\\d") '
        "and T > datetime(2024-07-02T09:45:00.0000000Z) and R > real(1.0) and false"
    )


@pytest.mark.requirement("TOOL-4")
@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("name: sound", "name: other", "must be the file's name"),
        ("description: Something.", "descripton: Something.", "Did you mean 'description'?"),
        ("tables: [SigninLogs]", "tables: []", "tables must be a list"),
        ("questions: [Who?]", "questions: Who?", "questions must be a list"),
        ("time_column: TimeGenerated", "time_column: 'T | take 1'", "not a column name"),
        ("{window}", "true", "no {window} slot"),
        ("{user}", "{usr}", "slot {usr} is not a declared parameter. Did you mean 'user'?"),
        ("{user}", "1", "parameter 'user' is never used"),
        ("type: string", "type: text", "type must be one of"),
        ("type: string, required: true", "type: string", "either required or has a default"),
        ("type: list, default: []", "type: list, default: 5", "its own default is refused"),
        ("default: 0.5", "default: 2", "at most 1"),
        ("type: real", "type: enum", "an enum, and only an enum"),
        ("description: Whom.", "description: Whom., names: [User]", "names must tell an expression for each table"),
        ("description: Whom.", "description: Whom., names: {Syslog: User}", "'Syslog' is not among the tables"),
        ("description: Where.", "description: Where., names: {SigninLogs: User}", "only a string is one of names"),
        ("required: true, description", "required: true, patern: x, description", "Did you mean 'pattern'?"),
        ("required: true, description", "required: true, pattern: '(', description", "no regular expression"),
        ("user: {", "window: {", "not 'window'"),
        ("name: sound", "name: [", "not valid YAML"),
        ("{user}", '"{user}"', "slot {user} stands inside quotes"),
        ("{window} and User == {user}", "User == {user} // {window}", "no {window} slot"),
        ("tables: [SigninLogs]", "tables: ['T | take 1']", "not a table name"),
        ("questions: [Who?]", "questions: [Who?]\ntechniques: [1078]", "techniques must be a list of texts"),
        ("questions: [Who?]", "questions: [Who?]\ntechniques: [T78]", "not of the form T1078"),
        ("questions: [Who?]", "questions: [Who?]\ntotals: [Hosts]", "no column 'Hosts'. Did you mean 'Host'?"),
        ("default: 0.5, min: 0", "default: 0.5, min: none", "min must be a number"),
        ("type: bool, default: false", "type: enum, allowed: high, default: h", "allowed must be a list of texts"),
        (SOUND, "just text", "not a mapping"),
    ],
)
def test_one_fault_refuses_every_template_and_names_the_file(
    tmp_path: Path, before: str, after: str, fault: str
) -> None:
    written(tmp_path, SOUND)
    assert before in SOUND
    broken = SOUND.replace("name: sound", "name: broken").replace(before.replace("name: sound", "name: broken"), after)
    written(tmp_path, broken, "broken.yaml")
    with pytest.raises(ConfigurationError) as caught:
        load_templates(tmp_path)
    assert any(re.match(r"broken.yaml:\d+: ", problem) and fault in problem for problem in caught.value.problems)
    assert not any(problem.startswith("sound.yaml") for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("description: Something.", "descripton: Something.", 2),
        ("tables: [SigninLogs]", "tables: []", 3),
        ("time_column: TimeGenerated", "time_column: 5", 4),
        ("type: string", "type: text", 6),
        ("default: 0.5", "default: 2", 9),
        ("{user}", "{usr}", 13),
        ("questions: [Who?]", "questions: [Who?]\n  x: y", 12),
        ("questions: [Who?]", "questions: [Who?]\nname: sound", 12),
    ],
)
def test_the_line_of_a_fault_is_told(tmp_path: Path, before: str, after: str, line: int) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_templates(written(tmp_path, SOUND.replace(before, after)))
    assert any(problem.startswith(f"sound.yaml:{line}: ") for problem in caught.value.problems), caught.value.problems


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"name: sound\ndescription: \xff\n", "sound.yaml:2: not UTF-8 text"),
        (b"# " + b"x" * 100_000, "sound.yaml:1: is larger than"),
        (b"", "sound.yaml:1: not a mapping of keys"),
        (b"name: sound\nname: 2024-13-45\n", "sound.yaml:"),
        (b"- a\n- b\n", "sound.yaml:1: not a mapping of keys"),
    ],
)
def test_a_file_that_is_no_template_is_one_clear_fault(tmp_path: Path, content: bytes, fault: str) -> None:
    (tmp_path / "sound.yaml").write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        load_templates(tmp_path)
    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].startswith(fault)


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "sound.yaml").write_text(SOUND, encoding="utf-8-sig")
    assert list(load_templates(tmp_path)) == ["sound"]


@pytest.mark.requirement("TOOL-4")
def test_own_templates_stand_beside_the_shipped_ones(tmp_path: Path) -> None:
    known = load_templates(own=written(tmp_path, SOUND))
    assert known.keys() == load_templates().keys() | {"sound"}
    assert list(known) == sorted(known)


@pytest.mark.requirement("TOOL-4")
def test_an_own_template_never_takes_the_name_of_a_shipped_one(tmp_path: Path) -> None:
    written(tmp_path, SOUND)
    written(tmp_path, SOUND.replace("name: sound", "name: raw_signins"), "raw_signins.yaml")
    with pytest.raises(ConfigurationError) as caught:
        load_templates(own=tmp_path)
    assert caught.value.problems == (
        "raw_signins.yaml:1: 'raw_signins' is the name of a shipped template; choose another",
    )


def test_an_own_folder_may_be_empty_and_a_yml_file_is_not_passed_over(tmp_path: Path) -> None:
    assert load_templates(own=tmp_path).keys() == load_templates().keys()
    written(tmp_path, SOUND, "sound.yml")
    with pytest.raises(ConfigurationError) as caught:
        load_templates(own=tmp_path)
    assert caught.value.problems == ("sound.yml:1: would be passed over; name it sound.yaml",)


def test_all_faults_of_all_files_are_told(tmp_path: Path) -> None:
    written(tmp_path, SOUND.replace("{user}", "1"), "sound.yaml")
    written(tmp_path, SOUND.replace("name: sound", "name: b").replace("{window}", "1"), "b.yaml")
    with pytest.raises(ConfigurationError) as caught:
        load_templates(tmp_path)
    assert len(caught.value.problems) == 2


def test_a_folder_without_templates_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        load_templates(tmp_path)


def test_the_shipped_templates_are_package_data() -> None:
    assert {path.suffix for path in TEMPLATE_FOLDER.iterdir() if path.is_file()} == {".yaml", ".py"}


def test_the_filters_of_a_template_are_those_that_every_row_fulfils() -> None:
    shipped = load_templates()
    assert shipped["mfa_denied_signins"].filters == ['ResultType == "500121"']
    assert shipped["logons_on_host"].filters == ["EventID in (4624, 4625)"]
    assert not shipped["account_activity_timeline"].filters  # each log of the union has its own
    assert not shipped["signins_from_ip"].filters  # what a parameter fills is told by the call
