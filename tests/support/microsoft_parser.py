"""Microsoft's KQL parser for tests: never silently left out.

In CI a missing parser fails the test; elsewhere it is skipped with the reason and the command that installs it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sentinel_rag.sentinel.kql_guard.official_parser import OfficialParser, installed_parser, parser_state


@contextmanager
def microsoft_parser(*, timeout_s: float = 20.0) -> Iterator[OfficialParser]:
    """The installed parser, closed at the end."""
    parser = installed_parser(timeout_s=timeout_s)
    if parser is None:
        state = parser_state()
        reason = f"{state.missing} {state.next_step} (make kql-parser)"
        if os.environ.get("CI"):
            pytest.fail(f"CI must not skip: {reason}")
        pytest.skip(reason)
    try:
        yield parser
    finally:
        parser.close_now()
