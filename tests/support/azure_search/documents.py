"""The documents of one index: what a batch may hold, what becomes of each document, and when it can be found."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from tests.support.azure_search.definitions import VECTOR, Field, fields_of
from tests.support.azure_search.faults import invalid, unknown_here
from tests.support.azure_search.words import tokens

MOST_ACTIONS = 1_000
LONGEST_TERM = 32_766
_ACTIONS = frozenset({"upload", "merge", "mergeOrUpload", "delete"})
_KEY = re.compile(r"[A-Za-z0-9=-][A-Za-z0-9_=-]{0,1023}")
_INTEGERS = {"Edm.Int32": 2**31, "Edm.Int64": 2**63}
Stored = dict[str, Any]


class Index:
    """One index. A change is found after `lag` further searches, or up to twice as many: documents lie on partitions
    that are not equally fast, so a later change may be found before an earlier one."""

    def __init__(self, name: str, definition: Mapping[str, Any]) -> None:
        self.name = name
        self.definition = dict(definition)
        self.fields = fields_of(name, definition)
        self.version = 1
        self.found: dict[str, Stored] = {}
        self.texts: dict[str, dict[str, tuple[str, ...]]] = {}
        self._stored: dict[str, Stored] = {}
        self._waiting: list[tuple[int, str]] = []
        self._searches = 0

    @property
    def key(self) -> str:
        return next(name for name, field in self.fields.items() if field.key)

    def define(self, definition: Mapping[str, Any], fields: dict[str, Field]) -> None:
        """Take a changed definition that was checked; what is new is empty in every document."""
        self.definition, self.fields = dict(definition), fields
        self.version += 1

    def searched(self) -> None:
        """Count a search, and let be found what has waited long enough."""
        self._searches += 1
        due = [key for when, key in self._waiting if when < self._searches]
        self._waiting = [each for each in self._waiting if each[0] >= self._searches]
        for key in due:
            self._show(key)

    def checked(self, batch: Mapping[str, Any]) -> list[Stored]:
        """The actions of a batch. Raises ServiceFaultError for one that is refused whole."""
        actions = batch.get("value")
        if not isinstance(actions, list) or not actions or batch.keys() != {"value"}:
            raise invalid("The request is invalid. Details: actions : No indexing actions found in the request.")
        if len(actions) > MOST_ACTIONS:
            raise invalid(f"The request is invalid. Details: actions : Only {MOST_ACTIONS} actions are allowed.")
        for action in actions:
            if action.get("@search.action") not in _ACTIONS:
                raise invalid("The request is invalid. Details: actions : An action is unknown.")
            if not isinstance(action.get(self.key), str) or not _KEY.fullmatch(action[self.key]):
                raise invalid(
                    f"Invalid document key: '{action.get(self.key)}'. Keys can only contain letters, digits, "
                    "underscore (_), dash (-), or equal sign (=)."
                )
            for name, value in action.items():
                if name != "@search.action":
                    self._check(name, value)
        return actions

    def apply(self, action: Stored, lag: int) -> tuple[int, str | None]:
        """Do one action: its status, and what is wrong with it."""
        key = action[self.key]
        kind = action["@search.action"]
        given = {name: value for name, value in action.items() if name != "@search.action"}
        known = key in self._stored
        for name, value in given.items():
            longest = max((len(each.encode()) for each in _strings(value)), default=0)
            if self.fields[name].filterable and longest > LONGEST_TERM:
                return 400, f"Field '{name}' contains a term that is too large to process."
        if kind == "merge" and not known:
            return 404, "Document not found."
        if kind == "delete":
            self._stored.pop(key, None)
        elif kind == "upload" or not known:
            self._stored[key] = {**dict.fromkeys(self.fields), **given}
        else:
            self._stored[key] = {**self._stored[key], **given}
        if lag:
            self._waiting.append((self._searches + lag + zlib.crc32(key.encode()) % lag, key))
        else:
            self._show(key)
        return 200 if known or kind == "delete" else 201, None

    def _show(self, key: str) -> None:
        document = self._stored.get(key)
        self.texts.pop(key, None)
        if document is None:
            self.found.pop(key, None)
            return
        self.found[key] = document
        self.texts[key] = {
            name: tokens(" ".join(_strings(document.get(name))), field.token_filters)
            for name, field in self.fields.items()
            if field.searchable and field.type != VECTOR and document.get(name)
        }

    def _check(self, name: str, value: Any) -> None:
        field = self.fields.get(name)
        if field is None:
            raise invalid(
                f"The request is invalid. Details: The property '{name}' does not exist on type "
                "'search.documentFields'."
            )
        if value is None and not field.type.startswith("Collection"):
            return
        if field.type == "Edm.String":
            right = isinstance(value, str) and _is_text(value)
        elif field.type == "Collection(Edm.String)":
            right = isinstance(value, list) and all(isinstance(each, str) and _is_text(each) for each in value)
        elif field.type == VECTOR:
            self._check_vector(field, value)
            right = True
        else:
            limit = _INTEGERS[field.type]
            right = isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
        if not right:
            raise invalid(f"The request is invalid. Details: Cannot convert the value of '{name}' to '{field.type}'.")

    def _check_vector(self, field: Field, value: Any) -> None:
        if value is None or value == []:
            raise unknown_here("vectors that are null or empty")
        numbers = isinstance(value, list) and all(type(each) in (int, float) for each in value)
        if not numbers or not np.isfinite(np.asarray(value, dtype=np.float32)).all():
            raise invalid(f"The request is invalid. Details: '{field.name}' is no vector.")
        if len(value) != field.dimensions:
            raise invalid(vector_length(field, len(value)))


def vector_length(field: Field, length: int) -> str:
    """What the service says of a vector of another length."""
    return (
        f"There's a mismatch in vector dimensions. The vector field '{field.name}', with dimension of "
        f"'{field.dimensions}', expects a length of '{field.dimensions}'. However, the provided vector has a length of "
        f"'{length}'."
    )


def _strings(value: Any) -> list[str]:
    return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]


def _is_text(value: str) -> bool:
    """Whether it is Unicode without NUL, which is all that may be relied on."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value
