"""The condition language against Python itself, and its three-valued logic against its definition.

Two laws: with every parameter given, a condition means what Python means by the same text; with some left out, a
decided condition has that value for *every* value the missing ones could have had.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from law_examples import examples
from sentinel_rag.gateway.policy.conditions import (
    ConditionError,
    TypeName,
    ValueType,
    check,
    compile_rules,
    evaluate,
    reads,
    text_of,
)

PARAMETERS = {
    "path": ValueType(TypeName.STRING),
    "name": ValueType(TypeName.STRING),
    "limit": ValueType(TypeName.INTEGER),
    "score": ValueType(TypeName.NUMBER),
    "force": ValueType(TypeName.BOOLEAN),
    "tags": ValueType(TypeName.ARRAY, TypeName.STRING),
    "sizes": ValueType(TypeName.ARRAY, TypeName.INTEGER),
    "extra": ValueType(TypeName.OBJECT),
}

words = st.sampled_from(["", "a", "A", "ab", "confidential/", "public/x", "Straße", "ß", "İ", "x y", "'", '"', "\\"])
values: dict[str, st.SearchStrategy[Any]] = {
    "path": words,
    "name": words,
    "limit": st.integers(-5, 5),
    "score": st.one_of(st.integers(-3, 3), st.floats(-3, 3, allow_nan=False)),
    "force": st.booleans(),
    "tags": st.lists(words, max_size=3),
    "sizes": st.lists(st.integers(-2, 2), max_size=3),
    "extra": st.dictionaries(words, st.integers(0, 2), max_size=2),
}
arguments = st.fixed_dictionaries(values)

literal = words.filter(str.isprintable).map(repr)
number = st.one_of(st.integers(-5, 5).map(str), st.floats(-3, 3, allow_nan=False).map(repr))
case = st.sampled_from(["", ".lower()", ".upper()", ".casefold()", ".strip()", ".lower().upper()"])
string = st.one_of(literal, st.builds("{}{}".format, st.one_of(st.sampled_from(["path", "name"]), literal), case))
numeric = st.one_of(
    number,
    st.sampled_from(["limit", "score", "len(path)", "size(tags)", "len(extra)"]),
    st.builds("len({})".format, string),
)
choices = st.lists(literal, min_size=1, max_size=4).map(", ".join)

atoms = st.one_of(
    st.sampled_from(["true", "false", "True", "False", "force"]),
    st.builds("{} {} {}".format, string, st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "not in"]), string),
    st.builds("{} {} {}".format, numeric, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), numeric),
    st.builds("{} < {} <= {} != {}".format, numeric, numeric, numeric, numeric),
    st.builds("{} {} [{}]".format, string, st.sampled_from(["in", "not in"]), choices),
    st.builds("{} {} ({},)".format, numeric, st.sampled_from(["in", "not in"]), number),
    st.builds("{} {} tags".format, string, st.sampled_from(["in", "not in"])),
    st.builds("{} in sizes".format, numeric),
    st.builds("{} in extra".format, string),
    st.builds("{}.{}({})".format, string, st.sampled_from(["startswith", "endswith"]), string),
    st.builds("{}.startswith(({},))".format, string, choices),
    st.builds("has({})".format, st.sampled_from(list(PARAMETERS))),
    st.builds("{} {} None".format, st.sampled_from(list(PARAMETERS)), st.sampled_from(["is", "is not", "==", "!="])),
    st.builds("{} {} force".format, st.sampled_from(["true", "force"]), st.sampled_from(["==", "!="])),
)
conditions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds("({} and {})".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("(not {})".format, inner),
    ),
    max_leaves=6,
)


PATTERNS = ["a", "^a", "a$", "^$", "(?i)A|ß", "[a-c]+/", "x y|public/.", r"^\\w*$", "^(?:confidential|public)/"]
searches = st.builds(
    "{}.matches({!r})".format, st.sampled_from(["path", "name", "path.lower()"]), st.sampled_from(PATTERNS)
)
rule_like = st.one_of(conditions, searches, st.builds("has(path) and ({})".format, st.one_of(atoms, searches)))


def python_says(text: str, given: dict[str, Any]) -> object:
    names: dict[str, Any] = {"true": True, "false": False, "null": None, "size": len, "len": len}
    names["has"] = lambda value: value is not None
    return eval(text, {"__builtins__": {}}, {**names, **given})


@settings(max_examples=examples(1_500, 100), deadline=None)
@given(conditions, arguments)
def test_with_everything_given_a_condition_means_what_python_means(text: str, given: dict[str, Any]) -> None:
    tree = check(text, PARAMETERS)
    expected = python_says(text, given)
    assert evaluate(tree, given) is expected
    assert (compile_rules([tree])(given) == 0) is expected


@settings(max_examples=examples(1_000, 100), deadline=None)
@given(conditions, arguments, arguments, st.sets(st.sampled_from(list(PARAMETERS))))
def test_a_decided_condition_does_not_depend_on_what_is_missing(
    text: str, given: dict[str, Any], other: dict[str, Any], missing: set[str]
) -> None:
    tree = check(text, PARAMETERS)
    partial = {name: value for name, value in given.items() if name not in missing}
    verdict = evaluate(tree, partial)
    if "None" in text or "has(" in text:  # whether it is there is the question itself, so only the absent case counts
        return
    if verdict is not None:
        assert python_says(text, {**other, **partial}) is verdict
        assert python_says(text, given) is verdict


@settings(max_examples=examples(1_000, 100), deadline=None)
@given(st.lists(rule_like, min_size=1, max_size=14), arguments, st.sets(st.sampled_from(list(PARAMETERS))))
def test_the_compiled_rules_agree_with_the_definition_or_ask_for_it(
    texts: list[str], given: dict[str, Any], missing: set[str]
) -> None:
    trees = [check(text, PARAMETERS) for text in texts]
    partial = {name: value for name, value in given.items() if name not in missing}
    verdicts = [evaluate(tree, partial) for tree in trees]
    try:
        first = compile_rules(trees)(partial)
    except KeyError:
        assert not all(reads(tree) <= partial.keys() for tree in trees)
        return
    first_undecided = verdicts.index(None) if None in verdicts else len(verdicts)
    assert first_undecided >= (first if first >= 0 else len(verdicts)), "a later rule decided past an unknown one"
    assert first == next((index for index, verdict in enumerate(verdicts) if verdict is True), -1)
    assert None not in verdicts[: first if first >= 0 else len(verdicts)]


literal_tests = st.one_of(
    st.builds("{} == {}".format, st.sampled_from(["path", "name"]), literal),
    st.builds("{}.startswith({})".format, st.sampled_from(["path", "name", "path.lower()"]), literal),
    st.just("limit == 1"),
)


@settings(max_examples=examples(300, 100), deadline=None)
@given(st.lists(st.tuples(literal_tests, st.integers(1, 40)), max_size=6), arguments)
def test_many_rules_of_one_kind_in_a_row_decide_like_each_alone(
    runs: list[tuple[str, int]], given: dict[str, Any]
) -> None:
    texts = [
        text if number == count // 2 else text.replace("')", f"{number}')").replace("== 'a'", f"== 'a{number}'")
        for text, count in runs
        for number in range(count)
    ]
    trees = [check(text, PARAMETERS) for text in texts]
    expected = next((index for index, tree in enumerate(trees) if evaluate(tree, given)), -1)
    assert compile_rules(trees)(given) == expected


@settings(max_examples=examples(1_500, 100), deadline=None)
@given(st.text(max_size=80))
def test_any_text_is_a_condition_or_refused_with_a_sentence(text: str) -> None:
    problem: ConditionError | None = None
    try:
        check(text, PARAMETERS)
    except ConditionError as error:
        problem = error
    assert problem is None or (str(problem) and problem.column >= 1)


@pytest.mark.parametrize(
    ("text", "missing_decides"),
    [
        ("path == 'a' or true", True),
        ("true or path == 'a'", True),
        ("path == 'a' and false", False),
        ("false and path == 'a'", False),
        ("path == 'a'", None),
        ("path != 'a'", None),
        ("not path == 'a'", None),
        ("path not in ['a']", None),
        ("path == path", None),
        ("path == 'a' or limit == 1", None),
        ("has(path) and path == 'a'", False),
        ("not has(path) or path == 'a'", True),
        ("path is None", True),
        ("path != null", False),
        ("1 < limit < 3", None),
        ("2 < 1 < limit", False),
        ("len(path) >= 0", None),
        ("path.startswith('a')", None),
        ("'a' in tags", None),
    ],
)
def test_a_missing_parameter_is_unknown_and_order_does_not_matter(text: str, missing_decides: bool | None) -> None:
    assert evaluate(check(text, PARAMETERS), {}) is missing_decides


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("path.startsWith('a')", "path.startswith('a')"),
        ("path.endsWith('a')", "path.endswith('a')"),
        ("path.lowerAscii() == 'a'", "path.lower() == 'a'"),
        ("path.trim() == 'a'", "path.strip() == 'a'"),
        ("size(path) == 1", "len(path) == 1"),
        ("true", "True"),
        ("path == null", "path is None"),
        ("path != null", "path is not None"),
        ("has(path)", "path is not None"),
    ],
)
def test_both_spellings_are_one_condition(text: str, same_as: str) -> None:
    assert check(text, PARAMETERS) == check(same_as, PARAMETERS)


def test_in_a_list_true_and_1_are_different_values() -> None:
    anything = {"tags": ValueType(TypeName.ARRAY), "force": ValueType(TypeName.BOOLEAN)}
    for text, call in [("1 in tags", {"tags": [True]}), ("force in tags", {"tags": [1], "force": True})]:
        tree = check(text, anything)
        assert evaluate(tree, call) is False
        assert compile_rules([tree])(call) == -1


ALIKE = st.one_of(
    st.builds("path.{}({})".format, st.sampled_from(["startswith", "endswith", "contains"]), literal),
    st.builds("has(path) and path.startswith({})".format, literal),
    st.builds("has(name) and {} == path and path == {}".format, literal, literal),
    st.builds("path == {} or name.endswith({})".format, literal, literal),
    st.builds("has(name) and name == {} or path.startswith({})".format, literal, literal),
    st.builds("limit {} {}".format, st.sampled_from(["<", "<=", ">", ">=", "=="]), st.integers(-5, 5)),
    st.builds("{} {} limit and force".format, st.integers(-5, 5), st.sampled_from(["<", "<=", ">", ">="])),
    st.builds("name in [{}, {}]".format, literal, literal),
    st.builds("path.matches({!r})".format, st.sampled_from(PATTERNS)),
)
"""Conditions that many rules share one test for."""


@settings(max_examples=examples(1_000, 100), deadline=None)
@given(
    st.lists(ALIKE, min_size=14, max_size=30), arguments, st.sets(st.sampled_from(["path", "name", "limit", "force"]))
)
def test_rules_behind_a_common_test_decide_as_each_would_alone(
    texts: list[str], given: dict[str, Any], missing: set[str]
) -> None:
    trees = [check(text, PARAMETERS) for text in texts]
    partial = {name: value for name, value in given.items() if name not in missing}
    verdicts = [evaluate(tree, partial) for tree in trees]
    deciding = next((index for index, verdict in enumerate(verdicts) if verdict is not False), -1)
    try:
        first = compile_rules(trees)(partial)
    except KeyError:
        assert missing
        return
    assert first == deciding


@settings(max_examples=examples(500, 100), deadline=None)
@given(st.sampled_from(PATTERNS), words)
def test_a_pattern_is_searched_for_as_python_does(pattern: str, path: str) -> None:
    tree = check(f"path.matches({pattern!r})", PARAMETERS)
    expected = re.search(pattern.replace("$", r"\Z"), path, re.ASCII) is not None
    assert evaluate(tree, {"path": path}) is expected
    assert (compile_rules([tree] * 8)({"path": path}) == 0) is expected
    assert evaluate(tree, {}) is None


@settings(max_examples=examples(500, 100), deadline=None)
@given(rule_like)
def test_the_wording_of_a_condition_checks_to_the_same_tree(text: str) -> None:
    tree = check(text, PARAMETERS)
    assert check(text_of(tree), PARAMETERS) == tree
