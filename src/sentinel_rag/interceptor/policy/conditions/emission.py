"""All the conditions of one tool as one Python function, written from checked trees.

The function reads an argument by `a['name']`. Where a call leaves it out, that is a KeyError, and the caller falls back
to `evaluate`. Short-circuiting past an absent parameter is sound: what was evaluated already settles the value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sentinel_rag.interceptor.policy.conditions import tree
from sentinel_rag.interceptor.policy.conditions.evaluation import holds

NO_MATCH = -1


def compile_rules(conditions: Sequence[tree.Expression]) -> Callable[[Mapping[str, Any]], int]:
    """A function from arguments to the index of the first condition that is true, or `NO_MATCH`.

    It raises KeyError for arguments that leave out a parameter which the answer may depend on.
    """
    tests = "".join(f"    if {_code(condition)}: return {index}\n" for index, condition in enumerate(conditions))
    source = f"def first_match(a):\n{tests}    return {NO_MATCH}\n"
    namespace: dict[str, Any] = {"__builtins__": {}, "_len": len, "_holds": holds}
    exec(compile(source, "<taint rules>", "exec"), namespace)  # noqa: S102  # our own text: names and literals by repr
    function: Callable[[Mapping[str, Any]], int] = namespace["first_match"]
    return function


def _code(node: tree.Expression) -> str:
    match node:
        case tree.Literal(value):
            return repr(value)
        case tree.Choices(values):
            return f"({', '.join(map(repr, values))},)"
        case tree.Argument(name):
            return f"a[{name!r}]"
        case tree.Present(name):
            return f"({name!r} in a)"
        case tree.Not(operand):
            return f"(not {_code(operand)})"
        case tree.Every(operands):
            return f"({' and '.join(map(_code, operands))})"
        case tree.Some(operands):
            return f"({' or '.join(map(_code, operands))})"
        case tree.Comparison():
            return _comparison(node)
        case tree.StringTest("contains", subject, operand):
            return f"({_code(operand)} in {_code(subject)})"
        case tree.StringTest(method, subject, operand):
            return f"{_code(subject)}.{method}({_code(operand)})"
        case tree.CaseMapping(method, subject):
            return f"{_code(subject)}.{method}()"
        case tree.Length(subject):
            return f"_len({_code(subject)})"


def _comparison(node: tree.Comparison) -> str:
    """One native chain, so that no operand is written twice: nested chains would double the code at each level."""
    if len(node.rest) == 1 and node.rest[0][0] in ("in", "not in"):
        operator, container = node.rest[0]
        if isinstance(container, tree.Choices):
            return f"({_code(node.first)} {operator} {_code(container)})"
        found = f"_holds({_code(container)}, {_code(node.first)})"
        return found if operator == "in" else f"(not {found})"
    return f"({_code(node.first)} {' '.join(f'{operator} {_code(operand)}' for operator, operand in node.rest)})"
