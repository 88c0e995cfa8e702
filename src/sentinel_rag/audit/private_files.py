"""Files that only their owner may read, made without touching one that is there."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def create_private(path: Path) -> None:
    """An empty file with mode 0600, unless there is one. Raises OSError.

    One that is there is not opened: to close it again would drop the locks that this process holds on it.
    """
    if not path.exists():
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
