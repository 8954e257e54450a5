"""Compute one arithmetic expression exactly; nothing is executed."""

import ast
import operator
import re
from collections.abc import Callable
from fractions import Fraction

from ioa import Agent, DeclinedError, InvalidInputError, TaskContext
from request import results_by_number, shown

agent = Agent(
    "calculator", description="Computes arithmetic expressions exactly: addition, subtraction, multiplication, division, powers.",
    skills=["arithmetic", "percentages and powers"], examples=[
        "15 / 100 * 240", "(3.5 + 4) * 2 ** 3", "12 * (3 + 4)", "7 + 5 - 2", "#1 * 1.19", "100 - 37.5", "1 / 3",
    ], tags=["math"], declines=True, may_team_up=False,
)  # fmt: skip
_HINT = "Write one expression with + - * / ** and brackets, such as 15 / 100 * 240; decimals have a point, and #1 is a result."
_OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
_SIGNS: dict[type[ast.unaryop], Callable[[Fraction], Fraction]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
_MAX_CHARS, _MAX_BITS = 500, 4_000
_EXPRESSION = re.compile(r"[\d.+\-*/() ]+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_RESULT = re.compile(rf".* = (-?{_NUMBER.pattern})")


@agent.task
def run(task: str, ctx: TaskContext) -> str:
    """Return the expression with its value."""
    expression = task.strip()
    if not _EXPRESSION.fullmatch(re.sub(r"#\d+", "1", expression)):
        raise DeclinedError("This is not an arithmetic expression.", hint=_HINT)
    for number, result in results_by_number(task, ctx).items():
        if (found := _RESULT.fullmatch(result.content)) is None:
            raise InvalidInputError(f"#{number} is not one exact number: {result.content[:80]!r}")
        expression = re.sub(rf"#{number}(?!\d)", f"({found[1]})", expression)
    value = shown(compute(expression))
    return f"{expression} {value}" if value.startswith("≈") else f"{expression} = {value}"


def compute(expression: str) -> Fraction:
    """Return the value of an expression."""
    if len(expression) > _MAX_CHARS:
        raise InvalidInputError(f"The expression has more than {_MAX_CHARS} characters.")
    try:
        return _value(ast.parse(expression, mode="eval").body, expression)
    except (SyntaxError, RecursionError):
        raise InvalidInputError(f"{expression!r} is not an arithmetic expression.", hint=_HINT) from None
    except ZeroDivisionError:
        raise InvalidInputError(f"{expression!r} divides by zero.") from None


def _value(node: ast.expr, source: str) -> Fraction:
    match node:
        case ast.Constant() if _NUMBER.fullmatch(text := ast.get_source_segment(source, node) or ""):
            return Fraction(text)
        case ast.UnaryOp() if type(node.op) in _SIGNS:
            return _SIGNS[type(node.op)](_value(node.operand, source))
        case ast.BinOp() if type(node.op) in _OPERATORS:
            return _bounded(_OPERATORS[type(node.op)](_value(node.left, source), _value(node.right, source)))
        case ast.BinOp(op=ast.Pow()):
            base, power = _value(node.left, source), _value(node.right, source)
            bits = max(base.numerator.bit_length(), base.denominator.bit_length())
            if power.denominator == 1 and bits * abs(power) <= _MAX_BITS:
                return Fraction(base ** int(power))
    raise InvalidInputError(f"{ast.unparse(node)} cannot be computed.", hint="Powers are whole numbers, and not too large.")


def _bounded(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MAX_BITS:
        raise InvalidInputError("The number is too large.")
    return value
