"""The tree of source files that Sphinx reads.

Pages of the repository keep their paths in the tree (docs/MODEL.md, notebooks/03-tinymq.ipynb), so links between them
are valid on the site. Pages of docs/site are at the top of the tree. A file whose content is the same keeps its date,
so that a later build renders only what changed.
"""

from __future__ import annotations

from pathlib import Path

from scripts.site import gallery, notebooks, reference

REPOSITORY = Path(__file__).parents[2]
PAGES = REPOSITORY / "docs" / "site"
INCLUDED = (
    "docs/*.md",
    "docs/boards/*.md",
    "docs/images/*",
    "hardware/*.md",
    "benchmarks/RESULTS*.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
)
EXTRA = ".extra"  # files that the site contains as they are
_LATER_USED = (".doctrees", EXTRA)


def assemble(tree: Path) -> None:
    """Write the tree of source files into a folder, and remove files of an earlier build that are not in the tree."""
    contents = {path.relative_to(PAGES).as_posix(): path.read_bytes() for path in sorted(PAGES.rglob("*.md"))}
    contents |= {path.relative_to(REPOSITORY).as_posix(): path.read_bytes() for path in included()}
    contents |= _place_in_folder("notebooks", notebooks.pages())
    contents |= _place_in_folder("reference", reference.pages())
    contents |= _place_in_folder("gallery", gallery.pages(tree / EXTRA / "gallery"))
    for path in sorted(tree.rglob("*")) if tree.is_dir() else ():
        name = path.relative_to(tree).as_posix()
        if path.is_file() and name not in contents and not name.startswith(_LATER_USED):
            path.unlink()
    for name, content in contents.items():
        path = tree / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def included() -> list[Path]:
    """Return the files of the repository that the site includes, without notebooks."""
    return [path for pattern in INCLUDED for path in sorted(REPOSITORY.glob(pattern))]


def _place_in_folder(folder: str, pages: dict[str, str]) -> dict[str, bytes]:
    return {f"{folder}/{name}": text.encode() for name, text in pages.items()}
