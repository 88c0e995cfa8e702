"""What can be typed is documented, and what is documented exists."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel_rag.surfaces.cli._parser import build_parser
from sentinel_rag.surfaces.cli.chat import COMMANDS

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = sorted([REPOSITORY / "README.md", REPOSITORY / "ARCHITECTURE.md", *(REPOSITORY / "docs").rglob("*.md")])


def commands(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not groups:
        yield name, parser
    for group in groups:
        for key, child in group.choices.items():
            yield from commands(child, f"{name} {key}")


ALL = dict(commands(build_parser(), "sentinel"))


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_command_and_option_is_in_the_reference(name: str) -> None:
    text = (REPOSITORY / "docs" / "cli.md").read_text()
    assert f"`{name}" in text
    for action in ALL[name]._actions:
        for option in action.option_strings:
            assert option in ("-h", "--help") or f"`{option}" in text or f"{option}`" in text


def test_every_slash_command_is_in_the_reference() -> None:
    text = (REPOSITORY / "docs" / "cli.md").read_text()
    assert [name for name in COMMANDS if f"`{name}`" not in text] == []


def test_every_command_of_a_page_exists() -> None:
    for page in PAGES:
        for line in re.findall(r"(?:^|`|bin/)sentinel ([a-z][^`\n]*)", page.read_text(), re.MULTILINE):
            words = re.findall(r"^[a-z ]+", line)[0].split()
            assert any(" ".join(["sentinel", *words[:n]]) in ALL for n in (1, 2)), f"{page.name}: sentinel {line}"


def test_no_page_holds_a_place_that_was_to_be_filled_in() -> None:
    for page in PAGES:
        assert re.findall(r"@@\w*|\b(?:TODO|FIXME|XXX|TBD)\b|\{\{", page.read_text()) == [], page.name


def test_every_link_of_a_page_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert target.startswith("http") or (page.parent / target).exists(), f"{page.name}: {target}"
