"""Links that sign in whoever runs this home: each once, for an hour, made of the run's secret.

Whoever can read `run/zones.json` can make one, and owns the data anyway. The web surface is told the secret at its
start and checks what comes; nothing is asked or stored to make a link.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from datetime import datetime, timedelta

from sentinel_rag.contracts.ports import Clock

PATH = "/sign-in/once"
LASTS = timedelta(hours=1)

_FORM = re.compile(r"([0-9a-f]{8})-([0-9a-f]{16})-([0-9a-f]{32})")


def owner_link(secret: str, now: datetime) -> str:
    """The path of a new link."""
    said = f"{int((now + LASTS).timestamp()):08x}-{secrets.token_hex(8)}"
    return f"{PATH}/{said}-{_mac(secret, said)}"


class OwnerLinks:
    """Checks the rest of a link's path, what stands behind `PATH`; each is used once."""

    def __init__(self, secret: str, clock: Clock) -> None:
        self._secret = secret
        self._clock = clock
        self._used: dict[str, int] = {}

    def is_good(self, token: str) -> bool:
        """Whether the link could be used now; looking spends nothing."""
        match = _FORM.fullmatch(token)
        if match is None:
            return False
        genuine = hmac.compare_digest(_mac(self._secret, f"{match[1]}-{match[2]}"), match[3])
        return genuine and int(match[1], 16) > self._clock().timestamp() and match[2] not in self._used

    def use(self, token: str) -> bool:
        """Spend the link; whether it was good."""
        if not self.is_good(token):
            return False
        ends, nonce, _ = token.split("-")
        now = self._clock().timestamp()
        self._used = {used: end for used, end in self._used.items() if end > now} | {nonce: int(ends, 16)}
        return True


def _mac(secret: str, said: str) -> str:
    return hmac.new(secret.encode(), f"owner link {said}".encode(), hashlib.sha256).hexdigest()[:32]
