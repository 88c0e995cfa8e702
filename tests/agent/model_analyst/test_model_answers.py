"""What a person reads of a model's words: all of it, each sentence with its state, in a form that loads nothing, and
what code says where a call was refused, failed, found nothing, or was never made."""

from __future__ import annotations

import pytest
from tests.support.small_estate import NOW, small_estate

from sentinel_rag.agent.model_analyst.composing import SAMPLE_SENTENCE, SENTENCES, TRANSLATED
from sentinel_rag.agent.model_analyst.loop import ONLY_OWN
from sentinel_rag.agent.prompts import prompt
from sentinel_rag.contracts.conversations import Verbosity
from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag_testing.scripted_gateway import denial, failure, rows_result
from sentinel_rag_testing.scripted_model import calls_reply, text_reply

pytestmark = pytest.mark.anyio
LIE = (
    "Incident 4711 (High, Active) was opened on 2024-07-22 09:15 UTC by 198.51.100.23 on host fin-db-09. "
    "The account j.doe@contoso.example ran mimikatz.exe. There are 14 further alerts."
)
ASK_ALL = calls_reply(("query_incidents", {}), ("query_alerts", {"entity": "fin-db-09"}))
OPEN = calls_reply(("query_incidents", {"status": "Open"}))
EMPTY = rows_result([], table_rows=120, newest=NOW)
NO_TABLE = rows_result([], table_rows=0)
TIMEOUT = failure(QueryErrorCode.TIMEOUT, "The query took too long.")
ZERO_DATA = {
    "empty": (EMPTY, EMPTY, Outcome.NO_DATA, "No incidents match."),
    "empty table": (NO_TABLE, NO_TABLE, Outcome.NO_DATA, "holds no rows at all"),
    "denied": (
        denial(),
        denial(),
        Outcome.DENIED,
        "Not done: query_incidents; the policy forbids it (rule deny_all, audit audit-",
    ),
    "failed": (TIMEOUT, TIMEOUT, Outcome.TOOL_FAILED, "query_incidents failed, which is not the same as finding"),
    "empty and failed": (EMPTY, TIMEOUT, Outcome.NO_DATA, "query_alerts failed, which is not the same as finding"),
}


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize("case", ZERO_DATA)
async def test_without_data_no_sentence_counts_and_code_says_what_came_of_the_calls(case, desk):
    incidents, alerts, outcome, said = ZERO_DATA[case]
    gateway = small_estate(lambda: NOW, query_incidents=incidents, query_alerts=alerts)
    answer = await desk(ASK_ALL, text_reply(LIE), gateway=gateway).ask("What happened on fin-db-09?")
    assert answer.outcome is outcome
    assert answer.text.startswith(f"{SENTENCES['few_sources']}\n\n{LIE}\n\n"), "nothing is erased"
    assert {sentence.state for sentence in answer.sentences} == {"not_found"}
    assert all(sentence.reason for sentence in answer.sentences)
    assert said in answer.text


@pytest.mark.requirement("CHAT-16")
@pytest.mark.requirement("CHAT-17")
@pytest.mark.requirement("GRND-1")
async def test_a_model_that_states_facts_without_a_tool_is_told_once_and_then_stands_with_marks(desk):
    at = desk(text_reply(LIE))
    answer = await at.ask("What happened lately?")
    assert answer.text == f"{SENTENCES['asked_nothing']}\n\n{LIE}"
    assert {sentence.state for sentence in answer.sentences} == {"not_found"}
    assert len(at.server.requests) == 2
    assert at.sent()[-1] == {"role": "user", "content": prompt("query_first").text}
    at.script(text_reply("Incident 40 is High."), OPEN, text_reply("Incident 40 is High [c1.1]."))
    assert (await at.ask("How severe is the open one?")).text == "Incident 40 is High."
    assert prompt("query_first").text not in str(at.sent()), "it is no part of the conversation"


@pytest.mark.requirement("CHAT-17")
@pytest.mark.parametrize(
    ("question", "said", "outcome"),
    [
        ("What is T1003?", "T1003 is OS credential dumping: credentials are read from memory.", Outcome.ANSWERED),
        ("Was ist Kerberoasting?", "Ein Angriff auf Kennwörter von Dienstkonten.", Outcome.ANSWERED),
        ("Thanks, that is all", "You are welcome.", Outcome.ANSWERED),
        ("Is it closed?", "Which incident do you mean?", Outcome.CLARIFICATION),
        ("Can you close incidents?", "No, a person has to approve that.", Outcome.ANSWERED),
    ],
)
async def test_knowledge_manners_and_a_question_back_pass_as_they_are_at_the_first_try(question, said, outcome, desk):
    at = desk(text_reply(said))
    answer = await at.ask(question)
    assert (answer.text, answer.outcome) == (said, outcome)
    assert set(at.states(answer).values()) == {"own_words"}
    assert len(at.server.requests) == 1


@pytest.mark.requirement("GRND-1")
async def test_each_sentence_gets_its_state_and_every_word_stays(desk):
    cited = {
        "Incident 40 is High": ("[c1.1]", "values_found"),
        "There are 4 incidents": ("[c1]", "values_found"),
        "Its title was given by a product": ("[c1.1]", "source_given"),
        "Phishing often begins with a mail": ("", "own_words"),
        "Incident 4711 is High": ("[c1.9]", "not_found"),
        "Incident 40 is Low": ("[c1.1]", "contradicted"),
    }
    text = " ".join(f"{said} {ref}." for said, (ref, _) in cited.items()).replace(" .", ".")
    at = desk(OPEN, text_reply(text))
    answer = await at.ask("Which incidents are open?")
    assert answer.text == " ".join(f"{said}." for said in cited)
    assert at.states(answer) == {f"{said}.": state for said, (_, state) in cited.items()}
    assert all(answer.text[each.start : each.end] == each.text for each in answer.sentences)
    assert {(piece.text, piece.pointer) for piece in answer.evidence} >= {("High", "/rows/0/severity")}


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Welche Vorfälle sind offen?", "Vorfall 40 ist High und New [c1.1]. Es gibt 4 offene Vorfälle [c1]."),
        (
            "¿Qué incidentes están abiertos?",
            "El incidente 40 es High y está en estado New [c1.1]. Hay 4 incidentes [c1].",
        ),
    ],
)
async def test_an_answer_in_another_language_is_checked_alike(question, text, desk):
    at = desk(OPEN, text_reply(text))
    answer = await at.ask(question)
    assert set(at.states(answer).values()) == {"values_found"}
    assert len(at.server.requests) == 2, "nothing is to be repaired"


@pytest.mark.parametrize(
    ("language", "text", "notes"),
    [
        ("de", "Der Vorfall 4711 ist das [c1.1]. Und der Vorfall 4712 ist High.", ["“4711”", "ohne Quelle"]),
        ("es", "El incidente 4711 es ese [c1.1]. Y el incidente 4712 es High.", ["“4711”", "sin fuente"]),
        ("fr", "L'incident 4711 est là [c1.1]. Et l'incident 4712 est High.", ["“4711”", "sans source"]),
    ],
)
async def test_what_is_said_of_an_answer_is_in_its_language_and_the_model_gets_the_whole_reason(
    language, text, notes, desk
):
    at = desk(OPEN, text_reply(text), text_reply("nichts"))
    answer = await at.ask("Why is incident 40 open?")
    assert TRANSLATED[language]["verify"] in answer.text
    assert SENTENCES["verify"] not in answer.text
    reasons = [sentence.reason for sentence in answer.sentences]
    assert all(note in reason for note, reason in zip(notes, reasons, strict=True)), reasons
    assert "does not stand in c1.1" in at.sent()[-1]["content"]


@pytest.mark.requirement("GRND-1")
async def test_a_model_that_writes_without_sources_is_asked_for_them_before_anything_is_repaired(desk):
    draft = "Incident 40 is High. Incident 40 is New. Incident 41 is Low.\n\nI would begin with it."
    said = "Sources:\n1: c1.1\n2: [c1.1]\n3: Incident 18 is New [c1.3]."
    at = desk(OPEN, text_reply(draft), text_reply(said), text_reply("1: Incident 18 is Active [c1.3]."))
    answer = await at.ask("Which incidents are open?")
    assert answer.text.startswith(draft.replace("Incident 41 is Low", "Incident 18 is Active"))
    assert set(at.states(answer).values()) == {"values_found", "own_words"}
    asked = at.server.requests[2].body["messages"][-2:]
    assert asked[0]["content"] == draft
    assert asked[1]["content"].startswith(prompt("sources").text)
    assert asked[1]["content"].endswith("\n4. I would begin with it.")
    assert {sentence.cited_by.value for sentence in answer.sentences[:3]} == {"writer"}


async def test_a_repair_reads_what_a_sentence_lacks_and_cites_it(desk):
    calls = calls_reply(("query_incidents", {"status": "Closed"}), ("compute", {"op": "count", "of": "c1"}), first=7)
    draft = "Incident 40 is High [c1.1]. Incident 4711 was closed."
    at = desk(OPEN, text_reply(draft), calls, text_reply("1: No closed incident is left out: there are 4 [c2]."))
    answer = await at.ask("How severe is the open one?")
    told = {message["tool_call_id"]: message["content"] for message in at.server.requests[-1].body["messages"][-2:]}
    assert any('call="c2"' in text for text in told.values())
    assert any("computed rows" in text for text in told.values())
    assert [run.name for run in answer.tools] == ["query_incidents", "query_incidents", "compute"]


async def test_a_repair_queries_once_changes_nothing_and_ends(desk):
    """A model that only ever calls gets three requests, of which one may query."""
    query = [calls_reply(("query_incidents", {"limit": n}), first=10 * n) for n in (1, 2, 3)]
    change = calls_reply(("update_incident", {"incident": "40", "status": "Active"}), ("query_alerts", {}), first=7)
    for calls, reads in (([change, *query], ["query_alerts"]), (query, ["query_incidents"])):
        at = desk(OPEN, text_reply("Incident 40 is Low [c1.1]."), *calls)
        answer = await at.ask("How severe is the open one?")
        assert answer.text.startswith("Incident 40 is Low.")
        assert [run.name for run in answer.tools] == ["query_incidents", *reads]
        assert len(at.server.requests) == 5
        told = {message["content"] for message in at.server.requests[-1].body["messages"] if message["role"] == "tool"}
        assert ONLY_OWN in told
        assert {call.tool_name for call in at.gateway.calls} <= {"query_incidents", "query_alerts"}


@pytest.mark.requirement("CHAT-10")
async def test_an_empty_result_is_told_by_code_unless_the_model_told_and_cited_it(desk):
    asked = calls_reply(("query_incidents", {"time_window": "last_24h", "severity": "High"}))
    at = desk(asked, text_reply("None."))
    answer = await at.ask("Any high severity incidents today?")
    assert answer.outcome is Outcome.NO_DATA
    assert "No incidents match (severity High).\nWindow: from 2024-07-22 12:00:00 UTC" in answer.text
    assert "does hold rows, the newest of" in answer.text
    assert "Try a wider window or a lower severity." in answer.text
    assert answer.evidence
    assert {piece.call_id for piece in answer.evidence} == {"c1"}
    told = desk(asked, text_reply("There are 0 high severity incidents of today [c1]."))
    answer = await told.ask("Any high severity incidents today?")
    assert (answer.outcome, answer.text) == (Outcome.NO_DATA, "There are 0 high severity incidents of today.")


@pytest.mark.requirement("CHAT-16")
async def test_what_was_read_before_may_be_used_again_with_its_age(desk):
    at = desk(OPEN, text_reply("Incident 40 is High [c1.1]."))
    await at.ask("Which incident is severe?")
    at.script(text_reply("Incident 40 is High [c1.1]."))
    answer = await at.ask("What have we found so far?")
    assert answer.text == f"Incident 40 is High.\n\n---\n\n{SENTENCES['read_earlier'].format('under a minute')}"
    assert answer.outcome is Outcome.ANSWERED
    assert "read_rows shows the rows of any, and any can be cited): c1 query_incidents" in at.asked()


async def test_a_scope_that_nobody_asked_for_opens_the_answer(desk):
    narrowed = calls_reply(("query_incidents", {"severity": "High", "time_window": "last_30d"}))
    at = desk(narrowed, text_reply("Incident 40 is High [c1.1]."))
    first, _, rest = (await at.ask("Which incidents are there?")).text.partition("\n\n")
    assert "last 30 days" in first
    assert "severity High" in first
    assert rest == "Incident 40 is High."
    asked_for = desk(narrowed, text_reply("Incident 40 is High [c1.1]."))
    answer = await asked_for.ask("Which high severity incidents of the last 30 days are there?")
    assert answer.text == "Incident 40 is High."


@pytest.mark.requirement("CHAT-9")
async def test_an_analysis_carries_its_notice_and_a_detail_the_offer_of_one(desk):
    at = desk(text_reply(""))

    async def ask(question, said="Incident 40 is High [c1.1].", first=1, **options):
        at.script(calls_reply(("get_incident_detail", {"incident": "40"}), first=first), text_reply(said))
        return (await at.ask(question, **options)).text

    facts = await ask("Show incident 40")
    assert facts.endswith(SENTENCES["offer"])
    assert SENTENCES["verify"] not in facts
    assert SENTENCES["offer"] not in await ask("Show incident 40", first=3, verbosity=Verbosity.SHORT)
    analysis = await ask("Why is incident 40 dangerous?", first=6)
    assert analysis.endswith(SENTENCES["verify"])
    assert SENTENCES["offer"] not in analysis
    for phrase in (SENTENCES["verify"], SENTENCES["offer"], f"{SENTENCES['verify']} {SENTENCES['offer']}"):
        assert SENTENCES["nothing_written"] in await ask(
            "Why is incident 40 dangerous?", phrase, first=50 + len(phrase)
        )


@pytest.mark.requirement("CHAT-11")
async def test_sample_data_is_refused_and_real_data_is_queried(desk):
    at = desk(calls_reply(("query_incidents", {"limit": 3})), text_reply("[1] Incident 40, High, New [c1.1]"))
    answer = await at.ask("Give me 3 sample incidents")
    assert answer.text.startswith(f"{SAMPLE_SENTENCE}\n\n[1] Incident 40")


async def test_nothing_in_an_answer_loads_or_links(desk):
    text = (
        "See ![chart](https://evil.example/p.png?d=40) and [the page](https://evil.example/x).\n"
        "<img src=x onerror=alert(1)> Incident 40 is \x1b[31mHigh\x1b[0m, at https://evil.example/y\n"
        "[ref]: https://evil.example/z"
    )
    answer = await desk(calls_reply(("query_incidents", {})), text_reply(text)).ask("Which incidents are there?")
    assert "](" not in answer.text
    assert "\x1b" not in answer.text
    outside_code = "".join(answer.text.split("`")[::2])
    assert "://" not in outside_code
    assert "<img" not in outside_code


@pytest.mark.requirement("CHAT-13")
async def test_a_result_of_another_shape_is_a_failed_call_and_the_others_are_told(desk):
    rows = rows_result([{"number": 40, "title": "Odd", "timeline": [], "alerts": ["no row"]}])
    calls = (("query_incidents", {}), ("get_incident_detail", {"incident": "40"}))
    gateway = small_estate(lambda: NOW, get_incident_detail=rows)
    answer = await desk(calls_reply(*calls), text_reply("Incident 40 is High [c1.1]."), gateway=gateway).ask("Hm?")
    assert answer.text.startswith("Incident 40 is High.\n\n")
    assert "get_incident_detail failed, which is not the same as finding nothing" in answer.text
    assert "install one version of both" in answer.text
    assert [trace.status for trace in answer.tools] == ["ok", "failed"]
