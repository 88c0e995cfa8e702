"""Bytes of a file as text, or what they are instead.

Nothing is guessed that could be guessed wrong: a text is UTF-8, or says by its byte order mark that it is UTF-16 or
UTF-32; everything else is called by its kind and left to the caller.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass

_MARKS = (
    # UTF-32 first: its little-endian mark begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MAGIC = (
    (b"%PDF-", "a PDF document"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"PK\x03\x04", "a ZIP archive or an Office document"),
    (b"\x1f\x8b", "gzip data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an older Office document or an Outlook message"),
    (b"\x7fELF", "an ELF program"),
    (b"MZ", "a Windows program"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"PAR1", "a Parquet file"),
    (b"ElfFile\x00", "a Windows event log"),
)
_TEXT_CONTROLS = frozenset(b"\t\n\r\f\x1b")


@dataclass(frozen=True, slots=True)
class Text:
    """A decoded text without its byte order mark; `encoding` says how it was stored."""

    text: str
    encoding: str


@dataclass(frozen=True, slots=True)
class Binary:
    """Not a text; `kind` completes "the file is ..."."""

    kind: str


def text_form(raw: bytes) -> Text | Binary:
    """What `raw`, a whole file, is."""
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            try:
                text = raw[len(mark) :].decode(encoding)
            except UnicodeDecodeError:
                return Binary(f"damaged {encoding.upper()} text")
            return Text(text, "utf-8 with BOM" if encoding == "utf-8" else encoding)
    for magic, kind in _MAGIC:
        # A text may well begin with MZ or PK: short marks count only where bytes follow that no text holds.
        if raw.startswith(magic) and (len(magic) > 2 or b"\x00" in raw):
            return Binary(kind)
    if _holds_controls(raw):
        return Binary("binary data")
    try:
        return Text(raw.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        return Binary("text in an encoding that is not UTF-8 and not told by a byte order mark")


def _holds_controls(raw: bytes) -> bool:
    """True if a byte is one that text does not hold; NUL most of all."""
    return any(byte < 32 and byte not in _TEXT_CONTROLS for byte in set(raw))
