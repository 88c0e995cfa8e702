"""The parser starts from a snapshot where there is one: it answers as without, as confined, and never fails for it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.microsoft_parser import microsoft_parser

from sentinel_rag.sentinel.kql_guard.official_parser import (
    OfficialParser,
    ParserState,
    default_folder,
    parser_state,
    quicken,
    snapshot_of,
    take_snapshot,
)

SCHEMA = {"SigninLogs": {"TimeGenerated": "datetime", "UserPrincipalName": "string", "ResultType": "string"}}
QUERIES = [
    "SigninLogs | where TimeGenerated > ago(1d) | summarize n = count() by UserPrincipalName | take 5",
    "SigninLogs | where UserPrincipalNam == 'x'",
    "let f = (u: string) { SigninLogs | where UserPrincipalName has u }; f('a') | union (f('b')) | count",
    "externaldata(x: string) ['https://evil.example/x.csv'] | evaluate bag_unpack(x)",
    "SigninLogs | where | |",
    "print '\u2028\U0001f600\\'",
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> ParserState:
    """The parser in a folder of the test's own, as an earlier release left it: without a snapshot."""
    with microsoft_parser():
        folder = tmp_path_factory.mktemp("parser") / "kql-parser"
        shutil.copytree(default_folder(), folder, ignore=shutil.ignore_patterns("*.snapshot"))
    return parser_state(folder)


@contextmanager
def started(state: ParserState) -> Iterator[OfficialParser]:
    assert state.node is not None
    parser = OfficialParser(state.folder, state.node.program, node_version=state.node.version)
    try:
        yield parser
    finally:
        parser.close_now()


def test_it_answers_as_without_and_one_that_does_not_fit_is_passed_over(installed: ParserState) -> None:
    assert installed.node is not None
    snapshot = snapshot_of(installed.folder, installed.node.version)
    with started(installed) as plain:
        expected = [plain.analyze_now(kql, SCHEMA) for kql in QUERIES]
    assert not snapshot.exists()

    quicken(installed)
    taken = snapshot.stat().st_mtime_ns
    quicken(installed)
    assert snapshot.stat().st_mtime_ns == taken  # what is there is not made again
    with started(installed) as quick:
        assert [quick.analyze_now(kql, SCHEMA) for kql in QUERIES] == expected
        if sys.platform == "linux":
            process = quick._process._running_one[0]  # what it runs, only the system tells
            words = Path(f"/proc/{process.pid}/cmdline").read_text().split("\0")
            assert str(snapshot) in words
            assert "--permission" in words
            assert Path(f"/proc/{process.pid}/environ").read_bytes() == b""

    whole = snapshot.read_bytes()
    snapshot.write_bytes(whole[: len(whole) // 2])
    with started(installed) as parser:
        assert parser.analyze_now(QUERIES[0], SCHEMA) == expected[0]
        assert parser.starts == 1


def test_it_is_of_one_node_and_where_none_can_be_taken_nothing_is_left(installed: ParserState, tmp_path: Path) -> None:
    assert installed.node is not None
    other = (*installed.node.version[:2], installed.node.version[2] + 1)
    assert snapshot_of(installed.folder, other) != snapshot_of(installed.folder, installed.node.version)
    (tmp_path / "bridge.min.js").write_text("this is not JavaScript", encoding="utf-8")
    assert take_snapshot(tmp_path, installed.node.program, installed.node.version) is False
    assert take_snapshot(tmp_path, tmp_path / "no-node", installed.node.version) is False
    assert [file.name for file in tmp_path.iterdir()] == ["bridge.min.js"]
