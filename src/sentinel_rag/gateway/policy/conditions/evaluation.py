"""The meaning of a condition, in Kleene's strong three-valued logic, and a faster way to the same answer.

`evaluate` is the definition: True, False, or None for unknown. All the conditions of a tool also become one Python
function, written from checked trees, for calls that give every parameter asked for: where one is left out, a KeyError
leads back to `evaluate`. Many conditions in a row stand behind one common test, made of what each of them needs to be
true at all; it may err on the side of looking, never on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sentinel_rag.gateway.policy.conditions import tree
from sentinel_rag.gateway.policy.conditions.tree import Regex, escaped, found, join_patterns

MOST_NEEDS = 16

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Need:
    """`subject` must stand to `value` as `kind` says: startswith, endswith, ==, <, <=, >, >=, contains or matches.

    `test` is the part of the condition that it comes from. `guarded`: the condition is false, and not unknown, where a
    parameter of the subject is left out.
    """

    kind: str
    subject: tree.Expression
    value: Any
    test: tree.Expression
    guarded: bool = False


def needs_of(condition: tree.Expression) -> list[Need] | None:
    """Tests of which at least one holds wherever the condition is true or, unless guarded, where a parameter of the
    tests is left out. None if there are none to name."""
    match condition:
        case tree.StringTest(method, subject, tree.Constant(value)) if _is_value(subject):
            return [Need(method, subject, value, condition)]
        case tree.StringTest(method, subject, tree.Choices(values)) if _is_value(subject):
            return _few([Need(method, subject, value, condition) for value in values])
        case tree.Matches(subject, pattern, _) if _is_value(subject):
            return [Need("matches", subject, pattern, condition)]
        case tree.Compare(first, ((operator, tree.Constant(value)),)) if _is_value(first):
            return [Need(operator, first, value, condition)] if operator in ("==", *_MIRRORED) else None
        case tree.Compare(tree.Constant(value), ((operator, second),)) if _is_value(second):
            mirrored = _MIRRORED.get(operator, operator)
            return [Need(mirrored, second, value, condition)] if mirrored in ("==", *_MIRRORED) else None
        case tree.Compare(first, (("in", tree.Choices(values)),)) if _is_value(first):
            return _few([Need("==", first, value, condition) for value in values])
        case tree.Every(operands):
            return _of_conjunction(operands)
        case tree.Some(operands):
            return _of_disjunction(operands)
        case _:
            return None


def _of_conjunction(operands: tuple[tree.Expression, ...]) -> list[Need] | None:
    """The needs of the first operand that has some. Where it is false the whole is false, even if others are unknown;
    where it is unknown the whole may be, unless `has` among the operands makes it false."""
    present = {operand.name for operand in operands if isinstance(operand, tree.Present)}
    for operand in operands:
        needs = needs_of(operand)
        if needs is not None:
            return [
                Need(
                    need.kind, need.subject, need.value, need.test, need.guarded or tree.reads(need.subject) <= present
                )
                for need in needs
            ]
    return None


def _of_disjunction(operands: tuple[tree.Expression, ...]) -> list[Need] | None:
    """The needs of all operands: where the whole is true or unknown, one of them is, and so its needs hold."""
    needs: list[Need] = []
    for operand in operands:
        found = needs_of(operand)
        if found is None:
            return None
        needs += found
    return _few(needs)


def _few(needs: list[Need]) -> list[Need] | None:
    return needs if len(needs) <= MOST_NEEDS else None


def _is_value(node: tree.Expression) -> bool:
    """Whether it is computed from parameters alone, by something cheap."""
    return isinstance(node, tree.Argument | tree.CaseMapping | tree.Length) and bool(tree.reads(node))


def evaluate(node: tree.Expression, arguments: Mapping[str, Any]) -> bool | None:
    """Decide a condition for arguments of the declared types; None where a left-out parameter leaves it open."""
    value = _value(node, arguments)
    assert value is None or isinstance(value, bool)
    return value


def _value(node: tree.Expression, arguments: Mapping[str, Any]) -> Any:
    match node:
        case tree.Constant(value):
            return value
        case tree.Choices(values):
            return values
        case tree.Argument(name):
            return arguments.get(name)  # no argument is null: the argument check refuses it
        case tree.Present(name):
            return name in arguments
        case tree.Not(operand):
            value = _value(operand, arguments)
            return None if value is None else not value
        case tree.Every(operands):
            return _every(_value(operand, arguments) for operand in operands)
        case tree.Some(operands):
            return _negated(_every(_negated(_value(operand, arguments)) for operand in operands))
        case tree.Compare():
            return _chain(node, arguments)
        case tree.StringTest(method, subject, operand):
            left, right = _value(subject, arguments), _value(operand, arguments)
            if left is None or right is None:
                return None
            return right in left if method == "contains" else getattr(left, method)(right)
        case tree.Matches(subject, _, regex):
            value = _value(subject, arguments)
            return None if value is None else found(regex, value)
        case tree.CaseMapping(method, subject):
            value = _value(subject, arguments)
            return None if value is None else getattr(value, method)()
        case tree.Length(subject):
            value = _value(subject, arguments)
            return None if value is None else len(value)


def _negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def _every(values: Any) -> bool | None:
    result: bool | None = True
    for value in values:
        if value is False:
            return False
        if value is None:
            result = None
    return result


def _chain(node: tree.Compare, arguments: Mapping[str, Any]) -> bool | None:
    left = _value(node.first, arguments)
    steps: list[bool | None] = []
    for operator, operand in node.rest:
        right = _value(operand, arguments)
        steps.append(None if left is None or right is None else compare(left, operator, right))
        left = right
    return _every(steps)


def compare(left: Any, operator: str, right: Any) -> bool:
    """One comparison of two known values of fitting types."""
    match operator:
        case "==":
            return bool(left == right)
        case "!=":
            return bool(left != right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case ">=":
            return bool(left >= right)
        case "in":
            return holds(right, left)
        case "not in":
            return not holds(right, left)
        case _:
            raise AssertionError(operator)


def holds(container: Any, item: Any) -> bool:
    """Membership. In a list, true and 1 are different values, as they are in JSON and not in Python."""
    if isinstance(container, list | tuple):
        return any(isinstance(element, bool) is isinstance(item, bool) and element == item for element in container)
    return item in container


NO_MATCH = -1

CHUNK = 256
"""Conditions behind one common test."""

WORTH_A_TEST = 4


def compile_rules(conditions: Sequence[tree.Expression]) -> Callable[[Mapping[str, Any]], int]:
    """A function from arguments to the index of the first condition that is true, or `NO_MATCH`.

    It raises KeyError for arguments that leave out a parameter which the answer may depend on.
    """
    writer = _Writer()
    body = "".join(writer.function(conditions))
    source = f"def first_match(a):\n{body}    return {NO_MATCH}\n"
    namespace: dict[str, Any] = {"__builtins__": {}, "_len": len, "_holds": holds, **writer.searches}
    exec(compile(source, "<taint rules>", "exec"), namespace)  # noqa: S102  # our own text: names and literals by repr
    function: Callable[[Mapping[str, Any]], int] = namespace["first_match"]
    return function


class _Writer:
    """Writes code; `searches` are the compiled patterns that it speaks of."""

    def __init__(self) -> None:
        self.searches: dict[str, Callable[[str], Any]] = {}

    def function(self, conditions: Sequence[tree.Expression]) -> Iterator[str]:
        """One `if` for each condition, in order, in chunks behind a common test."""
        for start in range(0, len(conditions), CHUNK):
            chunk = conditions[start : start + CHUNK]
            guards = yield from self._common_test(chunk)
            indent = "        " if guards else "    "
            for index, condition in enumerate(chunk, start):
                guard = guards.get(condition, "")
                yield f"{indent}if {guard}{self.code(condition)}: return {index}\n"

    def _common_test(self, conditions: Sequence[tree.Expression]) -> Generator[str, None, dict[tree.Expression, str]]:
        """Code that goes on only where one of the conditions may be true or unknown, and for each what to ask before it
        again; nothing where it would spare nothing."""
        groups: dict[tuple[str, tree.Expression, bool], list[Need]] = {}
        names: dict[tuple[str, tree.Expression, bool], str] = {}
        guards: dict[tree.Expression, str] = {}
        alone: list[str] = []
        for condition in conditions:
            needs = needs_of(condition)
            if needs is None:
                alone.append(self.code(condition))
                continue
            for need in needs:
                key = (need.kind, need.subject, need.guarded)
                groups.setdefault(key, []).append(need)
                names.setdefault(key, f"g{len(names)}")
            asked = dict.fromkeys(names[need.kind, need.subject, need.guarded] for need in needs)
            guards[condition] = f"({' or '.join(asked)}) and "
        if len(conditions) < WORTH_A_TEST or len(groups) + len(alone) > len(conditions) // 2:
            return {}
        for key, needs in groups.items():
            yield f"    {names[key]} = {self._group_test(key[1], needs)}\n"
        yield f"    if {' or '.join([*names.values(), *alone])}:\n"
        return guards

    def _group_test(self, subject: tree.Expression, needs: Sequence[Need]) -> str:
        code, kind = self.code(subject), needs[0].kind
        match kind:
            case "startswith" | "endswith":
                test = f"{code}.{kind}(({', '.join(sorted({repr(need.value) for need in needs}))},))"
            case "==":
                test = f"{code} in {{{', '.join(sorted({repr(need.value) for need in needs}))}}}"
            case "<" | "<=" | ">" | ">=":
                bounds = [need.value for need in needs]
                test = f"{code} {kind} {(max if kind[0] == '<' else min)(bounds)!r}"
            case "contains" | "matches":
                patterns = [need.value if kind == "matches" else escaped(need.value) for need in needs]
                joined = join_patterns(dict.fromkeys(patterns)) if len(patterns) >= WORTH_A_TEST else None
                parts = [self._search(joined, code)] if joined else [self.code(need.test) for need in needs]
                test = " or ".join(parts)
            case _:
                raise AssertionError(kind)
        absent = " and ".join(f"{name!r} in a" for name in sorted(tree.reads(subject)))
        # A guarded condition is false where the parameter is absent; any other one is unknown there, and must be met.
        return f"({absent} and ({test}))" if needs[0].guarded else f"(not ({absent}) or {test})"

    def _search(self, regex: Regex, code: str) -> str:
        name = f"_search{len(self.searches)}"
        self.searches[name] = regex.search
        return f"({name}({code}) is not None)"

    def code(self, node: tree.Expression) -> str:
        match node:
            case tree.Constant(value):
                return repr(value)
            case tree.Choices(values):
                return f"({', '.join(map(repr, values))},)"
            case tree.Argument(name):
                return f"a[{name!r}]"
            case tree.Present(name):
                return f"({name!r} in a)"
            case tree.Not(operand):
                return f"(not {self.code(operand)})"
            case tree.Every(operands):
                return f"({' and '.join(map(self.code, operands))})"
            case tree.Some(operands):
                return f"({' or '.join(map(self.code, operands))})"
            case tree.Compare():
                return self._comparison(node)
            case tree.StringTest("contains", subject, operand):
                return f"({self.code(operand)} in {self.code(subject)})"
            case tree.StringTest(method, subject, operand):
                return f"{self.code(subject)}.{method}({self.code(operand)})"
            case tree.Matches(subject, _, regex):
                return self._search(regex, self.code(subject))
            case tree.CaseMapping(method, subject):
                return f"{self.code(subject)}.{method}()"
            case tree.Length(subject):
                return f"_len({self.code(subject)})"

    def _comparison(self, node: tree.Compare) -> str:
        """One native chain, so that no operand is written twice: nested chains would double the code at each level."""
        if len(node.rest) == 1 and node.rest[0][0] in ("in", "not in"):
            operator, container = node.rest[0]
            if isinstance(container, tree.Choices):
                return f"({self.code(node.first)} {operator} {self.code(container)})"
            found = f"_holds({self.code(container)}, {self.code(node.first)})"
            return found if operator == "in" else f"(not {found})"
        rest = " ".join(f"{operator} {self.code(operand)}" for operator, operand in node.rest)
        return f"({self.code(node.first)} {rest})"
