"""`sentinel kql query` as a person uses it: words, a file or a pipe; guarded unless they say otherwise."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.app.run_state import RunFolder, RunState
from sentinel_rag.surfaces.cli import main

Run = Callable[..., tuple[int, str, str]]
SIGNINS = [
    {"TimeGenerated": f"2024-08-0{day}T01:00:00Z", "UserPrincipalName": "o'brien@contoso.example", "Location": place}
    for day, place in enumerate(["PT", "PT", "RO", "\x1b[31mXX"], start=1)
]


@pytest.fixture
def run(clean_environment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> Run:
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str, stdin: str | None = None) -> tuple[int, str, str]:
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        code = main(list(arguments))
        out, err = capsys.readouterr()
        return code, out, err

    return command


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the home of the first test with rows is kept, for the others to copy."""
    return tmp_path_factory.mktemp("kept") / "home"


@pytest.fixture
def filled(run: Run, clean_environment: Path, kept: Path, tmp_path: Path) -> Run:
    if kept.exists():
        shutil.copytree(kept, clean_environment)
        return run
    file = tmp_path / "SigninLogs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in SIGNINS))
    assert run("workspace", "import", str(file), "--table", "SigninLogs")[0] == 0
    shutil.copytree(clean_environment, kept)
    return run


COUNTED = "SigninLogs | summarize SignIns = count() by Location | order by SignIns desc, Location asc"


@pytest.mark.requirement("TOOL-5")
def test_the_rows_and_how_many_there_are_are_printed(filled: Run) -> None:
    code, out, _ = filled("kql", "query", COUNTED, "--limit", "2")
    assert code == 0
    assert "First 2 of 3 rows." in out
    assert "Workspace: default" in out
    assert "\x1b[31m" not in filled("kql", "query", COUNTED)[1]


def test_words_a_file_and_a_pipe_mean_the_same(filled: Run, tmp_path: Path) -> None:
    (tmp_path / "hunt.kql").write_text(f"// mine\n{COUNTED}\n", encoding="utf-8-sig")
    answers = [
        filled("kql", "query", COUNTED, "--json"),
        filled("kql", "query", *COUNTED.split(" "), "--json"),
        filled("kql", "query", "hunt.kql", "--json"),
        filled("kql", "query", "--json", stdin=COUNTED),
        filled("kql", "query", "-", "--json", stdin=COUNTED),
    ]
    assert [code for code, _, _ in answers] == [0] * 5
    rows = [json.loads(out)["rows"] for _, out, _ in answers]
    assert rows == [rows[0]] * 5
    assert rows[0][0] == {"Location": "PT", "SignIns": 2}


def test_a_query_as_json_says_what_it_covers(filled: Run) -> None:
    code, out, _ = filled("kql", "query", COUNTED, "--since", "2024-08-02", "--until", "2024-08-04", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["window"] == {"start": "2024-08-02T00:00:00Z", "end": "2024-08-04T00:00:00Z"}
    assert found["tables"] == ["SigninLogs"]
    assert found["guard"] in ("microsoft", "fallback")
    assert (found["rows_returned"], found["rows_total"], found["partial"]) == (2, 2, False)
    assert found["columns"] == [{"name": "Location", "type": "string"}, {"name": "SignIns", "type": "long"}]


@pytest.mark.parametrize(
    ("kql", "told"),
    [
        ("SigninLogs | where Locaton == 'x'", "Line 1, column 20: There is no column 'Locaton'"),
        ("SigninLog | count", "Line 1, column 1: There is no table 'SigninLog'"),
        ("SigninLogs | where Location ==", "Line 1, column"),
        ("externaldata(a: string) ['http://x']", "Line 1, column"),
        (".show tables", "management command"),
        ("SigninLogs | where LogLevel == 1\n| project Nope", "Line 2, column 11: There is no column 'Nope'"),
    ],
)
def test_what_may_not_run_is_told_with_its_place_and_how_to_run_it_all_the_same(
    filled: Run, kql: str, told: str
) -> None:
    """Field reports H1 and F4, for a person at the terminal."""
    code, out, err = filled("kql", "query", kql)
    assert (code, out) == (2, "")
    if "\n" not in kql or "(1 more problem)" in err:  # the fallback parser names one column at a time
        assert told in err
    assert "Next: " in err
    assert "--unguarded" in err
    assert "Traceback" not in err


def test_where_the_syntax_breaks_the_reading_ends(filled: Run) -> None:
    """What a parser finds behind the place, or of the query as a whole, is of its guess how the query goes on."""
    err = filled("kql", "query", "SigninLogs | wher Location == 'x' | take 5")[2]
    assert "yields no rows" not in err
    assert "no column" not in err
    assert "more problem" not in err
    assert "'where'" in err


def test_a_command_that_reads_looks_where_a_question_goes(filled: Run, clean_environment: Path) -> None:
    folder = RunFolder(clean_environment)
    with folder.hold():
        folder.write(RunState(0, False, "lab", ()))
        assert "The zones that run now serve" in filled("kql", "query", COUNTED)[2]
        assert filled("kql", "query", COUNTED, "--workspace", "default")[0] == 0


def test_columns_are_listed_where_a_wrong_one_was_used(filled: Run) -> None:
    """Field report H2: the error returns valid columns."""
    err = filled("kql", "query", "SigninLogs | where Locaton == 'x'")[2]
    assert "Location" in err
    assert "ConditionalAccessStatus" in err


def test_unguarded_text_goes_to_the_workspace_as_it_is(filled: Run) -> None:
    code, out, _ = filled("kql", "query", "search in (SigninLogs) 'brien' | count", "--unguarded", "--json")
    assert code == 0
    assert json.loads(out)["guard"] is None
    code, _, err = filled("kql", "query", "SigninLogs | where Nope == 1", "--unguarded")
    assert code == 2
    assert "Nope" in err


@pytest.mark.parametrize("command", [["query", "SigninLogs | where Location == 'nowhere'"], ["run", "raw_signins"]])
def test_without_a_row_the_window_and_what_the_table_holds_are_told(filled: Run, command: list[str]) -> None:
    """Field report F1, at the command line: for a query of one's own and for a template."""
    code, out, _ = filled("kql", *command, "--since", "2025-01-01", "--until", "2025-01-02")
    assert code == 3
    assert out.splitlines()[0] == "No row matches."
    assert "The window was from 2025-01-01T00:00:00Z to before 2025-01-02T00:00:00Z." in out
    assert "SigninLogs holds 4 rows, the oldest of 2024-08-01T01:00:00Z, the newest of 2024-08-04T01:00:00Z." in out
    assert "All of them lie outside the window: try --since 2024-08-01T01:00:00Z" in out


def test_a_table_without_rows_is_told_from_a_filter_that_found_none(filled: Run) -> None:
    """Field report F1: nothing collected, and nothing that matches, are two things."""
    assert "Syslog holds no rows at all" in filled("kql", "query", "Syslog | take 1")[1]
    held = filled("kql", "query", "SigninLogs | where Location == 'nowhere'")[1]
    assert "The window was everything that is retained. The query's own filters hold as well." in held
    assert "lie outside" not in held
    counted = filled("kql", "query", "SigninLogs | where Location == 'nowhere' | count", "--json")
    assert counted[0] == 0
    assert any("SigninLogs holds 4 rows" in note for note in json.loads(counted[1])["notes"])


@pytest.mark.parametrize(
    ("arguments", "stdin", "told"),
    [
        (["kql", "query"], "", "There is no query."),
        (["kql", "query", "empty.kql"], None, "There is no query in empty.kql."),
        (["kql", "query", "latin.kql"], None, "not UTF-8"),
        (["kql", "query", "SigninLogs", "--since", "2024-08-02", "--until", "2024-08-01"], None, "before its start"),
        (["kql", "query", "huge.kql"], None, "larger than"),
    ],
)
def test_wrong_use_is_one_sentence_and_a_next_step(
    filled: Run, tmp_path: Path, arguments: list[str], stdin: str | None, told: str
) -> None:
    (tmp_path / "empty.kql").write_text(" \n")
    (tmp_path / "latin.kql").write_bytes(b"SigninLogs | where Location == '\xe9'")
    (tmp_path / "huge.kql").write_text("x" * 1_000_001)
    code, out, err = filled(*arguments, stdin=stdin)
    assert (code, out) == (2, "")
    assert told in err
    assert "Next: " in err


def test_without_a_workspace_the_next_step_is_to_fill_one(run: Run) -> None:
    code, _, err = run("kql", "query", "SigninLogs | count")
    assert code == 2
    assert "sentinel workspace import" in err


def test_the_list_of_tools_says_that_freeform_kql_is_switched_off(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    described = {tool["name"]: tool for tool in json.loads(run("tools", "--json")[1])}
    assert [name for name, tool in described.items() if tool["switched_off"]] == ["run_freeform_kql"]
    assert "SENTINEL_FREEFORM_KQL=on" in run("tools", "run_freeform_kql")[1]
    monkeypatch.setenv("SENTINEL_FREEFORM_KQL", "on")
    assert not any(tool["switched_off"] for tool in json.loads(run("tools", "--json")[1]))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "off: the agent runs named templates only"),
        ({"SENTINEL_FREEFORM_KQL": "on"}, "on, over every table"),
        (
            {"SENTINEL_FREEFORM_KQL": "ON", "SENTINEL_FREEFORM_TABLES": "SigninLogs, Own_CL"},
            "on, over SigninLogs, Own_CL",
        ),
        ({"SENTINEL_FREEFORM_KQL": "perhaps"}, "'perhaps' is not one of on, off"),
        ({"SENTINEL_FREEFORM_TABLES": "Signin Logs"}, "'Signin Logs' is not a table name"),
    ],
    ids=str,
)
def test_the_doctor_says_whether_it_is_on_and_over_what(
    run: Run, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], told: str
) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert told in run("doctor")[1]


@pytest.mark.requirement("TOOL-5")
def test_both_query_commands_take_one_window(filled: Run) -> None:
    counted = "SigninLogs | count"
    for window in (["--since", "2000-01-01", "--until", "2000-01-02"], ["--since", "2000-01-01"]):
        own = json.loads(filled("kql", "query", counted, *window, "--json")[1])["rows"]
        admin = json.loads(filled("workspace", "query", counted, *window, "--json")[1])["rows"]
        assert [row["Count"] for row in own] == [row[0] for row in admin]
        assert admin == [[0 if "--until" in window else len(SIGNINS)]]


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("name", ["no/such/file.kql", "rules/x.CSL", "notes.txt"])
def test_a_file_that_is_not_there_is_no_query(filled: Run, name: str) -> None:
    code, out, err = filled("kql", "query", name)
    assert (code, out) == (2, "")
    assert f"There is no file {name}." in err


@pytest.mark.requirement("TOOL-5")
def test_a_window_said_twice_is_told(filled: Run) -> None:
    code, _, err = filled("workspace", "query", "SigninLogs", "--since", "7d", "--timespan", "P1D")
    assert code == 2
    assert "--timespan and --since or --until both say the window." in err


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize(
    ("command", "usage"),
    [
        (["workspace", "query", "T", "--last", "7d"], "usage: sentinel workspace query"),
        (["kql", "query", "T", "--timespam", "7d"], "usage: sentinel kql query"),
        (["ask", "what", "--bare"], "usage: sentinel ask"),
    ],
)
def test_an_unknown_option_is_told_with_the_usage_of_its_command(
    run: Run, capsys: pytest.CaptureFixture[str], command: list[str], usage: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(*command)
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert told.startswith(usage)
    assert f"{usage.removeprefix('usage: ')}: error: unrecognized arguments: " in told
