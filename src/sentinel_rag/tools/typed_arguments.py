"""Arguments of a tool as a typed value, exactly as they came.

The gateway has judged the very bytes that arrive here, so nothing is stripped, folded or converted: a path with a blank
in front must not become another path behind the rule's back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from sentinel_rag.tools.tool_answer import wrong_argument

T = TypeVar("T", bound=msgspec.Struct)

_PLACE = re.compile(r" - at `\$\.(?P<field>\w+)`$")
_NAMED = re.compile(r"(?:unknown|required) field `(?P<field>\w+)`")


def read_arguments(kind: type[T], tool: str, arguments: Mapping[str, Any]) -> T:
    """`arguments` as a `kind`, whose fields and limits they must keep. Raises ToolFault that names the field."""
    try:
        return msgspec.convert(arguments, kind, strict=True)
    except msgspec.ValidationError as fault:
        text = str(fault)
        found = _PLACE.search(text) or _NAMED.search(text)
        field = found["field"] if found else ""
        reason = _PLACE.sub("", text).replace("`", "'")
        takes = ", ".join(each.name for each in msgspec.structs.fields(kind))
        raise wrong_argument(
            field,
            f"{tool} cannot take {field or 'these arguments'}: {reason[:1].lower()}{reason[1:]}.",
            f"It takes: {takes}.",
        ) from None
