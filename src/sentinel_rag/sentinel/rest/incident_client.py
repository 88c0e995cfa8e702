"""One workspace behind Microsoft Sentinel's REST API: incidents, their alerts, entities, comments, relations and
bookmarks, as values, and what the signed-in may do.

Reads may be repeated by the connection. A write is guarded (by the incident's etag, by the comment's own id) so that
it can take effect at most once, and what became of one whose answer is lost is found out.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

import anyio

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, QueryFailedError, invalid_argument
from sentinel_rag.sentinel.rest.connection import (
    API_VERSION,
    ArmConnection,
    RateBuckets,
    RestOperation,
    UnclearOutcomeError,
    protocol_error,
)

# A PUT replaces, so every property that is not read-only goes back as it came, those that we do not know included.
_READ_ONLY = frozenset(
    {
        "lastModifiedTimeUtc",
        "createdTimeUtc",
        "incidentNumber",
        "incidentUrl",
        "providerName",
        "providerIncidentId",
        "relatedAnalyticRuleIds",
        "additionalData",
    }
)


@dataclass(frozen=True, slots=True)
class Incident:
    """An incident at the moment of its `etag`. `name` is its GUID; `properties` are all that the service told."""

    name: str
    etag: str
    properties: Mapping[str, Any]

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> Incident:
        """Raises QueryFailedError PROTOCOL for a body that is no incident."""
        name, properties = body.get("name"), body.get("properties")
        if not isinstance(name, str) or not isinstance(properties, Mapping):
            raise QueryFailedError(protocol_error("Microsoft Sentinel answered with something that is no incident."))
        etag = body.get("etag")
        return cls(name, etag if isinstance(etag, str) else "", properties)

    @property
    def number(self) -> int | None:
        number = self.properties.get("incidentNumber")
        return number if isinstance(number, int) else None

    @property
    def owner(self) -> Mapping[str, Any]:
        owner = self.properties.get("owner")
        return owner if isinstance(owner, Mapping) else {}

    def text(self, key: str) -> str | None:
        """The property `key` as text; None for none and for an empty one."""
        value = self.properties.get(key)
        return str(value) if value not in (None, "") else None

    def changed(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """The body of the PUT that makes `changes` and nothing else; None takes a property away."""
        kept = {key: value for key, value in self.properties.items() if key not in _READ_ONLY}
        properties = {key: value for key, value in {**kept, **changes}.items() if value is not None}
        return {"etag": self.etag, "properties": properties} if self.etag else {"properties": properties}


class IncidentList(tuple[Incident, ...]):
    """Incidents of one list, and what a reader must know of it.

    `read_at` is the client's clock (seconds) when the list was read: a kept one is older than the question. `complete`
    is False where the service ended exactly at the size of a page and named no further one: there may be more.
    """

    read_at: float
    complete: bool

    @classmethod
    def of(cls, incidents: Iterable[Incident], *, read_at: float, complete: bool) -> IncidentList:
        made = cls(incidents)
        made.read_at, made.complete = read_at, complete
        return made


@dataclass(frozen=True, slots=True)
class IncidentComment:
    """A comment; `name` is its GUID, `created` the service's own text of the time."""

    name: str
    message: str
    created: str | None
    author: str | None

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> IncidentComment:
        """Raises QueryFailedError PROTOCOL for a body that is no comment."""
        name, properties = body.get("name"), body.get("properties")
        if not isinstance(name, str) or not isinstance(properties, Mapping):
            raise QueryFailedError(protocol_error("Microsoft Sentinel answered with something that is no comment."))
        author = properties.get("author")
        author = author if isinstance(author, Mapping) else {}
        return cls(
            name,
            str(properties.get("message") or ""),
            properties.get("createdTimeUtc"),
            author.get("name") or author.get("userPrincipalName") or author.get("email"),
        )


@dataclass(frozen=True, slots=True)
class IncidentRelation:
    """That an incident is related to a resource, by its ARM id; for a bookmark `related_name` is its GUID."""

    name: str
    related_id: str
    related_name: str | None
    related_type: str | None

    @classmethod
    def from_body(cls, body: Mapping[str, Any]) -> IncidentRelation:
        """Raises QueryFailedError PROTOCOL for a body that is no relation."""
        name, properties = body.get("name"), body.get("properties")
        related = properties.get("relatedResourceId") if isinstance(properties, Mapping) else None
        if not isinstance(name, str) or not isinstance(properties, Mapping) or not isinstance(related, str):
            raise QueryFailedError(protocol_error("Microsoft Sentinel answered with something that is no relation."))
        return cls(name, related, properties.get("relatedResourceName"), properties.get("relatedResourceType"))


# A role grants actions with wildcards and takes some back (`notActions`); an action is allowed if one grant allows it.
UPDATE_INCIDENTS = "Microsoft.SecurityInsights/incidents/write"
WRITE_COMMENTS = "Microsoft.SecurityInsights/incidents/comments/write"


@dataclass(frozen=True, slots=True)
class Permissions:
    """Grants of (actions, actions that are taken back), each a pattern with `*`."""

    grants: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]

    @classmethod
    def from_items(cls, items: Iterable[Mapping[str, Any]]) -> Permissions:
        """Raises QueryFailedError PROTOCOL for items that are no grants."""
        grants = []
        for item in items:
            actions, taken_back = item.get("actions"), item.get("notActions") or []
            if not isinstance(actions, list) or not isinstance(taken_back, list):
                raise QueryFailedError(protocol_error("Azure answered with something that is no list of permissions."))
            grants.append((tuple(map(str, actions)), tuple(map(str, taken_back))))
        return cls(tuple(grants))

    def allows(self, action: str) -> bool:
        """Whether `action` is granted; names of actions know no case."""
        return any(
            any(_matches(pattern, action) for pattern in actions)
            and not any(_matches(pattern, action) for pattern in taken_back)
            for actions, taken_back in self.grants
        )


def _matches(pattern: str, action: str) -> bool:
    parts = [re.escape(part) for part in pattern.split("*")]
    return re.fullmatch(".*".join(parts), action, re.IGNORECASE) is not None


T = TypeVar("T")


# If the service's answer is lost, the resource is read back. It is written once more only if it was not written, and
# under the same guard (an etag that the first write would have changed, an id that it would have taken), so that of two
# writes one at most counts. What stays unclear is told as unclear.
async def write_once(
    write: Callable[[], Awaitable[T]], written: Callable[[], Awaitable[T | None]], *, guarded: bool
) -> T:
    """The resource after `write`, which raises UnclearOutcomeError for a lost answer; `written` reads it back, None if
    the write is not in it. Without a guard nothing is sent twice.

    Raises QueryFailedError: as `write` does, or OUTCOME_UNKNOWN.
    """
    try:
        return await write()
    except UnclearOutcomeError as unclear:
        seen = unclear.error
    except QueryFailedError as failure:
        return await _ours_after_all(failure, written)
    found = await _read_back(written, seen)
    if found is not None:
        return found
    if not guarded:
        raise QueryFailedError(_unknown(seen))
    try:
        return await write()
    except UnclearOutcomeError as unclear:
        found = await _read_back(written, unclear.error)
        if found is None:
            raise QueryFailedError(_unknown(unclear.error)) from unclear
        return found
    except QueryFailedError as failure:
        if failure.error.code is QueryErrorCode.CONFLICT:
            return await _ours_after_all(failure, written)
        raise QueryFailedError(_unknown(failure.error)) from failure


async def _ours_after_all(failure: QueryFailedError, written: Callable[[], Awaitable[T | None]]) -> T:
    """After a conflict: the transport may have sent a PUT again on a connection that closed, so that the first one has
    won against it. Then the resource shows what was asked for; else the failure stands."""
    if failure.error.code is not QueryErrorCode.CONFLICT:
        raise failure
    try:
        found = await written()
    except QueryFailedError:
        raise failure from None
    if found is None:
        raise failure
    return found


async def _read_back(written: Callable[[], Awaitable[T | None]], seen: QueryError) -> T | None:
    try:
        return await written()
    except QueryFailedError as failure:
        raise QueryFailedError(_unknown(seen)) from failure


def _unknown(seen: QueryError) -> QueryError:
    return QueryError(
        code=QueryErrorCode.OUTCOME_UNKNOWN,
        message=f"It is not known whether the change was made: {seen.message}",
        next_step="Look at the incident before you try again.",
    )


def understood(read: Callable[[Mapping[str, Any]], T], answer: Mapping[str, Any]) -> T:
    """The resource in a write's answer. Raises UnclearOutcomeError for none: that tells nothing of the write."""
    try:
        return read(answer)
    except QueryFailedError as failure:
        raise UnclearOutcomeError(failure.error) from failure


PERMISSIONS_API_VERSION = "2022-04-01"
LARGEST_PAGE = 1_000
LIST_LIFETIME_S = 60.0
_RESOURCE_PARTS = ("subscriptions", "resourcegroups", "providers", "microsoft.operationalinsights", "workspaces")

_NAME = re.compile(r"[A-Za-z0-9-]{1,100}")


def checked_resource_id(resource_id: str) -> str:
    """The ARM id of a workspace as it goes into a URL. Raises ValueError for text that is none."""
    parts = resource_id.strip().strip("/").split("/")
    fixed = [part.lower() for part in (*parts[0:1], *parts[2:3], *parts[4:5], *parts[5:6], *parts[6:7])]
    if len(parts) != 8 or tuple(fixed) != _RESOURCE_PARTS or not all(parts):
        raise ValueError(
            "is no workspace's Resource ID: it has the form /subscriptions/ID/resourceGroups/NAME/providers/"
            "Microsoft.OperationalInsights/workspaces/NAME"
        )
    return "/" + "/".join(quote(part, safe="-_.()") for part in parts)


class SentinelRest:
    """The incidents of the workspace with the ARM id `resource_id`.

    Raises ConfigurationError for an id that is none. `clock` counts seconds, for limits and caches.
    """

    def __init__(
        self,
        name: str,
        resource_id: str,
        connection: ArmConnection,
        *,
        buckets: RateBuckets | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        try:
            path = checked_resource_id(resource_id)
        except ValueError as error:
            raise ConfigurationError(
                f"The resource id of workspace {name!r} {error}.",
                next_step="Copy the Resource ID from the workspace's properties page.",
            ) from None
        self.name = name
        self.connection = connection
        self._resource = f"{connection.endpoint}{path}"
        self._base = f"{self._resource}/providers/Microsoft.SecurityInsights"
        self._buckets = buckets or RateBuckets(clock)
        self._clock = clock
        self._lists = ReadCache[tuple[str, str, int | None], IncidentList](clock, lifetime_s=LIST_LIFETIME_S)
        self._related = ReadCache[tuple[str, str, str], tuple[Mapping[str, Any], ...]](clock)

    async def list_incidents(
        self, *, odata_filter: str = "", order_by: str = "", limit: int | None = None
    ) -> IncidentList:
        """Every incident that the filter keeps, over all pages, or the first `limit`. At most 60 s old (`read_at`).

        An own write is seen at once. Raises QueryFailedError.
        """
        return await self._lists.get(
            (odata_filter, order_by, limit),
            lambda: self.read_incidents(odata_filter=odata_filter, order_by=order_by, limit=limit),
        )

    async def read_incidents(
        self, *, odata_filter: str = "", order_by: str = "", limit: int | None = None
    ) -> IncidentList:
        """As `list_incidents`, always from the service and never kept: for a reader of whole workspaces."""
        page = min(limit or LARGEST_PAGE, LARGEST_PAGE)
        parameters = {"$filter": odata_filter, "$orderby": order_by, "$top": str(page)}
        self._buckets.take(RestOperation.LIST_INCIDENTS)
        read_at = self._clock()
        url = self._url("incidents", {key: value for key, value in parameters.items() if value})
        pages = await read_pages(self.connection, url, most=limit, page_size=page)
        found = map(Incident.from_body, pages.items)
        return IncidentList.of(found, read_at=read_at, complete=pages.complete)

    async def get_incident(self, name: str) -> Incident:
        """The incident with the GUID `name`, as it is now. Raises QueryFailedError."""
        self._buckets.take(RestOperation.GET_INCIDENT)
        return Incident.from_body(await self.connection.read(self._url(f"incidents/{_segment(name)}")))

    async def update_incident(self, incident: Incident, changes: Mapping[str, Any]) -> Incident:
        """Write `changes` over the incident as it was read; the incident as the service holds it then.

        Raises QueryFailedError: CONFLICT if somebody changed it since it was read, OUTCOME_UNKNOWN if it cannot be told
        whether the write took effect.
        """
        url = self._url(f"incidents/{_segment(incident.name)}")
        body = incident.changed(changes)

        async def write() -> Incident:
            self._buckets.take(RestOperation.PUT_INCIDENT)
            written = await self.connection.write("PUT", url, body, if_match=incident.etag or None)
            return understood(Incident.from_body, written)

        async def settled() -> Incident | None:
            now = await self.get_incident(incident.name)
            return now if _holds(now, changes) else None

        self._lists.clear()
        try:
            return await write_once(write, settled, guarded=bool(incident.etag))
        finally:
            self._lists.clear()

    async def comments(self, name: str) -> tuple[IncidentComment, ...]:
        """All comments of an incident, in the service's order. Raises QueryFailedError."""
        self._buckets.take(RestOperation.GET_COMMENTS)
        url = self._url(f"incidents/{_segment(name)}/comments")
        return tuple(map(IncidentComment.from_body, (await read_pages(self.connection, url)).items))

    async def add_comment(self, name: str, comment_id: str, message: str) -> IncidentComment:
        """Add a comment under an id of the caller's choice, with which it is there once however often it is sent.

        Raises QueryFailedError, OUTCOME_UNKNOWN if it cannot be told whether the comment was added.
        """
        url = self._url(f"incidents/{_segment(name)}/comments/{_segment(comment_id)}")

        async def write() -> IncidentComment:
            self._buckets.take(RestOperation.PUT_COMMENT)
            written = await self.connection.write("PUT", url, {"properties": {"message": message}})
            return understood(IncidentComment.from_body, written)

        async def settled() -> IncidentComment | None:
            self._buckets.take(RestOperation.GET_COMMENTS)
            try:
                return IncidentComment.from_body(await self.connection.read(url))
            except QueryFailedError as failure:
                if failure.error.field == "incident":  # there is no such comment
                    return None
                raise

        self._lists.clear()
        try:
            return await write_once(write, settled, guarded=True)
        finally:
            self._lists.clear()

    async def alerts(self, incident: Incident) -> tuple[Mapping[str, Any], ...]:
        """The alerts of an incident as entities of kind SecurityAlert; kept until its etag changes."""
        return await self._related_of(incident, "alerts", "value", RestOperation.GET_ALERTS)

    async def entities(self, incident: Incident) -> tuple[Mapping[str, Any], ...]:
        """The entities of an incident; kept until its etag changes."""
        return await self._related_of(incident, "entities", "entities", RestOperation.GET_ENTITIES)

    async def bookmarks(self, incident: Incident) -> tuple[Mapping[str, Any], ...]:
        """The bookmarks of an incident as entities of kind Bookmark; kept until its etag changes."""
        return await self._related_of(incident, "bookmarks", "value", RestOperation.GET_BOOKMARKS)

    async def relations(self, name: str) -> tuple[IncidentRelation, ...]:
        """What an incident is related to, in the service's order. Raises QueryFailedError."""
        self._buckets.take(RestOperation.GET_RELATIONS)
        url = self._url(f"incidents/{_segment(name)}/relations")
        return tuple(map(IncidentRelation.from_body, (await read_pages(self.connection, url)).items))

    async def permissions(self) -> Permissions:
        """What the identity may do on the workspace, as Azure tells it. Raises QueryFailedError."""
        url = f"{self._resource}/providers/Microsoft.Authorization/permissions?api-version={PERMISSIONS_API_VERSION}"
        return Permissions.from_items((await read_pages(self.connection, url)).items)

    async def _related_of(
        self, incident: Incident, what: str, key: str, operation: RestOperation
    ) -> tuple[Mapping[str, Any], ...]:
        async def read() -> tuple[Mapping[str, Any], ...]:
            self._buckets.take(operation)
            url = self._url(f"incidents/{_segment(incident.name)}/{what}")
            items = (await self.connection.read(url, method="POST")).get(key)
            if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
                raise QueryFailedError(protocol_error(f"Microsoft Sentinel answered with no list of {what}."))
            return tuple(items)

        return await self._related.get((what, incident.name, incident.etag), read)

    def _url(self, path: str, parameters: Mapping[str, str] | None = None) -> str:
        query = urlencode({"api-version": API_VERSION, **(parameters or {})}, quote_via=quote, safe="$")
        return f"{self._base}/{path}?{query}"


def _holds(incident: Incident, changes: Mapping[str, Any]) -> bool:
    """Whether the incident shows everything that `changes` asked for. The service completes an owner, so any of the
    owner's names that were given is enough."""
    for key, wanted in changes.items():
        found = incident.properties.get(key)
        if key == "owner" and isinstance(wanted, Mapping):
            given: Sequence[tuple[str, Any]] = [(name, value) for name, value in wanted.items() if value]
            names = {str(value).casefold() for value in incident.owner.values() if value}
            if not given and names:
                return False
            if given and not any(str(value).casefold() in names for _, value in given):
                return False
        elif (found or None) != (wanted or None):
            return False
    return True


def _segment(name: str) -> str:
    """The name of a resource as a part of a path. An import may hold any text for one; a path must stay below ours."""
    if not _NAME.fullmatch(name):
        raise invalid_argument("incident", f"{name[:60]!r} cannot be the id of an incident or a comment.")
    return name


# Following `nextLink` to the end: to the same endpoint only, each page once, and no further than makes sense.


MOST_PAGES = 1_000


PAGE_SIZES = frozenset({50, 100, 200, 1_000})
"""Sizes at which services end a page, whatever was asked for."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The items of the pages that were read. `complete` is False where there are more, and where nobody can tell: the
    last page is exactly as long as pages are, and names no further one."""

    items: list[Mapping[str, Any]]
    complete: bool


async def read_pages(
    connection: ArmConnection, url: str, *, most: int | None = None, page_size: int | None = None
) -> Pages:
    """The items of every page from `url` on, at most `most`; `page_size` is what was asked for. Raises
    QueryFailedError.

    A link to another host would carry the token there, and a link that was followed already would never end: both are
    errors, since a list that stops in the middle would look whole.
    """
    items: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    link: str | None = url
    full_page = False
    while link is not None and (most is None or len(items) < most):
        if not connection.is_own(link):
            raise QueryFailedError(protocol_error("The list goes on at another host, where our token must not go."))
        if link in seen or len(seen) >= MOST_PAGES:
            raise QueryFailedError(protocol_error("The list's pages lead back to each other or never end."))
        seen.add(link)
        page = await connection.read(link)
        value, following = page.get("value"), page.get("nextLink")
        if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
            raise QueryFailedError(protocol_error("Microsoft Sentinel answered with something that is no list."))
        items += value
        link = following if isinstance(following, str) and following else None
        full_page = len(value) == page_size or len(value) in PAGE_SIZES
    kept = items if most is None else items[:most]
    return Pages(kept, link is None and not full_page and len(kept) == len(items))


# Answers kept for a while: one read for any number of callers that ask the same at the same time.


K = TypeVar("K")
V = TypeVar("V")


class ReadCache(Generic[K, V]):
    """The last `most` answers, each for `lifetime_s` (None: as long as there is room). A failure is never kept."""

    def __init__(self, clock: Callable[[], float], *, lifetime_s: float | None = None, most: int = 256) -> None:
        self._clock = clock
        self._lifetime_s = lifetime_s
        self._most = most
        self._kept: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._reading = anyio.Lock()
        self._generation = 0

    async def get(self, key: K, read: Callable[[], Awaitable[V]]) -> V:
        """The kept answer for `key`, or that of `read`."""
        found = self._fresh(key)
        if found is not None:
            return found[1]
        async with self._reading:  # whoever waited here finds what the one before it has read
            found = self._fresh(key)
            if found is not None:
                return found[1]
            generation, asked_at = self._generation, self._clock()
            value = await read()
            if generation == self._generation:  # else it may be older than the write that cleared the cache
                self._kept[key] = (asked_at, value)
                while len(self._kept) > self._most:
                    self._kept.popitem(last=False)
            return value

    def clear(self) -> None:
        """Forget everything, answers that are being read included."""
        self._generation += 1
        self._kept.clear()

    def _fresh(self, key: K) -> tuple[float, V] | None:
        found = self._kept.get(key)
        if found is None or (self._lifetime_s is not None and self._clock() - found[0] >= self._lifetime_s):
            return None
        self._kept.move_to_end(key)
        return found
