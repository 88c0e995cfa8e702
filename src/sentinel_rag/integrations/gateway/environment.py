"""`SENTINEL_URL` and `SENTINEL_API_KEY` of the process that imports an adapter.

That process is not ours: the settings of this product (`sentinel_rag.settings`) are not its settings, so these two are
read here, and only where the caller gave no value.
"""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from sentinel_rag.contracts.errors import ConfigurationError

URL, API_KEY = "SENTINEL_URL", "SENTINEL_API_KEY"


def gateway_url(given: str | None) -> str:
    """The gateway's base URL without a slash at its end. Raises ConfigurationError."""
    text = given or os.environ.get(URL, "")  # noqa: TID251  # see above
    if not text:
        raise ConfigurationError(
            "No gateway is named.", next_step=f"Set {URL} to its address, such as http://127.0.0.1:8787."
        )
    try:
        parts = urlsplit(text)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        fine = fine and not (parts.query or parts.fragment or parts.username or parts.password)
    except ValueError:
        fine = False
    if not fine:
        raise ConfigurationError(
            f"{URL} is not the address of a gateway.",
            next_step=f"Set {URL} to an address such as http://127.0.0.1:8787, without user, query or fragment.",
        )
    return text.rstrip("/")


def api_key(given: str | None) -> str:
    """The key of the agent. Raises ConfigurationError."""
    key = given or os.environ.get(API_KEY, "")  # noqa: TID251  # see above
    if not key:
        raise ConfigurationError(
            "There is no key for the gateway.",
            next_step=f"Set {API_KEY} to a key with the scope execute (`sentinel keys create --scope execute`).",
        )
    if not (key.isascii() and key.isprintable()) or key != key.strip():
        raise ConfigurationError(
            f"{API_KEY} holds characters that no key has.", next_step="Copy the key again, without spaces around it."
        )
    return key
