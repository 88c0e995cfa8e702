"""A log line is one JSON object, and no credential survives in it."""

from __future__ import annotations

import io
import json
import logging
import sys

import pytest

from sentinel_rag.telemetry import JsonFormatter, configure_logging, scrub

CANARY = "S3cr3tCanaryS3cr3tCanaryS3cr3tCanary"


@pytest.mark.parametrize(
    "text",
    [
        f"key sr_agent_{CANARY} refused",
        f"Authorization: Bearer {CANARY}",
        f"authorization: bearer {CANARY}",
        f'{{"X-API-Key": "{CANARY}"}}',
        f"client_secret={CANARY}&grant_type=client_credentials",
        f"token eyJhbGciOiJIUzI1NiJ9.{CANARY}.{CANARY}",
        f"X-IDENTITY-HEADER: {CANARY}",
        f"password='{CANARY}'",
    ],
)
def test_no_credential_survives(text: str) -> None:
    assert CANARY not in scrub(text)
    assert "[secret]" in scrub(text)


@pytest.mark.parametrize(
    "text", ["rule kql_default allowed query_alerts", "GET /healthz 200", "the key audit was revoked"]
)
def test_plain_words_stay(text: str) -> None:
    assert scrub(text) == text


def test_a_traceback_stays_one_line_and_is_scrubbed() -> None:
    try:
        raise RuntimeError(f"upstream said Bearer {CANARY}")
    except RuntimeError:
        record = logging.LogRecord("sentinel_rag.x", logging.ERROR, "", 0, "it %s", ("broke",), sys.exc_info())
    line = JsonFormatter("interceptor").format(record)
    assert "\n" not in line
    assert CANARY not in line
    data = json.loads(line)
    assert (data["zone"], data["level"], data["message"]) == ("interceptor", "ERROR", "it broke")
    assert "RuntimeError" in data["traceback"]


def test_libraries_are_quiet_and_ours_follow_the_level(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    root = logging.getLogger()
    before, handlers = root.level, list(root.handlers)
    try:
        configure_logging("agent", "INFO")
        logging.getLogger("some.library").info("chatter")
        logging.getLogger("sentinel_rag.agent").info("serving")
    finally:
        logging.basicConfig(level=before, handlers=handlers, force=True)
        logging.getLogger("sentinel_rag").setLevel(logging.NOTSET)
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["serving"]
