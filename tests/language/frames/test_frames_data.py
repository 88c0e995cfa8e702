"""The words and rules of the reader are sound: no filler restricts, no value is a stray, no rule hangs in the air."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from sentinel_rag.agent.planner.decisions import rows
from sentinel_rag.language import frames
from sentinel_rag.language.frames.frame import rules
from sentinel_rag.language.frames.phrases import (
    FORMS,
    LANGUAGES,
    SETTINGS,
    SILENT,
    phrase_book,
    phrases_of,
    sections,
)

MOST_PHRASES = 2_500
"""Of one pattern: every process that answers a question expands them all before the first."""

RESTRICTING = {
    "severity", "status", "class", "owner", "tactic", "product", "not", "cmp", "all", "topic", "bound", "extreme",
}  # fmt: skip
"""Types of words that leave rows out."""
ALSO_PASSED_OVER = {
    "en": {"received", "over"},
    "de": {"ab", "uber"},
    "es": set[str](),
    "fr": set[str](),
}
"""Words that stand as filler and as a type that restricts; the cover tells both, and a rule needs the type."""
NO_PHRASES = {"instead", "kept", "joined", *SETTINGS, *FORMS}
TOLD_BY_THE_READER = {"lit", "name", "num", "digits", "text", "singular", "singled"}
"""Types that no file holds: shapes, numbers, and words that nothing knows."""
TOLD_BY_RULES = {"maybe_title"} | {feature.partition("=")[0] for rule in rules() for feature in rule.then}


def types_of(language: str) -> dict[tuple[str, ...], set[str]]:
    """The types of every phrase of a language's own file."""
    found: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for type_, entries in sections(language).items():
        if type_ not in NO_PHRASES:
            for patterns in entries.values():
                for phrase in (one for pattern in patterns for one in phrases_of(pattern)):
                    found[phrase].add(type_)
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_filler_restricts(language: str) -> None:
    both = {
        " ".join(phrase)
        for phrase, types in types_of(language).items()
        if types & set(SILENT) and types & RESTRICTING and len(phrase) == 1
    }
    assert both <= ALSO_PASSED_OVER[language]


@pytest.mark.parametrize("language", LANGUAGES)
def test_other_languages_hold_types_and_values_that_english_has(language: str) -> None:
    for type_, entries in sections(language).items():
        if type_ not in (*NO_PHRASES, "product"):
            assert set(entries) <= set(sections("en")[type_]), type_


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_pattern_says_something_and_not_too_much(language: str) -> None:
    for type_, entries in sections(language).items():
        for value, patterns in entries.items():
            for pattern in () if type_ in FORMS else patterns:
                assert pattern.count("(") == pattern.count(")"), (type_, value, pattern)
                assert 0 < len(phrases_of(pattern)) <= MOST_PHRASES, (type_, value, pattern)


def test_every_rule_is_of_types_that_are_told() -> None:
    known = {*sections("en"), *TOLD_BY_THE_READER, *TOLD_BY_RULES}
    for rule in rules():
        for part in rule.parts:
            for type_, values in part.types:
                assert type_ in known, type_
                if values is not None and type_ in sections("en"):
                    assert values <= set(sections("en")[type_]) | {"number"}, (type_, values)
        assert not all(part.stays for part in rule.parts) or rule.then


def test_every_row_of_the_table_needs_what_is_told() -> None:
    known = {*sections("en"), *TOLD_BY_THE_READER, *TOLD_BY_RULES, "is"}
    for row in rows():
        for one in (*(each for need in row.needs for each in need), *row.never):
            type_, _, value = one.partition(":")
            assert type_ in known, (row.kind, one)
            if type_ in sections("en") and value:
                assert value in sections("en")[type_], (row.kind, one)


def test_no_two_rows_are_the_same() -> None:
    seen = [(row.needs, row.never) for row in rows()]
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_slip_is_mended_and_names_times_and_short_words_are_left(language: str) -> None:
    book = phrase_book(language)
    for word in ("srv", "dc01", "oct", "monday" if language == "en" else "xyz"):
        assert book.mend(word) == word


ALLOWED = {"azure", "microsoft", "com", "us", "incident", "https", "ftp", "svc", "adm", "admin", "hxxp", "http"}
"""What addresses and names are made of, in any language."""
_PACKAGES = (Path(frames.__file__).parent, Path(frames.__file__).parents[2] / "agent" / "planner")


def patterns_in(path: Path) -> list[str]:
    """The texts of the regular expressions of a module."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    of_re = [
        call for call in calls if isinstance(call.func, ast.Attribute) and getattr(call.func.value, "id", "") == "re"
    ]
    return [
        each.value
        for call in of_re
        for argument in call.args[:1]
        for each in ast.walk(argument)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]


@pytest.mark.parametrize(
    "path", [path for folder in _PACKAGES for path in sorted(folder.glob("*.py"))], ids=lambda p: p.name
)
def test_no_regular_expression_holds_words_of_a_language(path: Path) -> None:
    words = {word for pattern in patterns_in(path) for word in re.findall(r"(?<![\\\[a-z-])[a-z]{3,}", pattern)}
    assert words <= ALLOWED
