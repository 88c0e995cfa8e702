"""The words by which an intent is recognised, as data.

Each cue is a pattern over the question without its names and times. The planner combines cues with constraints (an id
is present, a kind is named); no cue decides alone.
"""

from __future__ import annotations

import re

from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.offline.vocabulary import KIND_WORDS

INCIDENT = r"incidents?|incs?|cases?|tickets?"
ALERT = r"alerts?|(?<!risk\s)detections?|alarms?|alerted"
COUNT = (
    r"how\s+(?:many|much)|number\s+of|count(?:\s+of)?|total(?:\s+(?:number|of|count))?|amount\s+of|quantity|"
    r"nr\s+of|no\.\s+of|in\s+total"
)
TREND = (
    r"(?:per|by|each|every|a)\s+(?:day|hour|week)|trends?|trending|over\s+time|time\s*series|"
    r"hourly|daily|weekly|busiest|quietest|peaks?|"
    r"graph|chart|plot|histogram|volume|(?:going|went|gone)\s+(?:up|down)|increas\w+|"
    r"decreas\w+|ris(?:e|ing)|fall(?:ing)?|"
    r"develop(?:ed|ing|ment)?|spik\w+|evolution|evolv\w+|most\s+alerts\s+(?:in\s+a|per)\s+day|"
    r"which\s+(?:day|hour|week)|what\s+(?:day|hour)"
)
TOP = (
    r"top|most\s+(?:alerts|attacked|targeted|affected|alerted|active|common|frequent(?:ly)?|"
    r"often|seen|named|mentioned|incidents|hit)|"
    r"(?:affected|attacked|targeted|hit|alerted|mentioned)\s+(?:the\s+)?most|the\s+most|noisiest|riskiest|busiest|worst|rank(?:ed|ing)?|commonest|highest\s+number|biggest|loudest"
)
SUMMARY = (
    r"under\s+attack|status\s+(?:update|report)|everything\s+(?:ok(?:ay)?|fine|quiet|under\s+control)|all\s+(?:quiet|"
    r"good|clear)|what\s+did\s+(?:i|we)\s+miss|"
    r"summar(?:y|ise|ize)|overview|situation|report|hand-?over|brief(?:ing)?(?:\s+me)?|sitrep|recap|digest|highlights|"
    r"what(?:'s|\s+is|\s+was|\s+has|s)?\s+(?:happened|happening|going\s+on|been\s+happening|"
    r"been\s+going\s+on|up|new|the\s+situation)|"
    r"what\s+happened|whats?\s+going\s+on|worr(?:y|ied|ying)|anything\s+(?:interesting|bad|"
    r"unusual|wrong|important|serious|going\s+on|new|"
    r"i\s+should|to\s+(?:know|worry))|state\s+of|catch\s+me\s+up|how\s+(?:are|is)\s+(?:we|"
    r"things|it|everything|the\s+day)|"
    r"threats?(?:\s+(?:overview|landscape|picture))?|posture|did\s+i\s+miss"
)
PRIORITY = (
    r"(?:look\s+(?:at|into)|do|check|handle|tackle|investigate|triage|work\s+on|start(?:\s+with)?|see|read)\s+"
    r"(?:\w+\s+)?first|priorities|(?:what(?:'s|s)?|which)\s+(?:is|are|has|have)\s+(?:the\s+)?(?:top\s+)?priority|"
    r"urgent(?:ly)?|pressing|where\s+(?:do|should|can|must|shall)\s+(?:i|we)\s+(?:start|begin)|where\s+to\s+(?:start|"
    r"begin)|needs?\s+(?:my\s+|our\s+|immediate\s+)?attention"
)
COMPARE = (
    r"(?:more|less|fewer)\s+(?:alerts|incidents)\b.*\bthan|"
    r"compar(?:e|ed|ing|ison)|versus|vs\.?|difference|differ|against\s+(?:the\s+)?(?:week|month|day)|week\s+over\s+week"
)
TABLES = (
    r"tables?|what\s+(?:kind\s+of\s+)?(?:data|logs)|which\s+(?:data|logs)|data\s*(?:sources?|"
    r"sets?)|how\s+(?:old|fresh|recent|current)\s+is\s+(?:the|this|our|your)\s+data|"
    r"(?:data\s+)?freshness|retention|how\s+far\s+back|log\s+sources|is\s+there\s+(?:any\s+)?data"
)
TEMPLATES = (
    r"(?:kql\s+)?templates?|(?:kql|hunting|saved|named|available)\s+quer(?:y|ies)|(?:which|"
    r"what)\s+(?:kql\s+)?(?:quer(?:y|ies)|hunts)|hunts|kql"
)
LOGS = (
    r"(?:programs?|executables?|commands?|binaries)\s+(?:\w+\s+)?(?:ran|run|started|executed|launched)|"
    r"sign[\s-]?ins?|log[\s-]?(?:ins?|ons?)|logged\s+(?:in|on)|signed\s+in|authenticat\w+|"
    r"processes\s+(?:that\s+)?(?:ran|started|executed|launched|created|on)|"
    r"process\s+(?:creation|tree|events)|"
    r"(?:ran|started|executed|launched)\s+on|network\s+connections?|connections?|"
    r"dns\s+(?:quer\w+|lookups?)|office\s+(?:activit\w+|operations?)|do\s+in\s+office|consent(?:s|ed)?|talk(?:s|ed)?\s+to|"
    r"(?:in|known\s+to)\s+threat[\s-]+intel\w*|threat[\s-]+intel\w*\s+on|mailbox\s+(?:rules?|activit\w+|access)|"
    r"inbox\s+rules?|"
    r"azure\s+(?:activit\w+|resources?|operations?|changes?)|audit\s*logs?|"
    r"role\s+(?:assignments?|changes?|members?)|registry|scheduled\s+tasks?|"
    r"services?\s+(?:installed|created)|"
    r"e?-?mails?\s+(?:sent|received|delivered|from|to|by)|file\s+(?:events?|downloads?|created|"
    r"copied)|downloads?|powershell\s+(?:commands?|executions?|activity)|syslog|firewall|"
    r"heartbeat|stopped\s+(?:reporting|sending)|vpn|"
    r"commands?\s+(?:ran|run|executed)|usb|user\s+agents?|countries|locations?|mfa|"
    r"ingest\w*|how\s+much\s+data|parent\s+(?:and\s+|or\s+)?child|(?:parent|child)\s+process(?:es)?|process\s+pairs?|"
    r"(?:entra|directory)\s+(?:id\s+)?(?:audit|changes?)|audit\s+changes?|"
    r"changed?\s+(?:\w+\s+){0,3}in\s+(?:entra|the\s+directory)|"
    r"risky\s+users?|users?\s+(?:is\s+|are\s+)?(?:risky|at\s+risk)|identity\s+(?:risk|protection)|"
    r"risk\s+(?:detections?|events?)|"
    r"activity\s+timeline|timeline\s+of\s+(?:everything|all)|over\s+all\s+logs|threat[\s-]+intel\w*\s+match\w*|"
    r"(?:known\s+)?bad\s+(?:ips?|address(?:es)?)|indicators?\s+match\w*|sharepoint|in\s+(?:microsoft|office)\s+365|"
    r"security\s+log|click(?:s|ed)?|queried|(?:is|are)\s+(?:an?\s+)?known\s+(?:bad|malicious)|"
    r"what\s+(?:did|has|have)\s+(?:\S+\s+)?(?:been\s+)?(?:do|done|doing)|failures?|resolved\s+(?:this|the|a)\s+domain|connected\s+to|"
    r"processes\s+did\s+(?:\S+\s+)?(?:start|launch|spawn|run)|was\s+(?:\S+\s+)?(?:started|executed|launched)|"
    r"received\s+e?mails?|"
    r"forwarding\s+rules?|command\s+lines?\s+on|"
    r"password\s+(?:changes?|resets?)|group\s+(?:changes?|members?\w*)|beacon\w*|rare\s+\w+|"
    r"query|hunt"
)
RAW = (
    r"failures?|failed\s+(?:attempts?|auth\w*|sign\w*|log\w*)|"
    r"(?:sign|log)[\s-]?(?:ins?|ons?)|logged\s+(?:in|on)|signed\s+in|(?:dns\s+|count\s+)(?:quer\w+|processes)|"
    r"processes\s+(?:by|per)|(?:most|fewest|more)\s+processes|network\s+connections?|(?:inbox|mailbox)\s+rules?|office\s+operations?|"
    r"downloads?\s+(?:the\s+)?most"
)
"""Rows of the raw logs that a question counts or groups; alerts say nothing of how many there were."""
BY = (
    r"(?:by|per|for\s+each)\s+(?:countr(?:y|ies)|cit(?:y|ies)|locations?|places?|clients?|reasons?|browsers?|results?|"
    r"status|departments?|outcomes?)"
)
"""What the raw logs may be grouped by, beside the kinds of things."""
LOGS_ALONE = re.compile(r"(?:failed\s+)?(?:sign|log)[\s-]?(?:ins?|ons?)|processes|connections", re.IGNORECASE)
"""Rows of the logs that one word asks for."""
BY_PEOPLE = (
    r"(?:by|per|for\s+each)\s+(?:owner|analyst|assignee)s?|(?:who|which\s+(?:owner|analyst)s?)\s+(?:\w+\s+)?"
    r"(?:owns?|has|have|handles?|got|holds?)\s+(?:the\s+)?(?:most|fewest)"
)
"""Counts for each of the people who work on incidents."""
FOR_EACH = r"by|per|(?:(?:on|for|of|in|from)\s+)?(?:each|every)"
INGESTION = r"ingest\w*|how\s+much\s+data"
"""What the workspace meters by table; the list of tables has no amounts."""
ENTITIES = r"entit(?:y|ies)|iocs?|indicators?|artefacts?|artifacts?|observables?"
EXTENT = (
    r"from\s+when\s+(?:to|until|till)\s+when|how\s+far\s+back|since\s+when\s+do\s+(?:you|"
    r"we)\s+have|what\s+(?:time\s+)?(?:period|range)\s+(?:do|does|is)"
)
GROUPED = (
    r"(?:by|per|for\s+each)\s+(?:owner|analyst|product|name|title|classification|provider|tactic|technique)|reopen\w*|mean\s+time|"
    r"how\s+long|average|(?:who|which\s+(?:owner|analyst)s?)\s+(?:owns?|has|have|handles?|got|holds?)\s+(?:the\s+)?(?:most|fewest)|(?:which|what)\s+products?|"
    r"(?:top|nois\w+|loud\w*|most\s+\w+|busiest|which|what)\s+(?:\d+\s+)?(?:\w+\s+)?(?:analytic\w*\s+|detection\s+)?rules\b|"
    r"grouped|breakdown|distribution|(?:most\s+common|commonest|most\s+frequent)\s+alerts?|"
    r"(?:techniques?|tactics?|(?:alert|incident)\s+(?:names?|titles?))\s+(?:are|is|do|were|occur|appear|come|show)\b.*"
    r"\b(?:most|common\w*|frequent\w*|often)|"
    r"(?:most\s+(?:\w+\s+)?|top|commonest|frequent)\s*(?:\w+\s+){0,3}(?:techniques?|tactics?)|"
    r"(?:count|number)\s+of\s+(?:techniques|tactics)|"
    r"heartbeats?|ingest\w*"
)
EVENTS = (
    r"(?:raw\s+|log\s+|source\s+|underlying\s+|original\s+)*(?:events?|rows|records|log\s+lines|logs|entries)\s+"
    r"(?:(?:that\s+|which\s+)?(?:are|is|lie|lies|were|stand|stands)\s+)?(?:behind|underneath|underlying)|"
    r"(?:events?|rows|records|logs|entries)\s+(?:that\s+|which\s+)?(?:triggered|raised|fired|caused|made|led\s+to)|"
    r"(?:raw|underlying|source|original)\s+(?:events?|rows|records|logs?|entries|evidence)|"
    r"(?:what|which\s+\w+)\s+(?:has\s+|have\s+)?(?:triggered|fired|set\s+off|tripped)|triggered\s+by|"
    r"(?:why|how)\s+did\s+(?:it|alert|\w+\s+\w+|the\s+\w+)?\s*(?:trigger|fire)|"
    r"(?:the\s+)?(?:query|kql|detection\s+logic)\s+(?:of|behind|that\s+(?:raised|triggered|fired))|"
    r"(?:its|his|run\s+the)\s+(?:stored\s+)?(?:query|kql)"
)
"""The raw rows behind an alert, which its rule's stored query finds."""
BELONGS = r"belongs?|part\s+of|which\s+incident|what\s+incident|whose\s+incident"
NEXT = (
    r"(?:(?:show|list|give)\s+)?(?:me\s+)?(?:more|the\s+rest|(?:the\s+)?next(?:\s+(?:page|ones?|"
    r"\d{1,3}(?:\s+(?:rows?|ones?|incidents?|alerts?))?))?|continue|go\s+on|keep\s+going)"
)
ANALYSIS = (
    r"analy[sz]e|analysis|implications?|assess(?:ment)?|"
    r"what\s+does\s+(?:it|this|that|(?:the\s+|this\s+|that\s+)?(?:incident|case)(?:\s+[\w-]+)?)\s+mean|"
    r"interpret\w*|kill\s*chain|correlat\w+"
)

ASPECTS: tuple[tuple[str, str], ...] = (
    (
        "owner",
        r"who(?:m|se)?\s+(?:own\w*|is\s+(?:working|responsible|assigned|handling|on|the\s+owner)|"
        r"has|handles?|works?|took|got)|owners?|owned|assigned|assignee|working\s+on",
    ),
    ("severity", r"severit\w+|how\s+(?:bad|serious|critical|severe|dangerous)|sev|priority"),
    ("status", r"status|state|closed|resolved|still\s+(?:open|active)|open|active"),
    (
        "created",
        r"when\s+(?:was|did|is|were)\b.*\b(?:created|opened|raised|start\w*|beg[ai]n|happen\w*|"
        r"occur\w*|detected|reported)|creat(?:ed|ion)(?:\s+(?:time|date))?|since\s+when|"
        r"when\s+did\s+it",
    ),
    (
        "duration",
        r"how\s+long|duration|for\s+how\s+(?:long|many\s+(?:hours|days))|time\s+to\s+(?:close|resolve|resolution)|"
        r"age|how\s+old",
    ),
    (
        "began",
        r"when\b.*\b(?:attack|activity|intrusion|compromise)\b.*\b(?:start\w*|beg[ai]n\w*|first\s+seen)|"
        r"(?:start|beginning|first\s+(?:event|sign|activity|trace))\s+of\s+(?:the\s+)?(?:attack|intrusion|activity)",
    ),
    ("closed", r"when\b.*\bclosed|clos(?:ed|ing)\s+(?:time|date)|closed\s+and\s+when|closed\s+when"),
    (
        "updated",
        r"(?:last\s+)?(?:updated?|changed?|modified|modification)(?:\s+(?:time|date))?|"
        r"when\b.*\b(?:updated|changed)",
    ),
    ("tactics", r"tactics?|mitre|att&ck|attack\s+(?:phases?|stages?)|kill\s*chain"),
    ("techniques", r"techniques?|mitre|att&ck|ttps?"),
    (
        "comments",
        r"comments?|commented|(?:analysts?|people|they|anyone|somebody)\s+(?:wrote|write|note|"
        r"noted|said|say|commented)|notes?|wrote",
    ),
    ("bookmarks", r"bookmarks?|bookmarked"),
    ("timeline", r"timeline|chronolog\w+|sequence|order\s+of\s+events|what\s+happened\s+when|step\s+by\s+step|story"),
    (
        "alert_count",
        r"how\s+(?:many|much)\s+(?:\w+\s+){0,2}alerts?|number\s+of\s+alerts|alert\s+count|"
        r"count\s+of\s+alerts",
    ),
    (
        "ids",
        r"defender\s+(?:id|number|incident)|provider\s+(?:incident\s+)?(?:id|number)|"
        r"sentinel\s+(?:id|number|incident)|guid|incident\s+name|portal|"
        r"(?:url|link)\s+(?:of|to|for)\s+(?:the\s+|this\s+|that\s+)?(?:inc(?:ident)?|case|ticket|it|#)|"
        r"(?:incident|case)(?:'s)?\s+(?:url|link)",
    ),
    (
        "closer",
        r"who\s+(?:has\s+)?(?:closed|resolved|dismissed)|(?:closed|resolved)\s+by\s+wh\w+|(?:and|,)\s+by\s+whom?",
    ),
    ("reopened", r"re-?open(?:ed|ing)?"),
    (
        "reason",
        r"why\b.*\b(?:closed|resolved|dismissed)|(?:closing\s+)?reason|closing\s+(?:comment|note|remark|words?)|"
        r"how\b.*\b(?:closed|resolved|dismissed|end(?:ed)?|turn(?:ed)?\s+out|conclu\w+|settled|finish\w*)|"
        r"what\s+(?:was\s+the\s+)?(?:outcome|came\s+of|became\s+of|conclusion)",
    ),
    ("classification", r"classif\w+|(?:true|false|benign)[\s-]+positives?|verdict|determination"),
    ("custom_details", r"custom\s+details?|details?\s+of\s+the\s+(?:analytics?\s+)?rules?"),
    ("products", r"products?|sources?|vendors?|tools?\s+(?:reported|detected)|providers?"),
)
"""Fields of an incident that a question may ask for, in the order in which an answer gives them."""


ALERT_FIELDS: tuple[tuple[str, str], ...] = (
    ("description", r"descriptions?|described?|what\s+does\b.*\bmean|meaning"),
    ("remediation", r"remediat\w+|mitigat\w+|recommended\s+(?:steps|actions?)|how\s+(?:do|can|to)\b.*\bfix"),
    ("product", r"(?:which|what)\s+(?:products?|sources?|vendors?|tools?)|products?|detected\s+by|raised\s+by"),
    ("tactics", r"tactics?"),
    ("techniques", r"techniques?"),
)
"""Fields of an alert that a question may ask for."""


def alert_fields_of(reading: Reading) -> tuple[str, ...]:
    """The fields of an alert that the question asks for."""
    return tuple(field for field, cue in ALERT_FIELDS if reading.has(cue))


def has(reading: Reading, cue: str) -> bool:
    """True if the question holds the cue."""
    return reading.has(cue)


def kinds_named(reading: Reading) -> tuple[str, ...]:
    """Entity kinds whose word stands in the question without a value ("which hosts", "top accounts")."""
    found: list[str] = []
    for match in re.finditer(r"[a-z]+", reading.core.lower()):
        kind = KIND_WORDS.get(match[0])
        if kind is not None and kind not in found:
            found.append(kind)
    return tuple(found)


def aspects_of(reading: Reading) -> tuple[str, ...]:
    """The fields of an incident that the question asks for; empty for "tell me about it"."""
    named = [aspect for aspect, cue in ASPECTS if reading.has(cue)]
    if "began" in named:
        named = [aspect for aspect in named if aspect != "created"]
    if "duration" in named:
        # Its line gives the times of opening and closing and the status.
        named = [aspect for aspect in named if aspect not in ("created", "closed", "status", "updated")]
    if "reason" in named:
        # How and why it was closed is told with its status, classification and comments.
        named = [aspect for aspect in named if aspect not in ("status", "classification", "comments", "closed")]
    if "closed" in named or "created" in named:
        named = [aspect for aspect in named if aspect != "updated"]
    return tuple(dict.fromkeys(named))


def interval_of(reading: Reading) -> str | None:
    """The bucket width that was said."""
    for interval, cue in (
        ("1h", r"(?:per|by|each|every|an|a|which|what)\s+hour|hourly"),
        ("1d", r"(?:per|by|each|every|a|which|what)\s+day|daily|(?:busiest|quietest|peak|worst|best)\s+day|day\s+was"),
        ("7d", r"(?:per|by|each|every|a|which|what)\s+week|weekly"),
    ):
        if reading.has(cue):
            return interval
    return None
