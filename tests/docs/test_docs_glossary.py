"""The glossary names classes that are there, and no module bears a word that it replaced."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = REPOSITORY / "src" / "sentinel_rag"
GLOSSARY = (REPOSITORY / "docs" / "glossary.md").read_text()
PLACES = sorted(set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)+(?:\.[A-Z]\w*)?)`", GLOSSARY)))
REPLACED = set(
    """
    interceptor executors assembly people wish told telling door doorkeeper host_guard loopback_guard border desk
    approval_desk remembering carried sought standing standing_sessions eras express_way patience departure began
    likeness recurrence atoms compositions aspects second_look left_out near_offers said_otherwise
    """.split()  # noqa: SIM905  a list of words is read as words
)


@pytest.mark.parametrize("place", PLACES)
def test_what_the_glossary_names_is_there(place: str) -> None:
    module, _, name = place.rpartition(".")
    if name[0].isupper():
        assert hasattr(importlib.import_module(f"sentinel_rag.{module}"), name)
    else:
        importlib.import_module(f"sentinel_rag.{place}")


def test_the_glossary_names_a_class_for_most_words() -> None:
    assert len(PLACES) >= 35


def test_no_module_bears_a_word_that_was_replaced() -> None:
    modules = [path.relative_to(SOURCES).with_suffix("") for path in SOURCES.rglob("*.py")]
    assert [str(module) for module in modules if REPLACED & {part.strip("_") for part in module.parts}] == []
