"""A pytest plugin for mutation runs: the laws try fewer examples, always the same ones, and shrink nothing.

A mutant is killed by any failing example; which one, and how small, is of no interest.
"""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings

MOST_EXAMPLES = 60

settings.register_profile(
    "mutation", derandomize=True, database=None, deadline=None, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile("mutation")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        test = getattr(item, "obj", None)
        chosen = getattr(test, "_hypothesis_internal_use_settings", None)
        if chosen is not None and chosen.max_examples > MOST_EXAMPLES:
            test._hypothesis_internal_use_settings = settings(chosen, max_examples=MOST_EXAMPLES)
