"""`sentinel kql` as a person uses it, on an embedded workspace in a home folder of the test's own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.sentinel.templates.template_registry import TEMPLATE_FOLDER, load_templates
from sentinel_rag.surfaces.cli import main

OWN = """\
name: badge_entries
description: Entries by door.
tables: [SigninLogs]
time_column: TimeGenerated
parameters:
  apps: {type: list, default: [], description: Which.}
  failed: {type: bool, required: true, description: Whether only failed ones.}
questions: [Who came in?]
totals: [Entries]
kql: |
  SigninLogs
  | where {window}
  | where AppDisplayName in {apps} and (ResultType != "0" or not({failed}))
  | summarize Entries = count() by AppDisplayName
  | order by AppDisplayName asc
"""
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(clean_environment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> Run:
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(list(arguments))
        out, err = capsys.readouterr()
        return code, out, err

    return command


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "badge_entries.yaml").write_text(OWN)
    monkeypatch.setenv("SENTINEL_TEMPLATES", str(folder))
    return folder


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the home of the first test with rows is kept, for the others to copy."""
    return tmp_path_factory.mktemp("kept") / "home"


@pytest.fixture
def filled(run: Run, clean_environment: Path, kept: Path, tmp_path: Path) -> Run:
    if kept.exists():
        shutil.copytree(kept, clean_environment)
        return run
    places = ["PT", "PT", "PT", "RO", "RO", "\x1b[31mXX", ""]
    rows = [
        {
            "TimeGenerated": f"2024-08-0{day}T01:00:00Z",
            "UserPrincipalName": "ana@contoso.example",
            "Location": place,
            "AppDisplayName": f"App{day % 2}",
            "ResultType": str(day % 2),
        }
        for day, place in enumerate(places, start=1)
    ]
    file = tmp_path / "SigninLogs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run("workspace", "import", str(file), "--table", "SigninLogs")[0] == 0
    shutil.copytree(clean_environment, kept)
    return run


@pytest.mark.requirement("TOOL-4")
def test_the_first_rows_of_all_and_the_totals_are_told(filled: Run) -> None:
    code, out, _ = filled("kql", "run", "signins_by_country", "--limit", "2")
    assert code == 0
    assert "First 2 of 4 rows." in out
    assert "Sums over the rows: SignIns 7, Failures 4." in out
    assert "\x1b[31m" not in filled("kql", "run", "signins_by_country")[1]


@pytest.mark.requirement("TOOL-4")
def test_a_run_as_json_has_columns_rows_and_the_query(filled: Run) -> None:
    code, out, _ = filled(
        "kql", "run", "signins-by-country", "user=ana", "--json", "--since", "2024-08-02", "--limit=1"
    )
    found = json.loads(out)
    assert code == 0
    assert (found["rows_returned"], found["rows_total"], found["totals"]) == (1, 4, {"SignIns": 6, "Failures": 3})
    assert found["rows"][0]["Country"] == "PT"
    assert found["columns"][0] == {"name": "Country", "type": "string"}
    assert found["window"]["start"] == "2024-08-02T00:00:00Z"
    assert 'UserPrincipalName =~ "ana"' in found["query"]
    assert (found["template"], found["workspace"], found["partial"]) == ("signins_by_country", "default", False)


def test_a_part_of_a_name_is_read_as_the_one_that_holds_it_and_said(filled: Run) -> None:
    code, out, _ = filled("kql", "run", "signins_by_country", "user=na@contoso", "--json")
    assert (code, json.loads(out)["notes"][0]) == (
        3,
        "No user is exactly 'na@contoso'; near it: ana@contoso.example. None of them was read, so an empty result "
        "tells nothing about them: ask again with the full name.",
    )
    code, out, _ = filled("kql", "run", "signins_by_country", "user='ana'", "--json")
    found = json.loads(out)
    assert (code, found["rows_total"]) == (0, 4)
    assert found["notes"] == ["No user is exactly \"'ana'\"; read was ana@contoso.example, the only one like it."]
    assert 'UserPrincipalName =~ "ana@contoso.example"' in found["query"]


def test_no_row_is_exit_code_3(filled: Run) -> None:
    assert filled("kql", "run", "signins_by_country", "user=nobody")[0] == 3
    code, out, _ = filled("kql", "run", "signins_by_country", "--until", "2024-08-01")
    assert (code, out.splitlines()[0]) == (3, "No row matches.")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["signins_by_contry"], "There is no template 'signins_by_contry'. Did you mean 'signins_by_country'?"),
        (["signins_by_country", "usr=x"], "has no parameter 'usr'. It takes: user. Did you mean 'user'?"),
        (["signins_by_country", "user"], "'user' is not NAME=VALUE."),
        (["signins_by_country", "user=a", "user=b"], "user is given twice"),
        (["risky_users", "min_risk=hgh"], "Did you mean 'high'? Allowed: low, medium, high."),
        (["rare_processes", "max_executions=many"], "must be a whole number, not 'many'"),
        (["rare_processes", "max_executions=0"], "must be at least 1"),
        (["signins_from_ip"], "needs the parameter ip"),
        (["signins_from_ip", "ip=1' or '1"], "does not have the right form"),
        (["heartbeat_gaps", "silent_for=soon"], "must be a span"),
        (["raw_signins", "--since", "later"], "--since 'later' is no time."),
        (["raw_signins", "--since", "2024-08-02", "--until", "2024-08-01"], "ends at or before its start"),
    ],
)
def test_wrong_use_is_one_sentence_and_a_next_step(filled: Run, arguments: list[str], sentence: str) -> None:
    code, out, err = filled("kql", "run", *arguments)
    assert (code, out) == (2, "")
    assert sentence in err
    assert "Next: " in err
    assert "list_kql_templates" not in err


@pytest.mark.parametrize("limit", ["0", "10001", "-1", "x", "٣"])
def test_a_wrong_limit_is_refused(run: Run, limit: str) -> None:
    with pytest.raises(SystemExit) as caught:
        run("kql", "run", "raw_signins", f"--limit={limit}")
    assert caught.value.code == 2


def test_without_a_workspace_the_next_step_is_to_fill_one(run: Run) -> None:
    code, _, err = run("kql", "run", "raw_signins")
    assert code == 2
    assert "sentinel workspace import" in err


@pytest.mark.requirement("TOOL-4")
def test_the_templates_are_listed_and_shown_whole(run: Run) -> None:
    code, out, _ = run("kql", "templates")
    assert code == 0
    assert all(name in out for name in load_templates())
    code, out, _ = run("kql", "templates", "risky_users")
    assert code == 0
    assert 'default "low"' in out
    assert "| where {window}" in out
    assert "T1078.004" in out
    assert run("kql", "templates", "risky_usrs")[0] == 2


@pytest.mark.requirement("TOOL-4")
def test_the_list_as_json_tells_file_and_query(run: Run, own: Path) -> None:
    found = {template["name"]: template for template in json.loads(run("kql", "templates", "--json")[1])}
    assert found.keys() == load_templates().keys() | {"badge_entries"}
    assert found["badge_entries"]["file"] == str(own / "badge_entries.yaml")
    assert found["raw_signins"]["file"] == str(TEMPLATE_FOLDER / "raw_signins.yaml")
    assert found["badge_entries"]["query"].startswith("SigninLogs\n| where {window}")


@pytest.mark.requirement("TOOL-4")
def test_a_template_of_ones_own_runs_with_a_list_and_a_flag(filled: Run, own: Path) -> None:
    code, out, _ = filled("kql", "run", "badge_entries", "apps=App1, App0", "failed=false", "--json")
    found = json.loads(out)
    assert code == 0
    assert [(row["AppDisplayName"], row["Entries"]) for row in found["rows"]] == [("App0", 3), ("App1", 4)]
    assert found["totals"] == {"Entries": 7}
    found = json.loads(filled("kql", "run", "badge_entries", "apps=App1,App0", "failed=true", "--json")[1])
    assert [row["AppDisplayName"] for row in found["rows"]] == ["App1"]
    assert "must be true or false" in filled("kql", "run", "badge_entries", "failed=perhaps")[2]


def test_a_faulty_own_folder_stops_every_use_with_file_and_line(run: Run, own: Path) -> None:
    (own / "badge_entries.yaml").write_text(OWN.replace("{apps}", "{aps}"))
    for command in (["templates"], ["run", "raw_signins"]):
        code, _, err = run("kql", *command)
        assert code == 2
        assert "badge_entries.yaml:13: slot {aps} is not a declared parameter. Did you mean 'apps'?" in err
        assert str(own) in err


def test_a_folder_that_is_not_there_is_a_wrong_setting(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SENTINEL_TEMPLATES", "/nowhere/templates")
    code, _, err = run("kql", "templates")
    assert code == 2
    assert "SENTINEL_TEMPLATES: '/nowhere/templates' is not a folder" in err


@pytest.mark.requirement("TOOL-4")
def test_every_shipped_template_and_ones_own_pass_the_lint(run: Run, own: Path) -> None:
    code, out, _ = run("kql", "lint", "--json")
    found = json.loads(out)
    assert (code, found["problems"], found["warnings"]) == (0, [], [])
    assert set(found["sound"]) == load_templates().keys() | {"badge_entries"}


@pytest.mark.requirement("TOOL-4")
@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ("AppDisplayName in", "AppDisplayNme in", "badge_entries.yaml:13: the query does not run: "),
        ("| order by AppDisplayName", "| order by", "badge_entries.yaml:15: the query does not run: "),
        ("tables: [SigninLogs]", "tables: [SigninLog]", "badge_entries.yaml:3: there is no table 'SigninLog'"),
        ("time_column: TimeGenerated", "time_column: Time", "badge_entries.yaml:4: SigninLogs has no column 'Time'"),
        ("totals: [Entries]", "totals: [ResultType]", "badge_entries.yaml:9: totals: the result has no column"),
        ("name: badge_entries", "name: badge", "badge_entries.yaml:1: name 'badge' must be the file's name"),
    ],
)
def test_the_lint_finds_what_would_not_run(run: Run, own: Path, before: str, after: str, problem: str) -> None:
    assert before in OWN
    (own / "badge_entries.yaml").write_text(OWN.replace(before, after))
    code, out, _ = run("kql", "lint", str(own))
    assert code == 2
    assert out.startswith(f"{own}/{problem}")
    assert out.splitlines()[-1] == "0 templates are sound; 1 problem."


def test_the_lint_tries_where_names_are_read_from(run: Run, own: Path) -> None:
    named = OWN.replace("{type: list, default: []", "{type: string, default: '', names: {SigninLogs: AppName}").replace(
        "AppDisplayName in {apps}", "AppDisplayName == {apps}"
    )
    (own / "badge_entries.yaml").write_text(named)
    code, out, _ = run("kql", "lint", str(own))
    assert code == 2
    assert out.startswith(f"{own}/badge_entries.yaml:6: its names cannot be read: ")


@pytest.mark.requirement("TOOL-4")
def test_the_lint_refuses_a_shipped_name_and_tells_what_it_could_not_try(run: Run, own: Path) -> None:
    (own / "raw_signins.yaml").write_text(OWN.replace("badge_entries", "raw_signins"))
    (own / "doors.yaml").write_text(OWN.replace("badge_entries", "doors").replace("SigninLogs", "Door_CL"))
    (own / "late.yml").write_text(OWN)
    found = json.loads(run("kql", "lint", str(own), "--json")[1])
    assert found["sound"] == ["badge_entries", "doors"]
    assert found["problems"] == [
        f"{own}/late.yml:1: would be passed over; name it late.yaml",
        f"{own}/raw_signins.yaml:1: 'raw_signins' is the name of a shipped template; choose another",
    ]
    assert found["warnings"] == [f"{own}/doors.yaml:3: not tried: Door_CL is not in the embedded workspace"]
    assert run("kql", "lint", str(own / "badge_entries.yaml"))[0] == 0


def test_the_lint_of_nothing_is_wrong_usage(run: Run, tmp_path: Path) -> None:
    assert "There is no template in" in run("kql", "lint", str(tmp_path))[2]
    assert "There is no file or folder" in run("kql", "lint", "nowhere")[2]


def test_the_doctor_tells_of_the_templates(run: Run, own: Path) -> None:
    findings = {finding["name"]: finding for finding in json.loads(run("doctor", "--json")[1])}
    assert findings["templates"]["ok"]
    assert str(own) in findings["templates"]["detail"]
    (own / "badge_entries.yaml").write_text("nothing")
    findings = {finding["name"]: finding for finding in json.loads(run("doctor", "--json")[1])}
    assert not findings["templates"]["ok"]
    assert "badge_entries.yaml:1: not a mapping" in findings["templates"]["detail"]
