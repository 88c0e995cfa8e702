"""Laws of the KQL guard: what is refused stays refused however it is spelt, and spelling changes no verdict."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.microsoft_parser import microsoft_parser

from sentinel_rag.sentinel.kql_guard import GuardReport, KqlGuard

sys.path.insert(0, str(Path(__file__).parent.parent / "attacks"))
from kql_guard_corpus import (
    ALLOWED_BY_BOTH,
    ALLOWED_BY_MICROSOFT,
    ATTACKS,
    READABLE,
    SCHEMA,
    Attack,
)

pytestmark = pytest.mark.requirement("TOOL-5")

# What is refused for its length or its parser's time says nothing about spelling, and slow ones would hold up the law.
REFUSED = [attack for attack in ATTACKS if attack.kql.strip() and len(attack.kql) < 400]
_SPACE = re.compile(r" (?=(?:[^'\"`]*'[^'\"`]*')*[^'\"`]*$)")
_spaces = st.sampled_from([" ", "  ", "\n", "\t", "\r\n", " // noted\n", "\n// it's a note\n "])


@pytest.fixture(scope="module", params=["microsoft", "fallback"])
def guard(request: pytest.FixtureRequest) -> Iterator[KqlGuard]:
    if request.param == "fallback":
        yield KqlGuard(None)
        return
    with microsoft_parser() as parser:
        yield KqlGuard(parser)


def verdict(guard: KqlGuard, kql: str, *, bounded: bool) -> GuardReport:
    async def ask() -> GuardReport:
        return await guard.check(
            kql, SCHEMA, time_bounded=bounded, row_cap=100 if bounded else None, allowed_tables=READABLE
        )

    return anyio.run(ask)


def respelt(draw: st.DrawFn, kql: str) -> str:
    """Other white space and comments between words, where there was a space outside of quotes."""
    return _SPACE.sub(lambda _: draw(_spaces), kql) if "//" not in kql and "\n" not in kql else kql


@st.composite
def refused_spellings(draw: st.DrawFn) -> tuple[Attack, str]:
    attack = draw(st.sampled_from(REFUSED))
    kql = respelt(draw, attack.kql)
    for _ in range(draw(st.integers(0, 2))):
        kql = draw(
            st.sampled_from([kql.strip(), f" \n{kql}", f"// ask nicely\n{kql}", f"{kql}\n", f"{kql} // the end"])
        )
    if draw(st.booleans()) and not kql.lstrip().startswith((".", "set", "declare", "alias", "restrict", "//")):
        kql = f"let unused = 1;\n{kql}"
    return attack, kql


@given(spelling=refused_spellings())
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_is_refused_stays_refused(guard: KqlGuard, spelling: tuple[Attack, str]) -> None:
    attack, kql = spelling
    assert not verdict(guard, kql, bounded=attack.bounded).allowed


@given(data=st.data())
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
def test_other_white_space_and_comments_change_no_verdict(
    guard: KqlGuard, request: pytest.FixtureRequest, data: st.DataObject
) -> None:
    microsoft = "microsoft" in request.node.name
    kql = data.draw(st.sampled_from(ALLOWED_BY_MICROSOFT if microsoft else ALLOWED_BY_BOTH))
    spelt = respelt(data.draw, kql)
    report = verdict(guard, spelt, bounded=False)
    assert report.allowed, (spelt, report.problems)
    assert report.tables == verdict(guard, kql, bounded=False).tables


@given(data=st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_name_given_by_let_hides_no_table_and_no_missing_filter(guard: KqlGuard, data: st.DataObject) -> None:
    """However many names stand between a table and its use, reading it unfiltered or at all is seen."""
    table = data.draw(st.sampled_from(["Payroll_CL", "SecurityEvent"]))
    depth = data.draw(st.integers(1, 5))
    names = [f"n{number}" for number in range(depth)]
    lets = "".join(f"let {name} = {before};\n" for name, before in zip(names, [table, *names], strict=False))
    filtered = data.draw(st.booleans())
    kql = f"{lets}{names[-1]}{' | where TimeGenerated > ago(1d)' if filtered else ''} | take 5"
    report = verdict(guard, kql, bounded=False)
    assert report.tables == {table}
    assert report.allowed == (filtered and table == "SecurityEvent")


@given(junk=st.text(min_size=1, max_size=60))
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_text_gets_a_report(guard: KqlGuard, junk: str) -> None:
    """No text makes the guard raise; what it lets through reads no table that it does not name."""
    report = verdict(guard, f"SigninLogs | where UserPrincipalName == {junk}", bounded=True)
    assert report.tables <= READABLE or not report.allowed
