"""Build the web site: ``python -m scripts.site [folder]``, by default into out/site."""

from __future__ import annotations

import shutil
import sys
import time
from importlib.util import find_spec
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
MOST_PROBLEMS = 20  # that a build prints
REQUIRED = ("sphinx", "myst_nb", "pydata_sphinx_theme")


def build(out: Path) -> list[str]:
    """Build the site in the folder ``out`` and return its problems, one sentence each; warnings of Sphinx are problems.

    The source files are assembled in a folder beside it, whose name ends in "-sources".
    """
    from sphinx.cmd.build import build_main

    from scripts.site import links, sources

    tree = out.with_name(f"{out.name}-sources")
    sources.assemble(tree)
    # Pages that an earlier build wrote may have links that are no longer right; what it read is used again (-d).
    shutil.rmtree(out, ignore_errors=True)
    arguments = ["-q", "-W", "--keep-going", "-j", "2", "-c", str(REPOSITORY / "docs" / "site")]
    arguments += ["-D", f"html_extra_path={tree / sources.EXTRA}", "-d", str(tree / ".doctrees"), str(tree), str(out)]
    if build_main(arguments) != 0:
        return ["Sphinx reported errors or warnings, which are listed above"]
    return links.broken(out)


def main() -> int:
    """Build the site, report its size and where it is, and return the exit status."""
    missing = [name for name in REQUIRED if find_spec(name) is None]
    if missing:
        print(f"make site: {', '.join(missing)} not installed: pip install -e '.[site]'", file=sys.stderr)
        return 1
    out = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else REPOSITORY / "out" / "site"
    began = time.perf_counter()
    problems = build(out)
    if problems:
        for problem in problems[:MOST_PROBLEMS]:
            print(f"make site: {problem}", file=sys.stderr)
        if len(problems) > MOST_PROBLEMS:
            print(f"make site: {len(problems) - MOST_PROBLEMS} further problems", file=sys.stderr)
        return 1
    files = [path for path in out.rglob("*") if path.is_file()]
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    pages = sum(path.suffix == ".html" for path in files)
    print(f"{out / 'index.html'}: {pages} pages, {megabytes:.0f} MB, {time.perf_counter() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
