"""A checked condition as text again, in one spelling, for messages and explanations."""

from __future__ import annotations

from sentinel_rag.gateway.policy.conditions import tree


def text_of(node: tree.Expression) -> str:
    """The condition in Python's spelling; its check gives `node` back."""
    match node:
        case tree.Literal(bool() as value):
            return "true" if value else "false"
        case tree.Literal(value):
            return repr(value)
        case tree.Choices(values):
            return f"[{', '.join(text_of(tree.Literal(value)) for value in values)}]"
        case tree.Argument(name):
            return name
        case tree.Present(name):
            return f"has({name})"
        case tree.Not(tree.Present(name)):
            return f"{name} == null"
        case tree.Not(operand):
            return f"not {_in_brackets(operand)}"
        case tree.Every(operands):
            return " and ".join(map(_in_brackets, operands))
        case tree.Some(operands):
            return " or ".join(map(_in_brackets, operands))
        case tree.Comparison(first, rest):
            steps = "".join(f" {operator} {_in_brackets(operand)}" for operator, operand in rest)
            return f"{_in_brackets(first)}{steps}"
        case tree.StringTest(method, subject, operand):
            return f"{text_of(subject)}.{method}({text_of(operand)})"
        case tree.Matches(subject, pattern, _):
            return f"{text_of(subject)}.matches({pattern!r})"
        case tree.CaseMapping(method, subject):
            return f"{text_of(subject)}.{method}()"
        case tree.Length(subject):
            return f"len({text_of(subject)})"


def _in_brackets(node: tree.Expression) -> str:
    text = text_of(node)
    return f"({text})" if isinstance(node, tree.Every | tree.Some | tree.Comparison | tree.Not) else text
