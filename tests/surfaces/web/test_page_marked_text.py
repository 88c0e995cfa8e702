"""What the check says of an answer as the page sets it into the text: as the terminal and reports do, and with nothing
of the text lost, whatever is said."""

from __future__ import annotations

import json
import random
from typing import Any

from page_modules import told_by
from tests.support.obedient_analyst import cited_answer

from sentinel_rag.contracts.evidence import Answer, Citation, CitedBy, Mark, Outcome, Sentence, SentenceState
from sentinel_rag.surfaces.rendering.visible import found_alone, marked, sources_of

PARTS = (
    *("Incident 124 is High. ", "**bold** ", "`code` ", "- item\n", "1. one\n", "## Title\n", "> said\n", "\n\n", "\n"),
    *("| a | b |\n|---|---|\n| 1 | x\\|y |\n| 2 | z |\n", "| a |\n|---|\n| 1 | 2 |\n", "```\nfence 1\n```\n", "| - "),
    *(
        "https://b\u00fccher.example/x ",
        "http://a.example, ",
        "主机 七 ",
        "cafe\u0301 ",
        "\x1b[31m",
        "\u202e",
        "👩\u200d💻 ",
    ),
    *("😀", "\r\n", "***", "*a* ", "~~s~~ ", "<b>x</b> ", "\t", "\u2028"),
)
RUN = """
import { buildSync } from "esbuild";
import { readFileSync } from "node:fs";
const contents = 'export * from "./src/marks.ts"; export { Markdown } from "./src/parts/markdown.tsx";';
const [{ text }] = buildSync({
  stdin: { contents, resolveDir: process.cwd(), loader: "ts" }, bundle: true, write: false, format: "esm",
  jsx: "automatic", jsxImportSource: "preact",
}).outputFiles;
const { marked, unmarked, foundAlone, counted, sourcesOf, Markdown } =
  await import("data:text/javascript," + encodeURIComponent(text));
const words = (node) =>
  node === null || typeof node === "boolean" ? "" :
  typeof node !== "object" ? String(node) :
  Array.isArray(node) ? node.map(words).join("") :
  node.props.address !== undefined ? node.props.address : words(node.props.children ?? "");
const alone = ({ text, sentences, hidden }) =>
  ({ text, hidden, places: sentences.map((s) =>
    [s.start, s.end, ...s.marks.map((m) => [m.start, m.end]), ...s.citations.map((c) => c.at)]) });
const told = JSON.parse(readFileSync(process.env.CASES, "utf8")).map(({ text, sentences }) => {
  const found = marked(text, sentences);
  let chips = 0;
  return {
    text: found.text,
    spans: found.spans.map((span) => [span.start, span.end, span.seen]),
    notes: found.notes.map((note) => [note.at, note.sources]),
    alone: alone(foundAlone(text, sentences)),
    counted: counted(sentences),
    cells: sourcesOf(sentences, []).map((source) => Object.fromEntries(source.cells)),
    same: words(Markdown({ marked: found, chip: () => { chips += 1; return null; } })) ===
      words(Markdown({ marked: unmarked(text) })),
    words: words(Markdown({ marked: unmarked(text) })),
    placed: words(Markdown({ marked: found, chip: (note) => `{${note.sources}}` })),
    chips: chips === found.notes.length ? "all" : chips,
  };
});
console.log(JSON.stringify(told));
"""


def random_answers(count: int) -> list[Answer]:
    """Texts of all that Markdown has, with sentences and marks anywhere, also outside of them."""
    draw = random.Random(16)  # cases of a test, the same each time

    def place() -> int:
        return draw.randint(-3, 160)

    def sentence() -> Sentence:
        marks = [
            Mark(place(), place(), draw.random() < 0.5, "c1", draw.choice(("", "/rows/0/a", "/x")), "v")
            for _ in range(draw.randint(0, 3))
        ]
        row = draw.choice(("", "/rows/0", "/rows/1"))
        citations = tuple(
            Citation("c1.1", "c1", "query_incidents", row, tuple(place() for _ in range(draw.randint(0, 2))))
            for _ in range(draw.randint(0, 2))
        )
        state = draw.choice(list(SentenceState))
        return Sentence(place(), place(), "", state, "", citations, tuple(marks), CitedBy.WRITER)

    return [
        Answer(
            outcome=Outcome.ANSWERED,
            text="".join(draw.choice(PARTS) for _ in range(draw.randint(0, 10))),
            session_id="s",
            sentences=tuple(sentence() for _ in range(draw.randint(0, 5))),
        )
        for _ in range(count)
    ]


def utf16(text: str, place: int) -> int:
    """Where a character stands as the page counts."""
    return len(text[:place].encode("utf-16-le", "surrogatepass")) // 2


def test_the_page_marks_a_text_as_the_other_surfaces_do(tmp_path: Any, monkeypatch: Any) -> None:
    listed = "values_found 1 - 😀 <number=124> is <severity=High>.|not_found 2 <x=9> \n"
    script = f"{listed}|\ncontradicted 2 It is <severity=Low~High>."
    answers = [cited_answer(script, "s"), *random_answers(300)]
    cases = [{"text": answer.text, "sentences": answer.to_dict()["sentences"]} for answer in answers]
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    monkeypatch.setenv("CASES", str(tmp_path / "cases.json"))
    for answer, told in zip(answers, told_by(RUN), strict=True):
        sources = sources_of(answer.sentences)
        numbers = {(each.citation.call_id, each.citation.pointer): str(at) for at, each in enumerate(sources, 1)}
        found = marked(answer.text, answer.sentences, lambda cited, n=numbers: n[cited.call_id, cited.pointer])
        assert told["text"] == found.text
        assert told["spans"] == [
            [*(utf16(found.text, at) for at in (s.start, s.end)), str(s.seen)] for s in found.spans
        ]
        assert [at for at, _ in told["notes"]] == [utf16(found.text, note.at) for note in found.notes]
        assert [sorted(map(str, behind)) for _, behind in told["notes"]] == [sorted(n.sources) for n in found.notes]
        left, hidden = found_alone(answer)
        places = [
            [s.start, s.end, *([m.start, m.end] for m in s.marks), *(list(c.at) for c in s.citations)]
            for s in left.sentences
        ]
        assert told["alone"] == {"text": left.text, "hidden": hidden, "places": places}
        assert told["cells"] == [source.cells for source in sources]
        assert told["same"] is True, answer.text
        assert told["chips"] == "all", answer.text


def test_a_source_stands_where_the_writer_put_it_also_in_a_cell(tmp_path: Any, monkeypatch: Any) -> None:
    text = "| incident | severity |\n|---|---|\n| **124** now | High |\n"
    places = [(text.index("** now"),), (text.index("High") + 4,)]
    cited = [Citation(f"c1.{row}", "c1", "t", f"/rows/{row}", at) for row, at in enumerate(places, 1)]
    start = text.index(" **124")
    row = Sentence(start, len(text) - 1, "", SentenceState.NOT_FOUND, "why", tuple(cited), (), CitedBy.WRITER)
    (tmp_path / "cases.json").write_text(json.dumps([{"text": text, "sentences": [row.to_dict()]}]))
    monkeypatch.setenv("CASES", str(tmp_path / "cases.json"))
    (told,) = told_by(RUN)
    assert told["placed"] == "incidentseverity124{1} nowHigh{2}{}"


def test_a_table_of_an_answer_is_one_and_shows_every_cell(tmp_path: Any, monkeypatch: Any) -> None:
    whole = "Before\n| number | title |\n|:--|--:|\n| 1 | a \\| b |\n| 2 |\n\nafter"
    wider = "| number |\n|---|\n| 1 | what stands behind a bar |"
    (tmp_path / "cases.json").write_text(json.dumps([{"text": text, "sentences": []} for text in (whole, wider)]))
    monkeypatch.setenv("CASES", str(tmp_path / "cases.json"))
    drawn, plain = told_by(RUN)
    assert drawn["words"] == "Beforenumbertitle1a \\| b2after"
    assert plain["words"] == wider
