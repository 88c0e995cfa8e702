"""The id of a home folder, made once and kept in it: who is who where several homes write to one store.

It is no secret and opens nothing. The embedded workspaces of a home have their ids of it, and what is read in from a
folder of this home is told by it from what others read in.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from uuid import UUID, uuid4, uuid5

from sentinel_rag.contracts.errors import UnavailableError

_NAME = "home-id"


def home_id(home: Path) -> UUID:
    """The id of the home folder `home`, made if there is none yet. Raises UnavailableError for a folder that cannot
    keep one, or a file that holds something else."""
    path = home / _NAME
    try:
        if not path.exists():
            _make(path)
        return UUID(path.read_text(encoding="ascii").strip())
    except (OSError, UnicodeError) as error:
        raise UnavailableError(
            f"The id of this home cannot be read or made in {path}: {error}.",
            next_step="Let this user write to the folder, or set SENTINEL_HOME to another one.",
        ) from None
    except ValueError:
        raise UnavailableError(
            f"{path} holds no id.", next_step="Restore the file from a backup, or delete it: then a new one is made."
        ) from None


def embedded_workspace_id(home: Path, name: str) -> str:
    """The GUID of the embedded workspace `name` of a home: another one than in any other home. Raises as `home_id`."""
    return str(uuid5(home_id(home), name))


def _make(path: Path) -> None:
    """Of two processes that make one, the first wins and both read the same."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, fresh = tempfile.mkstemp(dir=path.parent, prefix=f"{_NAME}-")
    try:
        with os.fdopen(handle, "w", encoding="ascii") as stream:
            stream.write(f"{uuid4()}\n")
        os.link(fresh, path)
    except FileExistsError:
        pass
    finally:
        Path(fresh).unlink(missing_ok=True)
