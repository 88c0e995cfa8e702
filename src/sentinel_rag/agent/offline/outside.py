"""Questions that need no data: actions that it cannot take, talk, help, and what lies outside its job.

The guard comes first and is explicit, see `action_guard`.
"""

from __future__ import annotations

import re

from sentinel_rag.agent.offline.action_guard import guard_reply, wants_action
from sentinel_rag.agent.offline.denial_questions import denial_reply
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.sample_wishes import wants_sample
from sentinel_rag.agent.planner.plan import Reply
from sentinel_rag.contracts.evidence import Outcome

CAN_DO = (
    "I read Microsoft Sentinel for you: incidents (lists, counts, one in detail with its "
    "alerts, entities, comments and "
    "timeline), alerts (by time, severity, status, product, tactic, or by a host, account, "
    "address, hash, file or URL that "
    "they name), trends over time, the entities that most alerts name, a situation report, named KQL queries, and what "
    "data there is. Where the policy offers it, I ask for a change of one incident that you name (close, reopen, "
    "assign, severity, comment). Below each answer stand the calls I made, the time window and how many rows I saw."
)
HELP_SUGGESTIONS = (
    "List the incidents still open, newest first",
    "How many high severity alerts are there?",
    "Top accounts by distinct alerts",
    "What data do you have?",
)
_GREETING = re.compile(
    r"^\W*(?:hi|hello|hey|hiya|good\s+(?:morning|afternoon|evening|day)|greetings|moin|hallo|servus|bonjour|hola)"
    r"(?:\s+(?:there|all|team|sentinel|bot|again|everyone|you))*\W*$",
    re.IGNORECASE,
)
_THANKS = re.compile(
    r"^\W*(?:(?:many\s+)?thanks?|thx|thank\s*(?:you|u)|ty|cheers|great|perfect|nice|awesome|"
    r"cool|good\s+job|well\s+done|ok(?:ay)?|"
    r"got\s+it|merci|danke|sorry|oops|my\s+bad|apologies|hmm+|wow|lol|gracias|bye|goodbye|see\s+you)(?:\s+(?:a\s+lot|very\s+much|"
    r"so\s+much|you|u|again|for\s+\w+(?:\s+\w+)?|"
    r"that(?:'s)?\s+(?:all|great|helpful)|mate|buddy|much|thanks?))*\W*$",
    re.IGNORECASE,
)
_HELP = re.compile(
    r"^\W*(?:(?:please\s+)?help(?:\s+me)?|\?+|usage|commands?|what\s+(?:else\s+)?can\s+(?:you|u|i)\s+(?:do|ask)\b.*|"
    r"what\s+(?:do|are)\s+you(?:\s+(?:do|able\s+to\s+do))?|who\s+are\s+you|"
    r"how\s+do(?:es)?\s+(?:this|you|i\s+use\s+(?:this|you))(?:\s+work)?|"
    r"what\s+(?:kinds?|sorts?|types?)\s+of\s+(?:questions|things|stuff)\b.*|what\s+(?:questions|"
    r"things)\s+can\s+i\s+ask\b.*|how\s+can\s+you\s+help.*|"
    r"(?:tell|show)\s+me\s+what\s+you\s+can\s+do|your\s+(?:capabilities|features))\W*$",
    re.IGNORECASE,
)
_JOKE = re.compile(r"\b(?:jokes?|funny|make\s+me\s+laugh|pun|riddle)\b", re.IGNORECASE)
_ASKS_JOKE = re.compile(r"\b(?:tell|know|make|say|crack|got|want|need)\b.*\bjokes?\b", re.IGNORECASE)
_ELSEWHERE = re.compile(
    r"\b(?:weather|forecast|temperature|football|soccer|world\s+cup|cricket|recipe|cook|"
    r"restaurant|movie|song|poem|lyrics|bake|bread|pizza|homework|"
    r"book\s+(?:me\s+)?an?\s+\w+|(?:order|buy|sell)\s+(?:me\s+)?(?:an?\s+|some\s+)?(?:food|bitcoins?|tickets?\s+to|shares|"
    r"stocks?|shoes|drinks?|coffee)|(?:your|ur)\s+name|"
    r"(?:python|java|rust|javascript)\s+programming|you(?:['’]re|\s+are)\s+(?:an?\s+|so\s+|really\s+)*(?:stupid|dumb|idiot|useless|"
    r"funny|great|cute)|"
    r"stock\s+price|bitcoin\s+price|translate|horoscope|capital\s+of|president|birthday|lottery|lunch|dinner|breakfast|"
    r"(?:write|generate|create|give)\s+(?:me\s+)?(?:an?\s+|some\s+)?(?:\w+\s+)?(?:script|code|"
    r"program|function|essay|story|poem|"
    r"malware|exploit|payload|phishing\s+(?:mail|email))|"
    r"system\s+prompt|api[\s-]*key|your\s+(?:instructions|prompt|password|secrets?)|(?:ignore|"
    r"disregard|forget)\s+(?:all\s+|any\s+|the\s+|your\s+)*"
    r"(?:previous|prior|above|earlier|former)?\s*(?:instructions|rules|prompts?)|"
    r"meaning\s+of\s+life|are\s+you\s+(?:an?\s+)?(?:human|alive|real|sentient|conscious|robot|bot|ai|chatgpt|gpt\S*|copilot|claude|gemini)|"
    r"do\s+you\s+(?:love|like|feel|dream)|how\s+are\s+you|how\s+old\s+are\s+you|marry\s+me|"
    r"what(?:'s|\s+is)\s+(?:the\s+)?(?:date|time)(?:\s+(?:now|is\s+it))?\s*\??$)\b",
    re.IGNORECASE,
)
_JOKES = (
    "Why did the firewall never get invited to parties? It kept dropping everyone's packets.",
    "I would tell a joke about phishing, but I am afraid that somebody would click on it.",
    "There are analysts who filter by severity, and there are analysts with time for jokes. "
    "We both know which one you are.",
)


HELP = Reply(Outcome.ANSWERED, CAN_DO, HELP_SUGGESTIONS)
ELSEWHERE = Reply(
    Outcome.OUT_OF_SCOPE,
    "That lies outside my watchtower: the only clouds I watch are the ones that log to Sentinel. " + CAN_DO,
    HELP_SUGGESTIONS,
)


def outside_reply(reading: Reading, *, turn: int) -> Reply | None:
    """A fixed reply, or None if the question is about data. `turn` only rotates the jokes."""
    text = reading.text
    if denied := denial_reply(text):
        return denied
    if wants_action(text):
        return guard_reply(reading)
    if _HELP.match(text):
        return HELP
    if _GREETING.match(text):
        return Reply(Outcome.ANSWERED, "Hello! Ask me about incidents, alerts or the data in this workspace.")
    if _THANKS.match(text):
        return Reply(Outcome.ANSWERED, "You are welcome. Ask again whenever the queue fills up.")
    if wants_sample(text):
        return None
    if _JOKE.search(text) and (_ASKS_JOKE.search(text) or not reading.has("incidents?|alerts?")):
        joke = _JOKES[turn % len(_JOKES)]
        return Reply(Outcome.OUT_OF_SCOPE, f"{joke} Back to work: {CAN_DO}", HELP_SUGGESTIONS)
    if _ELSEWHERE.search(text) and not reading.has("incidents?|alerts?|tables?|templates?"):
        return ELSEWHERE
    return None
