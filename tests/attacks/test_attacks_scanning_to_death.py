"""Attacker controls: the text that a regular expression or a scanner of the gateway looks through.

Wanted: a text on which looking takes time out of measure (ReDoS), so that one call stops the gateway for all. Every
pattern of the packages below is found by itself, and run the way its module runs it over long texts that are made from
its own parts: whatever a repeat of it can repeat, repeated, with an end that fits and one that does not. A pattern that
looks at such a text again from every place needs minutes; one that is linear, and one whose repeats are bounded, needs
far less than the seconds of CPU that all its texts may take together.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import re._constants as codes
import re._parser as regex_parser
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from types import FrameType, ModuleType
from typing import Any

import pytest

import sentinel_rag.audit
import sentinel_rag.contracts
import sentinel_rag.gateway
from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.handles import handles_in
from sentinel_rag.contracts.servers import is_own_host, is_own_origin
from sentinel_rag.gateway.argument_formats import FORMATS, NotCanonical
from sentinel_rag.gateway.flow.judging import is_domain, is_hash, is_public_ip
from sentinel_rag.gateway.flow.links import linked_hosts
from sentinel_rag.gateway.flow.named_values import named_in
from sentinel_rag.gateway.flow.view import NoSuchHandle, find_references
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.request_body import MalformedBody, parse_object
from sentinel_rag.gateway.store.keys import split_key

PACKAGES = (sentinel_rag.contracts, sentinel_rag.gateway, sentinel_rag.audit)
LENGTH = 30_000
OF_A_PATTERN, OF_A_SCANNER = 3.0, 30.0
"""Seconds for all texts of one. A linear one needs a tenth; one that is quadratic in the length twice as many."""

METHODS = ("fullmatch", "match", "search", "finditer", "findall", "sub", "split")


class TooMuchWork(Exception):
    pass


@contextmanager
def bounded_work(seconds: float) -> Iterator[None]:
    """The CPU time of this process, not the clock, so that a busy machine changes nothing."""

    def stop(_: int, __: FrameType | None) -> None:
        raise TooMuchWork

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def modules() -> Iterator[ModuleType]:
    for package in PACKAGES:
        yield package
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            yield importlib.import_module(found.name)


def uses(module: ModuleType) -> dict[str, set[str]]:
    """Which methods the module calls on each of its names."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in METHODS:
            found.setdefault(node.value.id, set()).add(node.attr)
    return found


@cache
def patterns() -> dict[str, tuple[re.Pattern[Any], set[str]]]:
    """Every pattern that a module keeps, also within a tuple or a mapping, with how it is used there."""
    found: dict[str, tuple[re.Pattern[Any], set[str]]] = {}
    for module in modules():
        methods = uses(module)
        for name, value in vars(module).items():
            kept = list(value.values()) if isinstance(value, dict) else [value]
            kept = [part for each in kept for part in (each if isinstance(each, tuple | list) else [each])]
            for number, each in enumerate(part for part in kept if isinstance(part, re.Pattern)):
                # What is reached through another name may be used in any way: it is searched for, the dearest.
                how = methods.get(name) or {"finditer"}
                found.setdefault(f"{module.__name__.removeprefix('sentinel_rag.')}.{name}.{number}", (each, how))
    return found


def sample(items: Any) -> str:
    """A text that the parsed items match, but for what they look ahead and behind at."""
    return "".join(_sample_of(code, argument) for code, argument in items)


def _sample_of(code: Any, argument: Any) -> str:
    if code is codes.LITERAL:
        return chr(argument)
    if code is codes.NOT_LITERAL:
        return "b" if argument == ord("a") else "a"
    if code is codes.ANY:
        return "a"
    if code is codes.IN:
        return _member(argument)
    if code is codes.BRANCH:
        return sample(argument[1][0])
    if code in (codes.SUBPATTERN,):
        return sample(argument[3])
    if code is codes.ATOMIC_GROUP:
        return sample(argument)
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        low, high, inner = argument
        return sample(inner) * max(low, min(1, high))
    return ""


def _member(choices: Any) -> str:
    negated = choices[0][0] is codes.NEGATE
    tester = re.compile(_class_text(choices))
    for character in 'ab0._-/ :%A@~{}"\\é':
        if tester.fullmatch(character):
            return character
    assert not negated
    code, argument = choices[0]
    return chr(argument) if code is codes.LITERAL else chr(argument[0])


def _class_text(choices: Any) -> str:
    names = {
        codes.CATEGORY_DIGIT: r"\d",
        codes.CATEGORY_NOT_DIGIT: r"\D",
        codes.CATEGORY_SPACE: r"\s",
        codes.CATEGORY_NOT_SPACE: r"\S",
        codes.CATEGORY_WORD: r"\w",
        codes.CATEGORY_NOT_WORD: r"\W",
    }
    text = ""
    for code, argument in choices:
        if code is codes.NEGATE:
            text += "^"
        elif code is codes.LITERAL:
            text += re.escape(chr(argument))
        elif code is codes.RANGE:
            text += f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}"
        else:
            text += names[argument]
    return f"[{text}]"


def pumps(items: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """For each repeat: a text that leads to it, and one that it repeats."""
    lead = before
    for code, argument in items:
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            yield lead, sample(argument[2])
            yield from pumps(argument[2], lead)
        elif code is codes.SUBPATTERN:
            yield from pumps(argument[3], lead)
        elif code is codes.ATOMIC_GROUP:
            yield from pumps(argument, lead)
        elif code is codes.BRANCH:
            for branch in argument[1]:
                yield from pumps(branch, lead)
        lead += _sample_of(code, argument)


def long_texts(pattern: re.Pattern[Any]) -> list[str]:
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    parsed = regex_parser.parse(
        source, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    )
    whole = sample(parsed) or "a"
    found = {whole * (LENGTH // len(whole))}
    for lead, pump in pumps(parsed):
        if pump:
            long = (pump * (LENGTH // len(pump) + 1))[:LENGTH]
            # Behind its lead once, and with the lead before every place, so that each place is a fresh start.
            found |= {
                lead + long,
                lead + long + "\x01",
                long + "\x01",
                (lead + pump * 3) * (LENGTH // len(lead + pump * 3)),
            }
    return sorted(found)


def test_the_patterns_are_found() -> None:
    found = patterns()
    names = " ".join(found)
    for known in (
        "contracts.servers._AUTHORITY",
        "request_body._STRING_OR_BRACKET",
        "links._LINK",
        "named_values._EMAIL",
    ):
        assert known in names
    assert len(found) >= 25


def test_no_text_takes_a_pattern_time_out_of_measure(subtests: pytest.Subtests) -> None:
    for name, (pattern, methods) in patterns().items():
        with subtests.test(name):
            match_long_texts(pattern, methods)


def match_long_texts(pattern: re.Pattern[Any], methods: set[str], seconds: float = OF_A_PATTERN) -> None:
    with bounded_work(seconds):
        for text in long_texts(pattern):
            subject: Any = text if isinstance(pattern.pattern, str) else text.encode("latin-1", "replace")
            for method in methods:
                if method == "sub":
                    pattern.sub("" if isinstance(subject, str) else b"", subject)
                elif method == "finditer":
                    for _ in pattern.finditer(subject):
                        pass
                else:
                    getattr(pattern, method)(subject)


def test_this_test_finds_a_pattern_that_is_not_linear() -> None:
    for bad, method in (("(a+)+b", "fullmatch"), ("a+b", "search"), (r"\s+$", "search"), ("(x|xy)*z", "search")):
        with pytest.raises(TooMuchWork):
            match_long_texts(re.compile(bad), {method}, 0.3)


def _read(body: str) -> None:
    parse_object(body.encode("utf-8", "replace"))


SCANNERS: dict[str, Callable[[str], Any]] = {
    "named_in": named_in,
    "linked_hosts": linked_hosts,
    "find_references": lambda text: find_references({"a": {"$ref": text}, "b": [text]}),
    "handles_in": lambda text: handles_in({"a": {"$ref": text}, "b": [text]}),
    "is_public_ip": is_public_ip,
    "is_hash": is_hash,
    "is_domain": is_domain,
    "is_own_host": lambda text: is_own_host([text]),
    "is_own_origin": lambda text: is_own_origin([f"http://{text}"]),
    "split_key": split_key,
    "parse_object": _read,
    "parse_object, in a text": lambda text: _read('{"a":"' + text.replace('"', "") + '"}'),
    "parse_policy": lambda text: parse_policy(text),
    "parse_policy, condition": lambda text: parse_policy(
        "tools:\n- {name: t, taint_rules: [{rule_id: r, taint_level: LOW, condition: " + repr(text) + "}]}"
    ),
    **{f"format {name}": form for name, form in FORMATS.items()},
}
PIECES = (
    *(
        "a",
        " ",
        "\n",
        "/",
        "../",
        "./",
        "%41",
        "%25",
        "a.",
        "a-",
        "1.",
        ":",
        "::",
        "@",
        "a@",
        "a@a.",
        "http://",
        "http://a",
    ),
    *(
        "//",
        "\\",
        "\\\\",
        "](",
        "![",
        "<a href=",
        "&amp;",
        "&#38;",
        "```",
        "~~~",
        "`",
        ">",
        "|",
        ",",
        "but ",
        "not ",
        "no",
    ),
    *(
        "#1",
        "713 ",
        "1-",
        "incident ",
        "user ",
        "'",
        '"',
        '\\"',
        "[",
        "]",
        "{",
        "}",
        "{}",
        "[]",
        ",1",
        '"a":',
        "- a\n",
        "a: ",
    ),
    *(
        "\u0301",
        "\u200b",
        "\u202e",
        "\uff41",
        "\ufb03",
        "\U0001d5ba",
        "\x00",
        "xn--a.",
        "0x7f.",
        "r1#/a",
        "(a)",
        "a and ",
        "not (",
        "+1",
    ),
)


@pytest.mark.parametrize("name", SCANNERS)
def test_no_long_text_takes_a_scanner_time_out_of_measure(name: str) -> None:
    with bounded_work(OF_A_SCANNER):
        for piece in PIECES:
            for text in (piece * (20_000 // len(piece)), "a" + piece * (20_000 // len(piece)) + "\x01"):
                with suppress(NotCanonical, NoSuchHandle, MalformedBody, ConfigurationError):  # refused soon enough
                    SCANNERS[name](text)
