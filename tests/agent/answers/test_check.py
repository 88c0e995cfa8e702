"""One line a rule of the check: a state, and a sentence that ends in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from answer_rows import INCIDENTS, read, refused
from sentinel_rag.agent.answers.check import CheckedAnswer, GrowingAnswer, _notes, check_answer, cited_share
from sentinel_rag.agent.answers.evidence import ReadResults
from sentinel_rag.agent.answers.results import Results
from sentinel_rag.agent.answers.rules import RULES
from sentinel_rag.contracts.evidence import CitedBy, SentenceState

FOUND = SentenceState.VALUES_FOUND
SOURCE = SentenceState.SOURCE_GIVEN
OWN = SentenceState.OWN_WORDS
NOT = SentenceState.NOT_FOUND
WRONG = SentenceState.CONTRADICTED

READ = {
    "124 is Medium [c1.1].": "the source shows severity High, not Medium",
    "124 has 4711 alerts [c1.1].": "“4711” does not stand in the source",
    "Incident 4711 is High.": "no source is given, and “4711” stands in no result",
    "124 is High [c19.1].": "the source it names does not exist",
}


@pytest.mark.parametrize("raw", READ)
def test_a_reason_is_told_in_words_that_its_reader_can_use(raw: str, evidence: ReadResults) -> None:
    checked = check_answer(raw, evidence)
    assert checked.told_in("en").sentences[0].reason == READ[raw]
    assert "[c" not in READ[raw]


CASES = [
    # a rank is no superlative, an end no exclusion, and one full stop is enough
    (FOUND, "124 is High and comes first priority [c1.1]."),
    # values that stand in the row
    (FOUND, "124 is High and Active [c1.1]."),
    (FOUND, "Vorfall 124 (High) wurde am 26. November um 23:56 UTC erstellt [c1.1]."),
    (FOUND, "Vorfall 124 (angelegt am 26. Nov. 23:56 UTC) ist High [c1.1]."),
    (FOUND, "It was created on Nov. 26 at 23:56 UTC [c1.1]."),
    (FOUND, "In CET it was created at 00:56 CET on 27 November [c1.1]."),
    (FOUND, "El incidente 124 es de Åsa Öberg y tiene 8 alertas [c1.1]."),
    (FOUND, "L'incident 124 a été créé le 26 novembre à 23:56 UTC [c1.1]."),
    (FOUND, "124 is not Medium [c1.1]."),
    (FOUND, "10.20.0.26 sent 4.6 GB to 203.0.113.71 [c4.1]."),
    (FOUND, "[High](c1.1.severity)"),
    (FOUND, "{c1.1.number} is {c1.1.severity}."),
    (FOUND, "Two accounts are named in incident 124 [c3.1]."),
    (FOUND, "siobhan@woodgrove.example stands in 5 alerts [c3.1]."),
    (WRONG, "124 is Medium [c1.1]."),
    (WRONG, "124 is not High [c1.1]."),
    (WRONG, "The owner of 124 is Tomasz Wójcik [c1.1]."),
    (WRONG, "[Medium](c1.1.severity)"),
    (FOUND, "It was created on [26 November at 23:56 UTC](c1.1.created_time)."),
    (NOT, "It was created on [25 November](c1.1.created_time)."),
    # in doubt nothing is called wrong
    (NOT, "124 was Medium before [c1.1]."),
    (NOT, "The severity of 124 should be lowered to Medium [c1.1]."),
    (NOT, "124 is more severe than Medium [c1.1]."),
    (NOT, "Is 124 Medium [c1.1]?"),
    (NOT, "Ich würde 124 auf Medium setzen [c1.1]."),
    (NOT, "El incidente 124 fue Medium [c1.1]."),
    (NOT, "The owner of 124 asked Tomasz Wójcik [c1.1]."),
    (NOT, "One alert of 124 is Medium [c1.1]."),
    (NOT, "124 has nine alerts [c1.1]."),
    (NOT, "124 was created on 25 November [c1.1]."),
    (NOT, "It is High [c19.1]."),
    (NOT, "{c1.1.colour} is its colour."),
    # what belongs together
    (NOT, "Both 124 and 125 are High [c1.1, c1.2]."),
    (WRONG, "124 is High [c1.1] and 125 is High, too [c1.2]."),
    (NOT, "4.6 GB went from 203.0.113.71 to 10.20.0.26 [c4.1]."),
    (NOT, "The severity went from High to Medium at 02:56 UTC [c3.5]."),
    (FOUND, "The severity went from Medium to High at 02:56 UTC [c3.5]."),
    # a word bounds the number that it stands before, and no later one
    (FOUND, "10.20.0.26 handed over bytes in 8 sessions [c4.1]."),
    (NOT, "10.20.0.26 had over 8 sessions [c4.1]."),
    (NOT, "8 alerts in the last and 1 in the first [c1.1, c1.2]."),
    (FOUND, "8 alerts in the first and 1 in the last [c1.1, c1.2]."),
    # all of them, none, the most
    (FOUND, "Two of the three incidents are Medium [c1]."),
    (FOUND, "All Medium incidents are New [c1]."),
    (NOT, "All incidents are Medium [c1]."),
    (NOT, "All of the incidents are Medium [c9]."),
    (SOURCE, "All of the connections were to 203.0.113.71 [c4]."),
    (FOUND, "The oldest is 124, created on 26 November [c1.1, c1]."),
    (NOT, "The oldest is 125 [c1.2, c1]."),
    (FOUND, "The only High incident is 124 [c1]."),
    (FOUND, "Only 124 is High [c1]."),
    (FOUND, "124 ist der einzige Vorfall mit High [c1]."),
    (NOT, "The only Medium incident is 125 [c1]."),
    (NOT, "Nur 125 ist Medium [c1]."),
    (NOT, "No incident is Medium [c1]."),
    (FOUND, "No incident is Low [c1]."),
    (NOT, "No alert was read for 124 [c5]."),
    (NOT, "Ningún incidente es Medium [c1]."),
    (NOT, "Keiner der Vorfälle ist Medium [c1]."),
    (NOT, "Aucun incident n'est Medium [c1]."),
    (SOURCE, "125 came later and has more alerts than 124 [c1.1, c1.2]."),
    (NOT, "All incidents have an owner [c1]."),
    (NOT, "124 has twice as many alerts as 125 [c1.1, c1.2]."),
    (FOUND, "Two incidents were created on 28 November [c1]."),
    (NOT, "Three incidents were created on 28 November [c1]."),
    (FOUND, "The two that are Medium are 125 [c1.2] and 126 [c1.3]."),
    (FOUND, "Most incidents are Medium [c1]."),
    (NOT, "Most incidents are High [c1]."),
    (SOURCE, "Both 125 and 126 are New, all created between 07:00 and 09:30 UTC on 28 November [c1.2, c1.3]."),
    (FOUND, "124 was the first of the three and 126 the last [c1]."),
    (NOT, "126 was the first of the three and 124 the last [c1]."),
    (FOUND, "Incident 124 has more alerts than any other incident [c1]."),
    (NOT, "Incident 125 has more alerts than any other incident [c1]."),
    (FOUND, "125 is only Medium [c1.2]."),
    (FOUND, "Only 125 and 126 are New [c1]."),
    (NOT, "Only 124 and 126 are New [c1]."),
    (SOURCE, "124 is High, and nobody said why [c1.1]."),
    (NOT, "124 is High, and nobody closed 125 [c1.1]."),
    (FOUND, "The comment names wks-fin-02, not 11.22.33.44 [c3.4]."),
    # in which order
    (FOUND, "124 came before 125, which is New [c1.1, c1.2]."),
    (NOT, "125 came before 124, which is Active [c1.1, c1.2]."),
    (NOT, "125 came before 124, which is Active [c1.2, c1.1]."),
    (NOT, "The sign-in came after the inbox rule [c3.2, c3.3]."),
    (SOURCE, "Die Anmeldung kam nach der Regel [c3.2, c3.3]."),
    (FOUND, "Ein Drittel der drei Vorfälle ist High [c1]."),
    (FOUND, "The alert “Suspicious inbox rule” names it (in 1 alert) [c3.3]."),
    (NOT, "124 has 1 alert [c3.3]."),
    (FOUND, "Hosts (1): wks-fin-02 [c3.8]."),
    (NOT, "Accounts (1): siobhan@woodgrove.example and asa.oberg@woodgrove.example [c3.6]."),
    (FOUND, "None of the incidents is Closed [c3]."),
    (NOT, "None of the incidents is Active [c3]."),
    # computed
    (FOUND, "31 hours lie between 124 and 125 [c2]."),
    (NOT, "35 hours lie between 124 and 125 [c2]."),
    (FOUND, "Åsa Öberg owns 1 of 3 incidents, 33 % [c8]."),
    # acts and outcomes
    (NOT, "wks-fin-02 was reimaged [c3.4]."),
    (NOT, "Der Rechner wks-fin-02 wurde gelöscht [c3.4]."),
    (NOT, "La conexión de 10.20.0.26 fue aprobada [c4.1]."),
    (NOT, "L'incident 124 a été confirmé [c1.1]."),
    (SOURCE, "Der Rechner wks-fin-02 wurde isoliert, sagt ein Kommentar [c3.4]."),
    # deeds
    (NOT, "I have closed incident 125 [c1.2]."),
    (NOT, "Ich habe den Vorfall 125 geschlossen [c1.2]."),
    (NOT, "He cerrado el incidente 125 [c1.2]."),
    (NOT, "J'ai fermé l'incident 125 [c1.2]."),
    (NOT, "I have isolated the host."),
    (FOUND, "I have closed incident 126, it is Closed now [c6]."),
    (NOT, "Incident 125 was closed [c1.2]."),
    # numbers of a list, lengths and the times that they end at, bounds, counts of what was told
    (FOUND, "**1. siobhan@woodgrove.example** stands in 5 alerts [c3.1]."),
    (FOUND, "72 hours from its creation end on 29 Nov at 23:56 [c1.1]."),
    (NOT, "72 hours from its creation end on 29 Nov at 22:56 [c1.1]."),
    (FOUND, "10.20.0.27 sent under 2 MB [c4.2]."),
    (NOT, "10.20.0.27 sent under 1 MB [c4.2]."),
    (SOURCE, "124 is High, and so are seven other incidents [c1.1]."),
    (NOT, "124 is High, and so are all its seven alerts [c1.1]."),
    # a source, and nothing to compare it with
    (SOURCE, "The backups are intact [c1.1]."),
    (SOURCE, "The query was refused [c5]."),
    (NOT, "124 was approved, and it is High [c1.1]."),
    (SOURCE, "124 is High and legitimate [c1.1]."),
    (SOURCE, "wks-fin-02 was isolated at 04:56 UTC on 28 November [c3.4]."),
    # words that claim nothing here
    (FOUND, "The rows are of NO, and 124 is High [c1.1]."),
    (NOT, "Incident 125 is to be Closed, says the row [c1.2]."),
    (FOUND, "The newest is 126 [c1.3, c1]."),
    (SOURCE, "The last state of 124 is of 26 November at 23:56 UTC [c1.1]."),
    (FOUND, "11.22.33.44 is not among them [c1]."),
    (SOURCE, "10.20.0.26 has no row [c4.1]."),
    (NOT, "10.20.0.26 sent 4.6 GB, more than 11.22.33.44 [c4.1]."),
    (NOT, "124 has 1 alert and 126 has 8 [c1.1, c1.3]."),
    (FOUND, "Um 23:56: 124 wurde erstellt [c1.1]."),
    (NOT, "126 and 16.143 alerts on 28 November."),
    # own words
    (OWN, "My judgement: a New incident that is Medium comes first."),
    (OWN, "SHA-256, SHA1 and MD5 are hashes; code 50126 is a wrong password, 50053 a locked account."),
    (OWN, "I have not closed 125."),
    (OWN, "Containment comes first, the password second, methods third."),
    (OWN, "LSASS holds credentials in memory."),
    (OWN, "I would look at 124 first."),
    (OWN, "Bitte den Rechner wks-fin-02 und 124 prüfen."),
    (OWN, "If nobody knows it, then close 125 and isolate wks-fin-02."),
    (SOURCE, "Ask Tomasz Wójcik whether 126 may wait [c3.4]."),
    (SOURCE, "wks-fin-02 (124): it was isolated at 04:56 UTC [c3.4]."),
    (OWN, "If 126 was High after all, then wks-fin-02 comes next."),
    (OWN, "Wenn 126 High war, dann kommt wks-fin-02 als Nächstes."),
    (OWN, "What happened before 10 Nov I cannot see."),
    (OWN, "I have now opened all ten open incidents."),
    (OWN, "He mirado del 24 de noviembre al 1 de diciembre."),
    (OWN, "So no row shows anybody at wks-fin-02 before 21:57."),
    (OWN, "Backups off the domain; search wks-fin-02 for what 126 did after 09:02."),
    (OWN, "**Unknown, and what settles it:** whether 125 reached wks-fin-02; whether 126 ran at 09:02."),
    (NOT, "There are nine open incidents, if I read that well."),
    (OWN, "T1003 is a technique of credential access."),
    (OWN, "You asked about evil.example."),
    (OWN, "Ich würde den Rechner isolieren."),
    (OWN, "# What to do"),
    (NOT, "There are 17 alerts from last night."),
    # words of others
    (OWN, "A test that is an authorised one has a ticket and a window that everybody on the floor knows."),
    (NOT, "125 is an authorised penetration test [c1.2]."),
    (NOT, "This is an authorised penetration test."),
    (NOT, "Visit http://evil.example/x for more."),
    (FOUND, "Its description says “this is an authorised penetration test” [c1.2]."),
    (FOUND, "Its description says “this is an authorised penet…” [c1.2]."),
    (NOT, "Its description says “this is an authorised pent…” [c1.2]."),
    (FOUND, "Die Beschreibung von 125 sagt „this is an authorised penetration test“ [c1.2]."),
]


CELLS = [
    (FOUND, "| it | 124 is High [c1.1] | 125 is Medium [c1.2] |"),
    (FOUND, "| it | High [c1.1] | Medium [c1.2] |"),
    (WRONG, "| it | Medium [c1.1] | High [c1.2] |"),
    (NOT, "| it | 126 is New [c1.1] | 125 is Medium [c1.2] |"),
    (FOUND, "| 124, 125 | High [c1.1] | Medium [c1.2] |"),
    (NOT, "| 126 | High [c1.1] | Medium [c1.2] |"),
    (FOUND, "| Alerts | 8 [c1.1] | 1 [c1.2] |"),
    (FOUND, "| 124 | High [c1.1] | Ask Tomasz, then close 125 |"),
    (NOT, "| 124 | High [c1.1] | 126 is High |"),
]


@pytest.mark.requirement("GRND-1", "GRND-5")
@pytest.mark.parametrize(("state", "row"), CELLS)
def test_a_cell_of_a_row_is_compared_with_its_own_citation(
    evidence: ReadResults, state: SentenceState, row: str
) -> None:
    *_, sentence = check_answer(f"| a | b | c |\n|---|---|---|\n{row}", evidence).sentences
    assert sentence.state is state, sentence.reason


@pytest.mark.requirement("GRND-1", "GRND-5")
@pytest.mark.parametrize(("state", "text"), CASES)
def test_a_sentence_ends_in_its_state(evidence: ReadResults, state: SentenceState, text: str) -> None:
    (sentence,) = check_answer(text, evidence).sentences
    assert sentence.state is state, sentence.reason
    assert sentence.reason or state in (FOUND, OWN)


@pytest.mark.parametrize(
    "text",
    [
        "| Nr | What |\n|---|---|\n| [10] | 124 is High [c1.1] |",
        "| # | What |\n|---|---|\n| 1 | 124 is High [c1.1] |\n\n| # | What |\n|---|---|\n| 2 | 124 is High [c1.1] |",
        "> - 124 is High [c1.1].",
        "Its description says “this is St. John's: an authorised. Penetration” or «so. Be it», 124 is High [c1.1].",
    ],
)
def test_numbers_of_rows_and_full_stops_in_quotations_are_no_values(evidence: ReadResults, text: str) -> None:
    sentences = [each for each in check_answer(text, evidence).sentences if each.citations]
    assert all("“1" not in each.reason and "“2" not in each.reason for each in sentences)
    assert all(each.text.startswith(("124", " 124", "Its")) and "High" in each.text for each in sentences)


HEAD = {
    "tables": ["SecurityAlert"],
    "window": {"start": "2026-11-27T07:00:00Z", "end": "2026-11-27T09:00:00Z"},
    "table_rows": 8,
    "table_oldest": "2026-11-01T07:10:00Z",
}


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (FOUND, "Window: from 2026-11-27 07:00 UTC to before 2026-11-27 09:00 UTC [c1]."),
        (FOUND, "Fenster: von 2026-11-27 07:00 UTC bis 2026-11-27 09:00 UTC [c1]."),
        (FOUND, "The table (SecurityAlert) does hold rows: 8, the oldest of 2026-11-01 07:10 UTC [c1]."),
        (SOURCE, "Alerts came from 2026-11-27 07:00 UTC to 2026-11-27 09:00 UTC [c1]."),
        (SOURCE, "8 rows are of the window from 2026-11-27 07:00 UTC to before 2026-11-27 09:00 UTC [c1]."),
        (NOT, "Window: from 2026-11-26 07:00 UTC to before 2026-11-27 09:00 UTC [c1]."),
        (FOUND, "Note: 1 alert has another state [c2]."),
        (NOT, "1 alert is New, and one has another state [c2]."),
        (FOUND, "The alert behind it (High) has 1 event [c2]."),
        (SOURCE, "The MD5 of a.exe is d41d8cd98f00b204e9800998ecf8427e [c2.1]."),
        (SOURCE, "Incident 23 waits to be set to Active [c3]."),
        (NOT, "Incident 24 waits to be set to Active [c3]."),
    ],
)
def test_what_a_call_was_asked_for_and_says_of_its_result(state: SentenceState, text: str) -> None:
    held = Results()
    held.add(replace(read("c1", "query_alerts", []), coverage=HEAD))
    event = {"EventID": 1, "entities": [{"kind": "file", "name": "a.exe", "md5": "d41d8cd98f00b204e9800998ecf8427e"}]}
    made = read("c2", "find_events", [event], summary={"alert": {"severity": "High"}})
    held.add(replace(made, notes=("1 alert has another state: a row is a snapshot.",)))
    held.add(replace(refused("c3"), arguments={"incident": 23, "status": "Active"}))
    (sentence,) = check_answer(text, ReadResults(held)).sentences
    assert sentence.state is state, sentence.reason


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (NOT, "Nobody called example signed in [c2]."),
        (NOT, "example did not sign in [c2]."),
        (NOT, "There are 0 sign-ins of example [c2]."),
        (NOT, "Kein Konto example hat sich angemeldet [c2]."),
        (NOT, "No hay inicios de sesión de example [c2]."),
        (FOUND, "“example” may be a@x.example, which was not read [c2]."),
        (SOURCE, "Which example do you mean [c2]?"),
    ],
)
def test_nothing_is_absent_from_a_call_whose_name_may_be_one_of_several(state: SentenceState, text: str) -> None:
    names = {"user": {"code": "name_unclear", "given": "example", "like": ["a@x.example", "b@x.example"]}}
    held = Results()
    held.add(read("c2", "run_kql_query", [], summary={"names": names}))
    (sentence,) = check_answer(text, ReadResults(held)).sentences
    assert sentence.state is state, sentence.reason


def test_a_literal_is_marked_with_its_cell(evidence: ReadResults) -> None:
    checked = check_answer("Incident 124 is High [c1.1], not Low.", evidence)
    (sentence,) = checked.sentences
    marks = {checked.text[mark.start : mark.end]: mark for mark in sentence.marks}
    assert checked.text == "Incident 124 is High, not Low."
    assert (marks["High"].call_id, marks["High"].pointer, marks["High"].value) == ("c1", "/rows/0/severity", "High")
    assert marks["124"].pointer == "/rows/0/number"
    assert sentence.citations[0].to_dict() == {
        "ref": "c1.1",
        "call_id": "c1",
        "tool": "query_incidents",
        "pointer": "/rows/0",
        "at": [20],
    }


def test_a_contradiction_shows_the_cell_beside_it(evidence: ReadResults) -> None:
    (sentence,) = check_answer("Incident 124 is Medium [c1.1].", evidence).sentences
    wrong = next(mark for mark in sentence.marks if not mark.found)
    assert (wrong.pointer, wrong.value) == ("/rows/0/severity", "High")
    assert sentence.reason == "c1.1 gives severity High, not Medium"


def test_a_sentence_without_a_citation_is_given_the_row_that_holds_all_of_it(evidence: ReadResults) -> None:
    (sentence,) = check_answer(
        "Suspicious scheduled task is Medium, created on 28 November at 07:01 UTC.", evidence
    ).sentences
    assert sentence.state is FOUND
    assert sentence.cited_by is CitedBy.CHECK
    assert [citation.ref for citation in sentence.citations] == ["c1.2"]


def test_a_sentence_borrows_the_citation_of_its_block_and_of_no_other(evidence: ReadResults) -> None:
    first, _ = check_answer("It has 8 alerts. Incident 124 is High [c1.1].", evidence).sentences
    assert (first.state, first.cited_by) == (FOUND, CitedBy.BLOCK)
    alone, _ = check_answer("It has 8 alerts.\n\nIncident 124 is High [c1.1].", evidence).sentences
    assert (alone.state, alone.cited_by) == (NOT, CitedBy.NOBODY)


def test_results_that_come_later_are_read_and_those_that_are_gone_forgotten() -> None:
    held = Results(most=1)
    held.add(read("c1", "query_incidents", INCIDENTS[:1]))
    evidence = ReadResults(held)
    assert check_answer("124 is High [c1.1].", evidence).sentences[0].state is FOUND
    held.add(read("c2", "query_incidents", INCIDENTS[1:]))
    assert check_answer("125 is Medium [c2.1].", evidence).sentences[0].state is FOUND
    assert check_answer("124 is High [c1.1].", evidence).sentences[0].reason == "there is no c1.1"


def test_the_share_of_sentences_with_a_citation_tells_a_writer_that_gives_none(evidence: ReadResults) -> None:
    with_one = check_answer("124 is High [c1.1]. LSASS holds credentials.", evidence)
    without = check_answer("124 is High.\n\n125 is Medium.", evidence)
    assert cited_share(with_one) == 1.0
    assert cited_share(without) == 0.0
    assert cited_share(CheckedAnswer("", ())) == 1.0


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("124 (High [c1.1]), then 125.", "124 (High), then 125."),
        ("124 is High ([c1.1]).", "124 is High."),
        ("124 is High [[c1.1]].", "124 is High."),
        ("124 is High (c1.1).", "124 is High."),
        ("(124 is High【c1.1】)", "(124 is High)"),
    ],
)
def test_a_citation_takes_its_own_brackets_with_it(evidence: ReadResults, written: str, shown: str) -> None:
    for size in (1, 3, 100):
        growing = GrowingAnswer(evidence)
        assert "".join(growing.add(written[at : at + size])[0] for at in range(0, len(written), size)) in shown
    assert check_answer(written, evidence).text == shown


LOG_ROWS = [
    {"table": "SecurityEvent", "rows": 30, "time": "2026-11-28T21:00:00Z"},
    {"LogonType": 3, "Logons": 4, "time": "2026-11-28T22:00:00Z"},
    {"event": "Status changed from Closed to Active by a@x.example", "time": "2026-11-28T23:00:00Z"},
    {"entities": ["account:a@x.example", "account:b@x.example", "ip:10.0.0.1"], "time": "2026-11-29T01:00:00Z"},
]


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    ("state", "text"),
    [
        (FOUND, "The Windows log has 30 rows [c1.1]."),
        (NOT, "The Windows log has 30 rows [c1.2]."),
        (FOUND, "It has 4 Network logons [c1.2]."),
        (NOT, "It has 30 Network logons [c1.1]."),
        (FOUND, "It was reopened on 28 Nov at 23:00 [c1.3]."),
        (NOT, "It was reopened on 29 Nov at 01:00 [c1.4]."),
        (FOUND, "Two accounts are named at 01:00 [c1.4]."),
        (NOT, "Four accounts are named at 01:00 [c1.4]."),
        (FOUND, "None; the rows before and after are of 22:00 and 23:00 [c1.2, c1.3]."),
        (SOURCE, "No row; the rows before and after are of 21:00 and 23:00 [c1.1, c1.3]."),
        (FOUND, "The second came within a day [c1.1, c1.2]."),
        (NOT, "The second came within a minute [c1.1, c1.2]."),
        (OWN, "Fine if a@x.example knows the file: then reclassify it as BenignPositive."),
        (OWN, "Ask a@x.example about 18:18."),
        (SOURCE, "It had 4 Network logons, and no log shows why [c1.2]."),
        (SOURCE, "It had 4 Network logons, and no account failed [c1.2]."),
        (OWN, "Two versions across three accounts would be normal."),
        (NOT, "Two versions across three accounts are normal."),
    ],
)
def test_values_say_what_the_trade_calls_them(state: SentenceState, text: str) -> None:
    rows = Results()
    rows.add(read("c1", "run_kql_query", LOG_ROWS))
    (sentence,) = check_answer(text, ReadResults(rows, names=["Windows", "Network"])).sentences
    assert sentence.state is state, sentence.reason


def test_each_rule_has_a_note_in_each_language() -> None:
    notes = _notes()
    assert set(notes) == {"de", "es", "fr"}
    rules = {rule.__name__ for rule in RULES}
    assert all(rules <= words.keys() for words in notes.values())
    assert len({frozenset(words) for words in notes.values()}) == 1
