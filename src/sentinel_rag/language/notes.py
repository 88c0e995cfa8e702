"""The one renderer of notes: what a tool's code and values say to a reader, out of `notes.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import Any

from sentinel_rag.contracts.json_values import json_form
from sentinel_rag.contracts.query_results import CodedNote as CodedNote
from sentinel_rag.language.text import toml_beside


def note(code: str, **values: Any) -> CodedNote:
    """The note of `notes.toml` with that code. Raises KeyError for a code or a value that is not there."""
    return _rendered(code, {name: json_form(value) for name, value in values.items()})


def in_workspace(told: str, workspace: str) -> CodedNote:
    """A note of one workspace among several."""
    return CodedNote(f"{workspace}: {told}", getattr(told, "code", ""), {**getattr(told, "values", {}), _OF: workspace})


def brief(told: CodedNote) -> str:
    """The sentence without what it explains; whole where it explains nothing or is of a newer server."""
    text = catalogue().get(told.code)
    try:
        head = _TEXT.vformat(text["brief"], (), told.values) if isinstance(text, Mapping) else str(told).rstrip(".")
    except KeyError:
        return str(told)
    named = f"{told.values[_OF]}: " if _OF in told.values and isinstance(text, Mapping) else ""
    return f"{named}{head}."


def catalogue() -> Mapping[str, Any]:
    """The texts by code."""
    return toml_beside("sentinel_rag.language", "notes.toml")


_OF = "workspace"


def _rendered(code: str, values: Mapping[str, Any]) -> CodedNote:
    text = catalogue()[code]
    whole = f"{text['brief']}: {text['more']}." if isinstance(text, Mapping) else text
    return CodedNote(_TEXT.vformat(whole, (), values), code, values)


class _Text(Formatter):
    """Formats with the three additions that the head of `notes.toml` tells."""

    def get_value(self, key: int | str, args: Any, kwargs: Mapping[str, Any]) -> Any:
        return kwargs[str(key)]

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec.startswith("?"):
            return "" if value in (None, "", [], False) else format_spec[1:].replace("%s", self.format_field(value, ""))
        if "|" in format_spec:
            one, more = format_spec.split("|")
            return one if (len(value) if isinstance(value, list) else value) == 1 else more
        if isinstance(value, list):
            return ", ".join(map(str, value))
        return format(value, format_spec)


_TEXT = _Text()
