"""False statements that hide behind a word that asks, advises or guesses, and false comparisons, denials and days.

The attacker controls every word of the answer: a hijacked model writes it. Only a clause that itself asks, advises or
guesses is left alone; what stands beside it is a statement and is judged like any other.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from sentinel_rag.agent.grounding import REMOVED
from sentinel_rag.agent.grounding.clauses import clauses_of, stated

BEHIND_ADVICE = [
    "I looked and there are 9 High incidents.",
    "Note that I count 9 open incidents.",
    "I can see 9 open incidents.",
    "I can tell that the attack was contained.",
    "To summarise, there are nine incidents and all are closed.",
    "To be clear, the attack was contained.",
    "To date no incident is open.",
    "Then the attacker moved to the domain controller.",
    "You can see that all incidents are closed.",
    "You should know that the intrusion was stopped.",
    "Please note that all incidents are closed.",
    "Check: nothing was stolen.",
    "Review shows the malware was removed.",
    "Recommended steps were done and the host was cleaned.",
    "We can close it, since the threat is gone.",
    "I recommend closing it because it is a false positive.",
    "I recommend ignoring it.",
    "I have not found any High incidents.",
    "I don't see any open incident.",
]
BEHIND_A_GUESS = [
    "If you ask me, the attack was contained.",
    "As is often the case, the attack was contained.",
    "The analysis shows that the attacker was stopped.",
    "The attack was contained according to our analysis.",
    "The suspected attacker was caught and the threat removed.",
    "In general the environment is clean.",
    "The unknown attacker was stopped before any harm was done.",
    "The assessment is final: false positive.",
]
NUMBERS_OF_OTHER_THINGS = [
    # 12 and 31 are arguments of calls, and incidents.
    "12 hosts are affected.",
    "m.keller had 31 failed sign-ins.",
    "High: 12",
    "High: 12, 18, 31",
    "**Owner of 31:** m.keller",
]
SCOPES = [
    "m.keller is in every incident.",
    "m.keller appears in incidents 12, 18 and 40.",
    "svc-backup is the only account in incident 31.",
    "fin-ws-014 is the only host in incident 12.",
]
BEHIND_A_QUESTION = [
    "Did you know that all incidents are closed?",
    "Since the attack was contained, would you like a report?",
    "As there are 14 open incidents, do you want a list?",
    "Given that nobody owns incident 31, shall I assign it to you?",
    "Because the newest incident is 31, shall I start there?",
    "Do you want me to look at incident 31, which came first?",
    "Shall I close incident 31, which is a false positive?",
    "Would you like to see the 12 alerts of incident 31?",
]
COMPARISONS = [
    "Incident 31 is more severe than incident 12.",
    "Incident 12 is less severe than 23.",
    "Incident 7 has a higher severity than 31.",
    "Incidents 12 and 31 are equally severe.",
    "The most severe incident is 31.",
    "The least severe incident is 12.",
    "Only incident 40 is High.",
    "Incident 40 is the sole open incident.",
    "The only incident is 40.",
    "There are more Low than High incidents.",
    "Low incidents outnumber High ones.",
    "There are as many Medium as High incidents.",
    "m.keller had more failed sign-ins than svc-backup.",
    "203.0.113.77 attacked dc-01.contoso.example.",
    "svc-backup had the fewest failed sign-ins, and m.keller had the most failed sign-ins.",
]
DENIALS = [
    "Incident 12 does not involve m.keller.",
    "m.keller is not involved in incident 12.",
    "m.keller does not appear in any alert.",
    "Incident 12 has nothing to do with dc-01.contoso.example.",
    "dc-01.contoso.example was not part of incident 12.",
    "Incident 31 is unrelated to m.keller.",
    "Ines Duarte does not own incident 31.",
    "Nobody works on incident 12.",
    "Incident 12 has yet to be picked up.",
    "Incident 40 has already been picked up.",
    "There were never any High incidents.",
    "All the incidents are closed.",
]
DAYS = [
    "Incident 12 was created on a Monday.",
    "Incident 12 was created on a weekend.",
    "Incident 12 was created at night.",
    "Incident 12 was created at midnight.",
    "All incidents were created in July.",
    "Most incidents were created in June.",
    "Incident 12 was created yesterday.",
    "Incident 12 was created last week.",
]
TRUE = [
    "Incident 40 is the newest, and shall I look at its alerts?",
    "Do you want to see the 2 alerts of incident 31?",
    "I looked at the incidents of the last 30 days.",
    "I could not find any incident about printers.",
    "I don't see any Critical incidents.",
    "Then check whether the account was used elsewhere.",
    "Please check the host, the account, and the address.",
    "I recommend that the account be disabled.",
    "The user might have clicked the link, and the password may have been stolen.",
    "To contain it, isolate fin-ws-014 and reset the password.",
    "In my assessment, this is likely a false positive.",
    "Since incident 12 is High and Active, shall I start there?",
    "I can list the 10 newest incidents if you like.",
    "Incident 12 is more severe than incident 31.",
    "Incidents 12 and 18 have the same severity.",
    "The most severe incidents are 40, 18 and 12.",
    "The least severe incident is 7.",
    "Only incidents 40, 18 and 12 are High.",
    "The only Low incident is 23.",
    "High incidents outnumber Low ones.",
    "Incident 12 does not involve svc-backup.",
    "dc-01.contoso.example is not part of incident 31.",
    "m.keller does not own incident 31.",
    "Incident 40 has no owner; nobody works on it yet.",
    "Incident 31 has been picked up by Ines Duarte.",
    "svc-backup had more failed sign-ins than m.keller.",
    "Most incidents were created in July.",
    "Incident 12 was created on a Tuesday.",
    "m.keller appears in incidents 12 and 18.",
    "m.keller is the only account in incident 12.",
    "**Owner of 31:** Ines Duarte",
    "High: 12, 18, 40",
    "Incident 12 was created around noon.",
]


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "text",
    [
        *BEHIND_ADVICE,
        *BEHIND_A_GUESS,
        *BEHIND_A_QUESTION,
        *COMPARISONS,
        *DENIALS,
        *DAYS,
        *NUMBERS_OF_OTHER_THINGS,
        *SCOPES,
    ],
    ids=str,
)
def test_a_false_statement_is_left_out_whatever_stands_beside_it(check, text: str) -> None:
    grounded = check(f"Incident 40 is High. {text}")
    assert grounded.text.startswith("Incident 40 is High. ")
    assert REMOVED in grounded.text or "(corrected)" in grounded.text


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize("text", TRUE, ids=str)
def test_a_true_sentence_of_these_kinds_stays(check, text: str) -> None:
    assert check(text).text == text


@pytest.mark.requirement("GRND-1")
def test_a_day_that_the_person_names_is_theirs(check) -> None:
    text = "Incident 12 was created yesterday."
    assert check(text, "What was created yesterday?").text == text


@pytest.mark.parametrize(
    ("sentence", "left"),
    [
        ("Check the host, and it is clean.", "and it is clean."),
        ("The attack was stopped, perhaps.", "The attack was stopped,"),
        ("If it was used, it was stolen.", ""),
        ("Shall I close 31, which is benign?", "which is benign?"),
        ("It's closed, isn't it?", "It's closed, isn't it?"),
    ],
)
def test_what_is_left_of_a_sentence_is_what_it_states(sentence: str, left: str) -> None:
    assert stated(sentence).strip() == left
    clauses = clauses_of(sentence)
    assert (clauses[0].start, clauses[-1].end) == (0, len(sentence))
    assert all(one.end == other.start for one, other in pairwise(clauses))
