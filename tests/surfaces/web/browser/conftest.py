"""A real browser at the page, over the running web surface of the folder above.

Whatever a test does, its pages must have loaded nothing from elsewhere, broken no rule of the content security policy
and thrown nothing: each visitor is asked at the end.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright
from running_web import RunningWeb
from visitor import Visit, Visitor

from sentinel_rag.contracts.labels import Sensitivity
from sentinel_rag.surfaces.people import Role
from sentinel_rag.surfaces.web.routes.page import load_page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
TRIED = Path(sys.prefix) / "browser-missing"
LONGEST_WAIT_MS = 60_000
"""For a machine that does other things too; nothing waits for it that goes well."""
expect.set_options(timeout=LONGEST_WAIT_MS)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    missing = None if load_page() else "the page is not built; run: make page"
    if CHROMIUM is None:
        missing = "there is no Chromium; run: make browser"
        if TRIED.exists():  # `make test` could not install it here
            pytest.skip(f"no browser on this platform: {TRIED.read_text()[-300:]}")
    if missing is not None:
        if os.environ.get("CI"):
            pytest.fail(f"CI must not skip: {missing}")
        pytest.skip(missing)
    with sync_playwright() as playwright:
        # Its sandbox does not start for root, which CI's container is.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*arguments, "--disable-dev-shm-usage"])
        yield browser
        browser.close()


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
        **options: Any,
    ) -> Visitor:
        context = chromium.new_context(reduced_motion="reduce", **options)
        context.set_default_timeout(LONGEST_WAIT_MS)
        visitor = Visitor(context, url, context.new_page())
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
