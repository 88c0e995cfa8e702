"""Every policy text that was ever in force, by the hash that audit records name, so that a decision can be replayed."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path

from sentinel_rag.contracts.errors import UnavailableError

_SHA256 = re.compile(r"[0-9a-f]{64}")


class PolicyArchive:
    """The folder `folder`: one file a version, readable by its owner only, never written twice."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, content: bytes) -> None:
        """Store the bytes of a policy file under their hash. Raises UnavailableError if they cannot be written."""
        path = self._path(hashlib.sha256(content).hexdigest())
        if path.exists():
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(dir=self._folder, prefix="new-")
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            Path(name).replace(path)
        except OSError as error:
            raise UnavailableError(
                f"The policy cannot be kept for later replays: {error.strerror or error}.",
                next_step="Check the permissions and free space of the state folder.",
            ) from error

    def find(self, sha256: str) -> bytes | None:
        """The bytes with that hash; None if that version was never kept here, or its file was changed since."""
        if not _SHA256.fullmatch(sha256):
            return None
        try:
            content = self._path(sha256).read_bytes()
        except OSError:
            return None
        return content if hashlib.sha256(content).hexdigest() == sha256 else None

    def _path(self, sha256: str) -> Path:
        return self._folder / f"{sha256}.yaml"
