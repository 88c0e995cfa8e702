"""The ids of calls and of approvals: each is made for how it is used."""

from __future__ import annotations

import uuid

from sentinel_rag.gateway.store import new_audit_id
from sentinel_rag.gateway.store.state import new_approval_id


def test_audit_ids_are_uuids_in_order_of_time_and_no_two_are_equal() -> None:
    made = [uuid.UUID(new_audit_id()) for _ in range(2_000)]
    assert {(one.version, one.variant) for one in made} == {(7, uuid.RFC_4122)}
    milliseconds = [one.int >> 80 for one in made]
    assert milliseconds == sorted(milliseconds)
    assert len(set(made)) == len(made)
    # What is not time is random: of so many ids each of its bits is set in some and not in others.
    either = [0, 0]
    for one in made:
        either[0] |= one.int
        either[1] |= ~one.int
    free = ((1 << 12) - 1) << 64 | (1 << 62) - 1
    assert either[0] & free == either[1] & free == free


def test_approvals_made_at_one_moment_differ_in_their_first_characters() -> None:
    assert len({new_approval_id()[:8] for _ in range(200)}) == 200
