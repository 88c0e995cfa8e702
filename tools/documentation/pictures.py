"""The pictures of `docs/pictures/`: the page over the sample estate, as two people use it, taken by the distribution's
Chromium without a window. A picture shows the moment at which it was taken, so no check compares them."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
PEOPLE = {
    "anna": ("analyst",),
    "lee": ("analyst", "approver", "auditor"),
    "olga": ("analyst", "approver", "admin"),
}
SENTINEL = Path(sys.executable).parent / "sentinel"
PASSWORD = "lantern over wet gravel"  # of accounts that live as long as this run
WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
LONGEST_WAIT_MS = 60_000
TREND = "how many alerts per day in the last two weeks?"
WATCHLIST = "Account,Why\nasa.oberg@woodgrove.example,on call\nsiobhan.o'brien@woodgrove.example,finance\n"
CHANGE = "close incident 127 as benign positive, suspicious but expected"


def take(repository: Path) -> int:
    """Write every picture anew. 1 where there is no browser."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        print("There is no Chromium; run: make browser")
        return 1
    folder = repository / "docs" / "pictures"
    folder.mkdir(exist_ok=True)
    arguments = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with tempfile.TemporaryDirectory() as home, _served(Path(home)) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        try:
            for name, page in _views(browser, url):
                _settled(page)
                _keep(page.screenshot(), folder / f"{name}.png")
                print(f"docs/pictures/{name}.png is written")
        finally:
            browser.close()
    return 0


def _views(browser: Browser, url: str) -> Iterator[tuple[str, Page]]:
    """The page in each view, with the name of its picture."""
    anna = _signed_in(browser, url, "anna", WIDE, "light")
    for name, address in {"home": "home", "incidents": "incidents", "incident": "incidents/124"}.items():
        yield name, _at(anna, address)
    yield "ask", _asked(_at(anna, "chat"), TREND)
    drawn = _at(anna, "hunt/signins_by_country")
    drawn.get_by_role("button", name="Run").click()
    yield "kql", drawn
    yield "confirm", _asked(_at(anna, "chat"), CHANGE)
    lee = _signed_in(browser, url, "lee", WIDE, "light")
    waiting = _at(lee, "approvals")
    waiting.get_by_role("region", name="Waiting").get_by_role("link").first.click()
    waiting.get_by_role("heading", name="Evidence about 127").wait_for()
    yield "approval", waiting
    dark = _signed_in(browser, url, "lee", WIDE, "dark")
    yield "incident-dark", _at(dark, "incidents/124")
    yield "ask-dark", _asked(_at(dark, "chat"), TREND)
    olga = _signed_in(browser, url, "olga", WIDE, "light")
    for name in ("dashboard", "knowledge", "users", "system"):
        yield name, _at(olga, name)
    yield "data", _with_watchlist(_at(olga, "data"))
    report = _at(olga, "dashboard")
    report.get_by_role("button", name="Report").click()
    yield "report", report
    phone = _signed_in(browser, url, "anna", NARROW, "light")
    yield "phone-home", _at(phone, "home")
    yield "phone-incident", _at(phone, "incidents/124")


def _signed_in(browser: Browser, url: str, name: str, size: dict[str, int], scheme: Any) -> Page:
    context = browser.new_context(
        viewport={"width": size["width"], "height": size["height"]},
        color_scheme=scheme,
        timezone_id="UTC",
        reduced_motion="reduce",
    )
    context.set_default_timeout(LONGEST_WAIT_MS)
    page = context.new_page()
    page.goto(url)
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("navigation", name="Views").wait_for()
    return page


def _at(page: Page, address: str) -> Page:
    page.evaluate("address => { location.hash = '/' + address; }", address)
    page.mouse.move(0, 0)  # so that no row looks pointed at
    return page


def _asked(page: Page, question: str) -> Page:
    box = page.get_by_role("textbox", name="Question")
    box.fill(question)
    box.press("Enter")
    page.locator("article.answered").last.wait_for()
    return page


def _with_watchlist(page: Page) -> Page:
    lists = page.get_by_role("region", name="Watchlists")
    lists.locator("input[type=file]").set_input_files(
        {"name": "VIPUsers.csv", "mimeType": "text/csv", "buffer": WATCHLIST.encode()}
    )
    lists.get_by_text("Items", exact=True).click()
    lists.get_by_role("table").wait_for()
    return page


def _keep(picture: bytes, path: Path) -> None:
    """Write a picture with a palette: a third of the size, and the eye sees the same."""
    from PIL import Image

    drawn = Image.open(io.BytesIO(picture)).convert("RGB")
    drawn.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(path, optimize=True)


def _settled(page: Page) -> None:
    """Wait until the view is drawn and reads nothing any more."""
    for _ in range(3):  # what one reading brings may begin another
        page.evaluate("() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        page.get_by_text(re.compile(r"^(Reading|Looking for).*\.\.\.$|entities looked for")).first.wait_for(
            state="detached"
        )
        page.locator("[aria-busy=true]").first.wait_for(state="detached")


@contextmanager
def _served(home: Path) -> Iterator[str]:
    """The product over a new sample estate in `home`, with the accounts, for the block; the address of its page."""
    _run(home, "workspace", "generate")
    for name, roles in PEOPLE.items():
        given = [part for role in roles for part in ("--role", role)]
        _run(home, "users", "add", name, "--password-stdin", "--clearance", "HIGH", *given, stdin=f"{PASSWORD}\n")
    command = [SENTINEL, "up", "--web", "--json"]
    with subprocess.Popen(command, env=_environment(home), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            said = json.loads(process.stdout.readline() or "{}")
            if not said:
                raise RuntimeError("the product did not start")
            _run(home, "knowledge", "ingest", "--days", "3650")
            yield str(said["web"]["url"])
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _run(home: Path, *arguments: str, stdin: str = "") -> None:
    subprocess.run([SENTINEL, *arguments], env=_environment(home), input=stdin, text=True, check=True)


def _environment(home: Path) -> dict[str, str]:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("SENTINEL_")}
    return {**kept, "SENTINEL_HOME": str(home)}
