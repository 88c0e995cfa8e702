"""A new user finds the way: `sentinel` alone, an example below each help, and what to type after each wrong use."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel_rag.surfaces.cli import main
from sentinel_rag.surfaces.cli._parser import build_parser
from sentinel_rag.surfaces.cli.demo import _where_it_lies

pytestmark = pytest.mark.requirement("SURF-1")


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from parsers(child)


ALL = {each.prog: each for each in parsers(build_parser()) if each.prog != "sentinel"}


@pytest.mark.parametrize("name", sorted(ALL))
def test_each_help_has_one_example_that_its_parser_takes(name: str) -> None:
    title, line = (ALL[name].epilog or "").splitlines()
    assert title == "example:"
    program, *arguments = shlex.split(line)
    assert program == "sentinel"
    assert line.strip().startswith(name)
    options = build_parser().parse_args(arguments)
    assert callable(options.run)


def test_wrong_use_ends_with_what_to_type(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, told in (
        (["ask", "--foo"], 'Next: sentinel ask "how many'),
        (["aks", "x"], "Next: sentinel ask (or sentinel --help)"),
        (["zzz"], "Next: sentinel demo (sentinel --help tells the rest)"),
        (["kql", "querry"], "Next: sentinel kql query (or sentinel kql --help)"),
        (["approvals"], "Next: sentinel approvals list"),
        (["audit", "show", "--last", "x"], "Next: sentinel audit show"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 2
        assert told in capsys.readouterr().err.splitlines()[-1]


def test_without_arguments_it_tells_what_to_do_first(
    clean_environment: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(clean_environment.parent)
    assert main([]) == 0
    fresh = capsys.readouterr().out
    assert "nothing to ask about yet" in fresh
    assert "sentinel demo" in fresh
    assert "sentinel workspace import FILE" in fresh
    (clean_environment / "workspaces" / "default").mkdir(parents=True)
    assert main([]) == 0
    filled = capsys.readouterr().out
    assert "sentinel chat" in filled
    assert "sentinel workspace import" not in filled
    assert max(map(len, (fresh + filled).splitlines())) < 80
    monkeypatch.setenv("SENTINEL_TIMEZONE", "Mars/Olympus")
    assert main([]) == 0
    assert "sentinel doctor" in capsys.readouterr().out


def test_the_demo_says_where_the_program_lies_only_where_its_name_would_not_find_it(tmp_path: Path) -> None:
    folder = Path(sys.executable).parent
    assert _where_it_lies(str(folder)) == ()
    (told,) = _where_it_lies(str(tmp_path))
    assert told.startswith("(sentinel lies in ")
    assert told.endswith("/activate)")
