"""Sixty wrong uses by a stranger: each is answered with one sentence that ends with a command which exists."""

from __future__ import annotations

import argparse
import io
import re
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel_rag.surfaces.cli import main
from sentinel_rag.surfaces.cli._parser import build_parser

pytestmark = [pytest.mark.requirement("SURF-1"), pytest.mark.requirement("OPS-4")]

# What is typed, and words of the answer.
TYPED = """
aks how many alerts                          | sentinel ask
"how many alerts are there?"                 | sentinel ask 'how many alerts are there?'
help                                         | sentinel --help
version                                      | sentinel --version
import alerts.csv                            | sentinel workspace import
verify                                       | sentinel audit verify
serve                                        | sentinel up
zzz                                          | sentinel demo
"evil\x1b[2Jword here"                       | sentinel ask
ask                                          | There is no question
ask --evidnce x                              | --evidence instead of --evidnce (sentinel ask
incidents                                    | sentinel ask "which incidents are open?"
workspace list                               | sentinel workspace tables
keys add                                     | sentinel keys create
users delete ana                             | sentinel users disable
ask hello --workspace nosuch                 | There is no workspace 'nosuch'
ask hello --workspace sample                 | or make it: sentinel demo
ask hello --workspace ../x                   | is not a workspace name
chat --resume nosuch                         | No conversation begins with 'nosuch'
chat --delete nosuch                         | No conversation begins with 'nosuch'
chat --json                                  | --json goes with --list
chat --workspace nosuch                      | There is no workspace 'nosuch'
export nosuch                                | No conversation
export --format odt                          | invalid choice: 'odt'
up --port 99999                              | 99999 is outside 0 to 65535
up --web 80x                                 | '80x' is no port number
up --workspace nosuch                        | There is no workspace 'nosuch'
workspace                                    | sentinel workspace generate
workspace imprt x.csv                        | sentinel workspace import
workspace import                             | required: path
workspace import nofile.csv                  | There is no file
workspace import one-column.txt              | fits no known table
workspace generate --days x                  | 'x' is no whole number
workspace generate --events -5               | Choose between 0 and
workspace generate --end tomorrow            | --end
workspace query                              | There is no query
workspace query "SecurityAlert | tkae 5"     | There is no embedded workspace
workspace query SecurityAlert --since later  | 'later' is no time
workspace tables --workspace nosuch          | There is no embedded workspace
workspace faults add throttled               | not served now
workspace faults add trottled                | invalid choice: 'trottled'
workspace faults add slow --delay soon       | 'soon' is no number
tools query_incident                         | There is no tool 'query_incident'
tools a b                                    | One tool at a time
tools accept                                 | Which tool?
kql template                                 | sentinel kql templates
kql templates nosuch                         | There is no template 'nosuch'
kql run account_activity_timelin account=x   | account_activity_timeline
kql run account_activity_timeline            | needs the parameter account
kql run account_activity_timeline foo=1      | has no parameter 'foo'
kql query "bad bad"                          | There is no embedded workspace
kql query ./no.kql                           | There is no file ./no.kql
kql check nofolder                           | There is no file or folder nofolder
kql lint nofolder                            | There is no file or folder nofolder
knowledge ingest nofolder                    | There is no folder nofolder
knowledge search                             | nothing to search for
knowledge search x --limit 0                 | not a number from 1 to 50
knowledge migrate --to pgvector              | SENTINEL_KNOWLEDGE_URL is not set
knowledge install --wheel nofile.whl         | No such file
policy check nofile.yaml                     | No such file
policy explain query_incidents severity      | not NAME=VALUE
policy diff a b                              | No such file
audit show nosuch                            | no audit journal yet
audit show --last many                       | 'many' is no whole number
audit prune --older-than -1                  | outside 0 to 36500
approvals                                    | sentinel approvals list
approvals approve 3f2a                       | No gateway runs
keys create                                  | --name, --scope
keys rotate nosuch                           | There is no key 'nosuch'
users add ana                                | There is no terminal
users add "a b" --password-stdin             | is no name for an account
users disable nosuch                         | There is no account 'nosuch'
users link                                   | No web surface runs
"""
CASES = [tuple(part.strip() for part in line.rsplit("|", 1)) for line in TYPED.strip().splitlines()]


def names(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield parser.prog
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from names(child)


EXIST = set(names(build_parser()))


def ends_with_a_command(said: str) -> None:
    """The last line names a command, and what it names exists."""
    last = said.splitlines()[-1]
    told = re.findall(r"\b(sentinel(?: [a-z-]+){0,2})", last)
    assert told or re.search(r"\b(?:pip install|az login|make [a-z])", last), said
    for command in told:
        words = command.split()
        assert any(" ".join(words[:n]) in EXIST for n in (3, 2)) or words[1:2] in ([], ["--help"]) or "--" in last, said


@pytest.fixture
def folder(clean_environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    (tmp_path / "one-column.txt").write_text("a\nb\n")
    return tmp_path


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    try:
        code = main(arguments)
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    out, err = capsys.readouterr()
    assert out == "", out
    return code, err


@pytest.mark.parametrize(("typed", "words"), CASES, ids=[typed for typed, _ in CASES])
def test_a_wrong_use_is_told_and_ends_with_a_command(
    typed: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = run(shlex.split(typed), capsys)
    assert code in (1, 2)
    assert words in said
    for never in ("Traceback", "fault of Sentinel RAG", "[Errno", "\x1b", "(s)"):
        assert never not in said
    ends_with_a_command(said)
    made = [path for path in (folder / "home").rglob("*") if "nosuch" in path.name]
    assert made == []


SETTINGS = [
    ({"SENTINEL_HOME": "{file}"}, "status", "Not a directory"),
    ({"SENTINEL_HOME": "{file}/x"}, "ask hi", "Not a directory"),
    ({"SENTINEL_HOME": "{file}/x"}, "", "Not a directory"),
    ({"SENTINEL_HOME": "{file}/x"}, "users list", "Not a directory"),
    ({"SENTINEL_HOME": "{file}/x"}, "keys list", "Not a directory"),
    ({"SENTINEL_HOME": "{file}/x"}, "knowledge status", "Not a directory"),
    *(
        ({"SENTINEL_HOME": "{file}-" + "x" * 300}, typed, "too long")
        for typed in ("ask hi", "status", "users list", "up")
    ),
    ({"SENTINEL_CONFIG": "{file}"}, "policy check", "must be a mapping"),
    ({"SENTINEL_CONFIG": "/nofile"}, "policy check", "No such file"),
    ({"SENTINEL_TIMEZONE": "Mars/Olympus"}, "ask hi", "One setting is wrong"),
    ({"SENTINEL_MODEL": "gpt", "SENTINEL_CHAT_TURNS": "x"}, "chat", "2 settings are wrong"),
    ({"SENTINEL_URL": "http://127.0.0.1:9"}, "ask hi", "SENTINEL_API_KEY: is missing"),
    ({"SENTINEL_URL": "http://127.0.0.1:9", "SENTINEL_APPROVER_KEY": "k" * 20}, "approvals list", "did not answer"),
]


@pytest.mark.parametrize(
    ("environment", "typed", "words"), SETTINGS, ids=[f"{s[1]}-{n}" for n, s in enumerate(SETTINGS)]
)
def test_a_wrong_setting_is_told_and_ends_with_a_command(
    environment: dict[str, str],
    typed: str,
    words: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (folder / "file").write_text("text\n")
    for name, value in environment.items():
        monkeypatch.setenv(name, value.format(file=folder / "file"))
    code, said = run(typed.split(), capsys)
    assert code in (1, 2)
    assert words in said
    assert "[Errno" not in said
    ends_with_a_command(said)


@pytest.mark.parametrize("option", ["--port", "--agent-port", "--web"])
def test_a_port_that_is_taken_is_told(option: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, said = run(["up", option, str(taken.getsockname()[1])], capsys)
    assert code == 1
    assert "is in use by another program" in said
    assert said.endswith(
        "take a free one: sentinel up --web\n" if option == "--web" else "take a free one: sentinel up\n"
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"SENTINEL_MODEL=offline\nfoo bar\n", ".env:2"), (b"\xff\xfe", "byte 1 is not UTF-8"), (None, "Is a directory")],
)
def test_a_wrong_settings_file_is_told(
    content: bytes | None, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is None:
        (folder / ".env").mkdir()
    else:
        (folder / ".env").write_bytes(content)
    code, said = run(["status"], capsys)
    assert code == 2
    assert words in said
    ends_with_a_command(said)
