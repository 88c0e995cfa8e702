"""`python -m bench fuzz`: what it takes, what it refuses, and that a finding is kept small and shown again."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from bench.__main__ import main
from bench.fuzz_campaign import reproduce
from bench.guided_fuzz import Findings, dictionary, kind_of, with_long_tokens
from tests.support.fuzz.catalogue import TARGETS
from tests.support.fuzz.target import Violation, expect

from sentinel_rag.gateway.request_body import parse_execute


def ended(monkeypatch: pytest.MonkeyPatch, *words: str) -> int | str | None:
    monkeypatch.setattr(sys, "argv", ["bench", *words])
    try:
        return main()
    except SystemExit as end:
        return end.code


def test_a_name_that_is_no_benchmark_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, "gatway") == 2
    assert "no benchmark named 'gatway'; there are: " in capsys.readouterr().err
    assert ended(monkeypatch, "gateway", "journal", "request-body") == 2


def test_words_that_name_no_benchmark_go_to_the_one_before_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "body").write_bytes(b"[1")
    assert ended(monkeypatch, "fuzz", "request-body", "--input", str(tmp_path / "body")) == 0
    assert "The promise holds for this input." in capsys.readouterr().out
    assert ended(monkeypatch, "fuzz", "request-bodies") == 2
    assert "there is no target 'request-bodies'; there are: policy-file," in capsys.readouterr().err
    assert ended(monkeypatch, "fuzz", "--list") == 0
    assert capsys.readouterr().out.count("\n") == len(TARGETS) + 1


def test_the_smallest_input_of_each_kind_of_fault_is_kept(tmp_path: Path) -> None:
    def check(content: bytes) -> None:
        expect(b"!" not in content, f"a mark is taken: {len(content)}")
        if content.startswith(b"{"):
            parse_execute(content)

    findings = Findings(check, tmp_path)
    for content in (b"fine", b"long !!!", b"!", b"two!", b'{"a": 1}', b'{"a": 22}'):
        findings(content)
    told = {json.loads(path.read_text())["kind"]: path.with_suffix("") for path in tmp_path.glob("*.json")}
    assert set(told) == {"a mark is taken", "MalformedBody in request_body.py:parse_execute"}
    assert told["a mark is taken"].read_bytes() == b"!"
    assert told["MalformedBody in request_body.py:parse_execute"].read_bytes() == b'{"a": 1}'
    assert findings.executed == 6


def test_a_finding_is_shown_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "found"
    path.write_bytes(b'{"session_id": "s", "tool_name": "t", "args": {}}')
    assert reproduce(TARGETS["request-body"], path) is None
    monkeypatch.setattr("tests.support.fuzz.request_bodies.MAX_DEPTH", 1)
    shown = reproduce(TARGETS["request-body"], path)
    assert shown is not None
    assert shown.endswith("it is nested more deeply than is let in")
    assert kind_of(Violation("12 of 13 are gone: a, b")) == "_ of _ are gone"


def test_no_token_is_lost_on_the_way_to_the_fuzzer() -> None:
    short, long = b'a"\\\x00', b"x" * 100
    assert dictionary([short, long, b""]) == '"\\x61\\x22\\x5c\\x00"\n'
    assert with_long_tokens([b"ab"], [short, long]) == [b"ab", b"a" + long + b"b", long]
