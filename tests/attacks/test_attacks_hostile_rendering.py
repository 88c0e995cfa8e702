"""Attacker controls: every text of a log, an answer, a playbook, an approval or a record that a surface shows.

Wanted: that a terminal obeys it, a page or a viewer runs or loads it, a spreadsheet calculates it, or a reader does not
see it. All texts of `hostile_strings` through every surface that writes for people, and every export.
"""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hostile_strings import HOSTILE, MUST_NOT, Hostile
from markdown_it import MarkdownIt
from rich.console import Console
from selectolax.lexbor import LexborHTMLParser

from sentinel_rag.agent.conversations.store import ConversationStore, StoredConversation, StoredTurn
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.contracts.evidence import Answer, Evidence, Outcome, Progress, Table, ToolTrace
from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.surfaces.cli import approvals, export, kept_conversations
from sentinel_rag.surfaces.cli._errors import report
from sentinel_rag.surfaces.cli._marked_text import evidence_lines, fact_lines
from sentinel_rag.surfaces.cli._render import Display, print_answer
from sentinel_rag.surfaces.cli._status_line import StatusLine, TurnDisplay
from sentinel_rag.surfaces.cli.audit import audit_line
from sentinel_rag.surfaces.rendering.markdown import markdown_line, marked_html
from sentinel_rag.surfaces.rendering.visible import Marked, csv_cell, safe
from sentinel_rag.surfaces.reports import HandOver, Head, ReportTurn, as_evidence, as_html, as_markdown, hand_over
from sentinel_rag.surfaces.web.turns import Event

pytestmark = pytest.mark.requirement("SURF-5")

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
LABEL = {"sensitivity": "HIGH", "integrity": "UNTRUSTED"}
OUR_SGR = re.compile(r"\x1b\[[0-9;]*m")
INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
JOINERS = "\u200c\u200d"
ELEMENTS = re.compile(
    "html|head|meta|title|style|body|main|h[1-4]|dl|dt|dd|p|ul|ol|li|table|thead|tbody|tr|th|td|div|span|a|svg|"
    "text|rect|br|hr|pre|code|em|strong|s|u|blockquote"
)
ATTRIBUTES = re.compile(
    "lang|charset|http-equiv|content|name|class|href|id|scope|value|role|viewbox|aria-label|x|y|width|height|"
    "rel|target|referrerpolicy",
    re.IGNORECASE,
)


def seen_by_a_terminal(written: str, *, colours: bool) -> str:
    """The text that a terminal shows; asserts that it was told nothing but text, line ends and (our) colours."""
    text = OUR_SGR.sub("", written) if colours else written
    obeyed = {repr(each) for each in text if unicodedata.category(each) in INVISIBLE and each not in "\n\t" + JOINERS}
    assert not obeyed
    assert not re.search("[\u0300-\u036f\u0483-\u0489\u20d0-\u20ff\u0e49]{5}", text)
    return text


def failing(check: Callable[[Hostile], None]) -> list[str]:
    """What is wrong with which text; every text is tried."""
    found = []
    for hostile in HOSTILE:
        try:
            check(hostile)
        except AssertionError as error:
            found.append(f"{hostile.family} {hostile.text[:60]!r} must not {MUST_NOT[hostile.family]}: {error}"[:400])
    return found


def an_answer(text: str, **fields: Any) -> Answer:
    return Answer(outcome=Outcome.ANSWERED, text=text, session_id="session-of-tests", **fields)


def full_answer(text: str) -> Answer:
    """An answer that holds the text wherever an answer holds texts."""
    return an_answer(
        f"Fact {text}",
        tables=(Table((text, "count"), ((text, "3"), ("plain", "4")), text),),
        footnote=(text,),
        suggestions=(text,),
        evidence=(
            Evidence(text, "c1", text, f"/rows/0/{text}", text),
            Evidence("3", "c1", "search_knowledge_base", "/hits/0/citation", text),
        ),
        tools=(ToolTrace("c1", text, {text: text}, "ok", text, text, 1.0, None),),
    )


def test_the_corpus_is_what_it_says() -> None:
    assert len(HOSTILE) == len({each.text for each in HOSTILE}) >= 150
    assert set(MUST_NOT) == {each.family for each in HOSTILE}
    assert min(Counter(each.family for each in HOSTILE).values()) >= 4


@pytest.mark.parametrize(("terminal", "width"), [(True, 100), (False, 160)])
def test_an_answer_on_a_terminal_and_in_a_pipe(terminal: bool, width: int) -> None:
    def check(hostile: Hostile) -> None:
        for answer in (an_answer(hostile.text), replace(full_answer(hostile.text), text="x")):
            written = io.StringIO()
            console = Console(file=written, force_terminal=terminal, width=width, markup=False, highlight=False)
            print_answer(console, answer, Display(whole=True, evidence=True))
            shown = seen_by_a_terminal(written.getvalue(), colours=terminal)
            assert hostile.is_legible_in(shown)

    assert failing(check) == []


def test_the_status_line_and_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    def check(hostile: Hostile) -> None:
        line = StatusLine("Starting", clock=lambda: 0.0)
        line.show(Progress(hostile.text, 1.0))
        written = io.StringIO()
        Console(file=written, force_terminal=True, width=12_000).print(line)
        shown = seen_by_a_terminal(written.getvalue(), colours=True)
        assert hostile.is_legible_in(shown)
        assert shown.count("\n") == 1
        report(UsageError(hostile.text, next_step=hostile.text), as_json=False)
        assert hostile.is_legible_in(seen_by_a_terminal(capsys.readouterr().err, colours=False))

    assert failing(check) == []


def test_the_evidence_of_a_chat_and_the_lines_of_its_calls() -> None:
    def check(hostile: Hostile) -> None:
        answer = full_answer(hostile.text)
        shown = seen_by_a_terminal("\n".join((*evidence_lines(answer, "1"), *fact_lines(answer))), colours=False)
        assert hostile.is_legible_in(shown)
        display = TurnDisplay("Starting", clock=lambda: 0.0)
        display.show(Progress(hostile.text, 1.0, answer.tools[0]))
        written = io.StringIO()
        Console(file=written, force_terminal=True, width=12_000).print(display)
        shown = seen_by_a_terminal(written.getvalue(), colours=True)
        assert hostile.is_legible_in(shown)
        assert shown.count("\n") == 2

    assert failing(check) == []


def test_the_page_of_an_approval() -> None:
    def check(hostile: Hostile) -> None:
        text = hostile.text
        names = ("key_id", "session_id", "tool", "server", "description", "condition", "rule_id", "taint_level")
        approval = {
            **dict.fromkeys(names, text),
            "approval_id": "3f2c9a10-0000-4000-8000-000000000000",
            "state": "pending",
            "effect": "external",
            "asked_at": "2026-07-01T11:59:00Z",
            "ends_at": "2026-07-01T12:15:00Z",
            "why": "sink_label",
            "arguments": {"query": text, "list": [text]},
            "arguments_withheld": False,
            "argument_labels": {"query": LABEL},
            "context": LABEL,
            "violations": [],
            "raised_by": [{"audit_id": text, "tool": text, "label": LABEL, "at": "2026-07-01T11:58:00Z"}],
            "approvers": [text],
            "decision": {"by": text, "actor": text, "comment": text, "at": "2026-07-01T12:01:00Z"},
            "used_at": None,
            "may_decide": True,
            "outdated": False,
            "more_of_tool": 0,
        }
        page = seen_by_a_terminal(approvals.page(approval, width=80, now=NOW), colours=False)
        assert hostile.is_legible_in(page)
        assert len(re.findall(r"(?m)^Approval ", page)) == 1
        assert all("\n" not in cell for cell in approvals.summary(approval, NOW))
        seen_by_a_terminal("".join(approvals.summary(approval, NOW)), colours=False)

    assert failing(check) == []


def test_a_record_of_the_journal_is_one_line() -> None:
    def check(hostile: Hostile) -> None:
        record = {"seq": 1, "at": hostile.text, "kind": "refusal", "tool": hostile.text, "audit_id": hostile.text}
        line = audit_line({"record": record, "outcome": None, "hash": "0" * 64})
        assert "\n" not in line
        assert hostile.is_legible_in(seen_by_a_terminal(line, colours=False))

    assert failing(check) == []


def test_an_event_of_a_stream_is_one_event() -> None:
    """What a page gets is JSON: the text itself, for the page to write as text, and never a line of the stream."""

    def check(hostile: Hostile) -> None:
        raw = Event("text", {"text": hostile.text}).encoded(7)
        head, data, *rest = raw.decode().split("\ndata: ")
        assert head == "event: text\nid: 7"
        assert rest == []
        assert re.search("[\r\n]", data.removesuffix("\n\n")) is None
        assert hostile.is_legible_in(json.loads(data)["text"])

    assert failing(check) == []


def html_of(text: str) -> str:
    return marked_html(Marked(text), lambda _, __: "")


def test_markdown_becomes_harmless_html() -> None:
    def check(hostile: Hostile) -> None:
        tree = LexborHTMLParser(f"<main>{html_of(hostile.text)}</main>")
        assert_harmless(tree)
        assert not tree.css("a")
        # The entity stands in an address, where a parser decodes it; numbers of a list are no text of a page.
        spelled = replace(hostile, text=re.sub(r"&#x09;|(?m:^\d\.)", "", hostile.text))
        assert spelled.is_legible_in(text_of(tree))

    assert failing(check) == []


def assert_harmless(tree: LexborHTMLParser) -> None:
    """A real parser finds our elements and attributes, and nothing that runs, loads or leaves the page by itself."""
    assert tree.root is not None
    nodes = [node for node in tree.root.traverse(include_text=False) if node.tag and node.tag[0] not in "-!_"]
    assert not {node.tag for node in nodes if not ELEMENTS.fullmatch(str(node.tag))}
    for node in nodes:
        for name, value in node.attributes.items():
            assert ATTRIBUTES.fullmatch(name), f"{node.tag} {name}"
            if name == "href":
                assert re.match(r"#E\d+$|https?://", value or "", re.IGNORECASE), value


def text_of(tree: LexborHTMLParser) -> str:
    assert tree.body is not None
    text = tree.body.text()
    assert not {repr(c) for c in text if unicodedata.category(c) in INVISIBLE and c not in "\n\t" + JOINERS}
    return text


def a_report(text: str) -> HandOver:
    """A report that holds the text wherever it holds texts of others."""
    head = Head(
        conversation_id="session-of-tests",
        exported_by=text,
        exported_at=NOW,
        timezone=text,
        workspace=text,
        journal_head=text,
        notes=(text,),
    )
    turn = ReportTurn(1, text, text, "clarification", text, full_answer(text).to_dict())
    names = {"tool": text, "session_id": "session-of-tests", "audit_id": text, "at": text}
    records = [
        {"record": {**names, "kind": "intent", "effect": "write", "approval_id": text}, "outcome": text},
        {"record": {**names, "kind": "refusal", "reason": text, "rule_id": text}, "outcome": None},
        {"record": {**names, "kind": "approval_asked", "why": text}, "outcome": None},
        {"record": {**names, "kind": "approval_lapsed", "state": text, "audit_id": "other"}, "outcome": None},
        {
            "record": {**names, "kind": "approval_decided", "decision": text, "key_id": text, "actor": text}
            | {"comment": text, "audit_id": "other"},
            "outcome": None,
        },
    ]
    return hand_over(head, [turn], records)


@pytest.mark.requirement("SURF-6")
def test_a_report_in_html() -> None:
    def check(hostile: Hostile) -> None:
        page = as_html(a_report(hostile.text))
        page.encode()
        tree = LexborHTMLParser(page)
        assert_harmless(tree)
        assert len(tree.css("style")) == len(tree.css("h1")) == len(tree.css("title")) == 1
        assert [
            node.attributes["href"] for node in tree.css("a") if not (node.attributes["href"] or "").startswith("#E")
        ] == []
        assert {node.attributes["id"] for node in tree.css("[id]")} == {"E1", "E2"}
        policies = [node.attributes["content"] for node in tree.css("meta[http-equiv]")]
        assert len(policies) == 1
        assert str(policies[0]).startswith("default-src 'none'; style-src 'sha256-")
        for part in ("dd", "td", "h3"):  # head, tables and questions, each by itself
            assert any(hostile.is_legible_in(node.text()) for node in tree.css(part)), part
        text_of(tree)

    assert failing(check) == []


LOADED = {"html_block", "html_inline", "image", "link_open", "fence", "code_block", "code_inline", "hr"}


def viewed(written: str) -> list[str]:
    """The blocks that a viewer with HTML on makes of it; asserts that none of them loads, links or looks like code."""
    blocks = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(written)
    assert not {each.type for token in blocks for each in (token, *(token.children or ()))} & LOADED
    assert re.search(r"https?://|\bwww\.", written, re.IGNORECASE) is None
    return [token.type for token in blocks]


@pytest.mark.requirement("SURF-6")
def test_a_text_in_every_place_of_a_markdown_report_whatever_viewer_opens_it() -> None:
    def placed(text: str) -> str:
        one = markdown_line(text)
        return f"### 1. {one}\n\n- {one}\n\n| {one} | b |\n|---|---|\n| {one} | c |\n\n_{one}_\n"

    plain = viewed(placed("plain"))

    def check(hostile: Hostile) -> None:
        assert viewed(placed(hostile.text)) == plain

    assert failing(check) == []


@pytest.mark.requirement("SURF-6")
def test_a_report_in_markdown() -> None:
    plain = viewed(as_markdown(a_report("plain")))

    def check(hostile: Hostile) -> None:
        written = as_markdown(a_report(hostile.text))
        written.encode()
        seen_by_a_terminal(written, colours=False)
        assert hostile.is_legible_in(re.sub(r"&#(\d+);", lambda found: chr(int(found[1])), written))
        if hostile in HOSTILE[::5] and "\n" not in hostile.text.strip():  # a whole report takes long to parse
            assert viewed(written) == plain

    assert failing(check) == []


@pytest.mark.requirement("SURF-6")
def test_a_report_in_csv_holds_no_formula() -> None:
    def check(hostile: Hostile) -> None:
        written = as_evidence(a_report(hostile.text))
        written.encode()
        rows = list(csv.reader(io.StringIO(written, newline="")))
        assert {len(row) for row in rows} == {8}
        assert hostile.is_legible_in(rows[1][7])
        for cell in (cell for row in rows for cell in row):
            assert is_no_formula(cell), cell

    assert failing(check) == []


def is_no_formula(cell: str) -> bool:
    """By what spreadsheets do: spaces and quotes before a sign do not keep it from being one."""
    if re.fullmatch(r"-?\d+(\.\d+)?", cell):
        return True
    return cell.startswith("'") or re.match(r"[\s\"]*[=+\-@|%\uff1d\uff0b\uff0d\uff20\u2212\t\r\n]", cell) is None


@pytest.mark.parametrize(
    ("value", "shown"), [(-5, "-5"), ("-5.25", "-5.25"), ("-5+1", "'-5+1"), (None, ""), ("a=b", "a=b")]
)
def test_numbers_and_plain_words_stay_as_they_are_in_csv(value: object, shown: str) -> None:
    assert csv_cell(value) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Zürich 東京 Ελλάδα",
        "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian, whose joiner is spelling
        "\u0915\u094d\u200d\u0937",  # Devanagari
        "\U0001f469\U0001f3fd\u200d\U0001f4bb \u2764\ufe0f 1\ufe0f\u20e3",  # emoji of several parts
        "Vi\u1ec7t e\u0302\u0323",
    ],
)
def test_what_languages_need_stays(text: str) -> None:
    assert safe(text) == text
    assert safe(text) in LexborHTMLParser(html_of(text)).body.text()  # type: ignore[union-attr]
    assert markdown_line(text) == text


@pytest.fixture
def kept(clean_environment: Path) -> Path:
    """A home with one conversation, whose questions and answers hold every text."""
    store = ConversationStore(clean_environment / "agent" / "conversations.db", clock=utc_now)
    turns = tuple(
        StoredTurn(
            number,
            "2026-07-01T12:00:00Z",
            each.text,
            "answered",
            each.text,
            shown=full_answer(each.text).to_dict(),
        )
        for number, each in enumerate(HOSTILE, 1)
    )
    with closing(store):
        store.save(StoredConversation("session-of-tests", turns=turns), known=False)
        for number, each in enumerate(HOSTILE[:30]):
            asked = tuple(StoredTurn(turn, "2026-07-01T12:00:00Z", each.text) for turn in (1, 2))
            store.save(StoredConversation(f"titled-{number:04}", turns=asked), known=False)
    return clean_environment


@pytest.mark.requirement("SURF-6")
@pytest.mark.parametrize("form", ["md", "html", "evidence"])
def test_the_command_exports_all_of_them_at_once(
    form: str, kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"report.{'csv' if form == 'evidence' else form}"
    assert export.run("session", form=form, output=str(path)) == 0
    seen_by_a_terminal(capsys.readouterr().out, colours=False)
    assert path.stat().st_mode & 0o777 == 0o600
    written = path.read_bytes().decode()
    if form == "html":
        tree = LexborHTMLParser(written)
        assert_harmless(tree)
        questions = [node.text() for node in tree.css("h3")]
        assert [each.text for each, said in zip(HOSTILE, questions, strict=False) if not each.is_legible_in(said)] == []
    elif form == "evidence":
        assert all(is_no_formula(cell) for row in csv.reader(io.StringIO(written, newline="")) for cell in row)
    else:
        seen_by_a_terminal(written, colours=False)
        assert all(f"\n### {number}. " in written for number in range(1, len(HOSTILE) + 1))


def test_the_list_of_conversations(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kept_conversations.show("", as_json=False) == 0
    shown = seen_by_a_terminal(capsys.readouterr().out, colours=False)
    assert shown.count("titled-0") == 30
