"""Texts that have a form: URLs, paths, CSV, XML, versions, command lines and user agents.

Source: the Kusto pages named like the functions, and for URLs what was measured on Kusto.
"""

from __future__ import annotations

import csv
import io
import re
from decimal import Decimal
from typing import Any
from xml.parsers import expat

from kql_duckdb.errors import not_supported
from kql_duckdb.expressions import Typed, literal
from kql_duckdb.functions.conversion import DYNAMIC, json_value, to_string
from kql_duckdb.functions.definitions import BoundCall, ScalarFunction, fill, function
from kql_duckdb.functions.python_functions import dynamic_function

# Userinfo is such only with a colon: the `user` of `https://user@h.io/p` stands in the host.
_URL = re.compile(
    r"([A-Za-z][A-Za-z0-9+.\-]*)://(?:([^:@/?#]*):([^@/?#]*)@)?(\[[^\]]*\]|[^:/?#]*)(?::([0-9]*))?([^?#]*)"
    r"(?:\?([^#]*))?(?:#(.*))?",
    re.DOTALL,
)


def _query(text: str) -> dict[str, Any]:
    """The parameters by name; a name seen twice holds an array, and one without a value is left out."""
    found: dict[str, list[str]] = {}
    for pair in text.split("&"):
        key, _, value = pair.partition("=")
        if key and value:
            found.setdefault(key, []).append(value)
    return {key: found[key][0] if len(found[key]) == 1 else found[key] for key in sorted(found)}


@dynamic_function("kql_parse_url", ("VARCHAR",))
def _parse_url(text: str) -> dict[str, Any]:
    """Every part empty for what is no URL."""
    found = _URL.fullmatch(text)
    scheme, user, password, host, port, path, query, fragment = found.groups(default="") if found else ("",) * 8
    if path == "/" and "?" not in text and "#" not in text:
        path = ""
    return {
        "Scheme": scheme,
        "Host": host,
        "Port": port,
        "Path": path,
        "Username": user,
        "Password": password,
        "Query Parameters": _query(query),
        "Fragment": fragment,
    }


@dynamic_function("kql_parse_urlquery", ("VARCHAR",))
def _parse_urlquery(text: str) -> dict[str, Any]:
    return {"Query Parameters": _query(text)}


@dynamic_function("kql_parse_csv", ("VARCHAR",))
def _parse_csv(text: str) -> list[str]:
    """The fields of the first record."""
    if len(text) > csv.field_size_limit():
        csv.field_size_limit(len(text))
    return next(csv.reader(io.StringIO(text, newline="")), None) or [""]


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+)://")
_ROOT = re.compile(r"(?:\\\\[?.]\\)?([A-Za-z]:)(?:[\\/]|$)")


@dynamic_function("kql_parse_path", ("VARCHAR",))
def _parse_path(text: str) -> dict[str, str]:
    """The parts of a Windows or Unix path; one that is not there is the empty text."""
    scheme = _SCHEME.match(text)
    rest = text[scheme.end() :] if scheme else text
    root = _ROOT.match(rest)
    parts = re.fullmatch(r"(.*?)([\\/]?)([^\\/]*)", rest, re.DOTALL)
    assert parts is not None  # each part may be empty
    directory, _, last = parts.groups()
    name, _, stream = last.partition(":") if not (root and last == root[1]) else ("", "", "")
    extension = name.rpartition(".")[2] if "." in name else ""
    return {
        "Scheme": scheme[1] if scheme else "",
        "RootPath": root[1] if root else "",
        "DirectoryPath": directory,
        "DirectoryName": re.split(r"[\\/]", directory)[-1],
        "Filename": name,
        "Extension": extension,
        "AlternateDataStreamName": stream,
    }


@dynamic_function("kql_parse_command_line", ("VARCHAR",))
def _command_line(text: str) -> list[str] | None:
    """As CommandLineToArgvW of Windows splits it."""
    text = text.strip()
    if not text:
        return None
    program, place = _program(text)
    arguments = [program]
    while place < len(text):
        if text[place] in " \t":
            place += 1
            continue
        argument, place = _argument(text, place)
        arguments.append(argument)
    return arguments


def _program(text: str) -> tuple[str, int]:
    """The first word, in which a backslash means nothing."""
    if text.startswith('"'):
        end = text.find('"', 1)
        end = len(text) if end < 0 else end
        return text[1:end], end + 1
    found = re.match(r"[^ \t]*", text)
    assert found is not None
    return found[0], found.end()


def _argument(text: str, place: int) -> tuple[str, int]:
    """One word from `place` on: backslashes before a quote count in pairs, and a doubled quote inside quotes is one."""
    made: list[str] = []
    quoted = False
    while place < len(text) and (quoted or text[place] not in " \t"):
        slashes = len(text[place:]) - len(text[place:].lstrip("\\"))
        place += slashes
        if text[place : place + 1] != '"':
            made.append("\\" * slashes)
            if slashes == 0:
                made.append(text[place])
                place += 1
            continue
        made.append("\\" * (slashes // 2))
        if slashes % 2:
            made.append('"')
        elif quoted and text[place + 1 : place + 2] == '"':
            made.append('"')
            place += 1
        else:
            quoted = not quoted
        place += 1
    return "".join(made), place


def _parse_command_line(call: BoundCall) -> Typed:
    if (call.constant_text(1) or "").lower() != "windows":
        raise call.invalid("argument #2 must be 'windows'.", "SEM0207")
    return fill("kql_parse_command_line({0})", DYNAMIC, call.arguments[0])


@dynamic_function("kql_parse_version", ("VARCHAR",), "DECIMAL(38,10)")
def _parse_version(text: str) -> Any:
    """A decimal of four groups of eight digits; null for what is no version, and beyond what a decimal holds here."""
    if not re.fullmatch(r"\d{1,8}(?:\.\d{1,8}){0,3}", text):
        return None
    parts = (text.split(".") + ["0"] * 3)[:4]
    number = int("".join(f"{int(part):08d}" for part in parts))
    return Decimal(number) if number < 10**28 else None


class _Xml:
    """Builds a Python value from XML as Kusto's page of parse_xml says."""

    def __init__(self) -> None:
        self.root: dict[str, Any] = {}
        self._open: list[tuple[str, dict[str, Any], list[str]]] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._open.append((name, {f"@{key}": value for key, value in attributes.items()}, []))

    def text(self, content: str) -> None:
        if self._open:
            self._open[-1][2].append(content)

    def end(self, name: str) -> None:
        _, members, pieces = self._open.pop()
        text = "".join(pieces)
        value: Any = members or None
        if text.strip():
            value = members | {"#text": text} if members else text
        parent = self._open[-1][1] if self._open else self.root
        if name not in parent:
            parent[name] = value
        elif isinstance(parent[name], list):
            parent[name].append(value)
        else:
            parent[name] = [parent[name], value]

    def doctype(self, *_: Any) -> None:
        # Entities can blow a few bytes up to gigabytes.
        raise expat.ExpatError("a document type is not read")


@dynamic_function("kql_parse_xml", ("VARCHAR",))
def _parse_xml(text: str) -> dict[str, Any] | None:
    """Null for what is no XML."""
    built = _Xml()
    parser = expat.ParserCreate()
    parser.StartElementHandler = built.start
    parser.EndElementHandler = built.end
    parser.CharacterDataHandler = built.text
    parser.StartDoctypeDeclHandler = built.doctype
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, ValueError):
        return None
    return built.root


@dynamic_function("kql_parse_user_agent", ("VARCHAR", "JSON"))
def _parse_user_agent(text: str, looked_for: Any) -> dict[str, Any]:
    from ua_parser import parse  # type: ignore[import-not-found, unused-ignore] # an extra of this package

    found = parse(text)
    wanted = [str(one).lower() for one in (looked_for if isinstance(looked_for, list) else [looked_for])]

    def parts(held: Any, names: dict[str, str]) -> dict[str, str]:
        shown = {name: getattr(held, field, None) or "" for name, field in names.items()}
        return shown | {"Family": shown["Family"] or "Other"}

    versions = {"Family": "family", "MajorVersion": "major", "MinorVersion": "minor", "Patch": "patch"}
    answers = {
        "browser": ("Browser", found.user_agent, versions),
        "os": ("OperatingSystem", found.os, versions | {"PatchMinor": "patch_minor"}),
        "device": ("Device", found.device, {"Family": "family", "Brand": "brand", "Model": "model"}),
    }
    return {name: parts(held, names) for key, (name, held, names) in answers.items() if key in wanted}


def _user_agent(call: BoundCall) -> Typed:
    try:
        import ua_parser  # type: ignore[import-not-found, unused-ignore] # noqa: F401  # an extra; only whether it is there
    except ImportError:
        raise not_supported(
            "parse_user_agent", "it needs the tables of uap-core: install kql-duckdb[user-agents]"
        ) from None
    wanted = call.arguments[1] if len(call.arguments) > 1 else literal(["browser"], DYNAMIC)
    return fill("kql_parse_user_agent({0}, {1})", DYNAMIC, to_string(call.arguments[0]), json_value(wanted))


FUNCTIONS: tuple[ScalarFunction, ...] = (
    *(function(f"{name}(url: string): dynamic", "kql_parse_url({0})") for name in ("parse_url", "parseurl")),
    *(
        function(f"{name}(query: string): dynamic", "kql_parse_urlquery({0})")
        for name in ("parse_urlquery", "parseurlquery")
    ),
    function("parse_csv(csv_text: string): dynamic", "kql_parse_csv({0})"),
    function("parse_path(path: string): dynamic", "kql_parse_path({0})"),
    function(
        "parse_version(version: string): decimal",
        "kql_parse_version({0})",
        status="partly",
        note="null where the first part is 10,000 or more",
    ),
    function("parse_command_line(command: string, parser: string)", _parse_command_line),
    function("parse_xml(xml_text: string): dynamic", "kql_parse_xml({0})"),
    function(
        "parse_user_agent(user_agent: string, look_for?: any)",
        _user_agent,
        status="partly",
        note="with the extra `user-agents`, which brings the tables of uap-core; refused without it",
    ),
)
