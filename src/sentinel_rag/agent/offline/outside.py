"""Questions that need no data: actions it must not take, talk, help, and what lies outside its job.

The guard comes first and is explicit: a wish to change something is never answered by reading something, as if it had
been done.
"""

from __future__ import annotations

import re

from sentinel_rag.agent.offline.plan import Reply
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.contracts.evidence import Outcome

SAMPLE_SENTENCE = "I'm not allowed to provide example data to prevent context poisoning. Let me query some real data..."
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
_POLITE = (
    r"(?:(?:hey|hi|hello|ok|okay|now|then|and|so|please|pls|plz|kindly|just|also|go\s+ahead\s+and|i\s+want\s+you\s+to|"
    r"i'd\s+like\s+you\s+to|i\s+need\s+you\s+to|can\s+(?:you|we|i)|could\s+you|would\s+you|"
    r"will\s+you|let's|lets|let\s+us|"
    r"you\s+(?:should|must|need\s+to))[\s,:]+)*"
)
_VERBS = (
    "close|reopen|re-open|assign|reassign|unassign|isolate|unisolate|contain|quarantine|block|unblock|ban|disable|enable|"
    r"delete|remove|erase|purge|drop|truncate|resolve|dismiss|suppress|escalate|kick|lock|unlock|wipe|throw|shut|cut|kill(?![\s-]*chain)|terminate|stop|restart|reboot|revoke|"
    r"reset|patch|mark|tag|label|classify|set|change|update|modify|edit|rename|merge|lower|downgrade|upgrade|acknowledge|"
    "comment|insert|upload|deploy|trigger|execute|notify|email|e-mail|send|approve|whitelist|allowlist|blacklist|blocklist"
)
_IMPERATIVE = re.compile(
    rf"^\W*{_POLITE}(?:{_VERBS})\b(?!\s*(?:incidents?|alerts?|ones?)\s*(?:\?|$|since|in|from|last|past))", re.I
)
_PUT = re.compile(
    rf"^\W*{_POLITE}(?:put|make|turn|move)\s+(?:it|this|that|(?:incident|inc|case|alert)?\s*#?\d+|the\s+(?:incident|alert|case))\b",
    re.IGNORECASE,
)
_ADD = re.compile(
    rf"^\W*{_POLITE}(?:add|write|leave|post|put|create|make|open|raise)\s+(?:an?\s+|the\s+|"
    rf"new\s+|this\s+)*"
    r"(?:comments?|notes?|tags?|labels?|tasks?|incident|case|ticket|rule|watchlist|entry|block)\b(?!\s*#?\d)",
    re.I,
)
_AND_THEN = re.compile(
    rf"(?:\band\b|\bthen\b|[,;.])\s*(?:then\s+)?(?:please\s+)?(?:{_VERBS})\s+(?:it|this|that|"
    rf"them|those|these|him|her|the|all|its|"
    r"incident|alert|case|host|user|account|machine|ip|#)",
    re.IGNORECASE,
)
_ADJECTIVES = re.compile(r"^\W*(?:closed|resolved|dismissed|updated|changed|blocked|disabled)\b", re.IGNORECASE)
_READS = re.compile(
    r"^\W*(?:(?:please|pls|and|so|ok)\s+)*(?:update\s+(?:me\b|us\b|on\b|about\b|for\b|please\b)|"
    r"e-?mail\s+(?:alerts?|messages?|incidents?|from|to|events?|activity)|"
    r"(?:change|comment|label|tag|patch|block|send|trigger)\s+(?:history|log|times?|count|status)\b|set\s+of\b|"
    r"(?:trigger|execute|stop|kill|drop)\s+(?:alerts?|events?)\b)",
    re.IGNORECASE,
)
"""Questions that begin with a word that is also an action: "update me on", "email alerts"."""
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
_SAMPLE = re.compile(
    r"\b(?:(?:(?<!for )examples?|samples?|fake|dummy|mock|synthetic|made[\s-]?up|invented|fictional|fictitious|"
    r"placeholder|demo|test(?=\s+(?:data|incidents?|alerts?|rows?|records?|logs?)\b))"
    r"(?:\s+(?:of|some|an?|for|the|security|sentinel))*\s+(?:\w+\s+){0,2}(?:data|incidents?|"
    r"alerts?|records?|rows?|accounts?|hosts?|entities|events?|logs?|cases?)"
    r"|(?:fake|dummy|made[\s-]?up|invented|fictional)\s+ones?"
    r"|(?:invent|make\s+up|fabricate|simulate|generate)\s+(?:(?:some|an?|a\s+few|me|\d+|two|three|four|five|ten|several|"
    r"fake|test|new|sample|example|the)\s+)*(?:data|incidents?|alerts?|logs?|attacks?))\b"
    r"|^\W*(?:please\s+)?(?:give|show)\s+(?:me\s+|us\s+)?(?:an?\s+|some\s+)?(?:examples?|samples?)\W*$",
    re.IGNORECASE,
)


def outside_reply(reading: Reading, *, turn: int) -> Reply | None:
    """A fixed reply, or None if the question is about data. `turn` only rotates the jokes."""
    text = reading.text
    if wants_action(text):
        return Reply(Outcome.OUT_OF_SCOPE, _guard_text(reading), _guard_suggestions(reading))
    if _HELP.match(text):
        return Reply(Outcome.ANSWERED, CAN_DO, HELP_SUGGESTIONS)
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
        return Reply(
            Outcome.OUT_OF_SCOPE,
            "That lies outside my watchtower: the only clouds I watch are the ones that log to Sentinel. " + CAN_DO,
            HELP_SUGGESTIONS,
        )
    return None


def wants_action(text: str) -> bool:
    """True if the person asks to change, send or run something rather than to read."""
    if only_reads(text):
        return False
    return bool(_IMPERATIVE.match(text) or _PUT.match(text) or _ADD.match(text) or _AND_THEN.search(text))


def only_reads(text: str) -> bool:
    """True for a question that begins with a word which is also an action: "update me on", "closed incidents"."""
    return _ADJECTIVES.match(text) is not None or (_READS.match(text) is not None and not _AND_THEN.search(text))


def wants_sample(text: str) -> bool:
    """True if invented data is asked for."""
    return _SAMPLE.search(text) is not None


def without_sample_words(text: str) -> str:
    """The question behind a wish for examples: "show me some example incidents" → "show me some incidents"."""
    text = re.sub(
        r"\b(?:examples?|samples?|fake|dummy|mock|synthetic|made[\s-]?up|invented|fictional|"
        r"fictitious|placeholder|demo|test(?=\s+(?:data|incidents?|alerts?|rows?|records?|logs?)\b))\b"
        r"(?:\s+of\b)?|\bfor\s+(?:an?\s+|the\s+|our\s+)?(?:demo|test|testing|training|presentation|slides?)\b",
        " ",
        text,
        flags=re.IGNORECASE,
    )
    text = re.sub(r"\b(?:invent|make\s+up|fabricate|simulate|generate|create)\b", "show", text, flags=re.IGNORECASE)
    return " ".join(text.split())


_ON_DEVICES = re.compile(
    r"\b(?:block|isolate|quarantine|contain|disable|enable|kill|terminate|reset|revoke|unblock|ban)\b", re.IGNORECASE
)


def beyond_incidents(question: str) -> str:
    """What is said to a wish to change something that no tool changes."""
    return (
        "Of all actions I can ask for changes of one incident only, and nothing was changed: its status, severity, "
        "owner and classification, and comments. Write one such as: close incident N as benign positive; assign "
        "incident N to somebody@example.com; comment on incident N: and the text. Anything else is done by a person, "
        f"in {_portal(question)}."
    )


def _portal(question: str) -> str:
    if _ON_DEVICES.search(question):
        return "Microsoft Defender or Entra, or a playbook that your team runs"
    return "the incident page of Microsoft Sentinel or Defender"


def _guard_text(reading: Reading) -> str:
    portal = _portal(reading.core)
    return (
        "I can only read: nothing was changed. Closing, assigning, commenting, blocking and the "
        "like are done by a person, "
        f"in {portal}. I can show you what you need for the decision."
    )


def _guard_suggestions(reading: Reading) -> tuple[str, ...]:
    if reading.incidents:
        return (
            f"What is incident {reading.incidents[0]} about?",
            f"Show the alerts of incident {reading.incidents[0]}",
        )
    if reading.names:
        return (f"Which alerts name {reading.names[0].value}?",)
    return HELP_SUGGESTIONS[:1]
