"""Sections of the README as parts of other pages, and links to files that the site does not have.

A page of docs/site includes a section with a line such as ``<!-- README.md: Publish a result that others can reproduce
-->``; ``<!-- README.md: -->`` includes the introduction.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
_INCLUSION = re.compile(r"^<!-- README\.md: ?(.*?) ?-->$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\[\]]+)\]\(([\w./-]+)(#[\w-]*)?\)")
_ANY_LINK = re.compile(r"(\]\()(?!\w+:|#|/)([^)\s]+\))")


def section(heading: str) -> str:
    """Return the text of a section of the README without its heading, or of the introduction if ``heading`` is "".

    Raises ValueError if the README has no such section.
    """
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    parts = re.split(r"^(#{1,3} .*)$", text, flags=re.MULTILINE)
    sections = {title.lstrip("# "): body for title, body in zip(parts[1::2], parts[2::2], strict=True)}
    if not heading:
        return parts[2].strip()
    if heading not in sections:
        raise ValueError(f"README.md has no section {heading!r}; its sections are {', '.join(sections)}")
    return sections[heading].strip()


def complete(app: Any, docname: str, content: list[str]) -> None:
    """Insert the README's sections that a page includes, and replace links to files that the site lacks by names.

    A handler of Sphinx's event ``source-read``: ``content`` has the page's text as its only item, which is replaced.
    """
    folder = posixpath.dirname(docname)
    up = "../" * (folder.count("/") + 1 if folder else 0)
    text = _INCLUSION.sub(lambda match: _ANY_LINK.sub(rf"\g<1>{up}\g<2>", section(match[1])), content[0])
    content[0] = _LINK.sub(lambda match: _convert_link(Path(app.srcdir), folder, match), text)


def _convert_link(tree: Path, folder: str, match: re.Match[str]) -> str:
    """Return the link in ``match``, or its text and path if it leads to a file of the repository that the site lacks.

    ``tree`` is the folder of the site's sources, ``folder`` that of the page within it.
    """
    text, target, _ = match.groups()
    path = posixpath.normpath(posixpath.join(folder, target))
    if (tree / path).is_file() or not (REPOSITORY / path).exists():
        return match[0]
    return text if path in text else f"{text} (`{path}` in the repository)"
