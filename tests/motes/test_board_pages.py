"""The pages on boards: each message on them is one of the programs, each message of the programs is on them."""

import ast
import re
import shlex
import sys

import pytest

from tests.repository import REPOSITORY
from workbench import cli
from workbench.motes.program import boards

PAGES = REPOSITORY / "docs" / "boards"
BENCH = [*sorted((REPOSITORY / "workbench" / "motes" / "bench").glob("*.py")), REPOSITORY / "workbench/cli/bench.py"]
MOTE = [
    REPOSITORY / "hardware" / "mote" / f"{name}.py" for name in ("chips", "datagrams", "mote", "physical", "settings")
]
OTHERS = [
    *(
        REPOSITORY / "workbench" / "motes" / f"{name}.py"
        for name in ("line", "measuring", "port", "program", "session")
    ),
    REPOSITORY / "workbench" / "cli" / "motes.py",
]
PLACEHOLDER = "\0"
COMMAND = re.compile(r"^ *(?:\.venv/bin/)?workbench (motes .*)$", re.MULTILINE)
GUIDES = [REPOSITORY / "hardware" / "README.md", *sorted(PAGES.glob("*.md"))]


def text_of(node):
    """Return the text of an expression, with PLACEHOLDER for each value in it, or None if it is not a text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"%[srd]", PLACEHOLDER, node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(value) or PLACEHOLDER for value in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mod, ast.Add)):
        left = text_of(node.left)
        return left and left + (text_of(node.right) or PLACEHOLDER if isinstance(node.op, ast.Add) else "")
    return None


def texts_in(paths):
    """Return all texts in files that have letters."""
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    return {text for node in nodes if (text := text_of(node)) and re.search("[a-z]", text)}


def raised_in(paths):
    """Return the texts with which files raise errors, without those that pass on the text of another error."""
    raises = [
        node.exc.args[0]
        for path in paths
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args
    ]
    texts = {text for node in raises if (text := text_of(node))}
    return {text for text in texts if len(re.findall("[a-z]{2,}", text)) > 1}


def rows(page):
    """Return the messages in the first cells of a page's tables of messages."""
    text = page.read_text(encoding="utf-8")
    tables = re.findall(r"^\| (?:message|fault) \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    cells = [re.match(r"\| (.*?) \|", line)[1] for table in tables for line in table.splitlines()]
    return [message for cell in cells for message in re.findall(r"`([^`]+)`", cell)]


def is_printed(message, text):
    """Return whether a message of a page, in which "..." stands for values, is in a text of a program."""
    pieces = [re.escape(piece.strip(" ,:()")) for piece in re.split(r"\.{3}(?!\.)", message)]
    return re.search(".*".join(piece for piece in pieces if piece), text.replace("`", ""), re.DOTALL) is not None


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_each_message_on_a_page_is_one_of_the_programs(page):
    texts = texts_in([*BENCH, *MOTE, *OTHERS])
    assert [message for message in rows(page) if not any(is_printed(message, text) for text in texts)] == []


def test_each_error_of_the_commands_and_each_fault_is_on_the_page_of_messages():
    messages = rows(PAGES / "messages.md")
    errors = {
        text for text in raised_in([*BENCH, *(path for path in MOTE if path.stem != "mote")]) if text != "unreachable"
    }
    assert len(errors) > 60
    assert [text for text in sorted(errors) if not any(is_printed(message, text) for message in messages)] == []
    sys.path.append(str(REPOSITORY / "hardware" / "mote"))
    try:
        from datagrams import FAULTS
    finally:
        sys.path.pop()
    assert set(FAULTS) <= set(messages)


def test_each_driver_of_a_board_has_a_page():
    text = " ".join(page.read_text(encoding="utf-8") for page in PAGES.glob("[eps]*.md"))
    assert {name for name in boards() if f"`{name}`" not in text} == {"process", "virtual"}


@pytest.mark.parametrize("name", ["esp32", "pico-w", "serial-radio"])
def test_each_board_s_page_states_what_was_not_tried(name):
    assert "**Not tried on hardware.**" in (PAGES / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_each_command_on_a_page_has_the_options_of_the_program(page):
    parser = cli.make_parser()
    for line in COMMAND.findall(page.read_text(encoding="utf-8")):
        assert parser.parse_args(shlex.split(line.partition("#")[0])).name == "motes"
