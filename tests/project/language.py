"""The rules of this project's language, as far as a program can count them, and random samples for a reader.

    python -m tests.project.language count [PATH ...]       number of breaches of each rule
    python -m tests.project.language list [PATH ...]        every breach, with file and line
    python -m tests.project.language draw SEED [PATH ...]   texts to be read without their code

Counts are a floor under the reading, not a replacement for it. `test_language.py` holds their ceilings.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import random
import re
import textwrap
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
EVERYTHING = (
    "workbench",
    "tests",
    "benchmarks",
    "scripts",
    "hardware",
    "notebooks",
    "docs",
    "README.md",
    "CONTRIBUTING.md",
)
# This file and the test quote what they forbid; the changelog reports what former versions called things.
EXEMPT = ("tests/project/language.py", "tests/project/test_language.py", "node_modules", "__pycache__", "checkpoints")

# Names that say nothing about their value.
EMPTY_NAMES = {"told", "said", "found", "one", "what", "kept", "it", "its", "those", "that", "who", "whom", "ones"}
# Names that the field has another word for. A part of a name counts as well: `_told_seat`.
FOREIGN_NAMES = {
    *(
        "told",
        "said",
        "kept",
        "owed",
        "strewn",
        "ether",
        "air",
        "way",
        "ways",
        "wave",
        "waves",
        "seat",
        "seats",
        "door",
    ),
    *("crowd", "crew", "conductor", "hail", "letter", "letters", "parcel", "husk", "film", "glimpse", "glance", "skin"),
    "ground",
}
# Terms of language that such a part may stand in.
TERMS = re.compile(r"one_way|two_way|airtime|wave_?form|foreground|background")

FOREIGN_WORDS = re.compile(
    r"\b(ether|crew|conductor|hail|parcel|husk|strewn|glimpse|way back|as printed|takes? apart|taken apart"
    r"|word of (?:a|the) frame|is owed|are owed|stretch of time|whoever|somebody|nobody|oneself)\b",
    re.IGNORECASE,
)
SPEECH = re.compile(r"\b(tells?|told|telling|says?|said|saying|complains?|asks?|asked)\b", re.IGNORECASE)
NEGATION = re.compile(
    r"\b(is|are|was|were|has|have|had) (?-i:none)\b|\b(is|are|was|were) no (?!longer|more\b|later|less|fewer|better)",
    re.IGNORECASE,
)
VAGUE_START = re.compile(
    r"(?:^|[.;:?!]\s+|\n\s*\n\s*)"
    r"(What|Who|Whoever|Whose|Nobody|Somebody|Those|That which|There is what|There are what|One that|One who)\b"
    r"(?![^.?!]*\?)"
)
LOST_PREPOSITION = re.compile(r"\b(of|in|with|from|by|at|on|for|to|into|about)\s*[.;](?:\s|$)")
MOST_WORDS = 32  # the rule is 30; names of parameters and numbers count as words here

# First words of a function's docstring, in the imperative. A verb that is missing is added here.
VERBS = set((Path(__file__).parent / "imperatives.txt").read_text(encoding="utf-8").split())


# Kinds of nodes of a syntax tree: those with a docstring, and those that bind a name.
_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
_BINDING = (ast.Name, ast.Attribute, ast.arg, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Breach(NamedTuple):
    """One place that breaks a rule: the rule's name, the file, the line and the text."""

    rule: str
    path: str
    line: int
    text: str


def python_files(paths: Iterable[str]) -> Iterator[Path]:
    """Yield the Python files under the paths, which are relative to the repository."""
    yield from _files(paths, ".py")


def breaches(paths: Iterable[str] = EVERYTHING) -> Iterator[Breach]:
    """Yield every breach in the Python files, Markdown pages and notebooks under the paths."""
    paths = list(paths)
    for path in _files(paths, ".py"):
        yield from _of_source(path.read_text(encoding="utf-8"), _name(path))
    for path in _files(paths, ".md"):
        yield from _of_prose("page", _without_code(path.read_text(encoding="utf-8")), _name(path), 1)
    for path in _files(paths, ".ipynb"):
        for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
            text = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                yield from _of_prose("page", text, _name(path), number)
            elif not text.lstrip().startswith(("%", "!")):
                yield from _of_source(text, f"{_name(path)}#{number}")


def _files(paths: Iterable[str], suffix: str) -> Iterator[Path]:
    for path in (ROOT / path for path in paths):
        for file in sorted(path.rglob(f"*{suffix}")) if path.is_dir() else [path] if path.suffix == suffix else []:
            if not any(part in str(file) for part in EXEMPT):
                yield file


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _without_code(text: str) -> str:
    return re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), text, flags=re.DOTALL)


def _of_source(text: str, path: str) -> Iterator[Breach]:
    docstrings: set[int] = set()
    # A walk visits a function before its body, so a docstring's constant is known when its turn comes.
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _DOCUMENTED):
            docstring = ast.get_docstring(node)
            if docstring:
                first = node.body[0]
                assert isinstance(first, ast.Expr)
                docstrings.add(id(first.value))
                yield from _of_docstring(node, docstring, path, first.lineno)
        if isinstance(node, _BINDING):
            yield from _of_names(node, path)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            if NEGATION.search(node.value):
                yield Breach("negation in a message", path, node.lineno, node.value)
            if FOREIGN_WORDS.search(node.value):
                yield Breach("foreign word in a message", path, node.lineno, node.value)
    if any(_may_be_breach(line) for line in text.splitlines() if "#" in line):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield from _of_prose("comment", token.string.lstrip("# "), path, token.start[0])


def _may_be_breach(line: str) -> bool:
    """Check a line as if a comment began at each hash sign; splitting the file into tokens costs far more."""
    tails = (line[match.start() :].lstrip("# ") for match in re.finditer("#", line))
    return any(True for tail in tails for _ in _of_prose("comment", tail, "", 0))


def _of_docstring(node: ast.AST, docstring: str, path: str, line: int) -> Iterator[Breach]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_property(node):
        first = re.match(r"[\w-]+", docstring)
        if (first is None or first[0].lower() not in VERBS) and not node.name.startswith("test_"):
            rule = "private docstring not imperative" if _is_private(node.name) else "public docstring not imperative"
            yield Breach(rule, path, line, docstring.split("\n")[0])
    yield from _of_prose("docstring", docstring, path, line)


def _of_prose(kind: str, text: str, path: str, line: int) -> Iterator[Breach]:
    plain = re.sub(r"`[^`]*`|\"[^\"\n]*\"", "X", text)  # quoted code and quotations do not count
    if kind == "docstring":
        plain = re.sub(r"(?m)^( *)\w+(?=: |  )", r"\1X", plain)  # nor does the name before its description
    for rule, pattern in (
        ("begins vaguely", VAGUE_START),
        ("speaks", SPEECH),
        ("negation", NEGATION),
        ("foreign word", FOREIGN_WORDS),
        ("lost preposition", LOST_PREPOSITION),
    ):
        for match in pattern.finditer(plain):
            at = line + plain.count("\n", 0, match.start())
            yield Breach(
                f"{kind} {rule}", path, at, " ".join(plain[max(0, match.start() - 40) : match.end() + 40].split())
            )
    if kind == "docstring":
        # A line with a name, a gap and a text is a row of a table.
        for sentence in re.split(r"[.;:!?](?:\s|$)|\n\s*\n|\n\s+[-*]? ?|\n(?=\S.*?\s{2,}\S)", plain):
            if len(sentence.split()) > MOST_WORDS:
                yield Breach("docstring long sentence", path, line, " ".join(sentence.split()))


def _of_names(node: ast.AST, path: str) -> Iterator[Breach]:
    for name in _bound_names(node):
        line = getattr(node, "lineno", 1)
        bare = name.strip("_").lower()
        if bare in EMPTY_NAMES:
            yield Breach("empty name", path, line, name)
        elif FOREIGN_NAMES & set(TERMS.sub("", bare).split("_")):
            yield Breach("foreign name", path, line, name)


def _bound_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that this node binds: variables, parameters, attributes, functions, classes."""
    if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.id if isinstance(node, ast.Name) else node.attr
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name


def _is_private(name: str) -> bool:
    return name.startswith("_")


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        ast.unparse(decorator).split(".")[-1] in {"property", "cached_property", "setter"}
        for decorator in node.decorator_list
    )


class Sample(NamedTuple):
    """Texts drawn for a reader who does not see the code: docstrings, error messages and private names."""

    docstrings: list[str]
    messages: list[str]
    names: list[str]


def draw(seed: str, paths: Iterable[str] = ("workbench",), sizes: Sequence[int] = (100, 50, 30)) -> Sample:
    """Draw docstrings with their signatures, texts of raised errors, and private names with where they are bound."""
    docstrings, messages, names = [], [], set()
    for path in python_files(paths):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
                docstring = ast.get_docstring(node)
                if docstring:
                    docstrings.append(f"{_name(path)}: {_signature(node)}\n{textwrap.indent(docstring, '    ')}")
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                message = ast.unparse(node.exc)
                if "'" in message or '"' in message:
                    messages.append(f"{_name(path)}: {message}")
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                where = f"{_name(path)}, in {function.name}()"
                for node in ast.walk(function):
                    names |= {f"{name}   ({where})" for name in _bound_names(node) if len(name) > 2 and name != "self"}
    dice = random.Random(seed)
    pools = (docstrings, messages, sorted(names))
    return Sample(*(dice.sample(pool, min(size, len(pool))) for pool, size in zip(pools, sizes, strict=True)))


def _signature(node: ast.AST) -> str:
    if isinstance(node, ast.Module):
        return "module"
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}"
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({ast.unparse(node.args)}){returns}"


def main() -> None:
    """Run the command that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["count", "list", "draw"])
    parser.add_argument("arguments", nargs="*", metavar="SEED | PATH")
    parser.add_argument(
        "--sizes", type=int, nargs=3, default=(100, 50, 30), metavar=("DOCSTRINGS", "MESSAGES", "NAMES")
    )
    options = parser.parse_args()
    if options.command == "draw":
        if not options.arguments:
            parser.error("draw needs a seed")
        seed, *paths = options.arguments
        for kind, texts in draw(seed, paths or ("workbench",), options.sizes)._asdict().items():
            print(f"== {kind}\n")
            for number, text in enumerate(texts, 1):
                print(f"{number}. {text}\n")
        return
    all_breaches = list(breaches(options.arguments or EVERYTHING))
    if options.command == "list":
        for breach in all_breaches:
            print(f"{breach.path}:{breach.line}: {breach.rule}: {breach.text[:160]}")
    for rule, number in sorted(Counter(breach.rule for breach in all_breaches).items()):
        print(f"{number:6} {rule}")


if __name__ == "__main__":
    main()
