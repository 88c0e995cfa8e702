"""Labels form a lattice: what the gate does with joins rests on these laws and on nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.contracts.labels import BOTTOM, TOP, Integrity, Label, Sensitivity, join_all

labels = st.builds(Label, st.sampled_from(Sensitivity), st.sampled_from(Integrity))


@given(labels, labels, labels)
def test_join_is_associative_commutative_and_idempotent(a: Label, b: Label, c: Label) -> None:
    assert a.join(b).join(c) == a.join(b.join(c))
    assert a.join(b) == b.join(a)
    assert a.join(a) == a


@given(labels, labels, labels)
def test_join_is_the_least_upper_bound(a: Label, b: Label, c: Label) -> None:
    joined = a.join(b)
    assert a.flows_to(joined)
    assert b.flows_to(joined)
    if a.flows_to(c) and b.flows_to(c):
        assert joined.flows_to(c)


@given(labels, labels, labels)
def test_flows_to_is_a_partial_order(a: Label, b: Label, c: Label) -> None:
    assert a.flows_to(a)
    if a.flows_to(b) and b.flows_to(a):
        assert a == b
    if a.flows_to(b) and b.flows_to(c):
        assert a.flows_to(c)


@given(labels, labels)
def test_order_and_join_agree(a: Label, b: Label) -> None:
    assert a.flows_to(b) is (a.join(b) == b)


@given(labels)
def test_bottom_and_top(a: Label) -> None:
    assert BOTTOM.flows_to(a)
    assert a.flows_to(TOP)
    assert a.join(BOTTOM) == a
    assert a.join(TOP) == TOP


@given(st.lists(labels), labels)
def test_a_join_of_many_never_falls(many: list[Label], one: Label) -> None:
    assert join_all(many).flows_to(join_all([*many, one]))


def test_secrecy_and_integrity_are_independent() -> None:
    secret, foreign = Label(Sensitivity.HIGH), Label(integrity=Integrity.UNTRUSTED)
    assert not secret.flows_to(foreign)
    assert not foreign.flows_to(secret)
    assert secret.join(foreign) == TOP


@given(labels)
def test_a_label_survives_the_wire(a: Label) -> None:
    assert Label.from_dict(a.to_dict()) == a


@pytest.mark.parametrize("data", [{}, {"sensitivity": "LOW"}, {"sensitivity": "low", "integrity": "TRUSTED"}])
def test_an_unknown_label_is_refused(data: dict[str, str]) -> None:
    with pytest.raises(KeyError):
        Label.from_dict(data)
