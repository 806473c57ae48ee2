"""Find the code of a student's answers in a submitted notebook, without executing it.

A student may have added, copied, edited or removed cells. The answer to an exercise is the code of its own cells, which
are recognized by their metadata or by their call of ``lessons.check``. Cells that define a name which these cells use,
directly or through other cells, belong to the answer too. If the name is imported, only the import belongs to it.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from workbench.classes.lessons import ANSWER, is_check, names_bound, number_in, read_notebook, source_of
from workbench.classes.plain import KEY

_BUILT_IN = {*dir(builtins), "display", "get_ipython", "lessons"}


class Cell(NamedTuple):
    """A code cell: its source, the number of the exercise that it belongs to (None: no exercise), and its statements.

    ``statements`` lacks those that only call ``lessons.check``. It is None if the source is not valid Python.
    """

    source: str
    exercise: str | None
    statements: list[ast.stmt] | None

    @property
    def bound(self) -> set[str]:
        """The names that the cell defines."""
        return set().union(*map(names_bound, self.statements or ()))

    @property
    def used(self) -> set[str]:
        """The names that the cell reads, also within functions."""
        nodes = (node for statement in self.statements or () for node in ast.walk(statement))
        return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}

    def find_import(self, name: str) -> ast.stmt | None:
        """Return the import statement that defines a name, or None if another statement defines it."""
        definitions = [statement for statement in self.statements or () if name in names_bound(statement)]
        return definitions[-1] if definitions and isinstance(definitions[-1], ast.Import | ast.ImportFrom) else None

    @property
    def code(self) -> str:
        """The code to execute: the statements, or the source if it is not valid Python."""
        if self.statements is None:
            return self.source
        return ast.unparse(ast.Module(self.statements, []))


def read_cells(path: Path) -> list[Cell]:
    """Return the code cells of a submitted notebook, except the checks that nbgrader added.

    Raises DataError if the file is not a notebook of format 4.
    """
    cells = read_notebook(path)["cells"]
    return [_read_cell(cell) for cell in cells if cell["cell_type"] == "code" and not _is_graded(cell)]


def numbers_in(cells: Iterable[Cell]) -> set[str]:
    """Return the numbers of the exercises that have a cell."""
    return {cell.exercise for cell in cells if cell.exercise is not None}


def answer_code(cells: list[Cell], number: str, given: Collection[str]) -> list[str] | None:
    """Return the code of the answer to exercise ``number`` as a list of sources, in the order of their execution.

    Imports that the answer needs are first, then the exercise's cells and the cells that define names for them.
    ``given``: the names that the lesson defines for its exercises. Returns None if no cell belongs to the exercise.
    """
    own = [i for i in range(len(cells)) if cells[i].exercise == number]
    if not own:
        return None
    code = {i: cells[i].code for i in own}
    imports: list[str] = []
    known = {*given, *_BUILT_IN}.union(*(cells[i].bound for i in own))
    wanted = [name for i in own for name in sorted(cells[i].used)]
    if ANSWER not in known and all(cells[i].statements is not None for i in own):
        wanted.append(ANSWER)
    while wanted:
        name = wanted.pop()
        i = None if name in known else _find_definition(cells, name, own[-1])
        known.add(name)
        if i is None or i in code:
            continue
        if statement := cells[i].find_import(name):
            imports.append(ast.unparse(statement))
        else:
            code[i] = cells[i].code
            wanted += sorted(cells[i].used)
    return [*imports, *(code[i] for i in sorted(code))]


def _find_definition(cells: list[Cell], name: str, before: int) -> int | None:
    """Return the index of the last cell before index ``before`` that defines a name, or None."""
    return next((i for i in range(before - 1, -1, -1) if name in cells[i].bound), None)


def _is_graded(cell: dict[str, Any]) -> bool:
    """Return whether a cell is one of nbgrader's graded checks, which the teacher wrote."""
    nbgrader = cell.get("metadata", {}).get("nbgrader")
    return isinstance(nbgrader, dict) and nbgrader.get("grade") is True


def _read_cell(cell: dict[str, Any]) -> Cell:
    source = source_of(cell)
    mark = cell.get("metadata", {}).get(KEY)
    number = mark.get("exercise") if isinstance(mark, dict) else None
    number = number if isinstance(number, str) else number_in(source)
    return Cell(source, number, _parse_cell(source))


def _parse_cell(source: str) -> list[ast.stmt] | None:
    """Return the statements of a cell except calls of ``lessons.check``; None if the source is not valid Python.

    The cell may contain magics of IPython.
    """
    from IPython.core.inputtransformer2 import TransformerManager

    try:
        python = TransformerManager().transform_cell(source)
        flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        module = compile(python, "cell", "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return [statement for statement in module.body if not is_check(statement)]
