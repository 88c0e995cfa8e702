"""A person at a browser of their own, which is watched: what it loads, what it refuses, what it throws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from playwright.sync_api import BrowserContext, ConsoleMessage, Page
from running_web import password_of

REFUSED = ("Content Security Policy", "Content-Security-Policy", "Refused to")


@dataclass(slots=True)
class Visitor:
    """A person at a browser of their own; `page` is the first tab. `provider` is where else the page may lead."""

    context: BrowserContext
    url: str
    page: Page
    faults: list[str] = field(default_factory=list)
    provider: str = ""

    def tab(self) -> Page:
        """Another tab of the same browser."""
        return self.watched(self.context.new_page())

    def watched(self, page: Page) -> Page:
        """The page, from now on asked for its faults."""
        page.on("pageerror", lambda error: self.faults.append(f"thrown: {error}"))
        page.on("dialog", lambda dialog: (self.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("console", lambda message: self._said(message))
        page.on("request", lambda request: self._asked(request.url))
        return page

    def _said(self, message: ConsoleMessage) -> None:
        if any(word in message.text for word in REFUSED):
            self.faults.append(f"said: {message.text}")

    def _asked(self, url: str) -> None:
        if not url.startswith(f"{self.url}/") and not (self.provider and url.startswith(f"{self.provider}/")):
            self.faults.append(f"asked elsewhere: {url}")

    def sign_in(self, name: str) -> None:
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_label("Password").fill(password_of(name))
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("button", name="Sign out", exact=True).wait_for()

    def open_provenance(self) -> None:
        """Open what stands behind the one line below the newest answer."""
        self.page.locator("article.turn").last.locator("details.provenance > summary").click()

    def ask(self, question: str) -> None:
        box = self.page.get_by_role("textbox", name="Question")
        box.fill(question)
        box.press("Enter")


Visit = Callable[..., Visitor]
