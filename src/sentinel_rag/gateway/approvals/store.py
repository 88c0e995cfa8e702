"""The approvals of one journal file: asking, within bounds, deciding and using, each with its record.

Above it lie the gate, which asks and uses, and the routes, through which people decide; below it the table, whose rows
decide every race. Nothing here knows HTTP, and nothing here can approve: that takes a `Decider` who is not the asker.
How often a person may be asked is bounded, so that a hijacked agent cannot flood whoever decides.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import math
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

import anyio
import anyio.to_thread

from sentinel_rag.audit import Journal, RecordConnection, StateDatabase, Work
from sentinel_rag.audit.events import (
    ApprovalAsked,
    ApprovalDecided,
    ApprovalDecisionRefused,
    ApprovalDenialLifted,
    ApprovalLapsed,
    ApprovalNotified,
    ApprovalsBounded,
    ApprovedCallTold,
)
from sentinel_rag.contracts.json_values import JsonObject, canonical_json
from sentinel_rag.contracts.ports import Clock
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.contracts.tool_calls import Reason
from sentinel_rag.gateway.approvals import table
from sentinel_rag.gateway.approvals.approval import (
    ELICITED,
    WEBHOOK,
    Approval,
    ApprovalSpent,
    ApprovalState,
    ApprovalVerdict,
    Decider,
    DecisionRefused,
    Ruling,
    YesOutcome,
)
from sentinel_rag.gateway.approvals.binding import ApprovalQuestion, Binding, DecidedBy
from sentinel_rag.gateway.approvals.table import ApprovalStanding, asker_of, micros

MAX_WAIT_S = 60
"""The longest wait that is suggested while questions are open: somebody may decide one at any moment."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """`pending` questions in all at the same time; `unwanted` of one conversation and of one person within the life of
    one: those that nobody approved, whether they wait, were denied or have lapsed. Sessions that an agent opens by
    itself are one conversation of its key."""

    pending: int = 100
    unwanted_per_conversation: int = 10
    unwanted_per_person: int = 20


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """Nobody was asked. `sentence` names neither data nor other conversations; `retry_after_s` is at least 1."""

    sentence: str
    retry_after_s: int
    whose: str = ""
    """Who is over the bound: the conversation, the person, or empty for all together."""


@dataclass(frozen=True, slots=True)
class DeniedBefore:
    """Nobody was asked, since a person's no to a call that reads alike holds: that of `decider`, a key id, or of the
    `actor` whom the webhook's receiver named."""

    approval_id: str
    decider: str
    actor: str
    at: datetime
    until: datetime
    retry_after_s: int


def turned_away(
    connection: RecordConnection, bounds: Bounds, binding: Binding, person: str | None, now: datetime, life: timedelta
) -> TurnedAway | None:
    """Which bound this question would be over; None if it may be asked."""
    counted = [("This conversation", "asker", asker_of(binding, person), bounds.unwanted_per_conversation)]
    if person is not None:
        counted.append(("This person", "person", person, bounds.unwanted_per_person))
    for who, column, value, unwanted in counted:
        mine = _earliest(
            connection,
            f"SELECT count(*), min(asked_at) FROM approval WHERE {column} = ? AND asked_at > ? "  # noqa: S608  # one of two constants
            "AND state NOT IN ('approved', 'used')",
            [value, micros(now - life)],
        )
        if mine[0] >= unwanted:
            minutes = f"{life.total_seconds() / 60:.0f} minutes"
            sentence = (
                f"{who} has asked for {mine[0]} approvals within {minutes} that nobody gave, and no more are taken."
            )
            return TurnedAway(sentence, _seconds(mine[1], now, life), value)
    everyone = _earliest(
        connection,
        "SELECT count(*), min(asked_at) FROM approval WHERE state = 'pending' AND ends_at > ?",
        [micros(now)],
    )
    if everyone[0] >= bounds.pending:
        sentence = "Too many calls of all conversations are waiting for a person's approval."
        return TurnedAway(sentence, min(MAX_WAIT_S, _seconds(everyone[1], now, life)))
    return None


def _earliest(connection: RecordConnection, query: str, values: list[object]) -> tuple[int, int | None]:
    count, moment = connection.execute(query, values).fetchone()
    return int(count), moment


def _seconds(since: int | None, now: datetime, life: timedelta) -> int:
    """Whole seconds until `life` after `since` has passed, at least 1."""
    passed = (micros(now) - (since or 0)) / 1e6
    return max(1, math.ceil(life.total_seconds() - passed))


def check_decider(stands: ApprovalStanding, decider: Decider, token: str | None, *, person: str | None) -> None:
    """Raises DecisionRefused unless `decider` may decide this one at all. `token` is what the webhook's receiver
    showed, `person` the key of whoever the agent asks for, None if it asks for nobody."""
    if decider.via == WEBHOOK and stands.state is ApprovalState.PENDING:
        given = (token or "").encode("utf-8", "surrogateescape")
        if not stands.token or not hmac.compare_digest(stands.token.encode(), given):
            raise DecisionRefused(Reason.UNAUTHENTICATED, "This is not the token of that approval.")
    if stands.decided_by is DecidedBy.ASKER and person is not None and decider.key_id == person:
        return
    # The key is the agent's, the answer its person's: whoever asks so has looked whether the policy attests that.
    by_client = decider.via == ELICITED and decider.key_id == stands.key_id
    if stands.decided_by is DecidedBy.ASKER and person is None and by_client:
        return
    if decider.key_id == stands.key_id:
        raise DecisionRefused(
            Reason.OWN_APPROVAL,
            "The key that asked cannot decide, whatever its scopes.",
            next_step="Let another key with the scope approve decide.",
        )
    if person is not None and decider.key_id == person:
        raise DecisionRefused(
            Reason.OWN_APPROVAL,
            "The agent asked this for you, so another person decides it.",
            next_step="Let another key with the scope approve decide.",
        )
    if decider.only_own:
        raise DecisionRefused(
            Reason.NOT_AN_APPROVER, "This was not asked for you.", next_step="Let an approver decide."
        )
    if not decider.is_one_of(stands.approvers):
        raise DecisionRefused(
            Reason.NOT_AN_APPROVER,
            "The policy names who may decide this call, and this key is not among them.",
            next_step=f"It may be decided by: {', '.join(stands.approvers)}.",
        )


def too_late(state: ApprovalState) -> DecisionRefused:
    """The refusal of a verdict on an approval that has left PENDING for `state`."""
    if state is ApprovalState.EXPIRED:
        return DecisionRefused(
            Reason.APPROVAL_EXPIRED, "This approval has expired.", next_step="If the call comes again, it asks anew."
        )
    return DecisionRefused(Reason.APPROVAL_DECIDED, f"This approval is decided already: it is {state.value}.")


T = TypeVar("T")
PersonOf = Callable[[RecordConnection, str], str | None]
"""The key of the person who opened a session; None for one that an agent opened by itself."""

DEFAULT_TTL_S = 900.0
DENIAL_HOLDS = timedelta(days=1)
"""How long a no holds where the policy says nothing."""
LOOK_AGAIN_S = 1.0
MAX_RECORDED_BYTES = 16_384
"""Longer arguments leave only their hash in the record of the question; the record of the call that runs has them."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The approval with this id waits for a person, or was approved a moment ago."""

    approval_id: str


@dataclass(frozen=True, slots=True)
class Page:
    """Some approvals, oldest first; `left_off` more are not here. `pending_by_tool` counts all that wait. `mark` is
    another one as soon as any approval has changed."""

    approvals: tuple[Approval, ...]
    left_off: int
    pending_by_tool: Mapping[str, int]
    mark: str


class ApprovalStore:
    """Approvals beside `journal` in `database`. A question lives `ttl_s` seconds; an approval may be used for as long
    again after it was given. Any number of processes may have a store on the same file. `person_of` tells which
    person's key opened a session: whoever the agent asks for does not decide what it asks."""

    def __init__(
        self,
        database: StateDatabase,
        journal: Journal,
        *,
        clock: Clock,
        new_id: Callable[[], str],
        ttl_s: float = DEFAULT_TTL_S,
        bounds: Bounds | None = None,
        person_of: PersonOf | None = None,
    ) -> None:
        self._database = database
        self._person_of = person_of or _nobody
        self._journal = journal
        self._clock = clock
        self._new_id = new_id
        self._life = timedelta(seconds=ttl_s)
        self._bounds = bounds or Bounds()
        self._listeners: list[Callable[[], object]] = []
        database.migrate("approvals", table.MIGRATIONS)

    async def approved(self, binding: Binding) -> str | None:
        """The id of an approval for exactly this binding that was given and neither used nor lapsed; None if there is
        none. Only `consume` makes it sure."""
        now, sha256 = self._clock(), binding.sha256()
        return await self._database.run(
            lambda connection: table.open_for(connection, sha256, [ApprovalState.APPROVED], now)
        )

    async def answered_already(
        self, binding: Binding, holds: timedelta = DENIAL_HOLDS
    ) -> Waiting | TurnedAway | DeniedBefore | None:
        """What `request` would say without asking anybody, so that no question is put together for it; None where it
        would ask. Only `request` makes it sure."""
        now, sha256 = self._clock(), binding.sha256()

        def look(connection: RecordConnection) -> Waiting | TurnedAway | DeniedBefore | None:
            known = table.open_for(connection, sha256, [ApprovalState.PENDING], now)
            return Waiting(known) if known is not None else self._refused(connection, binding, holds, now)

        return await self._database.run(look)

    def _refused(
        self, connection: RecordConnection, binding: Binding, holds: timedelta, now: datetime
    ) -> TurnedAway | DeniedBefore | None:
        """Why nobody may be asked now; None if somebody may."""
        person = self._person_of(connection, binding.session_id)
        found = table.denied(connection, binding, person, now - holds) if binding.near_duplicate_sha256 else None
        if found is None:
            return turned_away(connection, self._bounds, binding, person, now, self._life)
        at = found[3]
        return DeniedBefore(*found, until=at + holds, retry_after_s=_seconds(micros(at), now, holds))

    async def request(
        self,
        binding: Binding,
        question: ApprovalQuestion,
        sent: JsonObject | None = None,
        *,
        holds: timedelta = DENIAL_HOLDS,
    ) -> Waiting | TurnedAway | DeniedBefore:
        """Ask a person about a call, once: while a question about the same binding is open, that one is meant, and a no
        `holds` for so long. `sent` are the arguments as they came, for a call that runs at the yes.

        Raises ValueError if the question shows other arguments than the binding names, and UnavailableError if it
        cannot be recorded; then nobody was asked.
        """
        arguments = canonical_json(question.arguments)
        if hashlib.sha256(arguments).hexdigest() != binding.arguments_sha256:
            raise ValueError("the question shows other arguments than those that the approval is for")
        await self._lapse()
        now, sha256 = self._clock(), binding.sha256()
        asked = Approval(self._new_id(), ApprovalState.PENDING, binding, question, now, now + self._life, sent=sent)

        def insert(connection: RecordConnection) -> None:
            open_states = [ApprovalState.PENDING, ApprovalState.APPROVED]
            known = table.open_for(connection, sha256, open_states, now)
            if known is not None:
                raise _NotAsked(Waiting(known))
            refused = self._refused(connection, binding, holds, now)
            if refused is not None:
                raise _NotAsked(refused)
            table.insert(connection, self._with_person(connection, asked), secrets.token_urlsafe(32))

        event = ApprovalAsked(
            audit_id=asked.approval_id,
            key_id=binding.key_id,
            binding=binding.to_dict(),
            binding_sha256=sha256,
            arguments=question.arguments if len(arguments) <= MAX_RECORDED_BYTES else None,
            why=question.why,
            ends_at=format_time(asked.ends_at),
            decided_by=question.decided_by.value,
            words=question.asker.words,
            shown_sha256=question.sha256(),
        )
        try:
            await self._journal.append(event, alongside=insert)
        except _NotAsked as instead:
            return instead.answer
        self._tell()
        return Waiting(asked.approval_id)

    async def note_bound(self, binding: Binding, refused: TurnedAway, audit_id: str) -> None:
        """Record that questions are over a bound, once for as long as it lasts; `audit_id` is the refused call's."""
        now = self._clock()
        ends = now + self._life
        event = ApprovalsBounded(
            audit_id=audit_id,
            key_id=binding.key_id,
            session_id=binding.session_id,
            tool=binding.tool,
            why=refused.sentence,
            ends_at=format_time(ends),
        )

        def note(connection: RecordConnection) -> None:
            if not table.bound(connection, refused.whose, now, ends):
                raise _Done

        with suppress(_Done):
            await self._journal.append(event, alongside=note)

    def consume(self, approval_id: str, binding: Binding) -> Work[None]:
        """The work that spends an approval, for the transaction of the intent record: done at most once, by whichever
        process comes first. It raises ApprovalSpent, and so undoes the intent, if the approval is not approved (any
        more), used, lapsed or for another binding."""
        sha256 = binding.sha256()

        def work(connection: RecordConnection) -> None:
            if not table.use(connection, approval_id, sha256, self._clock()):
                raise ApprovalSpent(
                    "This approval does not let this call run: it was used, has lapsed, or is for another call.",
                    next_step="Send the call again to ask for a new approval.",
                )

        return work

    async def decide(
        self,
        approval_id: str,
        verdict: ApprovalVerdict,
        decider: Decider,
        *,
        comment: str = "",
        token: str | None = None,
    ) -> Approval:
        """Take a person's verdict; once, and never from the key that asked. A no is one to all that wait and read
        alike. `token` is what the webhook's receiver was sent, and needed exactly if the decision comes `via` it.

        Raises DecisionRefused; what is refused for who asked or when is on record too.
        """
        await self._lapse()
        shown = await self._read(lambda connection: table.find(connection, approval_id, self._clock()))
        if shown is None:
            raise DecisionRefused(Reason.NOT_FOUND, "There is no such approval.", next_step="List those that wait.")
        now = self._clock()
        ruling = Ruling(decider.key_id, decider.via, decider.actor, comment, now)

        def rule(connection: RecordConnection) -> None:
            stands = table.standing(connection, approval_id, now)
            assert stands is not None  # an approval is forgotten long after it ended, and this one was there just now
            check_decider(stands, decider, token, person=self._person_of(connection, shown.binding.session_id))
            if not table.rule(connection, approval_id, ApprovalState(verdict), ruling, now + self._life):
                raise too_late(stands.state)

        try:
            await self._journal.append(_decided(shown, verdict, ruling), alongside=rule)
        except DecisionRefused as refused:
            await self._journal.append(
                ApprovalDecisionRefused(
                    audit_id=approval_id,
                    key_id=decider.key_id,
                    decision=verdict.value,
                    via=decider.via,
                    reason=refused.reason,
                )
            )
            raise
        if verdict is ApprovalVerdict.DENY:
            await self._deny_near_duplicates(approval_id, ruling)
        self._tell()
        decided = await self.find(approval_id)
        assert decided is not None
        return decided

    async def _deny_near_duplicates(self, approval_id: str, ruling: Ruling) -> None:
        pending = ApprovalState.PENDING

        def others(connection: RecordConnection) -> list[Approval | None]:
            found = table.near_duplicates(connection, approval_id, pending)
            return [table.find(connection, other, ruling.at) for other in found]

        for other in await self._read(others):
            if other is None:
                continue

            def rule(connection: RecordConnection, other_id: str = other.approval_id) -> None:
                if not table.rule(connection, other_id, ApprovalState.DENIED, ruling, ruling.at + self._life):
                    raise _Done

            with suppress(_Done):
                await self._journal.append(_decided(other, ApprovalVerdict.DENY, ruling), alongside=rule)

    async def lift(self, approval_id: str, decider: Decider, *, comment: str = "") -> Approval:
        """Let a no hold no longer, and those to what reads alike; each by whoever may decide it. Raises
        DecisionRefused."""
        now = self._clock()
        shown = await self.find(approval_id)
        if shown is None:
            raise DecisionRefused(Reason.NOT_FOUND, "There is no such approval.", next_step="List those that wait.")

        def lift_one(connection: RecordConnection, lifted: str) -> bool:
            stands, approval = table.standing(connection, lifted, now), table.find(connection, lifted, now)
            assert stands is not None
            assert approval is not None
            person = self._person_of(connection, approval.binding.session_id)
            check_decider(stands, decider, None, person=person)
            return table.lift(connection, lifted)

        def lift(connection: RecordConnection) -> None:
            others = table.near_duplicates(connection, approval_id, ApprovalState.DENIED)
            if not lift_one(connection, approval_id):
                raise DecisionRefused(Reason.CONFLICT, "There is no denial that holds: nothing is to be lifted.")
            for other in others:
                with suppress(DecisionRefused):  # an approver's no stays where its asker takes their own back
                    lift_one(connection, other)

        event = ApprovalDenialLifted(audit_id=approval_id, key_id=decider.key_id, via=decider.via, comment=comment)
        await self._journal.append(event, alongside=lift)
        return shown

    async def keep(self, approval: Approval, ran: YesOutcome, told: bytes) -> Approval:
        """Note what became of a call that ran when it was approved. What its agent is told is kept for it, unless the
        call has not used the approval: then it may still be sent."""
        approval_id = approval.approval_id

        def write(connection: RecordConnection) -> None:
            stands = table.standing(connection, approval_id, self._clock())
            used = stands is not None and stands.state is ApprovalState.USED
            table.ran(connection, approval_id, ran, told if used else None)

        await self._database.run(write)
        self._tell()
        found = await self.find(approval_id)
        assert found is not None
        return found

    async def take(self, binding: Binding, audit_id: str) -> bytes | None:
        """What the agent has not been told yet of exactly this call, which ran when it was approved; once, and on
        record under `audit_id`. None if there is nothing."""
        sha256 = binding.call_sha256()
        found = await self._database.look(lambda connection: table.told(connection, sha256, self._clock()))
        if found is None:
            return None
        approval_id, told = found

        def take(connection: RecordConnection) -> None:
            if not table.take(connection, approval_id):
                raise _Done

        event = ApprovedCallTold(
            audit_id=audit_id, key_id=binding.key_id, session_id=binding.session_id, approval_id=approval_id
        )
        try:
            await self._journal.append(event, alongside=take)
        except _Done:
            return None
        return told

    async def find(self, approval_id: str) -> Approval | None:
        """One approval, whatever its state; None if there is none, or it ended more than 30 days ago."""
        await self._lapse()

        def read(connection: RecordConnection) -> Approval | None:
            found = table.find(connection, approval_id, self._clock())
            return None if found is None else self._with_person(connection, found)

        return await self._read(read)

    async def page(self, state: ApprovalState | None, limit: int, asker: str | None = None) -> Page:
        """At most `limit` approvals in that state, or in any; see `table.page`."""
        await self._lapse()

        def read(connection: RecordConnection) -> Page:
            now = self._clock()
            found, left_off = table.page(connection, state, limit, now, asker)
            told = tuple(self._with_person(connection, approval) for approval in found)
            return Page(told, left_off, table.pending_by_tool(connection, now), table.mark(connection, now))

        return await self._read(read)

    async def wait_for_change(self, mark: str, longest_s: float) -> None:
        """Return once the approvals have another mark, or after `longest_s`. What this process asks or decides is told
        at once; everything else is looked for every second."""
        changed = anyio.Event()
        loop = asyncio.get_running_loop()
        with anyio.move_on_after(longest_s), self.telling(lambda: loop.call_soon_threadsafe(changed.set)):
            while mark == await self._read(lambda connection: table.mark(connection, self._clock())):
                with anyio.move_on_after(LOOK_AGAIN_S):
                    await changed.wait()
                changed = anyio.Event()

    @contextmanager
    def telling(self, listener: Callable[[], object]) -> Iterator[None]:
        """Call `listener` after each new question and each decision while the block runs; it must neither block nor
        raise."""
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)

    async def claim_notices(self, waits: Sequence[float], limit: int) -> list[table.Notice]:
        """Questions that the webhook's receiver has to hear of now; see `table.claim_notices`."""
        return await self._database.run(lambda connection: table.claim_notices(connection, self._clock(), waits, limit))

    async def end_notices(self, notice: table.Notice, *, delivered: bool) -> None:
        """Record that the receiver was told of a question, or will not be."""
        approval_id = notice.approval.approval_id
        await self._journal.append(
            ApprovalNotified(audit_id=approval_id, delivered=delivered, attempts=notice.attempt),
            alongside=lambda connection: table.end_notices(connection, approval_id),
        )

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()

    def _with_person(self, connection: RecordConnection, approval: Approval) -> Approval:
        return replace(approval, person=self._person_of(connection, approval.binding.session_id))

    async def _read(self, work: Work[T]) -> T:
        """Read in a thread and over a connection of its own: bodies may be long, and no writer waits for them."""

        def read() -> T:
            with self._database.reading() as connection:
                return work(connection)

        return await anyio.to_thread.run_sync(read)

    async def _lapse(self) -> None:
        """Mark and record what the clock has ended."""
        now = self._clock()
        for approval_id, state in await self._database.run(lambda connection: table.overdue(connection, now)):

            def mark(connection: RecordConnection, approval_id: str = approval_id) -> None:
                if not table.lapse(connection, approval_id, now):
                    raise _Done

            try:
                await self._journal.append(ApprovalLapsed(audit_id=approval_id, state=state), alongside=mark)
            except _Done:
                continue


def _decided(approval: Approval, verdict: ApprovalVerdict, ruling: Ruling) -> ApprovalDecided:
    return ApprovalDecided(
        audit_id=approval.approval_id,
        key_id=ruling.by,
        decision=verdict.value,
        via=ruling.via,
        actor=ruling.actor,
        comment=ruling.comment,
        tool=approval.binding.tool,
        requested_by=approval.binding.key_id,
        binding_sha256=approval.binding.sha256(),
        shown_sha256=approval.question.sha256(),
    )


class _NotAsked(Exception):
    """Undoes the record of a question that is not asked; `answer` is what to say instead."""

    def __init__(self, answer: Waiting | TurnedAway | DeniedBefore) -> None:
        super().__init__()
        self.answer = answer


class _Done(Exception):
    """Another process was first."""


def _nobody(_: RecordConnection, __: str) -> None:
    """No session is a person's."""
