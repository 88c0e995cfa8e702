"""Tokens, money and time: exact, added up in any order, and honest about what nobody counted."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel_rag.agent.models.port import ModelUsage, Price, TokenCounts

pytestmark = pytest.mark.requirement("OPS-3")
GPT = Price(Decimal("2.50"), Decimal("10.00"))


def test_a_turn_adds_up():
    first = ModelUsage.of_request("large", TokenCounts(1_000, 200, 500, 50), GPT, 1.5)
    second = ModelUsage.of_request("small", TokenCounts(400, 100), Price(Decimal("0.15"), Decimal("0.60")), 0.5)
    assert (first + second).to_dict() == {
        "requests": 2,
        "input_tokens": 1_400,
        "output_tokens": 300,
        "cached_input_tokens": 500,
        "reasoning_tokens": 50,
        "uncounted_requests": 0,
        "cost_usd": "0.00462",
        "cost_is_whole": True,
        "seconds": 2.0,
        "models": ["large", "small"],
    }


def test_what_has_no_count_or_no_price_is_said():
    counted = ModelUsage.of_request("m", TokenCounts(1_000_000, 0), GPT, 1.0)
    uncounted = ModelUsage.of_request("m", None, GPT, 1.0)
    both = counted + uncounted
    assert (both.uncounted, both.unpriced, both.cost) == (1, 1, Decimal("2.50"))
    assert ModelUsage.of_request("m", TokenCounts(5, 5), None, 1.0).to_dict()["cost_usd"] is None
    assert ModelUsage().to_dict()["cost_usd"] is None


def test_a_thousand_small_costs_lose_nothing():
    total = sum((ModelUsage.of_request("m", TokenCounts(1, 1), GPT, 0.0) for _ in range(1_000)), ModelUsage())
    assert total.cost == Decimal("0.0125")
    assert json.loads(json.dumps(total.to_dict()))["cost_usd"] == "0.0125"


_numbers = st.integers(0, 10**9)
_usages = st.builds(
    ModelUsage,
    requests=_numbers,
    tokens=st.builds(TokenCounts, _numbers, _numbers, _numbers, _numbers),
    cost=st.decimals(0, 10**6, places=6),
    seconds=st.integers(0, 10**6).map(float),
    uncounted=_numbers,
    unpriced=_numbers,
    models=st.lists(st.sampled_from("abc"), unique=True).map(tuple),
)


@settings(deadline=None)
@given(_usages, _usages, _usages)
def test_the_order_of_adding_does_not_matter(first: ModelUsage, second: ModelUsage, third: ModelUsage):
    assert (first + second) + third == first + (second + third)
    assert first + ModelUsage() == first == ModelUsage() + first
