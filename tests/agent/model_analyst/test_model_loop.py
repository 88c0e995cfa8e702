"""The loop of tool calls: rounds, order, an answer to every call, and the bounds of a question."""

from __future__ import annotations

import json

import anyio
import pytest
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.model_analyst import MAX_TOOL_ROUNDS, TurnLimits
from sentinel_rag.agent.model_analyst.composing import SENTENCES
from sentinel_rag.agent.prompts import prompt
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, QueryProblem
from sentinel_rag.contracts.tool_calls import ToolCall, ToolOutcome
from sentinel_rag_testing.scripted_gateway import denial, failure, rows_result
from sentinel_rag_testing.scripted_model import calls_reply, stream_reply, text_reply
from sentinel_rag_testing.scripted_model.replies import DONE, call_piece, chunk, ending
from waiting import WAIT_S

pytestmark = pytest.mark.anyio
OPEN = ("query_incidents", {"status": "Open", "min_severity": "High"})
CITED = "[1] Incident 40, High, New [c1.1]\n[2] Incident 18, High, Active [c1.2]\n[3] Incident 12, High, Active [c1.3]"
TEXT = "[1] Incident 40, High, New\n[2] Incident 18, High, Active\n[3] Incident 12, High, Active"


def broken_call(arguments: str, *, name: str = "query_incidents", first: int = 1):
    """A reply whose one call has these arguments."""
    piece = call_piece(name, arguments, call_id=f"call_b{first}")
    return stream_reply(chunk({"tool_calls": [piece]}), *ending("tool_calls"))


@pytest.mark.requirement("CHAT-1")
@pytest.mark.requirement("CHAT-14")
@pytest.mark.requirement("CHAT-8")
async def test_a_question_is_answered_over_the_tools_and_the_footnote_tells_how(desk):
    at = desk(calls_reply(OPEN), text_reply(CITED))
    answer = await at.ask("Which high severity incidents are open?")
    assert answer.outcome is Outcome.ANSWERED
    assert answer.text == TEXT
    assert at.lines[:3] == ["Thinking...", "Querying incidents...", "Reading the results..."]
    assert [message["role"] for message in at.sent()] == ["system", "user", "assistant", "tool"]
    assert at.sent()[2]["tool_calls"][0]["id"] == at.sent()[3]["tool_call_id"]
    call, model = answer.footnote
    assert call.startswith(
        'query_incidents(status="Open", min_severity="High") · 3 of 3 rows · window all retained data'
    )
    assert model.startswith("model scripted (nothing asks for the large model) · 2 requests · 40 + 10 tokens · ")
    assert model.endswith(f"prompt {prompt('rules').label}")
    assert (answer.model["requests"], answer.model["input_tokens"]) == (2, 40)
    assert answer.model["prompt"] == prompt("rules").label


@pytest.mark.requirement("CHAT-2")
@pytest.mark.requirement("CHAT-19")
async def test_the_last_rounds_are_counted_down_and_then_an_answer_is_asked_for_without_tools(desk):
    assert MAX_TOOL_ROUNDS == 15
    replies = [calls_reply(OPEN, first=place * 10) for place in range(1, 8)]
    at = desk(*replies, text_reply(CITED), limits=TurnLimits(turn_s=60, rounds=7))
    answer = await at.ask("Which high severity incidents are open?")
    assert answer.text.startswith(f"{SENTENCES['out_of_rounds']}\n\n{TEXT}")
    assert len(at.server.requests) == 8
    last = at.server.requests[-1].body
    assert last["tool_choice"] == "none"
    assert last["tools"], "old calls stay explained"
    assert last["messages"][-1] == {"role": "user", "content": prompt("last_round").text}
    assert all("tool_choice" not in request.body for request in at.server.requests[:-1])
    told = [text.partition("left for this question: ")[2].rstrip(".)") for text in at.results()]
    assert told == ["", "5", "4", "3", "2", "1", "0"]


@pytest.mark.requirement("CHAT-2")
async def test_a_model_that_only_calls_is_told_of_in_one_line_and_the_conversation_goes_on(desk):
    at = desk(calls_reply(OPEN), limits=TurnLimits(turn_s=60, rounds=2))
    answer = await at.ask("Which high severity incidents are open?")
    assert len(at.gateway.calls) == 2
    assert answer.text.startswith(f"{SENTENCES['out_of_rounds']}\n\n{SENTENCES['nothing_written']}")
    assert answer.text.count("Rows that query_incidents found: 3.") == 1
    at.script(text_reply("You are welcome."))
    assert (await at.ask("Thanks")).text == "You are welcome."
    assert at.server.requests[-1].fault is None


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("¿Qué incidentes de gravedad alta están abiertos?", ("Se alcanzó el máximo", "El modelo no escribió")),
        ("Welche Vorfälle mit hoher Schwere sind offen?", ("Die größte Zahl", "Das Modell schrieb")),
        ("Quels incidents de gravité haute sont ouverts ?", ("Le nombre maximal", "Le modèle n’a écrit")),
    ],
)
async def test_what_stands_in_place_of_an_answer_is_in_the_language_of_the_question(desk, question, told):
    at = desk(calls_reply(OPEN), limits=TurnLimits(turn_s=60, rounds=2))
    answer = await at.ask(question)
    opening, instead, *_ = answer.text.split("\n\n")
    assert (opening.startswith(told[0]), instead.startswith(told[1])) == (True, True)


@pytest.mark.requirement("CHAT-2")
async def test_calls_that_cannot_run_get_their_reason_twice_and_do_not_count_as_used_up_rounds(desk):
    at = desk(*(broken_call("{nope", first=1), broken_call("{}", name="look", first=2), broken_call("{nope", first=3)))
    answer = await at.ask("Which incidents are open?")
    assert [request.body.get("tool_choice") for request in at.server.requests] == [None, None, "none"]
    assert at.gateway.calls == []
    assert answer.outcome is Outcome.TOOL_FAILED
    assert SENTENCES["out_of_rounds"] not in answer.text
    assert "The model's call of query_incidents did not run: The arguments are not one JSON object" in answer.text
    assert "The model's call of look did not run: There is no tool of that name" in answer.text


@pytest.mark.parametrize("name", ["functions.query_alerts", "query_alerts<|channel|>json", "query_alerts:0"])
async def test_a_name_with_what_a_template_leaves_at_it_is_understood(name, desk):
    at = desk(broken_call('{"limit": "5"}', name=name), text_reply("There are 8 alerts [c1]."))
    await at.ask("Which alerts are there?")
    assert [(call.tool_name, call.arguments) for call in at.gateway.calls] == [("query_alerts", {"limit": 5})]


class _Together:
    """A gateway that answers no call before `expected` of them are under way."""

    def __init__(self, expected: int) -> None:
        self.inner = small_estate(lambda: NOW)
        self.calls: list[ToolCall] = []
        self._expected = expected
        self._all_here = anyio.Event()

    async def execute(self, call: ToolCall) -> ToolOutcome:
        self.calls.append(call)
        if len(self.calls) == self._expected:
            self._all_here.set()
        await self._all_here.wait()
        return await self.inner.execute(call)

    async def offered_tools(self) -> frozenset[str]:
        return await self.inner.offered_tools()


@pytest.mark.requirement("CHAT-3")
async def test_the_calls_of_one_response_run_together_and_a_failing_one_cancels_none(desk):
    gateway = _Together(3)
    gateway.inner.answers["query_alerts"] = failure(QueryErrorCode.TIMEOUT, "The query took too long.")
    calls = (OPEN, ("query_alerts", {}), ("get_incident_detail", {"incident": "40"}))
    at = desk(calls_reply(*calls), text_reply("Incident 40 is High [c3.1]."), gateway=gateway)
    with anyio.fail_after(WAIT_S):
        answer = await at.ask("Is the newest one severe?")
    assert [trace.status for trace in answer.tools] == ["ok", "failed", "ok"]
    assert [text.splitlines()[0] for text in at.results()] == [f'<tool_result call="c{n}">' for n in (1, 2, 3)]
    assert "The query took too long." in at.results()[1]
    assert "query_alerts failed, which is not the same as finding nothing" in answer.text


async def test_every_call_is_answered_whatever_became_of_it(desk):
    broken = call_piece("query_incidents", "{not json", index=1, call_id="call_2")
    unknown = call_piece("delete_everything", "{}", index=2, call_id="call_3")
    good = call_piece("query_incidents", "{}", index=0, call_id="call_1")
    twice = call_piece("query_alerts", "{}", index=3, call_id="call_1")
    pieces = [chunk({"tool_calls": [piece]}) for piece in (good, broken, unknown, twice)]
    at = desk(stream_reply(*pieces, *ending("tool_calls")), text_reply("There are 6 incidents [c1]."))
    answer = await at.ask("How many incidents are there?")
    assert [trace.name for trace in answer.tools] == ["query_incidents", "query_alerts"]
    _, not_json, no_tool, _ = at.results()
    assert "not one JSON object" in not_json
    assert "There is no tool of that name" in no_tool
    assert "query_alerts" in no_tool, "the tools that there are"
    ids = [call["id"] for call in at.sent()[2]["tool_calls"]]
    assert len(set(ids)) == 4
    assert [message["tool_call_id"] for message in at.sent() if message["role"] == "tool"] == ids


async def test_a_call_that_the_length_cut_off_does_not_run(desk):
    pieces = (
        call_piece("query_incidents", '{"status": "Open"}', index=0, call_id="call_1"),
        call_piece("query_alerts", '{"limit": 5}', index=1, call_id="call_2"),
    )
    cut = stream_reply(*(chunk({"tool_calls": [piece]}) for piece in pieces), *ending("length"))
    at = desk(cut, text_reply("4 incidents are open [c1]."))
    await at.ask("What is open?")
    assert [call.tool_name for call in at.gateway.calls] == ["query_incidents"]
    assert "was cut off" in at.results()[1]


@pytest.mark.requirement("CHAT-2")
async def test_more_calls_than_a_question_may_make_are_answered_and_not_run(desk):
    many = calls_reply(*(("query_alerts", {"limit": place}) for place in range(1, 6)))
    at = desk(many, text_reply("Done."), limits=TurnLimits(turn_s=60, calls_a_round=3, calls=2))
    answer = await at.ask("What is going on?")
    assert len(at.gateway.calls) == 2
    assert [text.startswith("Not run: ") for text in at.results()] == [False, False, True, True, True]
    assert answer.text.startswith(SENTENCES["out_of_rounds"])


@pytest.mark.requirement("CHAT-13")
async def test_a_model_gets_the_places_of_a_query_s_faults_and_what_it_mends_is_not_told(desk):
    problem = QueryProblem(code="KS142", message="unknown name Usr", line=1, column=21, nearest=("User",))
    error = QueryError(
        code=QueryErrorCode.QUERY_REJECTED, message="The query was refused.", allowed=("User",), problems=(problem,)
    )
    gateway = small_estate(lambda: NOW, run_freeform_kql=[error, rows_result([{"User": "m.keller"}])])
    wrong = ("run_freeform_kql", {"kql": "SigninLogs | project Usr"})
    right = ("run_freeform_kql", {"kql": "SigninLogs | project User"})
    at = desk(calls_reply(wrong), calls_reply(right, first=5), text_reply("m.keller [c2.1]"), gateway=gateway)
    answer = await at.ask("Which user signed in?")
    told = json.loads(at.results(1)[0].splitlines()[1].removeprefix("failed: "))
    assert told["problems"][0]["nearest"] == ["User"]
    assert told["allowed"] == ["User"]
    assert "retry_possible" not in told, "of the same call; it may be mended"
    assert answer.text == "m.keller"
    assert answer.outcome is Outcome.ANSWERED


@pytest.mark.requirement("CHAT-13")
@pytest.mark.parametrize("some_worked", [True, False])
async def test_what_stays_wrong_with_a_model_s_argument_is_told_to_the_person_as_the_model_s_fault(desk, some_worked):
    fault = QueryError(
        code=QueryErrorCode.INVALID_ARGUMENT,
        message="limit must be integer.",
        next_step="Correct the argument and call again.",
        field="limit",
        allowed=("integer",),
    )
    wrong = ("query_alerts", {"limit": "many"})
    calls = (("query_incidents", {}), wrong) if some_worked else (wrong,)
    at = desk(calls_reply(*calls), text_reply("Nothing to add."), gateway=small_estate(lambda: NOW, query_alerts=fault))
    answer = await at.ask("Which alerts and incidents are there?")
    assert "The model called query_alerts with an argument that the tool does not take" in answer.text
    assert "limit must be integer" in answer.text
    assert "Ask again in other words" in answer.text
    assert "Correct the argument" not in answer.text
    assert "Correct the argument" in " ".join(at.results(1)), "the model is told what it can do"


async def test_a_refused_call_is_told_to_the_model_as_not_run_and_to_the_person_with_its_record(desk):
    at = desk(
        calls_reply(("query_incidents", {}), ("query_alerts", {})),
        text_reply("Incident 40 is High [c1.1]."),
        gateway=small_estate(lambda: NOW, query_alerts=denial("no_alerts")),
    )
    answer = await at.ask("What is going on?")
    assert answer.text.startswith("Incident 40 is High.")
    assert "Not done: query_alerts; the policy forbids it (rule no_alerts, audit audit-" in answer.text
    assert at.results()[1].startswith("[c2] Not run: the policy does not allow this call (rule no_alerts")
    assert "Do not try it in another way" in at.results()[1]


async def test_arguments_reach_a_tool_in_its_types_with_zone_and_whole_dossier(desk):
    calls = (
        ("get_alert_trend", {}),
        ("query_alerts", {"limit": "5", "status": None}),
        ("query_incidents", {"severity": "high", "limit": 5.0}),
        ("get_incident_detail", {"incident": 40}),
    )
    by_row = calls_reply(("get_incident_detail", {"incident": "c3.1"}), first=9)
    at = desk(calls_reply(*calls), by_row, text_reply("Quiet."), timezone="Asia/Tokyo")
    await at.ask("How did alerts develop?")
    assert [call.arguments for call in at.gateway.calls] == [
        {"timezone": "Asia/Tokyo"},
        {"limit": 5},
        {"severity": "High", "limit": 5},
        {"incident": "40", "detail": "full"},
        {"incident": "40", "detail": "full"},
    ]
    assert "Asia/Tokyo" in at.asked()


async def test_questions_go_to_the_workspace_that_the_person_names(desk):
    at = desk(calls_reply(("query_alerts", {})), text_reply("Quiet."))
    await at.ask("Which alerts are there in workspace emea?")
    at.script(calls_reply(("query_alerts", {}), first=7), text_reply("Quiet."))
    await at.ask("And the newest ones?")
    assert [call.arguments.get("workspace") for call in at.gateway.calls] == ["emea", "emea"]
    assert "Questions go to the workspace emea." in at.asked()


@pytest.mark.requirement("CHAT-8")
async def test_each_answer_names_the_machine_that_read_its_rows_and_whose_count_its_tokens_are(desk):
    silent = stream_reply(chunk({"content": "Hello."}), chunk({}, "stop"), DONE)
    at = desk(silent, host="soc.openai.azure.com")
    answer = await at.ask("Hello")
    assert answer.footnote[-1].startswith("model scripted at soc.openai.azure.com (")
    assert (answer.model["sent_to"], answer.model["input_tokens"]) == ("soc.openai.azure.com", 0)
    assert answer.model["estimated_tokens"] > 1_000
    assert f"about {answer.model['estimated_tokens']} tokens, counted here" in answer.footnote[-1]
    here = desk(text_reply("Hello."))
    assert (await here.ask("Hello")).model["sent_to"] == "this machine"


DRAFT = f"{CITED}\n{'Nothing else was read, and nothing else is known of them. ' * 15}"
OTHER = ("query_alerts", {"severity": "High"})


SECOND_LOOK = prompt("second_look").text.partition("{0}")[0]
NUMBERED = (
    "\n1. Incident 40, High, New\n2. Incident 18, High, Active\n3. Incident 12, High, Active\n4. Nothing else was"
)


@pytest.mark.requirement("CHAT-1")
async def test_a_long_answer_is_read_once_more_and_changed_by_what_that_shows(desk):
    changes = text_reply("2: Incident 18 is looked at first. [c1.2]\n3:\n1+: It has an owner.")
    at = desk(calls_reply(OPEN), text_reply(DRAFT), calls_reply(OTHER, first=5), changes)
    answer = await at.ask("Which high severity incidents are open, and what is behind them?")
    assert answer.text.startswith(
        "[1] Incident 40, High, New\n[1] It has an owner.\n[2] Incident 18 is looked at first.\n"
    )
    assert "Incident 12" not in answer.text
    assert "Nothing else was read" in answer.text
    assert [call.tool_name for call in at.gateway.calls] == ["query_incidents", "query_alerts"]
    looked, anew = at.sent(2), at.sent(3)
    assert looked[-1]["content"].startswith(f"{SECOND_LOOK}c1.1 (get_incident_detail), c1.2 (")
    assert looked[-2] == anew[-2] == {"role": "assistant", "content": DRAFT.strip()}
    assert anew[-1]["content"].startswith(prompt("redraft").text)
    assert all(NUMBERED in sent[-1]["content"] for sent in (looked, anew))
    at.script(text_reply("You are welcome."))
    await at.ask("Thanks")
    assert not any(SECOND_LOOK in str(each["content"]) or NUMBERED in str(each["content"]) for each in at.sent())


@pytest.mark.parametrize(
    "reply",
    [
        text_reply("keep"),
        text_reply("Everything was read."),
        calls_reply(OTHER, ("update_incident", {"incident": "40"}), first=5),
        stream_reply(chunk({}, "stop"), DONE),
    ],
    ids=["keep", "words", "a_change", "nothing"],
)
async def test_a_draft_goes_out_as_it_stands_where_its_writer_asks_nothing_more(desk, reply):
    at = desk(calls_reply(OPEN), text_reply(DRAFT), reply, text_reply("keep"))
    answer = await at.ask("Which high severity incidents are open, and what is behind them?")
    assert TEXT in answer.text
    assert "Nothing else was read" in answer.text
    assert [call.tool_name for call in at.gateway.calls] == ["query_incidents"]
    assert SECOND_LOOK in at.sent(2)[-1]["content"]


async def test_a_draft_may_be_written_anew_without_a_call(desk):
    anew = f"{CITED}\n{'This is what can be said of them, and no more than that. ' * 15}"
    at = desk(calls_reply(OPEN), text_reply(DRAFT), text_reply(anew))
    answer = await at.ask("Which high severity incidents are open, and what is behind them?")
    assert TEXT in answer.text
    assert "This is what can be said" in answer.text
    assert "Nothing else was read" not in answer.text


async def test_no_second_look_at_an_answer_that_names_nothing_unread(desk):
    """Players' models were asked to look again after every long answer, and to send all of it anew."""
    at = desk(calls_reply(OPEN), text_reply(DRAFT.replace("Incident", "Case").replace("40", "one")))
    at.script(calls_reply(("query_alerts", {})), text_reply(DRAFT.partition("\n")[2]))
    await at.ask("Which high severity alerts are there?")
    assert not any(SECOND_LOOK in str(request.body) for request in at.server.requests)


@pytest.mark.parametrize(
    ("replies", "rounds"),
    [((calls_reply(OPEN), text_reply(CITED)), 15), ((calls_reply(OPEN), text_reply(DRAFT)), 3)],
    ids=["short", "few_rounds_left"],
)
async def test_no_second_look_at_a_short_answer_or_with_few_rounds_left(desk, replies, rounds):
    at = desk(*replies, limits=TurnLimits(turn_s=60, rounds=rounds))
    await at.ask("Which high severity incidents are open?")
    assert not any(SECOND_LOOK in str(request.body) for request in at.server.requests)
