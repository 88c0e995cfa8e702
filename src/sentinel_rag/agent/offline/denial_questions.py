"""Questions about the gateway's own decision: "why was that denied?", "who has to approve it?".

The agent sees neither the policy nor the journal, and a stored query about denied sign-ins would answer something else.
So it says where the decision stands and which commands explain it.
"""

from __future__ import annotations

import re

from sentinel_rag.agent.planner.plan import Reply
from sentinel_rag.contracts.evidence import Outcome

WHERE_IT_STANDS = (
    "That the gateway decides, by the rules of its policy, and I see no more of it than was shown. The rule and the "
    "audit id stand below that answer. `sentinel audit show --decision deny` lists what was denied; `sentinel policy "
    "explain TOOL NAME=VALUE` says what the rules make of a call; `sentinel approvals list` what waits for a person."
)
_ASKS = re.compile(r"(?:and |but |so )?(?:why|how come|who|(?:by |under )?(?:which|what) (?:rule|policy))\b")
_DECISION = re.compile(
    r"den(?:ied|y|ies)|refus(?:ed?|es)|rejected|forbidden|disallowed|permitted|allowed|approv(?:als?|ed?)"
)
_AROUND = re.compile(
    r"and|but|so|why|how|come|who|by|under|which|what|rule|policy|gateway|interceptor|an?|the|of|to|for|not"
    r"|just|now|again|only"
    r"|was|were|is|are|am|did|do|does|has|have|had|been|be|get|got|isn't|wasn't|needs?|must|should|can|may|waits?"
    r"|waiting|run"
    r"|that|this|it|they|those|i|we|you|my|your|me|us|last|first|second|one|access|kql|web|raw|log|calls?"
    r"|requests?|quer(?:y|ies)"
    r"|search(?:es)?|questions?|tools?|changes?|updates?|comments?|lookups?|reads?|incidents?|\d{1,9}"
)
"""Words that such a question may have beside, "incident 12" for "it"; any other, such as a host or "sign-in", makes it
one about data."""


def denial_reply(text: str) -> Reply | None:
    """Where the decision stands; None for a question about anything else."""
    said = text.lower().replace("’", "'").strip(" ?!.\n")
    words = re.findall(r"[\w'@.-]+", said)
    decisions = [word for word in words if _DECISION.fullmatch(word)]
    if not _ASKS.match(said) or not decisions:
        return None
    about_data = any(word not in decisions and not _AROUND.fullmatch(word) for word in words)
    return None if about_data else Reply(Outcome.ANSWERED, WHERE_IT_STANDS)
