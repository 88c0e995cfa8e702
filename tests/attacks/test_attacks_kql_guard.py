"""Freeform KQL: the attacker writes the query (or talks a model into writing it) and hopes for one of the things in
`kql_guard_corpus`. Each must be refused by either parser, before anything runs; honest queries must pass.

The guard writes no audit record itself: the gateway records the call that carries the query, refused or not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from kql_guard_corpus import ALLOWED_BY_BOTH, ALLOWED_BY_MICROSOFT, ATTACKS, READABLE, SCHEMA, Attack
from tests.support.microsoft_parser import microsoft_parser

from sentinel_rag.sentinel.kql_guard import GuardReport, KqlGuard

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("TOOL-5")]


@pytest.fixture(scope="module", params=["microsoft", "fallback"])
async def guard(request: pytest.FixtureRequest) -> AsyncIterator[KqlGuard]:
    if request.param == "fallback":
        fallback = KqlGuard(None)
        yield fallback
        await fallback.close()
        return
    with microsoft_parser() as parser:
        yield KqlGuard(parser)


async def judged(guard: KqlGuard, attack: Attack) -> GuardReport:
    return await guard.check(
        attack.kql,
        SCHEMA,
        time_bounded=attack.bounded,
        row_cap=100 if attack.bounded else None,
        allowed_tables=READABLE,
    )


async def test_each_is_refused_with_a_reason_in_its_place(guard: KqlGuard, subtests: pytest.Subtests) -> None:
    for attack in ATTACKS:
        with subtests.test(attack.kql[:60].encode("ascii", "backslashreplace").decode()):
            report = await judged(guard, attack)
            assert not report.allowed, f"the author hoped to {attack.hope}"
            lines = attack.kql.split("\n")
            for problem in report.errors:
                assert problem.message.endswith((".", "?"))
                assert "\n" not in problem.message
                assert 1 <= problem.line <= len(lines)
                assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1


async def test_the_caller_s_vouching_changes_nothing_about_content(guard: KqlGuard) -> None:
    """With neither window nor cap, whatever was refused for its content is refused as well."""
    for attack in ATTACKS:
        if attack.bounded and "let a0 = union" not in attack.kql:
            report = await guard.check(attack.kql, SCHEMA, allowed_tables=READABLE)
            assert not report.allowed, attack.kql


async def test_honest_queries_pass(guard: KqlGuard, request: pytest.FixtureRequest) -> None:
    microsoft = "microsoft" in request.node.name
    for kql in ALLOWED_BY_MICROSOFT if microsoft else ALLOWED_BY_BOTH:
        report = await guard.check(kql, SCHEMA, allowed_tables=READABLE)
        assert report.errors == (), kql
        assert report.parser == ("microsoft" if microsoft else "fallback")


async def test_a_table_that_may_not_be_read_is_not_told_apart_by_its_columns(guard: KqlGuard) -> None:
    """Whether a column of a forbidden table exists must not matter for the verdict."""
    for column in ("Salary_d", "Bonus_d"):
        report = await judged(guard, Attack("learn the schema", f"Payroll_CL | project {column} | take 1"))
        assert "table_not_allowed" in {each.code for each in report.errors}


async def test_every_attack_family_is_told_by_a_code_of_its_own() -> None:
    """The official parser's reasons, so that a refusal for a side reason does not pass for the right one."""
    expected = {
        "externaldata(a:string)['https://evil.example/x.csv']": "syntax_not_allowed",
        "SigninLogs | take 1 | evaluate http_request('https://evil.example')": "plugin_not_allowed",
        "database('other').SecurityEvent | take 5": "function_not_allowed",
        "workspace('other-customer').SigninLogs | take 5": "function_not_allowed",
        "union * | take 5": "wildcard_tables",
        "search 'password' | take 5": "all_tables",
        "table(strcat('Payroll', '_CL')) | take 5": "table_not_literal",
        "['Payroll_CL'] | take 5": "table_not_allowed",
        ".show tables": "command",
        "set notruncation; SigninLogs | take 5": "statement_not_allowed",
        "print current_principal()": "function_not_allowed",
        "SigninLogs | take 1; SecurityEvent | take 1": "several_queries",
        "SigninLogs \u200b| take 5": "hidden_character",
        "SigninLogs | where LogLevel == 'Error' | take 5": "unknown_column",
        "SignInLogs | take 5": "unknown_table",
    }
    with microsoft_parser() as parser:
        guard = KqlGuard(parser)
        for kql, code in expected.items():
            assert code in {each.code for each in (await judged(guard, Attack("", kql))).errors}, kql
        unbounded = Attack("", "DeviceProcessEvents | where Timestamp > ago(1d) | take 5", bounded=False)
        assert [each.code for each in (await judged(guard, unbounded)).errors] == ["not_time_bounded"]
