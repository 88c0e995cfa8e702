"""The parts of a result: which pattern decides where, against a slow reference that tries every place."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import product
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel_rag.contracts.labels import BOTTOM, TOP, Integrity, Label, Sensitivity
from sentinel_rag.gateway.flow.view import view_of
from sentinel_rag.gateway.policy.model import (
    MAX_SEGMENTS,
    NO_FIELDS,
    UNDECLARED,
    Exposure,
    FieldExposure,
    FieldLabel,
    ResultFields,
    covers,
    parse_pointer,
    pointer_text,
)

NAMES = ("a", "b", "other")  # no pattern names the last one
PLACES = [place for length in range(4) for place in product(NAMES, repeat=length)]
DEEP = [place for length in range(5) for place in product(NAMES, repeat=length)]

patterns = st.lists(st.sampled_from(["a", "b", "*"]), max_size=3).map(tuple)
labels = st.builds(Label, st.sampled_from(Sensitivity), st.sampled_from(Integrity))
declared = st.builds(
    ResultFields,
    st.lists(st.builds(FieldLabel, patterns, labels), max_size=4).map(tuple),
    st.lists(st.builds(FieldExposure, patterns, st.sampled_from(Exposure)), max_size=4).map(tuple),
)
places = st.sampled_from(PLACES)


def joined(found: list[Label]) -> Label:
    return reduce(Label.join, found, BOTTOM)


def speaks_about(pattern: tuple[str, ...], place: tuple[str, ...]) -> bool:
    head = place[: len(pattern)]
    if len(head) < len(pattern):
        return False
    return all(wanted in {"*", name} for wanted, name in zip(pattern, head, strict=True))


def most_specific(entries: list[Any], place: tuple[str, ...]) -> list[Any]:
    """The longest of those that speak about the place, and of these the ones with the most names written out."""
    found = [entry for entry in entries if speaks_about(entry.path, place)]
    longest = [e for e in found if all(len(e.path) >= len(o.path) for o in found)]
    stars = {id(e): list(e.path).count("*") for e in longest}
    return [e for e in longest if all(stars[id(e)] <= stars[id(o)] for o in longest)]


@pytest.mark.requirement("TAINT-1")
@settings(deadline=None)
@given(declared, places)
def test_the_most_specific_pattern_labels_a_place(fields: ResultFields, place: tuple[str, ...]) -> None:
    deciding = most_specific(list(fields.labels), place)
    expected = joined([entry.label for entry in deciding]) if deciding else UNDECLARED
    assert fields.label_at(place) == expected


@pytest.mark.requirement("TAINT-3")
@settings(deadline=None)
@given(declared, places)
def test_the_most_specific_pattern_exposes_a_place_and_of_equals_the_stricter(
    fields: ResultFields, place: tuple[str, ...]
) -> None:
    modes = [entry.mode for entry in most_specific(list(fields.exposures), place)]
    strictness = [Exposure.REVEAL, Exposure.QUOTE, Exposure.HIDE]
    assert fields.exposure_at(place) is max(modes, key=strictness.index, default=Exposure.REVEAL)


@settings(deadline=None)
@given(declared, places)
def test_the_label_of_a_value_holds_for_all_its_parts(fields: ResultFields, place: tuple[str, ...]) -> None:
    below = [
        entry.label
        for entry in fields.labels
        if len(entry.path) > len(place)
        and any(speaks_about(entry.path, deep) for deep in DEEP if deep[: len(place)] == place)
    ]
    assert fields.label_below(place) == joined([fields.label_at(place), *below])


def reaches(pattern: tuple[str, ...], place: tuple[str, ...]) -> bool:
    """Whether the pattern speaks about a part of the value there, and not about the value."""
    parts = [deep for deep in DEEP if deep[: len(place)] == place]
    return len(pattern) > len(place) and any(speaks_about(pattern, deep) for deep in parts)


@settings(deadline=None)
@given(declared, places)
def test_a_place_tells_what_the_patterns_below_it_tell_apart(fields: ResultFields, place: tuple[str, ...]) -> None:
    below = [entry for entry in (*fields.labels, *fields.exposures) if reaches(entry.path, place)]
    assert fields.reaches_below(place) is bool(below)
    assert fields.names_below(place) == {entry.path[len(place)] for entry in below} - {"*"}
    mode = fields.exposure_at(place)
    others = [entry for entry in fields.exposures if reaches(entry.path, place) and entry.mode is not mode]
    assert fields.is_uniform(place) is not bool(others)
    if not others:
        assert {fields.exposure_at(deep) for deep in DEEP if deep[: len(place)] == place} <= {mode}


@settings(deadline=None)
@given(patterns, places)
def test_covers_means_every_place_below(pattern: tuple[str, ...], place: tuple[str, ...]) -> None:
    assert covers(pattern, place) is speaks_about(pattern, place)


@settings(deadline=None)
@given(patterns, patterns)
def test_a_pattern_covers_another_if_it_covers_each_of_its_places(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    matched = [deep for deep in DEEP if len(deep) == len(other) and speaks_about(other, deep)]
    assert covers(one, other) is all(speaks_about(one, deep) for deep in matched)


def tree(depth: int) -> Any:
    return {name: tree(depth - 1) for name in NAMES} if depth else "leaf"


def shown(part: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], bool]]:
    """The places of the leaves that an agent sees, and whether they are quoted."""
    if isinstance(part, dict):
        if part.keys() == {"$quote"}:
            yield place, True
        elif part.keys() != {"$ref"}:
            for name, child in part.items():
                yield from shown(child, (*place, name))
    else:
        yield place, False


@pytest.mark.requirement("TAINT-2")
@settings(max_examples=100, deadline=None)
@given(declared)
def test_what_is_revealed_is_bounded_before_there_is_a_result(fields: ResultFields) -> None:
    value = tree(4)
    view = view_of(value, msgspec.json.encode(value), fields, BOTTOM, 1)
    seen = dict(shown(msgspec.json.decode(view.encoded)))
    bound = fields.revealed()
    for place, quoted in seen.items():
        assert fields.label_at(place).flows_to(bound)
        assert not quoted or UNDECLARED.flows_to(bound)
    assert bound.flows_to(fields.whole())
    for part in view.hidden:
        assert part.label.flows_to(fields.whole())


@settings(deadline=None)
@given(declared)
def test_all_of_a_result_is_its_labels_and_what_nobody_declared(fields: ResultFields) -> None:
    assert fields.whole() == joined([UNDECLARED, *(entry.label for entry in fields.labels)])
    assert fields.hides is (Exposure.HIDE in [entry.mode for entry in fields.exposures])


SECRET, FOREIGN = Label(Sensitivity.HIGH), Label(integrity=Integrity.UNTRUSTED)
WHOLE_TRUSTED = FieldLabel((), Label())


@pytest.mark.requirement("TAINT-2")
@pytest.mark.parametrize(
    ("exposures", "expected"),
    [
        ([], SECRET.join(FOREIGN)),
        ([("/a", Exposure.HIDE)], FOREIGN),
        ([("/a/*", Exposure.HIDE)], SECRET.join(FOREIGN)),  # hides less than what is secret
        ([("/*", Exposure.HIDE)], FOREIGN),
        ([("/a", Exposure.HIDE), ("/a/b", Exposure.REVEAL)], SECRET.join(FOREIGN)),
        ([("/a", Exposure.HIDE), ("/a", Exposure.REVEAL)], FOREIGN),  # of two modes the stricter
        ([("/a", Exposure.HIDE), ("/*", Exposure.REVEAL)], FOREIGN),
        ([("/*", Exposure.HIDE), ("/a", Exposure.QUOTE)], SECRET.join(FOREIGN)),
        ([("/a", Exposure.HIDE), ("/b/c", Exposure.REVEAL)], FOREIGN),
        ([("", Exposure.HIDE)], BOTTOM),
        ([("", Exposure.HIDE), ("/b", Exposure.REVEAL)], FOREIGN),
    ],
    ids=str,
)
def test_a_hidden_label_is_left_out_only_where_nothing_of_it_can_be_seen(
    exposures: list[tuple[str, Exposure]], expected: Label
) -> None:
    fields = ResultFields(
        (FieldLabel(("a",), SECRET),),
        tuple(FieldExposure(parse_pointer(pointer), mode) for pointer, mode in exposures),
    )
    assert fields.revealed() == expected


def test_a_quoted_part_is_text_of_others_whatever_its_label_says() -> None:
    quoted = ResultFields((WHOLE_TRUSTED,), (FieldExposure(("a",), Exposure.QUOTE),))
    assert quoted.revealed() == UNDECLARED == NO_FIELDS.revealed()


@settings(deadline=None)
@given(st.lists(st.text(max_size=4), max_size=MAX_SEGMENTS).map(tuple))
def test_a_pointer_survives_its_text(path: tuple[str, ...]) -> None:
    assert parse_pointer(pointer_text(path)) == path


@pytest.mark.parametrize(
    ("text", "path"),
    [("", ()), ("/", ("",)), ("/a/b", ("a", "b")), ("/a~1b/~0", ("a/b", "~")), ("/~01", ("~1",))],
)
def test_pointers_are_those_of_rfc_6901(text: str, path: tuple[str, ...]) -> None:
    assert parse_pointer(text) == path
    assert pointer_text(path) == text


@pytest.mark.parametrize("text", ["a", "a/b", "/x" * (MAX_SEGMENTS + 1)])
def test_what_is_no_pointer_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a pointer"):
        parse_pointer(text)
    assert parse_pointer("/x" * MAX_SEGMENTS) == ("x",) * MAX_SEGMENTS


def test_top_is_above_all() -> None:
    assert NO_FIELDS.whole().flows_to(TOP)
