"""A real browser at the page, over the running web surface of the folder above.

Whatever a test does, its pages must have loaded nothing from elsewhere, broken no rule of the content security policy
and thrown nothing: each visitor is asked at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser
from running_web import RunningWeb
from tests.support.chromium import LONGEST_WAIT_MS
from visitor import Visit, Visitor

from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.surfaces.users import Role


@pytest.fixture
def visit(chromium: Browser, web: RunningWeb) -> Iterator[Visit]:
    """Opens the page: `visit()` as a stranger, `visit("dana", Role.ANALYST)` as somebody who signs in there."""
    visitors: list[Visitor] = []

    def begin(
        name: str | None = None,
        *roles: Role,
        clearance: Sensitivity = Sensitivity.HIGH,
        url: str = web.url,
        at: str = "/",
        provider: str = "",
        **options: Any,
    ) -> Visitor:
        context = chromium.new_context(reduced_motion="reduce", **options)
        context.set_default_timeout(LONGEST_WAIT_MS)
        visitor = Visitor(context, url, context.new_page(), provider=provider)
        visitor.watched(visitor.page)
        visitors.append(visitor)
        visitor.page.goto(url + at)
        if name is not None:
            if name not in web.accounts:
                web.add(name, *roles, clearance=clearance)
            visitor.sign_in(name)
        return visitor

    yield begin
    for visitor in visitors:
        visitor.context.close()
    assert [fault for visitor in visitors for fault in visitor.faults] == []
