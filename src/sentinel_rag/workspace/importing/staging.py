"""The one folder that the database may read, and how a source file gets there.

Every import has a folder of its own under `staging`, named after this process, and removes it at the end; what a
killed process left behind is removed at the next start. The source is linked where the file system allows, else
copied; text in another encoding is rewritten as UTF-8.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sentinel_rag.workspace.importing.source_files import Format, SourceFile
from sentinel_rag.workspace.store import Store


@contextmanager
def staged(store: Store) -> Iterator[Path]:
    """A new folder that SQL may read until the block ends."""
    folder = store.staging.resolve() / f"{os.getpid()}-{secrets.token_hex(8)}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(store: Store) -> None:
    """Remove the folders of processes that are gone: the store is open here, so no other can be importing."""
    for leftover in store.staging.iterdir():
        if not leftover.name.startswith(f"{os.getpid()}-"):
            shutil.rmtree(leftover, ignore_errors=True)


def place(source: SourceFile, folder: Path) -> Path:
    """A readable copy or link of `source` in `folder`, in UTF-8 if it is text."""
    target = folder / f"source{'.parquet' if source.format is Format.PARQUET else '.txt'}"
    if source.encoding in ("utf-8", "utf-8-sig", "binary"):
        try:
            os.link(source.path.resolve(), target)
        except OSError:
            shutil.copyfile(source.path, target)
        return target
    with (
        source.path.open(encoding=source.encoding, errors="replace", newline="") as text,
        target.open("w", encoding="utf-8", newline="") as utf8,
    ):
        shutil.copyfileobj(text, utf8, 1 << 20)
    return target
