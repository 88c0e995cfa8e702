"""A sentence read into a frame: features over types, out of words that are data. Pure."""

from sentinel_rag.language.frames.frame import Frame, WorkspaceNames
from sentinel_rag.language.frames.reader import Reader, part_of, part_with

__all__ = ["Frame", "Reader", "WorkspaceNames", "part_of", "part_with"]
