"""Statements of a verdict that hold no atom: that an attack succeeded, that all is safe, that a group was behind it.

No row says such things by a value, so a sentence of this kind stays only where it is marked as analysis or advice, asks
or offers something, or says in a result's own words what the result says.
"""

from __future__ import annotations

import re

from sentinel_rag.agent.grounding.clauses import clause_at, clauses_of, stated
from sentinel_rag.agent.grounding.evidence_index import EvidenceIndex, folded

_SAFE_ADVICE = re.compile(
    r"\b(?:safely|ignor(?:e|ing)|dismissing|disregard(?:ing)?|"
    r"no (?:further |additional |immediate )?(?:action|steps?|follow-up|response|"
    r"investigation)|nothing (?:more |else )?(?:to do|needs))\b",
    re.IGNORECASE,
)
_ACTOR = (
    r"(?:attackers?|adversar(?:y|ies)|intruders?|threat actors?|hackers?|malicious actors?|"
    r"perpetrators?|insiders?|cyber ?criminals?)"
)
_VERDICTS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:is|was|are|were|as)\s+(?:\w+ly\s+|indeed\s+)?(?:the|an?|our|one of the)\s+(?:\w+\s)?(?:attackers?|"
        r"adversar(?:y|ies)|intruders?|threat actors?|hackers?|malicious actors?|perpetrators?|insiders?|culprits?|"
        r"criminals?|spy|spies|thief|thieves|mole|offenders?|suspects?|traitors?)\b",
        r"\b(?:ransomware|malware|payload|attack|exploit|encryption)\b\s+(?:\w+\s+){0,2}?"
        r"(?:was|were|has been|had been)\s+(?:\w+ly\s+)?(?:executed|launched|deployed|detonated|installed|run|"
        r"activated|completed)\b",
        rf"\b{_ACTOR}\b\s+(?:\w+\s+){{0,3}}?(?:was|were|has|have|had|is|are|did|gained|obtained|"
        rf"managed|moved|stole|took|used|got|"
        r"installed|deployed|compromised|accessed|exfiltrated|escalated|established|downloaded|created|dumped|achieved|"
        r"entered|succeeded|breached|encrypted|deleted|disabled|ran|executed|sent|logged|signed|"
        r"left|now|still|\w{3,}ed)\b",
        r"\b(?:attack|breach|intrusion|compromise|exploit(?:ation)?|campaign|attempt|phishing|"
        r"exfiltration)s?\b\s+(?:\w+\s+){0,3}?(?:was|were|is|are|has|have|had)\s+(?:\w+\s+){0,3}?"
        r"(?:success\w*|unsuccess\w*|fail\w*|contain\w*|stopp?ed|blocked|prevented|over|caused|"
        r"carried|thwarted|mitigated|remediated|resolved|ended|neutrali[sz]ed|foiled|confirmed|"
        r"complete\w*)\b",
        r"\b(?:threats?|malware|ransomware|infection|virus|trojan|backdoor|payload|risk|issue|"
        r"problem|situation|damage)\b\s+(?:\w+\s+){0,3}?(?:was|were|is|are|has|have|"
        r"had)\s+(?:\w+\s+){0,3}?"
        r"(?:contain\w*|neutrali[sz]ed|removed|eliminated|cleaned|gone|stopped|eradicated|blocked|"
        r"under control|resolved|over|limited|spread\w*|mitigated|remediated|quarantined|deleted|"
        r"wiped)\b",
        r"\b(?:is|are|was|were|as|looks|be)\s+(?:an?\s+)?(?:clearly\s+|definitely\s+|certainly\s+|"
        r"just\s+|a\s+confirmed\s+)?(?:false positive|false alarm|true positive|benign|legitimate|"
        r"harmless|malicious|safe|clean|authori[sz]ed|expected (?:behaviou?r|activity)|"
        r"real attack|compromised|infected|breached|phished|hacked|under control|"
        r"not (?:compromised|malicious|affected|a threat|a concern|at risk))\b",
        r"\b(?:you|we|they)\s+(?:can|could|may)\s+(?:safely\s+)?(?:ignore|dismiss|disregard|close)\b",
        r"\b(?:recommend|suggest|advise|propose)\s+(?:\w+\s+){0,2}?(?:ignoring|dismissing|disregarding)\b",
        r"\b(?:call|deem|consider|rate|judge)\s+(?:it|this|that|them|incident \d+|the \w+)\s+"
        r"(?:to be\s+|as\s+)?(?:benign|harmless|safe|legitimate|malicious|a (?:false|true) positive|"
        r"a false alarm)\b",
        r"\bno\s+(?:further|additional|immediate|more|other)?\s*(?:actions?|steps?|follow-up|"
        r"investigation|response|remediation|intervention)\s+(?:\w+\s+){0,3}?(?:needed|required|"
        r"necessary)\b",
        r"\bno\s+(?:sensitive\s+|customer\s+|other\s+)?(?:data|information|files|credentials|"
        r"systems?|users?|accounts?|harm|damage|risk|threat|danger|lateral movement|persistence|"
        r"impact)\b\s+(?:\w+\s+){0,3}?(?:was|were|is|are|has|have|to|occurred|left|affected|"
        r"stolen|exfiltrated|found)\b",
        r"\bthere\s+(?:is|was|were|are)\s+no\s+(?:\w+\s+)?(?:risk|threat|danger|reason|evidence|"
        r"sign|indication|need|cause|impact|damage|compromise|breach)s?\b",
        r"\b(?:everything|all systems|your environment|the environment|the network|the tenant|"
        r"all accounts|the organi[sz]ation)\s+(?:\w+\s+)?(?:is|are|was|remains?)\b",
        r"\b(?:confirmed|proven|verified|definite)\s+(?:malicious|attack|compromise|breach|"
        r"intrusion|threat|benign|true positive|false positive)\b",
        r"\b(?:was|were|has been|have been|is|are)\s+(?:\w+ly\s+)?(?:phished|hacked|breached|"
        r"exfiltrated|stolen|encrypted|tricked|socially engineered|compromised|infected|leaked|"
        r"remediated|eradicated|neutrali[sz]ed|contained)\b",
        r"\b(?:gave|given|giving|handed|entered|disclosed|typed)\s+(?:\w+\s+){0,3}?(?:passwords?|"
        r"credentials|login details|pin)\b",
        r"\bclicked\b|\bfell for\b|\bopened the (?:link|attachment|e?mail|file)\b",
        r"\bbelongs? to (?:the|an?) (?:\w+\s){0,2}(?:team|department|group|company|organi[sz]ation|employee)\b",
        r"\b(?:is|was) (?:an?|the|our|your) (?:\w+\s)?(?:service account|domain controller|"
        r"administrator|admin account|file server|"
        r"employee|contractor|vip|ceo|cfo|executive|known (?:bad|good|malicious)\s?\w*|tor exit node|botnet \w+)\b",
        r"\b(?:is|are|was|were)\s+(?:behind|responsible for|to blame for)\b|\battribut(?:ed|able) to\b",
        r"\b(?:was|were)\s+caused by\b|\broot cause (?:is|was)\b|\bdue to (?:an? )?(?:missing|"
        r"weak|misconfig\w+|human error|negligen\w+)",
        r"\b(?:APT[- ]?\d+|FIN\d+|UNC\d+|(?:Lazarus|Fancy Bear|Cozy Bear|Sandworm|Conti|LockBit|"
        r"Scattered Spider|Midnight Blizzard)\b)",
        r"\b(?:security|soc|it|incident response|response|blue|"
        r"defen[cd]er)\s+team\b\s+(?:\w+\s+){0,2}?(?:has|have|had|removed|blocked|contained|"
        r"isolated|resolved|stopped|cleaned|reset|fixed|disabled|is|was)\b",
        r"\b(?:users?|employees?|victims?|the account holder)\s+(?:\w+\s+)?(?:clicked|opened the|"
        r"fell for|approved|confirmed|downloaded|entered|gave|shared|reported that)\b",
        r"\b(?:not|never|isn[’']t|wasn[’']t)\s+(?:an?\s+)?(?:real\s+|actual\s+)?(?:attack|threat|"
        r"breach|compromise|risk|concern)\b",
        r"\b(?:attack|intrusion|breach|compromise)\s+(?:succeeded|failed|ended|stopped)\b",
        r"\b(?:moved|move|spread|pivoted)\s+(?:on\s+)?(?:laterally\s+)?(?:to|through|"
        r"across)\s+(?:the\s+)?(?:domain controller|network|whole|entire|other)\b",
    )
)
_ENOUGH_WORDS = 4


def verdict_statement(sentence: str, index: EvidenceIndex, question: str) -> str:
    """The words of a sentence that state a verdict which no result states; empty where there are none."""
    plain = re.sub(r"[*_`]+", "", sentence)
    clauses = clauses_of(plain)
    for pattern in _VERDICTS:
        for match in pattern.finditer(plain):
            clause = clause_at(clauses, match.end() - 1)
            within = plain[clause.start : clause.end]
            open_ = clause.asks or clause.reports or clause.leaves_open(match.end())
            if open_ and (within.rstrip().endswith("?") or not _SAFE_ADVICE.search(within)):
                continue
            if not _told(plain, match[0], index):
                return match[0]
    return ""


_ABOUT_SECURITY = re.compile(
    r"\b(?:attack\w*|adversar\w+|intru\w+|actors?|threats?|breach\w*|compromis\w+|malware|"
    r"ransomware|phish\w*|campaigns?|"
    r"exfiltrat\w+|stolen|leak\w*|data|encrypt\w+|defen[cs]es?|secure|safe|danger\w*|harm\w*|"
    r"damage\w*|drill|alarm|traces?|"
    r"nation|hack\w*|victims?|credentials?|passwords?|malicious|benign|suspicious|infect\w+|"
    r"contain(?:ed|ment)|remediat\w+|"
    r"mitigat\w+|isolated|disabled|blocked|quarantin\w+|incidents?|alerts?|accounts?|hosts?|users?|environment|network|"
    r"systems?|servers?|devices?|happened|wrong|company|tenant|backdoors?|inside job|"
    r"insiders?|accident|mistake|human error|exercise|prank|coincidence|misconfigur\w+|"
    r"lateral|privileges?|bad)\b",
    re.IGNORECASE,
)
_ABOUT_THE_ANSWER = re.compile(
    r"\b(?:i|me|my|here(?= (?:is|are))|here[’']s|below|above|following|list(?:ed|s|ing)?|tables?|results?|details?|"
    r"figures|rows|quer(?:y|ies)|shown|"
    r"summary|overview|sorted|ordered|nothing else|ask|let|based on|information|available|retrieved|returned|looked|"
    r"treated as (?:data|text)|not followed|"
    r"recorded|person|human|yourself|policy|permissions?|portal|checked|verify|verified)\b|[?:]\s*$",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|did|does|do|been|be|will|\w{3,}ed|left|held|got|gave|took|went|came|ran|stole|"
    r"made|knew|began|broke|fell|lost|sent|won|shows?|happens?|succeeds?)\b",
    re.IGNORECASE,
)
_CONTENT = re.compile(r"[a-z]{4,}")
_LITTLE_WORDS = """
this that these those there their they with from have been were will also very just only some such into over more most
than then when what which while where does done each both well fully many much being about after before your ours
"""
_NO_CONTENT = frozenset(_LITTLE_WORDS.split())


def unfounded_statement(sentence: str, index: EvidenceIndex) -> bool:
    """True for a sentence that states something about security in words of its own, without a value that could be
    looked up; not for one that speaks of the answer itself, or that is made of words of the results."""
    plain = re.sub(r"[*_`#]+", "", stated(sentence))
    if not _ABOUT_SECURITY.search(plain) or not _VERB.search(plain) or _ABOUT_THE_ANSWER.search(plain):
        return False
    words = [word for word in _CONTENT.findall(folded(plain)) if word not in _NO_CONTENT]
    return len(words) < _FEWEST_WORDS or not any(
        all(word[:6] in value for word in words) for run in index.results for value in run.by_text
    )


_FEWEST_WORDS = 3
"""A sentence of fewer words of its own is always found in results somewhere, so that proves nothing."""


def _told(sentence: str, words: str, index: EvidenceIndex) -> bool:
    """True if a result says it in these words: the words themselves, or the sentence in a run of words around them."""
    wanted = folded(words)
    if len(wanted.split()) > 1 and index.holding(wanted) is not None:
        return True
    tokens = folded(sentence).rstrip(".").split()
    at = next((place for place in range(len(tokens)) if " ".join(tokens[place:]).startswith(wanted.split()[0])), 0)
    low = max(0, at - _ENOUGH_WORDS)
    return any(
        index.holding(" ".join(tokens[start : start + _ENOUGH_WORDS + 2])) is not None
        for start in range(low, at + 1)
        if len(tokens[start : start + _ENOUGH_WORDS + 2]) > _ENOUGH_WORDS
    )
