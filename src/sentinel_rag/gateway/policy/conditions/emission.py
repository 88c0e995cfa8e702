"""All the conditions of one tool as one Python function, written from checked trees.

The function reads an argument by `a['name']`. Where a call leaves it out, that is a KeyError, and the caller falls back
to `evaluate`. Short-circuiting past an absent parameter is sound: what was evaluated already settles the value.

Many conditions in a row stand behind one common test, made of what each of them needs to be true at all; where it
fails, none of them is looked at. The common test may err on the side of looking, never on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any

from sentinel_rag.gateway.policy.conditions import tree
from sentinel_rag.gateway.policy.conditions.evaluation import holds
from sentinel_rag.gateway.policy.conditions.needs import Need, needs_of
from sentinel_rag.gateway.policy.conditions.patterns import Regex, escaped, join_patterns

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
            case tree.Literal(value):
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
            case tree.Comparison():
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

    def _comparison(self, node: tree.Comparison) -> str:
        """One native chain, so that no operand is written twice: nested chains would double the code at each level."""
        if len(node.rest) == 1 and node.rest[0][0] in ("in", "not in"):
            operator, container = node.rest[0]
            if isinstance(container, tree.Choices):
                return f"({self.code(node.first)} {operator} {self.code(container)})"
            found = f"_holds({self.code(container)}, {self.code(node.first)})"
            return found if operator == "in" else f"(not {found})"
        rest = " ".join(f"{operator} {self.code(operand)}" for operator, operand in node.rest)
        return f"({self.code(node.first)} {rest})"
