"""The site: every page has its place in the navigation, and every link of it leads to a page or a file of it.

`make site` builds it with the same staging, and the builder checks the links once more.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.documentation.site import all_pages, navigation_of, stage

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    stage(REPOSITORY, folder)
    return folder


def entries(navigation: Any) -> list[str]:
    if isinstance(navigation, str):
        return [navigation]
    return [
        entry
        for each in (navigation.values() if isinstance(navigation, dict) else navigation)
        for entry in entries(each)
    ]


def test_every_page_has_one_place_in_the_navigation(staged: Path) -> None:
    named = entries(yaml.safe_load((staged / "mkdocs.yml").read_text())["nav"])
    assert sorted(named) == sorted(set(named))
    pages = {path.relative_to(staged / "docs").as_posix() for path in (staged / "docs").rglob("*.md")}
    assert set(named) <= pages
    assert {page for page in pages - set(named) if not page.startswith("project/")} == set()


def test_every_link_leads_to_something_of_the_site(staged: Path) -> None:
    looked_at = 0
    for page in (staged / "docs").rglob("*.md"):
        text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if "://" not in target:
                looked_at += 1
                assert (page.parent / target).is_file(), f"{page.relative_to(staged)}: {target}"
    assert looked_at > 200


def test_what_lies_beside_the_pages_comes_along(staged: Path) -> None:
    assert (staged / "docs" / "project" / "architecture.md").is_file()
    copied = staged / "docs" / "files" / "config" / "sentinel_config.yaml"
    assert copied.read_text() == (REPOSITORY / "config" / "sentinel_config.yaml").read_text()
    concepts = (staged / "docs" / "concepts.md").read_text()
    assert "(files/config/sentinel_config.yaml)" in concepts


def test_nothing_is_loaded_from_another_host(staged: Path) -> None:
    configuration = yaml.safe_load((staged / "mkdocs.yml").read_text())
    assert configuration["theme"]["font"] is False
    for name in (*configuration["extra_css"], *configuration.get("extra_javascript", [])):
        text = (staged / "docs" / name).read_text()
        assert "//" not in re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def test_one_text_holds_every_page_once() -> None:
    text = all_pages(REPOSITORY)
    for page in (REPOSITORY / "docs").rglob("*.md"):
        assert text.count(f"<!-- {page.relative_to(REPOSITORY).as_posix()} -->\n") == 1, page
        assert page.read_text().strip() in text


def test_headings_are_sections_and_the_first_link_to_a_page_counts() -> None:
    index = (
        "# Title\n\n1. [start](a.md): x [b](b.md)\n\n## One\n\n[again](a.md) [c](c/README.md) [d](b.md#x)\n\n## None\n"
    )
    assert navigation_of(index) == [
        {"Home": "index.md"},
        {"Start": "a.md"},
        {"B": "b.md"},
        {"One": [{"C": "c/index.md"}]},
    ]
