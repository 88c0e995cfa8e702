"""The distribution's Chromium, without a window, for tests of the web page.

`make browser` installs it and keeps the reason where it could not; `make page` builds what it shows.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import sentinel_rag

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LONGEST_WAIT_MS = 300_000
"""For a machine that does other things too; nothing waits for it that goes well."""
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first opens a page with a quarter of the work: it has no windows to draw."""
PAGE = Path(sentinel_rag.__file__).parent / "surfaces" / "web" / "page" / "index.html"
REASON = Path(sys.prefix) / "browser-missing"


def program() -> str | None:
    """The path of the browser; None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def missing() -> str | None:
    """What the tests lack, in a sentence; None if nothing."""
    if not PAGE.exists():
        return "the page is not built; run: make page"
    return None if program() else "there is no Chromium; run: make browser"


def reason_of_platform() -> str | None:
    """Why this platform has no Chromium, if `make browser` tried and could not install it."""
    return REASON.read_text(errors="replace")[-300:] if program() is None and REASON.exists() else None


@contextmanager
def running_chromium() -> Iterator[Browser]:
    """The browser, for the length of the block."""
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=LONGEST_WAIT_MS)
    # Its sandbox does not start for root, which the container of CI is.
    arguments = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=arguments)
        try:
            yield browser
        finally:
            browser.close()
