"""Microsoft's parser behind our driver: what it reads, and that it survives queries that would end it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from tests.support.microsoft_parser import microsoft_parser

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.sentinel.kql_guard.analysis import KqlTable, Pipe
from sentinel_rag.sentinel.kql_guard.official_parser import (
    OfficialParser,
    default_folder,
    find_node,
    install_parser,
    parser_state,
    pinned_version,
)
from sentinel_rag.sentinel.kql_guard.parser_process import ParserStuckError

SCHEMA = {
    "SigninLogs": {"TimeGenerated": "datetime", "UserPrincipalName": "string", "ResultType": "string"},
    "SecurityEvent": {"TimeGenerated": "datetime", "EventID": "int", "Account": "string"},
}


@pytest.fixture(scope="module")
def parser() -> Iterator[OfficialParser]:
    with microsoft_parser() as opened:
        yield opened


@pytest.mark.anyio
@pytest.mark.requirement("TOOL-5")
async def test_it_reads_tables_bounds_functions_and_the_result(parser: OfficialParser) -> None:
    kql = "SigninLogs | where TimeGenerated > ago(1d) | summarize n = count() by UserPrincipalName | take 5"
    analysis = await parser.analyze(kql, SCHEMA)
    assert analysis.kind == "Query"
    assert analysis.diagnostics == ()
    assert [use.name for use in analysis.references] == ["SigninLogs"]
    assert {(use.name, use.origin) for use in analysis.functions} == {("ago", "function"), ("count", "aggregate")}
    assert analysis.result == (("UserPrincipalName", "string"), ("n", "long"))
    value = analysis.statements[0].value
    assert value is not None
    assert isinstance(value.node, Pipe)
    assert value.node.source == KqlTable("SigninLogs", (0, 10))
    assert [operator.kind for operator in value.node.ops] == ["FilterOperator", "SummarizeOperator", "TakeOperator"]
    assert value.node.ops[0].bounds == (("TimeGenerated", "ago(1d)"),)
    assert value.node.ops[-1].rows == 5


@pytest.mark.anyio
async def test_an_unknown_column_is_told_with_its_place_and_the_columns_in_scope(parser: OfficialParser) -> None:
    analysis = await parser.analyze("SigninLogs | where UserPrincipalNam == 'x'", SCHEMA)
    (found,) = analysis.diagnostics
    assert (found.code, found.severity, found.at) == ("KS142", "Error", (19, 16))
    assert set(SCHEMA["SigninLogs"]) <= set(found.columns)


def test_a_thousand_queries_need_one_process_and_one_schema(parser: OfficialParser) -> None:
    started = parser.starts
    found = [parser.analyze_now(f"SecurityEvent | where EventID == {number}", SCHEMA) for number in range(1000)]
    assert all(each.result is not None and not each.diagnostics for each in found)
    assert parser.starts <= max(started, 1)


def test_more_schemas_than_it_keeps_are_sent_again(parser: OfficialParser) -> None:
    for number in (*range(12), *range(12)):
        analysis = parser.analyze_now(f"T{number} | take 1", {f"T{number}": {"Name": "string"}})
        assert analysis.diagnostics == ()
        assert analysis.result == (("Name", "string"),)


def test_names_that_are_assumed_bind_with_any_column_and_argument(parser: OfficialParser) -> None:
    kql = "Unknown_CL | where Anything == 1 | join kind=inner (_Im_Dns(starttime = ago(1d))) on Anything | take 5"
    assert parser.analyze_now(kql, SCHEMA).diagnostics != ()
    assumed = parser.analyze_now(kql, SCHEMA, ("Unknown_CL",), ("_Im_Dns",))
    assert [each for each in assumed.diagnostics if each.severity == "Error"] == []
    assert assumed.result is None


def test_a_query_too_deep_for_it_is_told_and_the_next_one_is_answered() -> None:
    deep = "print x = " + "-(" * 20_000 + "1" + ")" * 20_000
    with microsoft_parser(timeout_s=2) as parser:
        with pytest.raises(ParserStuckError):
            parser.analyze_now(deep, SCHEMA)
        assert parser.analyze_now("SigninLogs | count", SCHEMA).result == (("Count", "long"),)


def test_a_parser_that_hangs_is_killed_and_replaced() -> None:
    with microsoft_parser(timeout_s=0.05) as parser:
        slow = "SigninLogs | where " + " or ".join(f"ResultType == '{number}'" for number in range(20_000))
        with pytest.raises(ParserStuckError, match="no answer within"):
            parser.analyze_now(slow, SCHEMA)
    with microsoft_parser() as parser:
        parser.analyze_now("print 1", {})
        process = parser._process._running_one[0]  # the one thing that no public face can do: end it from outside
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert parser.analyze_now("SigninLogs | count", SCHEMA).result == (("Count", "long"),)
        assert parser.starts == 2


@pytest.mark.anyio
async def test_a_cancelled_question_leaves_the_parser_usable(parser: OfficialParser) -> None:
    slow = "SigninLogs | where " + " or ".join(f"ResultType == '{number}'" for number in range(5_000))
    with anyio.move_on_after(0.01) as scope:
        await parser.analyze(slow, SCHEMA)
    assert scope.cancelled_caught
    assert (await parser.analyze("SigninLogs | count", SCHEMA)).result == (("Count", "long"),)


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\r", "\x85", "\x00", "\U0001f600", "\\n"])
def test_no_character_of_a_query_ends_its_line(parser: OfficialParser, character: str) -> None:
    """What some readers take for a line's end must not make two questions of one, or later answers are another's."""
    for number in range(3):
        analysis = parser.analyze_now(f"print a{number} = 'x{character}y' // {character}", {})
        assert analysis.statements[0].kind == "ExpressionStatement"
        assert parser.analyze_now(f"SigninLogs | take {number}", SCHEMA).references[0].name == "SigninLogs"


def test_many_threads_share_one_parser(parser: OfficialParser) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        queries = [f"SigninLogs | take {number}" for number in range(40)]
        found = list(pool.map(lambda kql: parser.analyze_now(kql, SCHEMA), queries))
    rows = [each.statements[0].value.node.ops[0].rows for each in found]  # type: ignore[union-attr]
    assert rows == list(range(40))


def test_the_process_gets_nothing_of_our_environment(parser: OfficialParser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_OPTIONS", "--require=/nonexistent/hook.js")
    monkeypatch.setenv("SENTINEL_API_KEY", "secret")
    with microsoft_parser() as fresh:
        assert fresh.analyze_now("print 1", {}).kind == "Query"
        process = fresh._process._running_one[0]
        if sys.platform == "linux":
            assert Path(f"/proc/{process.pid}/environ").read_bytes() == b""


def test_without_a_parser_the_state_says_what_to_run(tmp_path: Path) -> None:
    state = parser_state(tmp_path / "nowhere")
    assert "is not installed" in state.missing or "no node" in state.missing
    assert "sentinel kql install" in state.next_step


def test_another_version_is_not_taken_for_the_pinned_one(tmp_path: Path, parser: OfficialParser) -> None:
    for name in ("bridge.min.js", "Kusto.Language.Bridge.min.js"):
        (tmp_path / name).write_text("", encoding="utf-8")
    (tmp_path / "package.json").write_text('{"version": "1.0.0"}', encoding="utf-8")
    assert f"is version 1.0.0, not {pinned_version()}" in parser_state(tmp_path).missing


def test_a_parser_whose_files_are_broken_says_so(tmp_path: Path, parser: OfficialParser) -> None:
    node = find_node()
    assert node is not None
    (tmp_path / "bridge.min.js").write_text("this is not JavaScript", encoding="utf-8")
    broken = OfficialParser(tmp_path, node.program, node_version=node.version)
    with pytest.raises(UnavailableError, match="did not get ready"):
        broken.analyze_now("print 1", {})
    broken.close_now()


def test_an_installation_that_fails_leaves_the_old_one(tmp_path: Path, parser: OfficialParser) -> None:
    place = tmp_path / "kql-parser"
    place.mkdir()
    (place / "kept.txt").write_text("old", encoding="utf-8")
    script = (
        "import sys; from pathlib import Path\n"
        "from sentinel_rag.contracts.errors import UnavailableError\n"
        "from sentinel_rag.sentinel.kql_guard.official_parser import install_parser\n"
        "try: install_parser(Path(sys.argv[1]))\n"
        "except UnavailableError as error: print(error); print(error.next_step)\n"
    )
    # A registry on a closed port of this machine, and a cache that holds nothing.
    environment = {
        **os.environ,
        "npm_config_registry": "http://127.0.0.1:9/",
        "npm_config_cache": str(tmp_path / "cache"),
        "npm_config_fetch_retries": "0",
    }
    told = subprocess.run(
        [sys.executable, "-c", script, str(place)], env=environment, capture_output=True, text=True, check=True
    )
    assert told.stdout.startswith("npm could not install the KQL parser: ")
    assert "run it again" in told.stdout
    assert (place / "kept.txt").read_text(encoding="utf-8") == "old"


def test_the_lock_file_pins_by_hash_and_names_no_host() -> None:
    lock = (default_lock()).read_text(encoding="utf-8")
    assert '"integrity": "sha512-' in lock
    assert "://" not in lock
    assert f'"version": "{pinned_version()}"' in lock


def default_lock() -> Path:
    from sentinel_rag.sentinel.kql_guard import official_parser

    return Path(official_parser.__file__).parent / "microsoft_parser" / "package-lock.json"


def test_the_default_place_is_this_environment() -> None:
    assert default_folder().is_relative_to(sys.prefix)
    assert install_parser.__doc__ is not None
