"""Every dependency that reaches a user has a licence that the allow-list takes."""

from __future__ import annotations

import pytest
from bench.dependencies import ALLOWED, EXTRAS, NPM_LOCKS, OF_THEIR_OWN, closure, licence_of, npm_packages, permitted

pytestmark = pytest.mark.requirement("OPS-1")


@pytest.mark.parametrize("extra", ["", *EXTRAS])
def test_no_dependency_has_a_licence_outside_the_allow_list(extra: str) -> None:
    try:
        packages = closure([extra] if extra else [])
    except LookupError as missing:
        assert extra in OF_THEIR_OWN  # an extra with a folder of its own, which only `make test` fills
        pytest.skip(f"{missing} is not installed here")
    assert len(packages) > 60
    refused = {name: licence_of(each) for name, each in packages.items() if not permitted(name, licence_of(each))}
    assert refused == {}


@pytest.mark.parametrize("lock", NPM_LOCKS.values(), ids=NPM_LOCKS)
def test_no_npm_package_has_one_either(lock: object) -> None:
    packages = npm_packages(lock)
    assert packages
    assert {name: each for name, (_, each) in packages.items() if not permitted(name, each)} == {}


def test_the_allow_list_refuses_what_it_should() -> None:
    assert permitted("x", "Apache-2.0 OR GPL-3.0-only")
    assert permitted("x", "(MIT AND BSD-3-Clause)")
    assert permitted("x", "Apache-2.0 WITH LLVM-exception")
    for licence in ("", "GPL-3.0-only", "MIT AND AGPL-3.0-only", "LGPL-3.0-only", "SSPL-1.0", "Proprietary", "UNKNOWN"):
        assert not permitted("x", licence)
    assert not any("GPL" in each or each.startswith("CC-BY") for each in ALLOWED)
