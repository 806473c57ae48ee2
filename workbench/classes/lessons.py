"""Read the lessons: their notebooks, their exercises, and the answers on the pages for teachers.

A lesson is a notebook ``NN-name.ipynb``. The cells that its exercises need have the tag "given". The cell of an
exercise has the tag "exercise". It prepares objects, assigns ``answer`` and ends in
``lessons.check("05.1", answer, ...)``. ``teachers/NN-name.md`` has a section for each exercise: the right answer, and
typical mistakes with the sentence that the check returns for each.
"""

from __future__ import annotations

import ast
import json
import re
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import workbench
from workbench.errors import DataError

GIVEN, EXERCISE = "given", "exercise"  # tags of cells
PACKAGE = "lessons"  # beside the notebooks: the package with the checks
ANSWER = "answer"  # the name that an exercise's cell assigns
_ANSWER_BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n> ([^\n]+))?", re.DOTALL)
_CHECK = re.compile(r"""\bcheck\(\s*["'](\d\d\.\d+)["']""")
_COMMENT = re.compile(rf"^{ANSWER} = .*?(  # .*)$", re.MULTILINE)
_PACKAGE_FOLDER = Path(workbench.__file__).parent
_FOLDERS = (_PACKAGE_FOLDER.parent / "notebooks", _PACKAGE_FOLDER / "_notebooks")  # of a checkout, of a wheel


class Answer(NamedTuple):
    """An answer on a page for teachers: its code, and the sentence that the check returns ("" for the right answer)."""

    code: str
    sentence: str


class Exercise(NamedTuple):
    """An exercise of a lesson.

    ``number`` such as "05.1", ``text`` in Markdown, and the source of its cell in three parts: ``preparation`` (may
    be ""), ``question`` (the line ``answer = None  # ...``) and ``check``.
    """

    number: str
    text: str
    preparation: str
    question: str
    check: str

    def source(self, answer: str | None = None) -> str:
        """Return the source of the exercise's cell, with the code ``answer`` in place of the line ``answer = None``.

        None: without an answer, as students get the cell.
        """
        lines = f"{self.question if answer is None else answer.rstrip()}\n{self.check}"
        return f"{self.preparation}\n\n{lines}" if self.preparation else lines


class Lesson:
    """A lesson: its notebook, its exercises, and the answers for teachers.

    ``path`` is the notebook's file. Its properties raise DataError if the file is not a notebook, or if an exercise
    does not have the form that the module's docstring describes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.stem
        self.number = self.name[:2]

    def __repr__(self) -> str:
        return f"Lesson({self.name!r})"

    @cached_property
    def notebook(self) -> dict[str, Any]:
        """The notebook as a dictionary. Do not modify it."""
        return read_notebook(self.path)

    @property
    def cells(self) -> list[dict[str, Any]]:
        """The cells of the notebook."""
        cells: list[dict[str, Any]] = self.notebook["cells"]
        return cells

    @property
    def title(self) -> str:
        """The first heading of the notebook."""
        headings = re.search(r"^# (.+)$", source_of(self.cells[0]), re.MULTILINE) if self.cells else None
        return headings[1] if headings else self.name

    @property
    def given(self) -> list[str]:
        """The sources of the cells with the tag "given", which define the objects that the exercises need."""
        return [source_of(cell) for cell in self.cells if GIVEN in tags_of(cell)]

    def names_for(self, number: str) -> set[str]:
        """Return the names that the lesson's given cells and the preparation of exercise ``number`` define.

        The answer to the exercise can use these names.
        """
        sources = [*self.given, self.exercises[number].preparation]
        return set().union(*(names_bound(statement) for source in sources for statement in ast.parse(source).body))

    @cached_property
    def exercises(self) -> dict[str, Exercise]:
        """The exercises by number, in the order of the notebook."""
        exercises = {}
        for i in range(len(self.cells)):
            if EXERCISE in tags_of(self.cells[i]):
                exercise = self._read_exercise(i)
                exercises[exercise.number] = exercise
        return exercises

    def answers(self, number: str) -> list[Answer]:
        """Return the teachers' answers to the exercise ``number``: the right one first, then typical mistakes."""
        return [Answer(*match.groups("")) for match in _ANSWER_BLOCK.finditer(self._read_answer_section(number))]

    def remarks(self, number: str) -> str:
        """Return the text that follows the right answer to an exercise on the page for teachers, in Markdown."""
        section = self._read_answer_section(number)
        first = _ANSWER_BLOCK.search(section)
        return section[first.end() :].strip() if first else ""

    def _read_answer_section(self, number: str) -> str:
        page = self.path.parent / "teachers" / f"{self.name}.md"
        try:
            text = page.read_text(encoding="utf-8")
        except OSError as error:
            raise DataError(f"{page}: {error.strerror}; the page has the answers to the exercises") from None
        for section in text.split("\n## ")[1:]:
            heading, _, body = section.partition("\n")
            if heading.strip() == number and _ANSWER_BLOCK.search(body):
                return body
        raise DataError(f"{page}: exercise {number} has no answer; add a section '## {number}' with its code")

    def _read_exercise(self, i: int) -> Exercise:
        source = source_of(self.cells[i])
        number = number_in(source)
        if number is None:
            raise DataError(f'{self.path}: an exercise has no line lessons.check("{self.number}.1", answer, ...)')
        preparation, check = [], ""
        for statement in ast.parse(source).body:
            text = ast.get_source_segment(source, statement) or ""
            if is_check(statement):
                check = text
            elif ANSWER not in names_bound(statement):
                preparation.append(text)
        comment = _COMMENT.search(source)
        question = f"{ANSWER} = None{comment[1] if comment else ''}"
        return Exercise(number, self._find_text_before(i), "\n".join(preparation), question, check)

    def _find_text_before(self, i: int) -> str:
        """Return the last section, without its heading, of the Markdown cell before cell ``i``.

        Returns "" if the cell before is missing or is not Markdown.
        """
        if not i or self.cells[i - 1]["cell_type"] != "markdown":
            return ""
        section = re.split(r"^#+ ", source_of(self.cells[i - 1]), flags=re.MULTILINE)[-1]
        return section.partition("\n")[2].strip()


def find_folder() -> Path:
    """Return the folder with the lessons: ``notebooks`` of a checkout, or the copy in an installed package.

    Raises DataError if neither exists.
    """
    for folder in _FOLDERS:
        if (folder / PACKAGE / "__init__.py").is_file():
            return folder
    raise DataError(
        "this installation of the workbench has no lessons; install it from a wheel or a checkout of the repository, "
        "or name their folder: --lessons FOLDER"
    )


def find_lessons(folder: Path | None = None, wanted: list[str] | None = None) -> list[Lesson]:
    """Return the lessons of a folder in reading order.

    ``folder``: the folder of their notebooks, None: `find_folder`. ``wanted``: numbers or names of lessons, such as
    "05", None: all. Raises DataError for a folder without lessons, or an unknown lesson.
    """
    folder = find_folder() if folder is None else folder
    lessons = [Lesson(path) for path in sorted(folder.glob("[0-9][0-9]-*.ipynb"))]
    if not lessons or not (folder / PACKAGE).is_dir():
        raise DataError(
            f"{folder}: the folder has no lessons; it must have notebooks NN-name.ipynb and the package {PACKAGE}"
        )
    chosen = []
    for name in wanted or ():
        matches = [lesson for lesson in lessons if name in (lesson.name, lesson.number, lesson.number.lstrip("0"))]
        if not matches:
            names = ", ".join(lesson.name for lesson in lessons)
            raise DataError(f"{name!r} is not a lesson; the lessons are {names}")
        chosen += matches
    return chosen if wanted else lessons


def read_notebook(path: Path) -> dict[str, Any]:
    """Return a notebook of format 4 as a dictionary. Raises DataError for any other file."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError):
        raise DataError(f"{path}: the file is not a notebook, because it is not JSON") from None
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list) or not all(_is_cell(cell) for cell in cells):
        raise DataError(f"{path}: the file is not a notebook of format 4: it has no list of cells")
    return notebook


def _is_cell(cell: Any) -> bool:
    return (
        isinstance(cell, dict)
        and cell.get("cell_type") in ("code", "markdown", "raw")
        and isinstance(cell.get("metadata", {}), dict)
        and isinstance(cell.get("source", ""), (str, list))
    )


def source_of(cell: dict[str, Any]) -> str:
    """Return the source of a notebook's cell as one string."""
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(map(str, source))


def tags_of(cell: dict[str, Any]) -> list[Any]:
    """Return the tags of a notebook's cell."""
    tags = cell.get("metadata", {}).get("tags")
    return tags if isinstance(tags, list) else []


def number_in(source: str) -> str | None:
    """Return the number, such as "05.1", in a cell's call of ``lessons.check``; None if the cell has no such call."""
    check = _CHECK.search(source)
    return check[1] if check else None


def is_check(statement: ast.stmt) -> bool:
    """Return whether a statement is a call of ``lessons.check`` and nothing else."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "check"
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == PACKAGE
    )


def names_bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement of a module binds, such as variables, functions and imports."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    names = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
    return names
