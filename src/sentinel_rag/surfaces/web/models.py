"""The bodies of the API, as the OpenAPI document shows them. What is not named in one is refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from sentinel_rag.contracts.conversations import Verbosity
from sentinel_rag.contracts.evidence import CitedBy, SentenceState
from sentinel_rag.contracts.ports import MAX_QUESTION_CHARACTERS
from sentinel_rag.surfaces.users import Role

ID = r"^[A-Za-z0-9_-]{8,64}$"

TOOL_NAME = r"^[A-Za-z0-9_-]{1,64}$"


def _known_zone(name: str) -> str:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("there is no time zone of that name; names are like Europe/Berlin or UTC") from None
    return name


TimeZone = Annotated[str, Field(pattern=r"^[A-Za-z0-9_+/-]{1,64}$"), AfterValidator(_known_zone)]
"""An IANA name that this machine knows."""

ConversationId = Annotated[str, Field(pattern=ID, examples=["0f7c1b2a93d84e56"])]


class Body(BaseModel):
    """A body: frozen, and closed to other fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ChatRequest(Body):
    """A question. Without `session_id` a new conversation begins. The same `request_id` (or `Idempotency-Key`) names
    the same turn, however often it is sent."""

    message: str = Field(
        min_length=1, max_length=MAX_QUESTION_CHARACTERS, examples=["How many high incidents came in this week?"]
    )
    session_id: ConversationId | None = None
    request_id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9._:-]{1,128}$", examples=["3f2c9a10-1"])
    workspace: str | None = Field(default=None, pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$", examples=["emea"])
    timezone: TimeZone | None = Field(default=None, examples=["Europe/Berlin"])
    verbosity: Verbosity | None = None

    @field_validator("message")
    @classmethod
    def _has_words(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("there is no question in it")
        return text


class Refusal(BaseModel):
    """How every refusal looks."""

    detail: str = Field(examples=["There is no such conversation."])
    reason: str = Field(examples=["not_found"])
    next_step: str = Field(default="", examples=["List those that there are."])


class CitationAnswered(BaseModel):
    """A row of the result of a call, or with an empty `pointer` the whole of it."""

    ref: str = Field(examples=["c1.3"])
    call_id: str
    tool: str = Field(examples=["query_incidents"])
    pointer: str = Field(examples=["/rows/2"])
    at: list[int] = Field(default=[], description="Where in `answer` the writer put it; none if another gave it.")


class MarkAnswered(BaseModel):
    """A literal, `answer[start:end]` in characters (code points), and the cell that it was compared with, if any."""

    start: int
    end: int
    found: bool
    call_id: str
    pointer: str = Field(examples=["/rows/2/severity"])
    value: Any


class SentenceAnswered(BaseModel):
    """A sentence, list item, heading or table row: `answer[start:end]` in characters (code points). A state says what
    comparing gave, and never that a sentence is true: a citation proves values and not verbs."""

    start: int
    end: int
    text: str
    state: SentenceState
    reason: str = Field(description="For a person: what was not found, or what the cited cell says instead.")
    citations: list[CitationAnswered]
    marks: list[MarkAnswered]
    cited_by: CitedBy


class ChatAnswer(BaseModel):
    """An answer: facts first, then what it rests on. `answer` is Markdown without links, images or HTML."""

    model_config = ConfigDict(extra="allow")

    turn_id: str
    session_id: str
    outcome: Literal["answered", "no_data", "clarification", "out_of_scope", "denied", "tool_failed"]
    answer: str = Field(examples=["There are 3 open High incidents."])
    tables: list[dict[str, Any]]
    footnote: list[str]
    suggestions: list[str]
    tools: list[dict[str, Any]]
    coverage: list[dict[str, Any]]
    evidence: list[dict[str, Any]]
    sentences: list[SentenceAnswered] = Field(
        description="The parts of `answer` in their order, each with what was found when code compared it."
    )
    duration_ms: float


class Rename(Body):
    """A title that people give a conversation."""

    title: str = Field(min_length=1, max_length=200, examples=["Night shift, phishing wave"])


class Clear(Body):
    """With `carry` supported facts stay; without it all is forgotten but your preferences."""

    carry: bool = True


class ApprovalDecision(Body):
    """What a person says to a call that waits; `lift` takes a denial back."""

    decision: Literal["approve", "deny", "lift"]
    comment: str = Field(default="", max_length=2_000, examples=["checked with the owner"])


class Opinion(Body):
    """Whether an answer helped, and why not. Kept with its turn, for whoever runs this to read."""

    good: bool
    reason: str = Field(default="", max_length=600, examples=["Something was missing: the second host"])


class Explain(Body):
    """A call to explain by the policy in force, without making it. Labels are written as `HIGH/UNTRUSTED`."""

    tool: str = Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$", examples=["run_kql_query"])
    arguments: dict[str, Any] = Field(default_factory=dict, examples=[{"template": "raw_signins"}])
    context: str = Field(default="LOW/TRUSTED", pattern=r"^(LOW|MEDIUM|HIGH)/(TRUSTED|UNTRUSTED)$")
    words: str = Field(default="", max_length=MAX_QUESTION_CHARACTERS, examples=["close incident 38"])


class Look(Body):
    """What a tool is given; `GET /tools` says what each takes."""

    arguments: dict[str, Any] = Field(
        default_factory=dict, examples=[{"time_window": "last_7d", "min_severity": "Medium", "limit": 50}]
    )


class Looked(BaseModel):
    """What a tool answered. Of a query, `result` has `rows`, `summary`, `notes` and `coverage`: how many rows of how
    many, in which window, how old the data is, and whether something is missing."""

    tool: str = Field(examples=["query_incidents"])
    audit_id: str
    result: Any = Field(
        examples=[
            {
                "rows": [{"number": 41, "severity": "High", "status": "New"}],
                "summary": {"by_severity": {"High": 1}},
                "coverage": {"rows_returned": 1, "rows_total": 1, "partial": False},
            }
        ]
    )


class Credentials(Body):
    """A name and its password."""

    name: str = Field(min_length=1, max_length=64, examples=["dana"])
    password: str = Field(min_length=1, max_length=256, repr=False, examples=["four words of your own"])


class NewPassword(Body):
    """The password so far, and the one from now on."""

    password: str = Field(min_length=1, max_length=256, repr=False)
    new_password: str = Field(min_length=1, max_length=256, repr=False)


class Accepted(Body):
    """An invitation, and the password that its person chooses."""

    token: str = Field(pattern=r"^[A-Za-z0-9_-]{43}$", repr=False)
    password: str = Field(min_length=1, max_length=256, repr=False)


class GivenTerms(Body):
    """What an account may do and see. Nobody gives what they do not have themselves."""

    roles: list[Role] = Field(min_length=1, max_length=4, examples=[["analyst"]])
    clearance: Literal["LOW", "MEDIUM", "HIGH"] = "MEDIUM"
    groups: list[str] = Field(default=[], max_length=64)


class NewAccount(GivenTerms):
    """An account to make. With `oidc` its person signs in at the identity provider under that name."""

    name: str = Field(min_length=1, max_length=64, examples=["erin"])
    oidc: str | None = Field(default=None, min_length=1, max_length=256, examples=["erin@example.com"])


class NewToken(Body):
    """A token for a program of yours; it has your roles and no more."""

    name: str = Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._@-]*$", examples=["shift-report"])
    days: int = Field(default=30, ge=1, le=365)
