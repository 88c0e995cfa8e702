"""The tools that read files of one folder, as plain data. Handlers live in `tools.files`.

Paths are relative to the folder's root, with `/` between their parts. Results are plain objects and not QueryResults: a
file has no rows, no window and no table, and a caller wants its text in one piece and not cut into cells.

file_read   file_path, content, encoding (utf-8, utf-8 with BOM, utf-16-le, ..., or base64), size_bytes (of the
            file), modified (ISO 8601 UTC), unit (characters, or bytes for base64), offset, returned, total (of the
            whole, in the unit), next_offset (null at the end). Content is never cut without next_offset.
file_list   directory (empty for the root), entries [{name, path, type (file, directory, link, other), size_bytes (null
            but for files), modified}] by name, offset, returned, total, next_offset, omitted (entries whose names
            cannot be written as a path: not UTF-8, invisible or look-alike characters). Links are listed and never
            followed.
Both carry `source` ("bundled sample") while the folder is the one that is shipped.
"""

from __future__ import annotations

from sentinel_rag.contracts.tool_calls import ToolSchema

DEFAULT_CHARACTERS = 20_000
MAX_CHARACTERS = 200_000
DEFAULT_ENTRIES = 200
MAX_ENTRIES = 1_000
MAX_PATH_CHARACTERS = 1_000
READ_AS = ("text", "base64")
BUNDLED_SAMPLE = "bundled sample"
"""The `source` of what this product ships itself, so that nobody takes it for the operator's data or for the web."""

FILE_TOOLS: tuple[ToolSchema, ...] = (
    ToolSchema(
        "file_read",
        "Read a file of the files folder, paged by characters (bytes with base64, for what is no text). confidential/ "
        "needs approval.",
        {
            "type": "object",
            "properties": {
                "file_path": {"type": "string", "description": "such as public/handbook.md"},
                "offset": {"type": "integer", "default": 0},
                "limit": {
                    "type": "integer",
                    "maximum": MAX_CHARACTERS,
                    "default": DEFAULT_CHARACTERS,
                },
                "read_as": {"type": "string", "enum": list(READ_AS), "default": READ_AS[0]},
            },
            "required": ["file_path"],
            "additionalProperties": False,
        },
    ),
    ToolSchema(
        "file_list",
        "List a directory of the files folder: public or confidential.",
        {
            "type": "object",
            "properties": {
                "directory": {"type": "string"},
                "offset": {"type": "integer", "default": 0},
                "limit": {"type": "integer", "maximum": MAX_ENTRIES, "default": DEFAULT_ENTRIES},
            },
            "additionalProperties": False,
        },
    ),
)
