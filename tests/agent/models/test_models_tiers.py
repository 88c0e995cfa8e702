"""The tier rule: small for simple questions, large for hard ones, and every choice says its one reason."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel_rag.agent.models.retrying import (
    QuestionFeatures,
    Tier,
    TierChoice,
    TierReason,
    choose_tier,
    features_of,
)
from sentinel_rag.contracts.ports import MAX_QUESTION_CHARACTERS

pytestmark = pytest.mark.requirement("OPS-3")

SIMPLE = (
    "Welche Vorfälle sind offen?",
    "¿Cuántas alertas hay?",
    "How many high severity incidents are open?",
    "Show the alerts of the last 24 hours",
    "list incidents from yesterday",
    "Which connections did the firewall block?",
    "Can you close incidents?",
    "What is incident 42?",
    "Which tables are there?",
    "Is there an alert on host WEB-01?",
    "No incidents since Monday?",
    "top 5 accounts by alerts",
    "when was 10.0.0.4 first seen?",
)
HARD = {
    "Why was incident 42 raised?": TierReason.REASONING,
    "Compare this week with the last one": TierReason.REASONING,
    "What happened on WEB-01 before the alert fired?": TierReason.REASONING,
    "Walk me through incident 124 in time order and tell me patient zero": TierReason.REASONING,
    "Erkläre mir Vorfall 124": TierReason.REASONING,
    "¿Por qué es High el incidente 124?": TierReason.REASONING,
    "Pourquoi l'incident 124 est-il High ?": TierReason.REASONING,
    "Should we escalate incident 7?": TierReason.REASONING,
    "Close incident 42 as a false positive": TierReason.ACTION,
    "Add a comment to incident 9: checked": TierReason.ACTION,
    "Is 10.0.0.4 related to the ransomware alerts?": TierReason.REASONING,
    "List the incidents of today; show their alerts; name the hosts": TierReason.SEVERAL_PARTS,
    "Which host was first? Which account was used?": TierReason.SEVERAL_PARTS,
    "name every host, " * 25: TierReason.LONG_QUESTION,
}


@pytest.mark.parametrize("question", SIMPLE)
def test_simple_questions_go_to_the_small_model(question: str) -> None:
    assert choose_tier(features_of(question)) == TierChoice(Tier.SMALL, TierReason.SIMPLE)


@pytest.mark.parametrize("question", HARD, ids=lambda text: text[:30])
def test_hard_questions_go_to_the_large_model_for_a_reason(question: str) -> None:
    assert choose_tier(features_of(question)) == TierChoice(Tier.LARGE, HARD[question])


@pytest.mark.parametrize(
    ("question", "history", "choice"),
    [
        ("No, that is wrong", {"last_tier": Tier.SMALL}, TierReason.CONTESTED),
        ("are you sure", {"last_tier": Tier.SMALL}, TierReason.CONTESTED),
        ("How many alerts?", {"last_tier": Tier.SMALL, "last_failed": True}, TierReason.LAST_FAILED),
        ("How many alerts?", {"rounds": 3}, TierReason.MANY_ROUNDS),
        ("How many alerts?", {"context_tokens": 32_001}, TierReason.LONG_CONTEXT),
        ("Show its alerts", {"last_tier": Tier.LARGE}, TierReason.FOLLOW_UP),
        ("[2]", {"last_tier": Tier.LARGE}, TierReason.FOLLOW_UP),
        ("Show its alerts", {"last_tier": Tier.SMALL}, TierReason.SIMPLE),
        ("How many alerts?", {"last_tier": Tier.LARGE}, TierReason.SIMPLE),
        ("How many alerts?", {"rounds": 2, "context_tokens": 32_000}, TierReason.SIMPLE),
    ],
)
def test_the_conversation_counts_too(question: str, history: dict[str, Any], choice: TierReason) -> None:
    assert choose_tier(features_of(question), **history).reason is choice


def test_a_further_reason_never_leads_back_to_the_small_model() -> None:
    flags = (False, True)
    for words, parts, reasons, acts, contests, back, rounds, failed in product(
        (5, 80), (1, 3), *[flags] * 4, (0, 5), flags
    ):
        question = QuestionFeatures(words, parts, reasons, acts, contests, back)
        large = choose_tier(question, last_tier=Tier.SMALL, last_failed=failed, rounds=rounds).tier is Tier.LARGE
        assert large is (words > 60 or parts > 1 or reasons or acts or contests or failed or rounds >= 3)


@given(st.text(max_size=MAX_QUESTION_CHARACTERS))
@settings(max_examples=50, deadline=None)
def test_any_text_has_a_tier(question: str) -> None:
    features = features_of(question)
    assert features.parts >= 1
    assert choose_tier(features) == choose_tier(features)


def test_the_page_states_the_rule_as_the_code_has_it() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "models.md").read_text()
    stated = re.findall(r"^\d+\. (.+?)(?: \(.*\))?\.?$", page.partition("## Which model answers")[2], re.MULTILINE)
    assert stated == [reason.value for reason in TierReason if reason is not TierReason.SIMPLE]
