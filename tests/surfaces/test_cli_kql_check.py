"""`sentinel kql check` as a person uses it on rule files of every kind that people keep."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.microsoft_parser import microsoft_parser

from sentinel_rag.sentinel.kql_guard import official_parser
from sentinel_rag.surfaces.cli import main

pytestmark = pytest.mark.requirement("TOOL-5")
Run = Callable[..., tuple[int, str, str]]

SOUND = "SigninLogs\n| where TimeGenerated > ago(1d)\n| summarize count() by UserPrincipalName\n"


@pytest.fixture(scope="module", autouse=True)
def parser_is_installed() -> Iterator[None]:
    with microsoft_parser():
        yield


@pytest.fixture
def run(clean_environment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> Run:
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(["kql", "check", *arguments])
        written = capsys.readouterr()
        return code, written.out, written.err

    return command


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_sound_file(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "rule.kql", SOUND)
    assert run("rule.kql") == (0, "1 query in 1 file: 1 sound; 0 with faults.\n", "")


def test_h1_a_column_that_is_not_there_is_told_at_its_place_with_the_nearest(run: Run, tmp_path: Path) -> None:
    """Field report H1: KQL that uses a column of no table; H2: the answer names columns that there are."""
    written(tmp_path / "rule.kql", "SigninLogs\n| where UserPrincipalNam == 'x'\n| where LogLevel == 'Error'\n")
    code, out, _ = run("rule.kql")
    assert code == 2
    first, second, summary = out.splitlines()
    assert first.startswith("rule.kql:2:9: There is no column 'UserPrincipalNam' in SigninLogs here. Did you mean")
    assert "'UserPrincipalName'" in first
    assert second.startswith("rule.kql:3:9: There is no column 'LogLevel' in SigninLogs here.")
    assert summary == "1 query in 1 file: 0 sound; 1 with faults."
    problem = json.loads(run("rule.kql", "--json")[1])["files"][0]["problems"][0]
    assert problem["nearest"][0] == "UserPrincipalName"
    assert "Columns here: " in problem["next_step"]
    assert "ResultType" in problem["next_step"]


def test_places_in_markdown_are_those_of_the_file(run: Run, tmp_path: Path) -> None:
    text = (
        "# Hunting\r\n\r\nSome text.\r\n\r\n## First\r\n```KQL\r\nSigninLogs\r\n| where Nope == 1\r\n```\r\n"
        "1. In a list:\r\n\r\n   ```\r\n   SecurityEvent\r\n   | where Nada == 1\r\n   ```\r\n"
        "```powershell\r\nGet-Process | where Name -eq x\r\n```\r\n"
        "~~~c#\r\nHeartbeat | where Zip == 1\r\n| take 1\r\n~~~\r\n"
    )
    (tmp_path / "page.md").write_bytes(text.encode())
    code, out, _ = run("page.md")
    assert code == 2
    places = [line.split(": ")[0] for line in out.splitlines()[:-1]]
    assert places == ["page.md:8:9", "page.md:14:12", "page.md:20:19"]
    assert out.splitlines()[-1] == "3 queries in 1 file: 0 sound; 3 with faults."


def test_places_in_yaml_are_those_of_the_file(run: Run, tmp_path: Path) -> None:
    text = (
        "id: 0\nname: First rule\nquery: |\n\n  let a = 1;\n  SigninLogs\n    | where Nope == a\nseverity: High\n"
        "---\nname: One line\nquery: 'SecurityEvent | where Nada == 1'\n"
        "---\nname: Folded\nquery: >-\n  Heartbeat\n  | where Zip == 1\n"
        '---\nqueries:\n  - name: Quoted\n    query: "Usage\\n| where Zap == 1"\n'
    )
    written(tmp_path / "rules.yaml", text)
    code, out, _ = run("rules.yaml")
    assert code == 2
    found = out.splitlines()
    assert [line.split(": ")[0] for line in found[:3]] == ["rules.yaml:7:13", "rules.yaml:11:31", "rules.yaml:16:11"]
    assert found[3].startswith("rules.yaml:20:")
    assert found[-1] == "4 queries in 1 file: 0 sound; 4 with faults."


def test_places_in_exported_json_are_those_of_the_file(run: Run, tmp_path: Path) -> None:
    rule = {"query": '// caf\u00e9\nSigninLogs\n| where Nope == "x" and Nada == 1', "severity": "High"}
    document = {"resources": [{"kind": "Scheduled", "properties": rule}, {"properties": {"query": "not a rule"}}]}
    text = json.dumps(document, indent=1)
    written(tmp_path / "export.json", text)
    code, out, _ = run("export.json")
    assert code == 2
    line = next(number for number, each in enumerate(text.splitlines(), start=1) if "Nope" in each)
    whole = text.splitlines()[line - 1]
    expected = [f"export.json:{line}:{whole.index(name) + 1}" for name in ("Nope", "Nada")]
    assert [each.split(": ")[0] for each in out.splitlines()[:2]] == expected
    assert out.splitlines()[-1] == "1 query in 1 file: 0 sound; 1 with faults."


def test_queries_that_blank_lines_separate_are_checked_one_by_one(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "two.kql", f"// the first\n{SOUND}\n\n// the second\nSecurityEvent\n| where Nada == 1\n")
    code, out, _ = run("two.kql")
    assert (code, out.splitlines()[-1]) == (2, "2 queries in 1 file: 1 sound; 1 with faults.")
    assert out.startswith("two.kql:9:9: ")


def test_a_blank_line_within_a_query_separates_nothing(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "one.kql", "let since = ago(1d);\n\nSigninLogs\n\n| where TimeGenerated > since\n")
    assert run("one.kql")[0] == 0


def test_an_unknown_table_is_told_once_and_the_rest_is_still_checked(run: Run, tmp_path: Path) -> None:
    kql = "SigninLog\n| where A == 1 and B == 2 and C == 3\n"
    kql += "| join (SecurityEvent | where Nada == 1) on $left.A == $right.Account\n"
    written(tmp_path / "rule.kql", kql)
    code, out, _ = run("rule.kql")
    assert code == 2
    first, second, summary = out.splitlines()
    assert first.startswith("rule.kql:1:1: There is no table 'SigninLog' in the schema")
    assert "Did you mean 'SigninLogs'? (warning)" in first
    assert second.startswith("rule.kql:3:31: There is no column 'Nada'")
    assert summary == "1 query in 1 file: 0 sound; 1 with faults."


def test_functions_of_sentinel_are_taken_as_given_and_others_told_by_name(run: Run, tmp_path: Path) -> None:
    kql = (
        "let vip = _GetWatchlist('vip') | project SearchKey;\n"
        "_Im_Dns(starttime = ago(1d), domain_has_any = dynamic(['x']))\n"
        "| where SrcIpAddr in (vip) and DnsQuery has 'y'\n"
        "| join kind=leftouter (ASimWebSession | take 5) on SrcIpAddr\n"
    )
    written(tmp_path / "asim.kql", kql)
    assert run("asim.kql") == (0, "1 query in 1 file: 1 sound; 0 with faults.\n", "")
    written(tmp_path / "saved.kql", "OurParser('x') | where Anything == 1\n")
    code, out, _ = run("saved.kql")
    assert code == 0
    assert "saved.kql:1:1: There is no function 'OurParser'" in out
    assert run("saved.kql", "--strict")[0] == 2


def test_a_rule_for_defender_is_told_once_a_query(run: Run, tmp_path: Path) -> None:
    kql = "DeviceProcessEvents\n| where Timestamp > ago(1d)\n| project Timestamp, FileName\n| where Nope == 1\n"
    written(tmp_path / "xdr.kql", kql)
    code, out, _ = run("xdr.kql")
    assert code == 2
    first, second, _ = out.splitlines()
    assert first.startswith("xdr.kql:2:9: Timestamp is the time column of Defender XDR's own hunting")
    assert first.endswith("(warning) [xdr_time]")
    assert "'Nope'" in second


def test_timestamp_on_a_table_of_sentinel_is_a_fault(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "mixed.kql", "SigninLogs | where Timestamp > ago(1d)\n")
    code, out, _ = run("mixed.kql")
    assert code == 2
    assert "a Sentinel workspace has TimeGenerated" in out


def test_freeform_rules_are_told_with_guard_only(run: Run, tmp_path: Path) -> None:
    written(
        tmp_path / "ti.kql",
        "let ioc = externaldata(ip:string)['https://x.example/i.txt'];\nSigninLogs | where IPAddress in (ioc)\n",
    )
    assert run("ti.kql")[0] == 0
    code, out, _ = run("ti.kql", "--guard")
    assert code == 2
    assert "ti.kql:1:11: `externaldata` is not allowed in freeform KQL. [syntax_not_allowed]" in out


def test_a_schema_of_ones_own(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "rule.kql", "Badge_CL | where Door_s == 'x' and Flor_s == 'y'\n")
    assert run("rule.kql")[0] == 0
    written(
        tmp_path / "schema.json",
        json.dumps({"Badge_CL": {"TimeGenerated": "datetime", "Floor_s": "string", "Door_s": "string"}}),
    )
    code, out, _ = run("rule.kql", "--schema", "schema.json")
    assert code == 2
    assert "rule.kql:1:36: There is no column 'Flor_s' in Badge_CL here. Did you mean 'Floor_s'" in out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "is no object of tables"),
        ("{", "is no JSON"),
        ('{"A": ["x"]}', "A is no object of columns"),
        ('{"A": {"x": "text"}}', "A.x has the type 'text'"),
    ],
)
def test_a_schema_that_is_none_is_told(run: Run, tmp_path: Path, text: str, said: str) -> None:
    written(tmp_path / "rule.kql", SOUND)
    written(tmp_path / "schema.json", text)
    code, _, err = run("rule.kql", "--schema", "schema.json")
    assert code == 2
    assert said in err
    assert "Next: " in err


def test_a_folder_loses_no_file(run: Run, tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    written(rules / "a.kql", SOUND)
    written(rules / "deep" / "b.csl", SOUND)
    written(rules / "notes.txt", "Nothing to see here.\n")
    written(rules / "query.txt", SOUND)
    written(rules / "README.md", "# Rules\n\nOnly text.\n")
    written(rules / "broken.yaml", "name: [x\nquery: y\n")
    written(rules / "broken.json", '{"query": ')
    written(rules / ".git" / "c.kql", "Broken |")
    written(rules / "picture.png", "x")
    (rules / "latin.kql").write_bytes(b"// caf\xe9\nSigninLogs")
    (rules / "wide.kql").write_bytes(SOUND.encode("utf-16"))
    code, out, _ = run("rules")
    assert code == 2
    told = out.splitlines()
    assert [line for line in told if "broken.yaml:2:" in line or "broken.yaml:1:" in line]
    assert any(line.startswith("rules/broken.json:1:1: This is no JSON: ") for line in told)
    assert "rules/latin.kql:1:1: The file is not UTF-8 text. [unreadable]" in told
    assert told[-1] == (
        "4 queries in 9 files: 4 sound; 0 with faults; 2 files without a query; 3 files could not be read."
    )


def test_a_folder_without_any_query_is_no_success(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "rules" / "README.md", "# Nothing\n")
    assert run("rules")[0] == 3


@pytest.mark.parametrize(("name", "said"), [("missing.kql", "There is no file"), ("rule.docx", "is no rule file")])
def test_a_path_that_is_none(run: Run, tmp_path: Path, name: str, said: str) -> None:
    written(tmp_path / "rule.docx", "x")
    code, _, err = run(name)
    assert code == 2
    assert said in err


def test_the_columns_of_an_embedded_workspace(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "Doors_CL.csv", "TimeGenerated,Door,Person\n2026-01-01T00:00:00Z,North,ann\n")
    assert main(["workspace", "import", "Doors_CL.csv", "--workspace", "lab"]) == 0
    written(tmp_path / "rule.kql", "Doors_CL | where Dor == 'North'\n")
    code, out, _ = run("rule.kql", "--workspace", "lab")
    assert code == 2
    assert "There is no column 'Dor' in Doors_CL here. Did you mean 'Door'?" in out


def test_terminal_escapes_of_a_file_do_not_reach_the_terminal(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "evil.kql", "SigninLogs | where ['a\x1b[31mb'] == 1\n")
    code, out, _ = run("evil.kql")
    assert code == 2
    assert "\x1b" not in out


def test_without_the_parser_it_says_so_and_finds_syntax_faults(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(official_parser, "default_folder", lambda: tmp_path / "nowhere")
    written(tmp_path / "sound.kql", SOUND)
    written(tmp_path / "broken.kql", "SigninLogs | | take 5\n")
    written(tmp_path / "rich.kql", "SigninLogs | evaluate bag_unpack(LocationDetails)\n")
    code, out, _ = run("sound.kql", "rich.kql", "broken.kql")
    assert code == 2
    assert "broken.kql:1:" in out
    assert "rich.kql:1:23: `bag_unpack` cannot be checked without Microsoft's parser. (warning)" in out
    assert "A simpler parser checked syntax, tables and columns, and not all of them: Microsoft's KQL parser" in out
    assert "Run: sentinel kql install" in out
    assert out.splitlines()[-1] == "3 queries in 3 files: 2 sound; 1 of them with warnings; 1 with faults."


def test_install_says_what_is_there(clean_environment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kql", "install"]) == 0
    version = official_parser.pinned_version()
    assert capsys.readouterr().out.startswith(f"Microsoft's KQL parser {version} was there already, in ")
    assert main(["kql", "install", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["version"], told["installed"]) == (version, False)


def test_install_without_node_says_how_to_get_one(
    clean_environment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(official_parser, "find_node", lambda *_: None)
    assert main(["kql", "install"]) == 1
    told = capsys.readouterr().err
    assert "There is no node 18 or newer." in told
    assert "sentinel-rag[kql-parser]" in told


def test_what_another_service_holds_is_told_once_and_not_column_by_column(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "rule.kql", 'arg("").Resources\n| where type == "x"\n| project id, name, location\n')
    code, out, _ = run("rule.kql")
    assert code == 0
    told, summary = out.splitlines()
    assert told.startswith("rule.kql:1:1: arg() reads Azure Resource Graph, whose columns are not known here")
    assert summary == "1 query in 1 file: 1 sound; 1 of them with warnings; 0 with faults."


def test_notes_with_a_query_among_them_are_no_query(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "rules" / "notes.txt", f"Use this one first, then the next.\n\n{SOUND}")
    written(tmp_path / "rules" / "one.txt", f"// which users\n\n{SOUND}")
    code, out, _ = run("rules")
    assert (code, out) == (0, "1 query in 2 files: 1 sound; 0 with faults; 1 file without a query.\n")


def test_only_names_that_are_near_are_asked_back(run: Run, tmp_path: Path) -> None:
    written(tmp_path / "far.kql", "WindowsEventz9 | take 1\n")
    written(tmp_path / "near.kql", "SigninLog | take 1\n")
    assert "DnsEvents" not in run("far.kql")[1]
    assert "Did you mean 'SigninLogs'?" in run("near.kql")[1]


def test_without_microsofts_parser_a_missing_table_is_told_once(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(official_parser, "default_folder", lambda: tmp_path / "nowhere")
    text = "NoSuch_CL\n| where Foo == 1\n| summarize count() by Bar\n| where Nope == 2\n"
    written(tmp_path / "rule.kql", text)
    written(tmp_path / "wrong.kql", "SigninLogs\n| where Nope == 1\n")
    code, out, _ = run("rule.kql")
    assert code == 0
    assert [line.split(": ")[0] for line in out.splitlines()[:1]] == ["rule.kql:1:1"]
    assert "There is no table 'NoSuch_CL'" in out
    assert "There is no column" not in out
    assert run("wrong.kql")[0] == 2
