"""A check of the links between the pages of the site."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes with addresses that a browser loads by itself.
_LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}


class _Page(HTMLParser):
    """An HTML page: the addresses in its links, those that it loads, and the ids of its elements."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.addresses: set[str] = set()
        self.loaded: set[str] = set()
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        for name in ("href", "src"):
            if name in values:
                self.addresses.add(values[name])
                # rel: a canonical address or the next page is not loaded
                if (tag, name) in _LOADED and values.get("rel", "stylesheet") in ("stylesheet", "icon", "preload"):
                    self.loaded.add(values[name])
        self.ids.update(values[name] for name in ("id", "name") if name in values)


def broken(folder: Path) -> list[str]:
    """Return a sentence for each link to a missing page or id, and for each file that a page loads from the network."""
    paths = [path for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts]  # a template of the theme
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in paths}
    problems = []
    for path, page in pages.items():
        where = path.relative_to(folder).as_posix()
        for address in sorted(page.addresses):
            parts = urlsplit(address)
            if parts.scheme in ("http", "https") or parts.netloc:
                if address in page.loaded:
                    problems.append(f"{where}: loads {address} from the network")
                continue
            if parts.scheme:  # mailto, data
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                problems.append(f"{where}: links to {address}, which is missing")
            elif _is_id(path, parts.fragment) and target in pages and unquote(parts.fragment) not in pages[target].ids:
                problems.append(f"{where}: links to {address}, but that page has no element with this id")
    return problems


def _is_id(path: Path, fragment: str) -> bool:
    """Return whether the fragment of an address is the id of an element.

    On pages that play a run, a fragment such as "t=12.5" is a time instead.
    """
    return bool(fragment) and "=" not in fragment
