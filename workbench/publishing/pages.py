"""The paper as a page (paper.html) and as a PDF (paper.pdf), which Chromium prints from the page.

The page needs no network: pictures and players are part of it, and formulas are MathML. In print, code is hidden
unless its cell has the tag "show-input", and a still picture of its first moment replaces each player.
"""

from __future__ import annotations

import html
import re
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError
from workbench.publishing.paper import Paper

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL_CHROMIUM = "apt-get install chromium (macOS: brew install --cask chromium)"
_DATES = re.compile(rb"/(CreationDate|ModDate) \(D:[^)]*\)")
_FORMULA = re.compile(r"\$[^$\n]+\$|\$\$")
_PDF_DAY = "D:{}000000+00'00'"
_TEXT_PX = 658  # width of the text of a page, 174 mm
_TALLEST_PX = 500  # height of an output that is moved to the next page as a whole
# Make tables as narrow as the page, and keep outputs together that are not too tall.
_FIT = """(tallest) => {
  for (const table of document.querySelectorAll("table")) {
    const free = document.querySelector("main, body").clientWidth
    if (table.scrollWidth > free) table.style.zoom = free / table.scrollWidth
  }
  for (const output of document.querySelectorAll(".jp-OutputArea-child, table, pre"))
    if (output.getBoundingClientRect().height <= tallest) output.style.breakInside = "avoid"
}"""
_FOOTER = (
    '<div style="font-size:7.5pt;width:100%;margin:0 18mm;display:flex;justify-content:space-between;'
    'font-family:sans-serif;color:#555"><span>{}</span><span><span class="pageNumber"></span> / '
    '<span class="totalPages"></span></span></div>'
)


def check_tools() -> Path:
    """Return the path of the system's Chromium. Raises WorkbenchError if Chromium or Playwright is missing.

    It is called before the notebook is executed, so that an author does not wait for an error.
    """
    if find_spec("playwright") is None:
        raise WorkbenchError(
            "paper.pdf is printed by Playwright, which is missing: pip install 'sensor-pubsub-workbench[publish]' "
            "(in a checkout: pip install -e '.[publish]'); or leave it out with --no-pdf"
        )
    paths = [path for name in CHROMIUM if (path := shutil.which(name))]
    if not paths:
        raise WorkbenchError(
            f"paper.pdf is printed by Chromium, which is missing: {INSTALL_CHROMIUM}; or leave it out with --no-pdf"
        )
    return Path(paths[0])


def formulas_left(paper: Paper) -> list[str]:
    """Return a sentence, in a list, if the notebook's formulas stay TeX because latex2mathml is missing; else []."""
    texts = [cell.source for cell in paper.notebook.cells if cell.cell_type == "markdown"]
    if find_spec("latex2mathml") is not None or not any(_FORMULA.search(text) for text in texts):
        return []
    return ["formulas stay TeX, because latex2mathml is missing: pip install 'latex2mathml>=3.77'"]


def page_of(notebook: Any, paper: Paper) -> str:
    """Return an executed notebook as one HTML page, whose formulas are MathML."""
    from jinja2 import pass_context
    from nbconvert import HTMLExporter
    from traitlets.config import Config

    options = {
        "exclude_input_prompt": True,
        "exclude_output_prompt": True,
        "exclude_anchor_links": True,
        "require_js_url": "",
        "mathjax_url": "",
        "embed_images": True,
    }
    exporter = HTMLExporter(config=Config({"HTMLExporter": options}))
    exporter.register_filter("markdown2html", pass_context(_markdown_to_html))
    resources = {"name": paper.title, "path": str(paper.path.parent)}  # the path of images in Markdown
    body, _ = exporter.from_notebook_node(notebook, resources={"metadata": resources})
    style = Path(__file__).with_name("paper.css").read_text(encoding="utf-8")
    page = _remove_network_script(body).replace(
        "</head>", f"<style>\n{style}</style>\n{_make_metadata_tags(paper)}</head>", 1
    )
    return page.replace("</h1>", f"</h1>\n{_format_byline(paper)}", 1)


def _format_byline(paper: Paper) -> str:
    """Return the lines below the title: authors with affiliations, and the date, version and DOI of the artifact."""
    names = ", ".join(
        html.escape(name_of(author) + (f" ({author['affiliation']})" if author.get("affiliation") else ""))
        for author in paper.authors
    )
    doi = f' · <a href="https://doi.org/{html.escape(paper.doi)}">doi {html.escape(paper.doi)}</a>' if paper.doi else ""
    release = f"{paper.date} · version {html.escape(paper.version)}{doi}"
    return f'<p class="wb-byline">{names}{"<br>" if names else ""}{release}</p>'


def _make_metadata_tags(paper: Paper) -> str:
    """Return HTML elements for the head of a page, which describe the paper to search engines for literature."""
    entries = [("citation_title", paper.title), ("citation_publication_date", paper.date.replace("-", "/"))]
    entries += [("citation_author", name_of(author)) for author in paper.authors]
    entries += [("citation_doi", paper.doi)] if paper.doi else []
    return "".join(f'<meta name="{name}" content="{html.escape(value, quote=True)}">\n' for name, value in entries)


def name_of(author: Any) -> str:
    """Return the name of an author as it is read: given names first."""
    return str(author.get("name") or f"{author.get('given-names', '')} {author['family-names']}".strip())


def _remove_network_script(page: str) -> str:
    """Return a page without the script that nbconvert's template would load from the network, for Mermaid diagrams."""
    return re.sub(
        r'<script type="module">\s*document\.addEventListener\("DOMContentLoaded", async .*?</script>',
        "",
        page,
        flags=re.S,
    )


def _markdown_to_html(context: Any, source: str) -> str:
    """Return Markdown as HTML, with formulas as MathML; it replaces nbconvert's filter ``markdown2html``."""
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    class Renderer(IPythonRenderer):
        def inline_math(self, body: str) -> str:
            return formula(body, "inline")

        def block_math(self, body: str) -> str:
            return formula(body, "block")

        def inline_html(self, html: str) -> str:
            # Where images are embedded, nbconvert closes each element that a piece of HTML opens: <sup> as <sup></sup>.
            return str(super().inline_html(html)) if "<img" in html else html

        def link(self, text: str, url: str, title: Any = None) -> str:
            # Other notebooks and pages of the authors' folder are not part of the artifact.
            is_elsewhere = url.startswith(("#", "http:", "https:", "mailto:", "doi:"))
            return str(super().link(text, url, title)) if is_elsewhere else text

    cell = context.get("cell", {})
    renderer = Renderer(
        escape=False,
        attachments=cell.get("attachments", {}),
        embed_images=True,
        path=context.get("resources", {}).get("metadata", {}).get("path", ""),
        exclude_anchor_links=True,
    )
    return str(MarkdownWithMath(renderer=renderer).render(source))


def formula(tex: str, display: str) -> str:
    """Return a TeX formula as MathML, or unchanged if it cannot be converted; ``display``: "inline" or "block"."""
    try:
        from latex2mathml.converter import convert

        return str(convert(tex.strip(), display=display))
    except Exception:  # It is not installed, or raises one of many kinds of errors for TeX that it does not know.
        return f"<code>{html.escape(tex)}</code>"


def print_page(page: Path, pdf: Path, paper: Paper, chromium: Path) -> None:
    """Print a page as a PDF in A4 with page numbers; equal pages give equal files on the same machine.

    Raises WorkbenchError if Chromium cannot be started.
    """
    from playwright.sync_api import Error, sync_playwright

    options = ["--disable-gpu", "--font-render-hinting=none"]
    try:
        with sync_playwright() as driver:
            # In containers and for root, Chromium has no sandbox; the page was made by the author's own notebook.
            browser = driver.chromium.launch(executable_path=str(chromium), args=["--no-sandbox", *options])
            tab = browser.new_page(color_scheme="light", reduced_motion="reduce", offline=True)
            tab.set_viewport_size({"width": _TEXT_PX, "height": 1000})
            tab.emulate_media(media="print", color_scheme="light", reduced_motion="reduce")
            tab.goto(page.resolve().as_uri())
            tab.evaluate("document.fonts.ready")
            tab.evaluate(_FIT, _TALLEST_PX)
            tab.pdf(
                path=str(pdf),
                width="210mm",
                height="297mm",
                print_background=True,
                display_header_footer=True,
                header_template="<span></span>",
                footer_template=_FOOTER.format(html.escape(paper.title)),
                margin={"top": "18mm", "bottom": "20mm", "left": "18mm", "right": "18mm"},
                tagged=True,
                outline=True,
            )
            browser.close()
    except Error as error:
        reason = str(error).strip().splitlines()[0]
        raise WorkbenchError(f"Chromium ({chromium}) could not print the paper: {reason:.200}") from None
    day = _PDF_DAY.format(paper.date.replace("-", ""))
    pdf.write_bytes(_DATES.sub(lambda match: b"/%b (%b)" % (match[1], day.encode()), pdf.read_bytes()))
