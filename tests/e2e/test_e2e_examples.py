"""The example below each `--help`, run as it stands there, all in one home: a stranger's first try of a command works.

Where an example needs what this machine does not give (an Azure workspace, a terminal), its answer says so in one
sentence, and that is named here.
"""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sentinel_rag.surfaces.cli import main
from sentinel_rag.surfaces.cli._commands import EXAMPLES

SERVES = "sentinel up --web 8443"
"""Run as `up --web`, on a free port, for as long as the others are tried."""

NEEDS = {
    "sentinel doctor --azure": (1, "SENTINEL_WORKSPACE_ID is not set"),
    "sentinel knowledge migrate --to pgvector": (2, "SENTINEL_KNOWLEDGE_URL is not set"),
    "sentinel users add ana --role analyst": (2, "no terminal to ask for a password"),
    "sentinel users reset ana": (2, "no terminal to ask for a password"),
    "sentinel audit prune --older-than 365": (3, "No segment is that old"),
    "sentinel restore backups/2026-11-28": (1, "Another sentinel process is using this home folder"),
    "sentinel database prepare": (2, "SENTINEL_DATABASE_URL is not set"),
    "sentinel database prepare --for sentinel_gateway": (2, "SENTINEL_DATABASE_URL is not set"),
    "sentinel database move": (2, "SENTINEL_DATABASE_URL is not set"),
}
ELSEWHERE = {
    "sentinel demo": "test_e2e_demo.py",
    "sentinel workspace generate": "the fixture `generated`",
    "sentinel workspace generate --events 20000": "test_e2e_rough_use.py: with fewer events",
    "sentinel knowledge ingest": "test_e2e_knowledge_ingest.py",
    "sentinel knowledge rebuild": "tests/knowledge: needs the embedding model",
    "sentinel knowledge install": "tests/knowledge: needs the package index once",
    "sentinel kql install": "tests/sentinel: needs npm once",
    "sentinel kql lint": "tests/surfaces/test_cli_kql.py: on fewer templates",
    "sentinel mcp": "tests/surfaces/test_cli_mcp.py: ends with its input",
    "sentinel serve tools --tools sentinel,knowledge": "tests/deploy/test_deploy_roles.py: does not end",
    "sentinel approvals watch": "tests/surfaces/test_cli_approvals.py: ends at Ctrl-C",
}
"""Run by other tests, because they are slow, need a network or do not end."""

FIRST = ("watchlist put",)
LAST = ("keys list", "keys revoke", "users list", "users disable", "audit rotate", "audit prune")
"""What shows, ends or moves something comes after what makes it."""

README = Path(__file__).resolve().parents[2] / "README.md"
READ_ME = re.compile(r"^```sh\n(sentinel [^\n]*)\n```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)

ID = "3f2a"
"""Stands for the beginning of an approval's id."""


@pytest.fixture(scope="module")
def serving(generated: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Path]]:
    """`sentinel up --web` over the sample estate, and a folder with the files that the examples name."""
    product = generated.afresh(tmp_path_factory.mktemp("examples") / "home")
    folder = tmp_path_factory.mktemp("files")
    (folder / "results.json").write_text('{"format": "sentinel-results", "version": 1, "results": []}')
    (folder / "answer.md").write_text("Ask who opened the mail.")
    (folder / "questions.jsonl").write_text(
        '"how many open incidents?"\n{"q": "and closed?", "after": ["open incidents"]}\n'
    )
    (folder / "incidents.csv").write_text("TimeGenerated,IncidentNumber,Title\n2026-11-01T00:00:00Z,7001,Example\n")
    (folder / "vip.csv").write_text("UserPrincipalName\nanna@woodgrove.example\n")
    (folder / "rules").mkdir()
    (folder / "rules" / "rule.kql").write_text("SigninLogs | where TimeGenerated > ago(1d) | take 5\n")
    policy = Path(__file__).resolve().parents[2] / "config" / "sentinel_config.yaml"
    for name in ("old.yaml", "new.yaml"):
        (folder / name).write_text(policy.read_text())
    with product.up("--web"):
        yield product, folder


def order(line: str) -> tuple[int, int]:
    last, first = (line.startswith(tuple(f"sentinel {each}" for each in some)) for some in (LAST, FIRST))
    return (last - first, list(EXAMPLES.values()).index(line))


@pytest.mark.requirement("SURF-1")
def test_each_example_runs(
    serving: tuple[Any, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    product, folder = serving
    for name, value in product.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)
    assert main(["ask", "how many incidents are there?"]) == 0  # a conversation to go on with
    assert main(["knowledge", "ingest", "--only", "playbooks", "--by-words"]) == 0
    for _ in range(2):  # each in a conversation of its own: two calls that wait
        assert main(["ask", "run the template raw_signins"]) == 4
    waiting = [each["approval_id"] for each in product.json("approvals", "list")["approvals"]]
    failed: list[str] = []
    for line in sorted(set(EXAMPLES.values()) - set(ELSEWHERE) - {SERVES}, key=order):
        if line.startswith("sentinel users change"):  # `users add` asks at a terminal, and here is none
            made = product.run("users", "add", "ana", "--password-stdin", stdin="long-winter-evening\n")
            assert made.returncode == 0, made.stderr
        typed = line.replace(ID, waiting[1 if " deny " in line or " lift " in line else 0])
        code, said = run(typed, capsys, monkeypatch)
        expected, words = NEEDS.get(line, (0, ""))
        if code != expected or words not in said or "fault of Sentinel RAG" in said:
            failed.append(f"{line}: {code}, {said[-300:]}")
    assert not failed, "\n".join(failed)
    assert product.json("status")["running"]


def test_the_answer_in_the_readme_is_given(serving: tuple[Any, Path]) -> None:
    product, _ = serving
    asked = [(typed, shown) for typed, shown in READ_ME.findall(README.read_text()) if typed.startswith("sentinel ask")]
    ((typed, shown),) = asked
    done = product.run(*shlex.split(typed)[1:])
    assert done.returncode == 0, done.stderr
    for line in shown.splitlines():
        assert all(part in done.stdout for part in line.split("...")), line


def run(line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    capsys.readouterr()
    try:
        code = main(shlex.split(line)[1:])
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    out, err = capsys.readouterr()
    return code, out + err
