"""The settings of approvals: what is refused at start, and that no secret of theirs is ever printed."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from sentinel_rag.app.plan import Ports, plan_zones
from sentinel_rag.contracts.errors import ConfigurationError, UsageError
from sentinel_rag.settings import Settings, load_settings

SECRET = "s" * 32
URL = "SENTINEL_APPROVAL_WEBHOOK_URL"
KEY = "SENTINEL_APPROVAL_WEBHOOK_SECRET"


def load(tmp_path: Path, **environment: str) -> Settings:
    return load_settings({"SENTINEL_HOME": str(tmp_path / "home"), **environment}, tmp_path / "absent")


def test_without_them_nobody_is_told_and_a_call_waits_a_quarter_of_an_hour(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert (settings.approval_ttl_s, settings.approval_webhook_url, settings.approver_key) == (900, None, None)
    assert (settings.approval_webhook_arguments, settings.approval_webhook_decides) == (False, False)


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({URL: "https://hooks.example.com"}, f"{KEY}: is missing"),
        ({URL: "https://hooks.example.com", KEY: "short"}, "shorter than 32"),
        ({URL: "http://hooks.example.com", KEY: SECRET}, "plain http is for this machine only"),
        ({URL: "ftp://hooks.example.com", KEY: SECRET}, "is not an http or https URL"),
        ({URL: "https://user:word@hooks.example.com", KEY: SECRET}, "user name or password"),
        ({URL: "ftp://user:word@hooks.example.com", KEY: SECRET}, "user name or password"),
        ({"SENTINEL_APPROVAL_WEBHOOK_DECIDES": "maybe"}, "is not one of true, false"),
        ({"SENTINEL_APPROVAL_WEBHOOK_ARGUMENTS": "1"}, "is not one of true, false"),
        ({"SENTINEL_APPROVAL_WEBHOOK_FORM": "slack"}, "is not one of json, teams"),
        ({"SENTINEL_APPROVAL_WEBHOOK_FORM": "teams", "SENTINEL_APPROVAL_WEBHOOK_DECIDES": "true"}, "decides nothing"),
        ({"SENTINEL_APPROVAL_WEBHOOK_FORM": "teams", "SENTINEL_APPROVAL_WEBHOOK_ARGUMENTS": "true"}, "no arguments"),
        ({"SENTINEL_APPROVAL_TTL_S": "59"}, "from 60 to 86400"),
        ({"SENTINEL_APPROVAL_TTL_S": "9" * 40}, "from 60 to 86400"),
        ({"SENTINEL_APPROVAL_TTL_S": "-60"}, "from 60 to 86400"),
        ({"SENTINEL_APPROVER_KEY": "short"}, "could be guessed"),
        ({"SENTINEL_URL": "https://gateway.example.com"}, "SENTINEL_API_KEY: is missing"),
    ],
)
def test_what_is_wrong_is_refused_at_start(tmp_path: Path, environment: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        load(tmp_path, **environment)
    [found] = refused.value.problems
    assert problem in found
    assert "word@" not in found


def test_no_secret_is_printed_and_the_interceptor_alone_is_given_the_webhook(tmp_path: Path) -> None:
    key = "an-approvers-key-of-the-tests"
    settings = load(tmp_path, SENTINEL_APPROVER_KEY=key, **{URL: "https://hooks.example.com/a/", KEY: SECRET})
    assert settings.approval_webhook_url == "https://hooks.example.com/a/"
    assert SECRET not in repr(settings)
    assert key not in repr(settings)
    assert "hooks.example.com" not in repr(settings)
    with ExitStack() as stack:
        plan = plan_zones(settings, "default", Ports(), stack)
    assert [zone.name for zone in plan.zones if SECRET in repr((zone.configuration, zone.environment))] == [
        "interceptor"
    ]
    approver = plan.keys["approver"]
    assert [zone.name for zone in plan.zones if approver in repr((zone.configuration, zone.environment))] == [
        "interceptor"
    ]


def test_a_person_who_only_decides_needs_no_key_of_the_agent(tmp_path: Path) -> None:
    settings = load(tmp_path, SENTINEL_URL="https://gateway.example.com", SENTINEL_APPROVER_KEY="k" * 20)
    with ExitStack() as stack, pytest.raises(UsageError, match="the agent has no key"):
        plan_zones(settings, "default", Ports(), stack)
