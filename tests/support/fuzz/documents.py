"""Playbooks as files (Markdown, HTML, PDF): refused with a sentence, or read, with every character in some chunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.support.fuzz.target import Check, Target, expect

from sentinel_rag.knowledge.chunking import chunks_of
from sentinel_rag.knowledge.documents import Collection, Document
from sentinel_rag.knowledge.documents.model import FileFault
from sentinel_rag.knowledge.documents.playbook_files import FORMATS


def _opened(ending: str) -> Callable[[Path], AbstractContextManager[Check]]:
    @contextmanager
    def opened(_: Path) -> Iterator[Check]:
        read = FORMATS[ending]

        def check(content: bytes) -> None:
            try:
                found = read(content, "a-playbook")
            except FileFault as fault:
                expect(str(fault).endswith("."), "a refusal is no sentence")
                return
            document = Document(
                id="a",
                collection=Collection.PLAYBOOKS,
                title=found.title,
                source="a",
                sections=found.sections,
                facets=found.facets,
            )
            expect(len(document.content_hash) == 64, "a document has no hash")
            chunks = chunks_of(document)
            for chunk in chunks:
                expect(chunk.text.strip() != "" and chunk.place >= 1, "a chunk is empty or stands nowhere")
                chunk.search_text.encode()
            written = Counter[str]()
            for section in document.sections:
                for block in section.blocks:
                    written.update("".join(block.text.split()))
            kept = Counter("".join("".join(chunk.text for chunk in chunks).split()))
            expect(not written - kept, "characters of the document are in no chunk")

        yield check

    return opened


def _markdown_seeds() -> Sequence[bytes]:
    return [
        b"---\ntitle: Phishing\nseverity: High\ntechniques: [T1566, T1566.001]\nreaders: [soc]\n---\n# P\n\nAsk.\n",
        b"# A\n\n## B\n\n1. one\n   - two\n\n| a | b |\n|---|---|\n| 1 | `|` |\n\n```kql\nT | take 1\n```\n",
        b"Setext\n===\n\n> quoted\n> # not\n\n<div>html</div>\n\n[x]: http://a 'b'\n\n![i](j)\n",
        "# Ä\r\n\r\ntext\r\n".encode("utf-16"),
        b"\xff\xfe\x00",
    ]


def _html_seeds() -> Sequence[bytes]:
    return [
        b"<!doctype html><meta charset=utf-8><title>T</title><h1>A</h1><p>one<br>two<ul><li>x<li>y</ul>",
        b"<table><caption>c</caption><tr><th>a<th>b<tr><td colspan=3>1<td rowspan=0>2</table><pre>code\n x</pre>",
        b"<div hidden>no</div><p style='display: none'>no</p><script>no</script><!-- <h1>no</h1> --><h2>yes</h2>",
        b"<p>a<p>b</i></b><table><td><table><td>x</table><select><option>s</select><svg><title>n</title></svg>",
    ]


def _pdf_seeds() -> Sequence[bytes]:
    return [_pdf(b"BT /F1 20 Tf 72 720 Td (Containment) Tj 0 -30 Td /F1 11 Tf (Isolate the host.) Tj ET"), _pdf(b"")]


def _pdf(drawn: bytes) -> bytes:
    """A whole PDF of one page that draws `drawn`."""
    objects = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(drawn), drawn),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )
    content, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(content))
        content += b"%d 0 obj%s endobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"xref\n0 6\n0000000000 65535 f \n%strailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (
        table,
        len(content),
    )
    return content + end


_PROMISE = "is refused with a sentence, or read so that every character is in some chunk, each with its place"
PLAYBOOK_MARKDOWN = Target(
    name="playbook-markdown",
    promise=f"A Markdown playbook {_PROMISE}.",
    opened=_opened(".md"),
    seeds=_markdown_seeds,
    tokens=(
        *(b"---\n", b"# ", b"###### ", b"```", b"~~~", b"> ", b"- ", b"1. ", b"    ", b"|", b"|---|", b"***"),
        *(b"[a](b)", b"![", b"<a "),
        *(b"title: ", b"readers: [a]", b"reviewed: 2026-11-28", b"sensitivity: HIGH", b"techniques: T1059", b"&amp;"),
        *(b"&#0;",),
        *(b"\\", b"\x00", b"\xef\xbb\xbf", b"\xff\xfe", b"\xff", b"> " * 60, b"[" * 300, b"*a " * 200, b"`" * 200),
        *(b"\xe2\x80\xa8",),
    ),
    calls=(40_000, 3_000),
)
PLAYBOOK_HTML = Target(
    name="playbook-html",
    promise=f"An HTML playbook {_PROMISE}.",
    opened=_opened(".html"),
    seeds=_html_seeds,
    tokens=(
        *(b"<h1>", b"</h1>", b"<p>", b"<table>", b"<tr>", b"<td>", b"<td colspan=99999999>", b"<pre>", b"<ul>"),
        *(b"<li>", b"<br>"),
        *(b"<script>", b"</script>", b"<title>", b"<!--", b"-->", b"<svg>", b"<math>", b"<template>", b"<select>"),
        *(b"<![CDATA[",),
        *(b"<meta charset=utf-16>", b"<meta charset=utf-7>", b"hidden", b"style='display:none'", b"&#xd800;"),
        *(b"&#0;", b"&notin"),
        *(b"<div>" * 600, b"<a b=c " * 50, b"\x00", b"\xff", b"</", b"<a/b/c", b"=", b"'", b"<b>" * 100),
    ),
    largest=8_000,
)
PLAYBOOK_PDF = Target(
    name="playbook-pdf",
    promise=f"A PDF playbook {_PROMISE}.",
    opened=_opened(".pdf"),
    seeds=_pdf_seeds,
    tokens=(
        *(b" obj", b"endobj", b"stream\n", b"endstream", b"xref", b"trailer", b"startxref", b"%%EOF", b"/Root 1 0 R"),
        *(b"/Prev 0",),
        *(b"<<", b">>", b"[", b"]", b"(", b")", b" Tj ", b" TJ ", b" Tf ", b" Tm ", b" Td ", b"BT ", b"ET ", b"q "),
        *(b"Q ", b" Do "),
        *(b"/Filter/FlateDecode", b"/Filter/ASCIIHexDecode", b"/Filter/LZWDecode", b"/Encrypt 6 0 R"),
        *(b"/Count 999999999",),
        *(b"/Kids[2 0 R]", b"/Length 4 0 R", b"/Parent 3 0 R", b"/ObjStm", b"/ToUnicode 4 0 R", b"9" * 400, b"-1"),
        *(b"\x00", b"1e99"),
    ),
)
