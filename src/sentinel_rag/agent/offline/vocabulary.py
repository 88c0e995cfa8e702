"""The words that the grammar knows, and the mending of slips of the finger in them.

Only the grammar's own words are mended ("incidnets"); a name is never changed into another name (see `directory`).
"""

from __future__ import annotations

import re

from sentinel_rag.agent.offline.word_lists import word_list

KIND_WORDS: dict[str, str] = {
    word: kind
    for kind, words in {
        "account": "account accounts user users username usernames identity identities person people",
        "host": "host hosts hostname hostnames machine machines device devices server servers computer computers "
        "endpoint endpoints workstation workstations laptop laptops",
        "ip": "ip ips address addresses ipaddress",
        "url": "url urls link links",
        "file": "file files filename filenames",
        "filehash": "hash hashes filehash filehashes",
        "process": "process processes",
        "mailbox": "mailbox mailboxes",
        "mailmessage": "email emails mail mails mailmessage mailmessages",
        "cloud-application": "app apps application applications",
        "azure-resource": "resource resources",
        "dns": "domain domains dns",
        "malware": "malware malwares",
    }.items()
    for word in words.split()
}

_OTHER = word_list(
    """
    child combination combinations consent consented consents identifier identifiers pair pairs parent talk talked talks
    a about above access account active and approximately activity add after again against alert alerts all also am
    an analyst analysts analysis any anyone anything are around as asc ascending ask assign assigned at attack
    attacked attacker attacks attention be because been before begin being belong belongs below best between big
    biggest both brief briefing bucket bump busiest busy but by call called came can case cases change changed
    changes chart classification click clicked close closed closing command comment commented comments commonest
    compare compared comparison complete contain count counts create created critical current currently daily
    dangerous data database day days defender delete describe description descending desc detail detailed details
    detect detected detection detections develop did didn different display distinct do does doing domain done down
    during each earlier
    earliest email entities entity escalate event events ever every everything exact example examples exist fake few
    find fire fired first five for from full fun general get give given go going good got graph group had handover
    happen happened happening happens has have having hello help her here hey hi high higher highest him his history
    host hour hourly hours how hunting id identify ids if impact important in incident incidents include including
    info inform information informational inside into involve involved involving is isolate issue issues it its just
    kind kinds know kql last late latest least less let level like line list listed look low lower lowest made main
    make many mark match me mean medium mention mentioned mentioning mentions message middle minimum mitre moment
    month monthly more morning most much my name named names naming need new newer newest next nobody noisiest noisy
    none not nothing notes now number numbers occur occurred of off often old older oldest on one ones only open
    opened or order other our out over overview overall own owned owner owners owns past peak pending people per
    persons please pls portal present previous print priority problem process product products progress provider put
    quantity queries query question rank ranked ranking rate raise raised ran read recent recently record records
    related report reported resolve resolved responsible result results retained right riskiest row rows run running
    same sample say schema second security see seen send sentinel serious set severe severity severities shift should
    show shown since situation so some someone something sort sorted source start started state statistics stats
    status still story such sum summarise summarize summary summed tactic tactics take targeted table tables
    technique techniques tell template templates tendency than thank thanks that the their them then there these
    they thing things this those threat threats three through time timeline timestamp title titled to today told too
    top total totals touched trend trends trigger triggered two type types unassigned under unresolved until up
    update updated updates upward us use used using value versus very via visit visited volume vs want was watch we
    week weekly well went were what whats when where which while who whom whose why will with within without work
    worked working workspace worry worse worst would wrong yes yesterday yet you your yours accessed act actors
    adversary affected appear appeared appears assignee associated attached became caused cause commands common
    comparing concern concerned conclusion connected connection connections could criticals dataset datasets
    disabled discussed dismissed each else entry executed executable execution explain explained failed failing
    final finished focus follow followed following full happening hit hits indicate indicated indicates indicating
    instance investigate investigating investigation involves ioc iocs key kinds largest launched learn located
    location locations logged login logins logon logons logs long machine malicious maybe might mode monitored near
    nobody observed ongoing opening origin originated outstanding overnight parameters part particular found
    evidence sign signs proof trace traces
    potential potentially previously probable proof prove provide provides question questions quick quickly reason
    recipient reference refers regarding relate relates responsible risk risky same score search searching sender
    senders sequence severitys sha1 sha256 md5 sid sids sign signin signins signed single specific stand standing
    step steps suspicious suspected system systems target targets term terms text time times tool tools unique
    unknown unusual url usage user various view victim victims vulnerable way ways weekend whether whole wise
    without words write written touch touches urgent urgently priorities remediation remediate mitigate mitigation
    technique techniques duration age sev enough upn upns aad entra os pid md primary secondary compromised infected
    bad good safe clean hacked breached dangerous legit legitimate benign harmless guilty trustworthy known zero
    analyze analyse implication implications interpret assess assessment correlate correlation
    attempt attempts lookup lookups inc incs ticket tickets true false positive positives undetermined
    share shared shares sharing overlap both difference differ side linked related
    stop stopped silent reporting offline sending except excepting excluding exclude apart aside leaving longer anymore
    """
)

WORDS = frozenset(_OTHER) | frozenset(KIND_WORDS)

_MENDABLE = sorted(
    {
        *(word for word in KIND_WORDS if len(word) >= 5),
        *word_list(
            """
    incident incidents alert alerts severity medium critical informational status closed resolved active owner
    assigned summary summarize trend weekly hourly yesterday timeline tactics techniques template templates tables
    comments details newest oldest latest recent overview description dismissed progress entities compare number
    count sentinel defender busiest happened created connections unassigned failures
    """
        ),
    }
)
_TOKEN = re.compile(r"(?<![\w@.\\/:'-])[A-Za-z]{5,}(?![\w@\\/:'-]|\.\w)")


def is_known(word: str) -> bool:
    """True if the grammar knows `word` or the word it is an inflection of."""
    word = word.lower().removesuffix("'s").removesuffix("\u2019s")
    if word in WORDS:
        return True
    for ending, base in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and word.removesuffix(ending) + base in WORDS:
            return True
    return False


_ENDINGS = (
    ("ies", "y"),
    ("ied", "y"),
    ("s", ""),
    ("es", ""),
    ("ed", ""),
    ("ed", "e"),
    ("ing", ""),
    ("ing", "e"),
    ("ly", ""),
    ("er", ""),
    ("er", "e"),
)


_NOT_SUCCESSFUL = re.compile(
    r"(?:(?:that|which)\s+)?(?:(?:were|was|are|is)\s+)?\b(?:not\s+success(?:ful(?:ly)?|es)?|unsuccessful)\b"
    r"|(?:(?:that|which)\s+)?\b(?:did\s+not|didn['’]?t)\s+(?:succeed|work)\b",
    re.IGNORECASE,
)


def mend(text: str) -> str:
    """`text` with misspelt words of the grammar put right; everything that looks like a name stays as it is."""
    text = _NOT_SUCCESSFUL.sub("failed", text)
    text = _SHORT.sub(lambda match: _SLIPS[match[0].lower()], text)
    return _TOKEN.sub(_mend_word, text)


_SLIPS = {
    "wich": "which",
    "mny": "many",
    "meny": "many",
    "manny": "many",
    "usr": "user",
    "usrs": "users",
    "whta": "what",
    "wat": "what",
    "teh": "the",
    "hwo": "how",
    "shwo": "show",
    "lsit": "list",
    "opne": "open",
    "aler": "alert",
    "alrt": "alert",
    "alrts": "alerts",
    "hgih": "high",
    "hihg": "high",
    "hots": "hosts",
    "abov": "above",
    "faild": "failed",
    "inciden": "incident",
    "incdent": "incident",
    "whos": "who is",
    "n": "and",
    "w/": "with",
    "w/o": "without",
    "btw": "between",
    "btwn": "between",
    "yday": "yesterday",
    "yest": "yesterday",
    "proc": "process",
    "procs": "processes",
    "conns": "connections",
    "logns": "logons",
    "mttr": "mean time to resolve",
    "mttc": "mean time to close",
    "fp": "false positive",
    "fps": "false positives",
    "tp": "true positive",
    "tps": "true positives",
    "bp": "benign positive",
}
"""Slips and short forms in words that are too short to be mended by distance."""
_SHORT = re.compile(
    rf"(?<![\w@.\\/:'-])(?:{'|'.join(sorted(_SLIPS, key=len, reverse=True))})(?![\w@\\/:'-]|\.\w)", re.IGNORECASE
)


def _mend_word(match: re.Match[str]) -> str:
    word = match[0].lower()
    if is_known(word) or match[0].isupper() or (match[0][0].isupper() and match.start() > 0):
        return match[0]
    for limit in (1, 2):
        if limit == 2 and len(word) < 8:
            break
        near = [known for known in _MENDABLE if len(known) >= 5 and distance(word, known, limit) <= limit]
        near = [known for known in near if known[0] == word[0]]
        if near:
            return min(near, key=lambda known: (distance(word, known, limit), known))
    return match[0]


def distance(left: str, right: str, limit: int) -> int:
    """Edits, with a swap of neighbours counted once (optimal string alignment); above `limit`, `limit + 1`."""
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, one in enumerate(left, start=1):
        older, before, row = before, row, [i]
        for j, other in enumerate(right, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (one != other))
            if i > 1 and j > 1 and one == right[j - 2] and left[i - 2] == other:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return min(row[-1], limit + 1)
