"""Ways to break a line of Python. Pure: source in, changed sources out, each with as many lines as before."""

import ast
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

_COMPARED: Final = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "is": "is not",
    "is not": "is",
    "in": "not in",
    "not in": "in",
}
_COUNTED: Final = {
    "+": "-",
    "-": "+",
    "*": "+",
    "//": "*",
    "%": "+",
    "<<": ">>",
    ">>": "<<",
    "&": "|",
    "|": "&",
}
_CALLED: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
_LOGS: Final = frozenset({"log", "_log", "logger"})


class Mutant(NamedTuple):
    """One line of a function, changed. `function`: the outermost one around it, by its qualified name."""

    function: str
    first_line: int
    line: int
    before: str
    after: str
    source: str

    def __str__(self) -> str:
        return f"{self.function}: {self.before}  ->  {self.after}"


class _Edit(NamedTuple):
    """Text that takes the place of other text on one line. The lowest `rank` of a line is taken."""

    rank: int
    line: int
    start: int
    end: int
    text: str


def mutants_of(source: str) -> Iterator[Mutant]:
    """At most one for each line of the functions of a module."""
    lines = source.splitlines(keepends=True)
    for name, function in _functions(ast.parse(source).body):
        first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
        best: dict[int, _Edit] = {}
        for statement in function.body:
            for edit in _edits(statement, lines):
                if edit.line not in best or edit < best[edit.line]:
                    best[edit.line] = edit
        for edit in sorted(best.values(), key=lambda edit: edit.line):
            old = lines[edit.line - 1]
            # The syntax tree counts bytes of UTF-8.
            raw = old.encode()
            new = (raw[: edit.start] + edit.text.encode() + raw[edit.end :]).decode()
            changed = "".join([*lines[: edit.line - 1], new, *lines[edit.line :]])
            yield Mutant(name, first, edit.line, old.strip(), new.strip(), changed)


def _functions(
    body: list[ast.stmt], prefix: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The functions of a module and the methods of its classes; what is inside a function belongs to it."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")


def _edits(node: ast.AST, lines: list[str]) -> Iterator[_Edit]:
    if isinstance(node, ast.Assert) or _is_log_line(node) or _is_without_effect(node):
        return  # an assertion says what holds anyway, a log line only tells
    yield from _edits_of(node, lines)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "args") and not isinstance(node, ast.Call):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _edits(child, lines)


def _is_without_effect(node: ast.AST) -> bool:
    """`strict=True` of zip, and what a step of paced work says that it cost: tests/hostile counts that."""
    match node:
        case ast.keyword(arg="strict") | ast.Yield(value=ast.Constant() | ast.BinOp() | ast.Name()):
            return True
        case ast.Assign(targets=[ast.Name(id="calls")]) | ast.AugAssign(target=ast.Name(id="calls")):
            return True
        case ast.Compare(left=ast.Name(id="calls"), comparators=[ast.Name(id="STEP_CALLS")]):
            return True
    return False


def _is_log_line(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return False
    called = node.value.func
    return (
        isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id in _LOGS
    )


def _edits_of(node: ast.AST, lines: list[str]) -> Iterator[_Edit]:
    match node:
        case ast.Compare(left=left, comparators=[first, *_]):
            yield from _between(0, left, first, _COMPARED, lines)
        case ast.BoolOp(values=[left, right, *_]):
            yield from _between(1, left, right, {"and": "or", "or": "and"}, lines)
        case ast.UnaryOp(op=ast.Not(), operand=operand) if operand.lineno == node.lineno:
            # A parenthesis around the operand stays.
            yield _Edit(2, node.lineno, node.col_offset, node.col_offset + len("not "), "")
        case ast.If(test=test) | ast.While(test=test) if isinstance(
            test, ast.Name | ast.Attribute | ast.Call
        ):
            yield from _replaced(3, test, lambda text: f"not ({text})", lines)
        case ast.BinOp(left=left, right=right) if not isinstance(left, ast.Constant | ast.JoinedStr):
            yield from _between(4, left, right, _COUNTED, lines)
        case ast.Call(func=ast.Name(id=name) as called) if name in _CALLED:
            yield from _replaced(5, called, lambda text: _CALLED[text], lines)
        case ast.Constant(value=bool(value)):
            yield from _replaced(6, node, lambda text: str(not value), lines)
        case ast.Constant(value=int(value)):
            yield from _replaced(7, node, lambda text: f"({text} + 1)", lines)
        case ast.Raise() | ast.Delete() | ast.Continue() | ast.Break():
            yield from _replaced(8, node, lambda text: "pass", lines)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name("super"))))):
            # Not `pass`: without the name `super` a method has another closure, and cannot be exchanged.
            yield from _replaced(9, node, lambda text: "super()", lines)
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield from _replaced(9, node, lambda text: "pass", lines)
        case ast.AugAssign() | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield from _replaced(10, node, lambda text: "pass", lines)
        case ast.Return(value=value) if value is not None and not isinstance(value, ast.Constant):
            yield from _replaced(11, node, lambda text: "return None", lines)


def _between(
    rank: int, left: ast.expr, right: ast.expr, swaps: dict[str, str], lines: list[str]
) -> Iterator[_Edit]:
    """Swap the operator that stands between two operands, where all of it is on one line."""
    if left.end_lineno != right.lineno or left.end_col_offset is None:
        return
    raw = lines[right.lineno - 1].encode()
    text = raw[left.end_col_offset : right.col_offset].decode()
    operator = text.strip(" ()")
    if operator in swaps:
        start = left.end_col_offset + text.index(operator)
        yield _Edit(rank, right.lineno, start, start + len(operator), swaps[operator])


def _replaced(rank: int, node: ast.AST, change: Callable[[str], str], lines: list[str]) -> Iterator[_Edit]:
    assert isinstance(node, ast.expr | ast.stmt)
    if node.end_lineno == node.lineno and node.end_col_offset is not None:
        raw = lines[node.lineno - 1].encode()
        text = raw[node.col_offset : node.end_col_offset].decode()
        yield _Edit(rank, node.lineno, node.col_offset, node.end_col_offset, change(text))
