"""A conversation as the page carries it over a slow network and an ended sign-in: nothing lost, all in order."""

from __future__ import annotations

from typing import Any

import pytest
from page_modules import told_by

RUN = """
import { buildSync } from "esbuild";
const contents = ["conversation", "draft", "evidence"].map((name) => `export * from "./src/${name}.ts";`).join("");
const [{ text }] = buildSync({
  stdin: { contents, resolveDir: process.cwd(), loader: "ts" }, bundle: true, write: false, format: "esm",
}).outputFiles;
globalThis.window = globalThis.document = new EventTarget();
globalThis.location = { hash: "" };
const { OpenConversation, taken, keep, suggest, forget, behindLines, nameOf, plainText } =
  await import("data:text/javascript," + encodeURIComponent(text));
const settled = () => new Promise((done) => setImmediate(() => setImmediate(() => setImmediate(done))));
const stream = (events) => new Response(
  events.map(([type, data], at) => `id: ${at + 1}\\nevent: ${type}\\ndata: ${JSON.stringify(data)}\\n\\n`).join(""));
const started = (number) => ["started", { turn_id: `t${number}`, number, session_id: "s1" }];
const done = ["done", { footnote: [], suggestions: [] }];
const refused = (status, reason) =>
  new Response(JSON.stringify({ reason, detail: `refused ${status}`, next_step: "Next." }), { status });

let sent = [];
let answers = [];
globalThis.fetch = (path, { method, body }) =>
  new Promise((resolve) => {
    sent.push({ method, path, ...(body === undefined ? {} : JSON.parse(body)) });
    answers.push(resolve);
  });
const opened = (id = null) => {
  sent = [];
  answers = [];
  return new OpenConversation(id, () => {}, () => {}, () => ({}));
};
const posts = () => sent.map(({ message, session_id }) => [message, session_id ?? null]);
const views = (open) => open.turns.map(({ question, number, state, problem }) => [question, number, state, problem]);
const out = {};

const slow = opened();
for (const question of ["first", "second", "third"]) slow.put(question);
await settled();
out.before = posts();
answers[0](stream([started(1), done]));
await settled();
answers[1](stream([started(2), done]));
await settled();
answers[2](stream([started(3), done]));
await settled();
out.slow = { posts: posts(), views: views(slow) };
slow.close();
out.begun = taken();

const failing = opened();
failing.put("first");
failing.put("second");
await settled();
answers[0](refused(422, "invalid"));
await settled();
answers[1](stream([started(1), done]));
await settled();
out.failing = { posts: posts(), views: views(failing), kept: taken() };
failing.close();

const over = opened();
over.put("a long question");
over.put("and one more");
await settled();
answers[0](refused(401, "unauthenticated"));
await settled();
answers[1](refused(401, "unauthenticated"));
await settled();
over.close();
out.over = [taken(), taken()];

const left = opened();
left.put("on its way");
await settled();
left.close();
out.left = taken();

keep("mine");
suggest("What happened in incident 7?");
out.suggested = [taken(), taken(), taken()];
keep("another person's");
forget();
out.forgotten = taken();

const known = opened("s1");
await settled();
answers[0](refused(500, "internal"));
await settled();
out.refusal = known.refusal?.detail;
void known.stop({ turnId: "t1" });
await settled();
answers[1](new Response(null, { status: 204 }));
await settled();
out.after = known.refusal;
known.close();
const piece = (number, pointer, text, value = text) => ({ number, pointer, text, value, call_id: "c1", tool: "t" });
const pieces = [
  piece(1, "/summary/total", "2", 2), piece(2, "/summary/by_severity/Medium", "1", 1),
  piece(3, "/rows/0/number", "128", 128), piece(4, "/rows/0/severity", "High"),
  piece(5, "/rows/1/number", "127", 127), piece(6, "/rows/1/severity", "High"),
  piece(7, "/rows/1/alert_entities/2/a~1b", "`quoted`", "quoted"), piece(8, "/rows/1/title", "`theirs`"),
];
const rows = [["[1]", "128", "High"], ["[2]", "127", "High"], ["[3]", "9", "none"], ["High", "127", "2"]];
out.lines = [...behindLines([{ title: "", columns: [], rows }], pieces)].map(([cells, number]) => [cells[0], number]);
out.named = pieces.map((each) => `${nameOf(each)} = ${plainText(each)}`);
console.log(JSON.stringify(out));
process.exit(0);
"""


@pytest.fixture(scope="module")
def told() -> Any:
    """What the page's own code did with a network that answers when it is told to."""
    return told_by(RUN)


def test_questions_put_before_a_conversation_has_its_id_belong_to_it_in_their_order(told: Any) -> None:
    assert told["before"] == [["first", None]]
    assert told["slow"]["posts"] == [["first", None], ["second", "s1"], ["third", "s1"]]
    assert told["slow"]["views"] == [
        [question, number, "answered", ""] for number, question in enumerate(("first", "second", "third"), 1)
    ]
    assert told["begun"] == ""


def test_a_question_after_a_refused_one_is_asked_all_the_same(told: Any) -> None:
    assert told["failing"]["posts"] == [["first", None], ["second", None]]
    assert {view[0]: view[2:] for view in told["failing"]["views"]} == {
        "first": ["failed", "refused 422 Next."],
        "second": ["answered", ""],
    }
    assert told["failing"]["kept"] == ""


def test_questions_that_an_ended_sign_in_refused_stand_in_the_box_again_and_once(told: Any) -> None:
    assert told["over"] == ["a long question\nand one more", ""]
    assert told["left"] == "on its way"


def test_what_a_person_wrote_outlives_a_suggestion_and_not_the_person(told: Any) -> None:
    assert told["suggested"] == ["What happened in incident 7?", "mine", ""]
    assert told["forgotten"] == ""


def test_a_refusal_goes_with_the_next_success(told: Any) -> None:
    assert told["refusal"] == "refused 500"
    assert told["after"] is None


def test_a_marked_line_of_a_table_opens_its_own_row_and_evidence_says_of_what_it_is(told: Any) -> None:
    assert told["lines"] == [["[1]", 3], ["[2]", 5]]
    assert told["named"] == [
        "total = 2",
        "by severity: Medium = 1",
        "number = 128",
        "severity = High",
        "number = 127",
        "severity = High",
        "alert entities 3: a/b = quoted",
        "title = `theirs`",
    ]
