"""Files made for the tests: PDFs with type of a given size and place, without a library that writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Typed(NamedTuple):
    """A line of a page. `font` is F (Helvetica) or C (Courier), `y` the height in points from the bottom. With `x` it
    is a word of its own that is moved to its place, as some programs write each word."""

    text: str
    size: int
    y: int
    font: str = "F"
    x: int = 0


def made_pdf(pages: Sequence[Sequence[Typed]], *, title: str = "", picture: bool = False) -> bytes:
    """A PDF 1.4 of these pages. `picture` draws a grey image on each, as a scanner does."""
    objects: list[bytes] = [b"<< /Type /Catalog /Pages 2 0 R >>", b""]

    def added(content: str | bytes) -> int:
        objects.append(content.encode("cp1252") if isinstance(content, str) else content)
        return len(objects)

    fonts = {
        name: added(f"<< /Type /Font /Subtype /Type1 /BaseFont /{base} /Encoding /WinAnsiEncoding >>")
        for name, base in (("F", "Helvetica"), ("C", "Courier"))
    }
    pixel = (
        b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8 /Length 1 >>"
        b"\nstream\n\x80\nendstream"
    )
    image = added(pixel)
    kids = []
    for page in pages:
        drawn = [
            f"q 1 0 0 1 {line.x} {line.y - 700} cm BT /{line.font} {line.size} Tf 1 0 0 1 0 700 Tm "
            f"({_escaped(line.text)}) Tj ET Q"
            if line.x
            else f"BT /{line.font} {line.size} Tf 1 0 0 1 72 {line.y} Tm ({_escaped(line.text)}) Tj ET"
            for line in page
        ]
        drawn += ["q 500 0 0 700 50 50 cm /I Do Q"] if picture else []
        stream = "\n".join(drawn).encode("cp1252")
        content = added(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream))
        used = " ".join(f"/{name} {number} 0 R" for name, number in fonts.items())
        resources = f"<< /Font << {used} >> /XObject << /I {image} 0 R >> >>"
        kids.append(
            added(
                f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {content} 0 R "
                f"/Resources {resources} >>"
            )
        )
    objects[1] = f"<< /Type /Pages /Count {len(kids)} /Kids [{' '.join(f'{kid} 0 R' for kid in kids)}] >>".encode()
    info = added(f"<< /Title ({_escaped(title)}) >>") if title else 0
    return _file(objects, info)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")


def _file(objects: Sequence[bytes], info: int) -> bytes:
    out = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    named = f" /Info {info} 0 R" if info else ""
    out += f"trailer << /Size {len(objects) + 1} /Root 1 0 R{named} >>\nstartxref\n{start}\n%%EOF".encode()
    return bytes(out)
