"""A pytest plugin for mutation runs: the laws try fewer examples, always the same ones, and shrink nothing.

A mutant is killed by any failing example; which one, and how small, is of no interest. Each is tried in a copy of
a process that has run every test with the code as it is, so what that one remembers is forgotten: the results of
cached functions, and the test modules with the policies and values that they made when they were read.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings

MOST_EXAMPLES = 60

settings.register_profile(
    "mutation", derandomize=True, database=None, deadline=None, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile("mutation")

_caches: list[Any] = []


def pytest_configure(config: pytest.Config) -> None:
    tests = str(config.rootpath / "tests")
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None and Path(file).is_relative_to(tests):
            del sys.modules[name]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        test = getattr(item, "obj", None)
        chosen = getattr(test, "_hypothesis_internal_use_settings", None)
        if chosen is not None and chosen.max_examples > MOST_EXAMPLES:
            test._hypothesis_internal_use_settings = settings(chosen, max_examples=MOST_EXAMPLES)
    product = [module for name, module in list(sys.modules.items()) if name.startswith("sentinel_rag")]
    _caches[:] = [each for module in product for each in vars(module).values() if hasattr(each, "cache_clear")]


def pytest_runtest_setup() -> None:
    for each in _caches:
        each.cache_clear()
