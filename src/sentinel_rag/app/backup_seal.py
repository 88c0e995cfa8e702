"""The seal of a backup: HMAC-SHA256 over its manifest, keyed by the pepper of the home that it was made of.

The pepper lies in the backup too, since keys are worth nothing without it. So the seal tells whoever changed a backup
without reading it, and damage; against somebody who can read and write it only a seal that was kept elsewhere helps.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from sentinel_rag.app.state_place import gateway_folder
from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.gateway.store.key_secrets import PEPPER_FILE, Pepper, parse_pepper

_CHANGED = "Take another backup; this one was damaged or changed."


class SealHolds(Enum):
    """By what a backup was found to be as it was made; the value is a sentence for whoever restores it."""

    GIVEN = "Its seal is the one that was given: it is as it was made."
    HOME = (
        "Its seal holds by this home's pepper: it was made of this home, and changed by nobody who could not read it."
    )
    ITSELF = (
        "Its seal holds by the pepper in the backup itself, since this home has none yet: it is not damaged. Only the "
        "seal that was printed when it was made (--seal) tells that nobody has made it anew."
    )
    CHECKSUM = (
        "It is not damaged. It was made of a home without a pepper, so only the seal that was printed when it was made "
        "(--seal) tells that nobody has made it anew."
    )
    NONE = (
        "WARNING: this backup has no seal, as one of an older version. Its files are those of its list, but whoever "
        "can write to it can have changed both."
    )


def pepper_of(home: Path) -> Pepper | None:
    """The pepper of a home, or of a copy of one, whatever modes the copy has; None if there is none."""
    try:
        return parse_pepper((gateway_folder(home) / PEPPER_FILE).read_bytes()[:128])
    except OSError:
        return None


def fingerprint_of(pepper: Pepper | None) -> str:
    """Tells one home's pepper from another's; empty for none."""
    return "" if pepper is None else pepper.fingerprint().hex()


def seal_of(manifest: Mapping[str, Any], pepper: Pepper | None) -> str:
    """The seal of a manifest, 64 hexadecimal digits; without a pepper a checksum that anybody can make."""
    canonical = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
    text = b"sentinel-rag backup\x00" + canonical
    return (hmac.digest(b"", text, "sha256") if pepper is None else pepper.authenticate(text)).hex()


def check_seal(
    manifest: Mapping[str, Any], seal: str, source: Path, home: Path, *, given: str | None = None
) -> SealHolds:
    """Whether the seal of the backup in `source` holds for `home`; `given` is the one that its maker kept elsewhere.

    Raises UnavailableError where it does not, or the backup was made of a home with another pepper and no seal of it
    was given.
    """
    if given is not None:
        # Under the backup's own pepper: no other pepper and manifest have that seal.
        if not seal or seal_of(manifest, pepper_of(source)) != given.strip().lower():
            raise UnavailableError("The backup does not have the seal that was given.", next_step=_CHANGED)
        return SealHolds.GIVEN
    if not seal:
        return SealHolds.NONE
    own, its = pepper_of(home), pepper_of(source)
    if own is not None and fingerprint_of(own) != fingerprint_of(its):
        raise UnavailableError(
            "The backup was made of a home with another pepper than this one, or by somebody who has not this one.",
            next_step="If it is one of yours, give the seal that was printed when it was made: --seal SEAL.",
        )
    if not hmac.compare_digest(seal_of(manifest, own or its), seal):
        raise UnavailableError("The backup is not as it was made: its seal does not hold.", next_step=_CHANGED)
    if own is not None:
        return SealHolds.HOME
    return SealHolds.CHECKSUM if its is None else SealHolds.ITSELF
