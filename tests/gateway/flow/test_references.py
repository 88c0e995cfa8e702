"""Handles in arguments: which texts are handles, and what takes their place."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.gateway.flow.view import (
    MAX_HANDLES,
    HandleReference,
    NoSuchHandle,
    find_references,
    put_values,
    step_into,
)

R1, R2 = HandleReference(1, ("rows", "0")), HandleReference(2, ())


def ref(text: object = "r1#/rows/0") -> dict[str, Any]:
    return {"$ref": text}


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("r1#", HandleReference(1, ())),
        ("r12#/a/0", HandleReference(12, ("a", "0"))),
        ("r999999999#/a~1b", HandleReference(999_999_999, ("a/b",))),
        ("r1#/a\nb", HandleReference(1, ("a\nb",))),
    ],
)
def test_a_handle_survives_its_text(text: str, reference: HandleReference) -> None:
    assert HandleReference.parse(text) == reference
    assert str(reference) == text
    assert reference.to_json() == {"$ref": text}


@pytest.mark.parametrize(
    "text", ["", "r0#", "r01#", "r1", "r1/a", "x1#", "r1#a", "r1234567890#", "r1#" + "/x" * 17, 5, None]
)
def test_what_has_another_form_is_no_handle(text: object) -> None:
    with pytest.raises(NoSuchHandle, match="handle"):
        HandleReference.parse(text)


def test_the_form_is_told_to_who_gets_it_wrong() -> None:
    with pytest.raises(NoSuchHandle) as refused:
        HandleReference.parse("moon")
    assert str(refused.value) == 'a handle has the form {"$ref": "r1#/rows/0/name"}'
    with pytest.raises(NoSuchHandle) as refused:
        HandleReference.parse("r1#moon")
    assert str(refused.value) == "a handle is not usable: a pointer is empty or starts with /"


def test_handles_are_found_wherever_they_stand_in_an_argument() -> None:
    found = find_references(
        {"plain": "r1#", "one": ref(), "list": [1, [ref("r2#")], {"k": ref()}], "none": [{"k": 1}], "empty": {}}
    )
    assert {name: set(references) for name, references in found.items()} == {"one": {R1}, "list": {R1, R2}}
    assert len(found["list"]) == 2


@pytest.mark.parametrize("broken", [{"$ref": "r1#", "more": 1}, {"$ref": {"$ref": "r1#"}}, {"$ref": None}])
def test_an_object_with_the_key_and_anything_else_is_a_broken_handle(broken: dict[str, Any]) -> None:
    with pytest.raises(NoSuchHandle):
        find_references({"a": [broken]})


def test_a_call_holds_only_so_many_handles() -> None:
    assert len(find_references({"a": [ref()] * (MAX_HANDLES - 1), "b": ref()})["a"]) == MAX_HANDLES - 1
    with pytest.raises(NoSuchHandle, match=f"at most {MAX_HANDLES}"):
        find_references({"a": [ref()] * MAX_HANDLES, "b": ref()})


def test_values_take_the_place_of_handles_and_are_not_searched_again() -> None:
    values: dict[HandleReference, Any] = {R1: ref("r2#"), R2: 7}
    value = {"a": [ref(), "x"], "b": {"c": ref("r2#")}, "d": 1}
    assert put_values(value, values) == {"a": [ref("r2#"), "x"], "b": {"c": 7}, "d": 1}


@pytest.mark.parametrize(
    ("path", "part"), [((), {"a": [1, {"b": 2}]}), (("a", "0"), 1), (("a", "1", "b"), 2), (("a",), [1, {"b": 2}])]
)
def test_a_path_leads_into_a_value(path: tuple[str, ...], part: Any) -> None:
    assert step_into({"a": [1, {"b": 2}]}, path) == part


@pytest.mark.parametrize("path", [("b",), ("a", "2"), ("a", "-1"), ("a", "x"), ("a", "²"), ("a", "0", "b"), ("a", "٠")])
def test_a_path_that_leads_nowhere_is_no_handle(path: tuple[str, ...]) -> None:
    with pytest.raises(NoSuchHandle) as refused:
        step_into({"a": [1, {"b": 2}]}, path)
    assert str(refused.value) == "there is no such handle in this session"


def test_handles_beside_a_list_inside_a_list_are_found() -> None:
    assert set(find_references({"a": [ref(), [ref("r2#")]]})["a"]) == {R1, R2}
