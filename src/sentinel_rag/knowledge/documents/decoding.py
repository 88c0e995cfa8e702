"""Bytes of a text file to text, whatever wrote it: UTF-8, UTF-16 and UTF-32 with or without a mark, Windows-1252.

A guess is told as a remark, since a wrong one garbles names; what is no text at all is refused. Nothing is replaced
silently: U+FFFD never stands for a byte that was there.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from sentinel_rag.knowledge.documents.faults import FileFault

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAMPLE = 4096


@dataclass(frozen=True, slots=True)
class Decoded:
    """The text with line feeds as line ends. `remark` is a sentence where the encoding had to be guessed."""

    text: str
    remark: str = ""


def decode(content: bytes, *, declared: str = "") -> Decoded:
    """The text of `content`. `declared` is the encoding that the file names itself, believed where it is one and fits.

    Raises FileFault for what is no text in any encoding that files are written in.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return Decoded(_lines(_strict(content, encoding)))
    wide = _wide_encoding(content[:_SAMPLE])
    if wide:
        return Decoded(_lines(_strict(content, wide)), f"Read as {wide.upper()}, which it does not say itself.")
    if b"\0" in content:
        raise FileFault("It is no text: it holds zero bytes.")
    for encoding in filter(None, ("utf-8", _known(declared))):
        try:
            return Decoded(_lines(content.decode(encoding)))
        except UnicodeDecodeError:
            continue
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError:
        raise FileFault("It is no text: it is in no encoding that is known here.") from None
    return Decoded(_lines(text), "It is not UTF-8 and was read as Windows-1252; save it as UTF-8 to be sure.")


def _strict(content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        raise FileFault(
            f"It is no text: it begins as {encoding.removesuffix('-sig').upper()} and then breaks it."
        ) from None


def _wide_encoding(sample: bytes) -> str:
    """UTF-16 without its mark: every second byte of Latin text is zero. Empty if it is not that."""
    if len(sample) < 4:
        return ""
    even, odd = sample[0::2].count(0) / len(sample[0::2]), sample[1::2].count(0) / len(sample[1::2])
    if odd > 0.4 and even < 0.1:
        return "utf-16-le"
    return "utf-16-be" if even > 0.4 and odd < 0.1 else ""


def _known(name: str) -> str:
    """The codec of a declared name if it is one for text, else empty."""
    try:
        found = codecs.lookup(name) if name else None
    except (LookupError, ValueError):
        return ""
    return found.name if found is not None and found._is_text_encoding else ""


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
