"""Every box of every page is checked by what it is: commands parse with their options, files of a format are of it.

Boxes that are run are checked by their own tests: get-started.md and concepts.md, the policies of policy.md and of
information-flow.md, the queries of freeform-kql.md and kql-templates.md.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from page_boxes import BOX

from sentinel_rag.settings import VARIABLES
from sentinel_rag.surfaces.cli._parser import build_parser

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [
    REPOSITORY / name for name in ("README.md", "ARCHITECTURE.md", "SECURITY.md", "CONTRIBUTING.md", "RELEASING.md")
]
PAGES += sorted((REPOSITORY / "docs").rglob("*.md"))
KINDS = {"", "ini", "json", "kusto", "python", "sh", "text", "yaml"}
SETTINGS = set(VARIABLES)
TARGETS = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
PARSER = build_parser()
SHELL = {"|", ">", "<<", "&", "&&", ";"}
ASSIGNED = re.compile(r"^([A-Z][A-Z0-9_]+)=\S*\s*")


def boxes() -> Iterator[tuple[str, str, str]]:
    for page in PAGES:
        for number, (kind, content) in enumerate(BOX.findall(page.read_text()), 1):
            yield f"{page.relative_to(REPOSITORY)}:{number}", kind, content


BOXES = list(boxes())


def commands(content: str) -> Iterator[str]:
    """The lines of a box that a shell would run, continued ones put together, as far as they are ours."""
    for line in content.replace("\\\n", " ").splitlines():
        while assigned := ASSIGNED.match(line.strip()):
            assert not assigned[1].startswith("SENTINEL_") or assigned[1] in SETTINGS, line
            line = line.strip()[assigned.end() :]
        yield line.strip().removeprefix(".venv/bin/")


def parses(line: str) -> bool:
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    try:
        PARSER.parse_args(list(itertools.takewhile(lambda word: word not in SHELL, words))[1:])
    except SystemExit as stopped:
        return stopped.code == 0
    return True


@pytest.mark.parametrize(("place", "content"), [(p, c) for p, k, c in BOXES if k in ("", "sh", "ini")], ids=str)
def test_what_is_typed_exists(place: str, content: str, capsys: pytest.CaptureFixture[str]) -> None:
    for line in commands(content):
        if re.match(r"sentinel [a-z-]", line):
            assert parses(line), f"{place}: {line}\n{capsys.readouterr().err}"
        if line.startswith("make "):
            assert line.split()[1] in TARGETS, f"{place}: {line}"


def test_the_check_of_commands_can_fail(capsys: pytest.CaptureFixture[str]) -> None:
    assert parses('sentinel ask "x" --evidence')
    assert not parses('sentinel ask "x" --evidnce')
    assert list(commands("SENTINEL_MODEL=offline \\\n  sentinel chat # why")) == ["sentinel chat # why"]
    with pytest.raises(AssertionError):
        list(commands("SENTINEL_MODLE=offline sentinel chat"))


@pytest.mark.parametrize(("place", "kind", "content"), [box for box in BOXES if box[1] in ("json", "yaml", "python")])
def test_what_is_of_a_format_can_be_read(place: str, kind: str, content: str) -> None:
    if kind == "json":
        json.loads(content)
    elif kind == "yaml":
        list(yaml.safe_load_all(content))
    else:
        ast.parse(content)


def test_every_box_is_of_a_kind_that_is_checked() -> None:
    assert {kind for _, kind, _ in BOXES} <= KINDS


def test_the_index_names_every_page_and_so_does_llms_txt() -> None:
    index = (REPOSITORY / "docs" / "README.md").read_text()
    for_models = (REPOSITORY / "llms.txt").read_text()
    pages = [page.relative_to(REPOSITORY / "docs").as_posix() for page in PAGES if "docs" in page.parts]
    assert [page for page in pages if page != "README.md" and f"({page})" not in index] == [], (
        "add them: docs/README.md"
    )
    assert [page for page in pages if f"(docs/{page})" not in for_models] == [], "add them to llms.txt"
    for target in re.findall(r"\]\(([^)#]+)\)", for_models):
        assert (REPOSITORY / target).is_file(), target
