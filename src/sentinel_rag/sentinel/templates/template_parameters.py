"""Parameters of a KQL template: declared types, checked values, literals.

A value is checked against its declaration and becomes one KQL literal; it is never text in a query. Errors name the
parameter as `parameters.<name>` and say what would have been taken.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import invalid_argument, parse_time
from sentinel_rag.sentinel.arguments import nearest_hint, read_span
from sentinel_rag.sentinel.logs import kql_literals

PARAMETER_TYPES = ("string", "int", "real", "bool", "datetime", "timespan", "list", "enum")
LONGEST_TEXT = 500
LONGEST_LIST = 100
_SAMPLE_TIME = datetime(2024, 1, 1, tzinfo=UTC)
_EXPECTED = {
    "string": "text",
    "int": "a whole number",
    "real": "a number",
    "bool": "true or false",
    "datetime": "an ISO 8601 time with zone, such as 2024-07-02T09:45:00Z",
    "timespan": "a span such as 30m, 1h, 2d, 01:30:00 or PT1H",
    "list": "a list of texts",
    "enum": "one of the allowed values",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateParameter:
    """A declaration. `minimum` and `maximum` bound numbers; `pattern` must match a whole text; `names` tell by table
    the expression whose values it is one of, so that a part of a name can be told from a name without rows."""

    name: str
    type: str
    description: str
    required: bool = False
    default: Any = None
    minimum: float | None = None
    maximum: float | None = None
    pattern: str | None = None
    allowed: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()

    @classmethod
    def declared(cls, name: str, declaration: Mapping[str, Any]) -> TemplateParameter:
        """From a declaration of a template file that `template_registry` found sound."""
        return cls(
            name=name,
            type=declaration["type"],
            description=declaration["description"],
            required=declaration.get("required", False),
            default=declaration.get("default"),
            minimum=declaration.get("min"),
            maximum=declaration.get("max"),
            pattern=declaration.get("pattern"),
            allowed=tuple(declaration.get("allowed") or ()),
            names=tuple((declaration.get("names") or {}).items()),
        )

    def literal(self, value: Any) -> str:
        """The KQL literal for `value`. Raises QueryFailedError INVALID_ARGUMENT for a value outside the declaration."""
        match self.type:
            case "string":
                return kql_literals.string_literal(self._text(value))
            case "enum":
                return kql_literals.string_literal(self._choice(value))
            case "int":
                return kql_literals.long_literal(self._whole_number(value))
            case "real":
                return kql_literals.real_literal(self._number(value))
            case "bool":
                if not isinstance(value, bool):
                    raise self._wrong(value)
                return kql_literals.bool_literal(value)
            case "datetime":
                return kql_literals.datetime_literal(self._time(value))
            case "timespan":
                return kql_literals.timespan_literal(self._span(value))
            case _:
                return kql_literals.list_literal(self._texts(value))

    def from_text(self, text: str) -> Any:
        """The value that a person typed as `name=text`; a list by commas. What does not fit stays text, which `literal`
        refuses by name."""
        try:
            match self.type:
                case "int":
                    return int(text)
                case "real":
                    return float(text)
                case "bool":
                    return {"true": True, "false": False}.get(text.strip().lower(), text)
                case "list":
                    return [part.strip() for part in text.split(",") if part.strip()]
        except ValueError:
            pass
        return text

    def sample_literal(self) -> str:
        """Any literal of the type, to try a query with: the default, or one that is made up."""
        if self.default is not None:
            return self.literal(self.default)
        match self.type:
            case "enum":
                return self.literal(self.allowed[0])
            case "int" | "real":
                return self.literal(self.minimum if self.minimum is not None else min(1, self.maximum or 1))
            case "bool":
                return kql_literals.bool_literal(True)
            case "datetime":
                return kql_literals.datetime_literal(_SAMPLE_TIME)
            case "timespan":
                return kql_literals.timespan_literal(timedelta(hours=1))
            case "list":
                return kql_literals.list_literal(["x"])
            case _:
                return kql_literals.string_literal("x")

    def brief(self) -> str:
        """`user` where a value is needed, else the name with its default: `min_failures=1`."""
        return self.name if self.required else f"{self.name}={self.default}"

    def to_dict(self) -> dict[str, JsonValue]:
        """As list_kql_templates shows it."""
        return {
            "name": self.name,
            "type": self.type,
            "required": self.required,
            "default": self.default,
            "description": self.description,
            "allowed": list(self.allowed),
        }

    def _text(self, value: Any) -> str:
        if not isinstance(value, str) or not _is_encodable(value):
            raise self._wrong(value)
        if len(value) > LONGEST_TEXT:
            raise self._refused(f"may be {LONGEST_TEXT} characters long, not {len(value)}")
        if self.required and not value.strip():
            raise self._refused("must not be empty")
        if self.pattern is not None and value and re.fullmatch(self.pattern, value) is None:
            raise self._refused(f"does not have the right form ({self.description.rstrip('.')})")
        return value

    def _choice(self, value: Any) -> str:
        chosen = {allowed.casefold(): allowed for allowed in self.allowed}.get(str(value).casefold())
        if not isinstance(value, str) or chosen is None:
            raise invalid_argument(
                f"parameters.{self.name}",
                f"{self.name} cannot be {_shown(value)}.{nearest_hint(str(value), self.allowed)}",
                allowed=self.allowed,
            )
        return chosen

    def _whole_number(self, value: Any) -> int:
        self._number(value)
        if value != value // 1:
            raise self._wrong(value)
        if not kql_literals.LONG_MIN <= value <= kql_literals.LONG_MAX:
            raise self._refused("must fit a 64-bit whole number")
        return int(value)

    def _number(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(value)
        try:
            number = float(value)
        except OverflowError:
            raise self._refused("is larger than any number of a query") from None
        if self.minimum is not None and not number >= self.minimum:
            raise self._refused(f"must be at least {self.minimum:g}, not {number:g}")
        if self.maximum is not None and not number <= self.maximum:
            raise self._refused(f"must be at most {self.maximum:g}, not {number:g}")
        return number

    def _time(self, value: Any) -> datetime:
        try:
            return parse_time(value)
        except (ValueError, TypeError, AttributeError):
            raise self._wrong(value) from None

    def _span(self, value: Any) -> timedelta:
        if isinstance(value, str):
            with suppress(ValueError, OverflowError):
                return read_span(value)
        raise self._wrong(value)

    def _texts(self, value: Any) -> list[str]:
        if not isinstance(value, list) or not all(isinstance(item, str) and _is_encodable(item) for item in value):
            raise self._wrong(value)
        if len(value) > LONGEST_LIST:
            raise self._refused(f"may hold {LONGEST_LIST} texts, not {len(value)}")
        if self.required and not value:
            raise self._refused("must not be empty")
        return value

    def _wrong(self, value: Any) -> Exception:
        return self._refused(f"must be {_EXPECTED[self.type]}, not {_shown(value)}")

    def _refused(self, reason: str) -> Exception:
        return invalid_argument(
            f"parameters.{self.name}", f"{self.name} {reason}.", next_step=f"{self.name}: {self.description}"
        )


def _shown(value: Any) -> str:
    """The value as a message repeats it: short, whatever it is."""
    try:
        return repr(value)[:60]
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        return "a number of thousands of digits"


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8 form
        return False
    return True


def bind(parameters: tuple[TemplateParameter, ...], given: Mapping[str, Any], template: str) -> dict[str, str]:
    """A literal for each parameter, defaults filled in. Raises QueryFailedError INVALID_ARGUMENT."""
    names = tuple(parameter.name for parameter in parameters)
    for name in given:
        if name not in names:
            takes = f"It takes: {', '.join(names)}." if names else "It takes no parameters."
            raise invalid_argument(
                f"parameters.{name}",
                f"The template {template} has no parameter {name!r}. {takes}{nearest_hint(name, names)}",
                allowed=names,
                next_step="list_kql_templates tells each template's parameters.",
            )
    literals = {}
    for parameter in parameters:
        value = given.get(parameter.name)
        if value is None:
            if parameter.required:
                raise invalid_argument(
                    f"parameters.{parameter.name}",
                    f"The template {template} needs the parameter {parameter.name}: {parameter.description}",
                    next_step=f"Give {parameter.name} ({_EXPECTED[parameter.type]}).",
                )
            value = parameter.default
        literals[parameter.name] = parameter.literal(value)
    return literals
