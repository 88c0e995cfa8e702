"""The receiver's code of docs/approvals.md checks what the gateway signs, and signs what it takes."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sentinel_rag.gateway.approval_webhook import DECISION, NOTICE, is_signed, sign

PAGE = Path(__file__).resolve().parents[3] / "docs" / "approvals.md"
SECRET = "a-shared-secret-of-more-than-32-characters"


def test_the_code_of_the_page_agrees_with_the_interceptor() -> None:
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    now = datetime.now(UTC)
    body = b'{"event":"approval.pending"}'
    assert names["is_genuine"](SECRET, sign(SECRET, NOTICE, body, now), body)
    assert not names["is_genuine"](SECRET, sign(SECRET, NOTICE, body, now), body + b" ")
    assert not names["is_genuine"](SECRET, sign(SECRET, DECISION, body, now), body)
    assert not names["is_genuine"](SECRET, sign(SECRET, NOTICE, body, now - timedelta(seconds=400)), body)
    assert is_signed(SECRET, DECISION, body, names["signature"](SECRET, "decision", int(now.timestamp()), body), now)
