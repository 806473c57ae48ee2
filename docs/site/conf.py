"""The settings of Sphinx. ``python -m scripts.site`` assembles the source files and runs it."""

import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

import workbench  # noqa: E402
from scripts.site import guides, reference  # noqa: E402

project = "sensor-pubsub-workbench"
author = copyright = "The sensor-pubsub-workbench maintainers"
version = release = workbench.__version__
language = "en"
smartquotes = False  # docstrings have code with quotation marks
html_title = f"{project} {version}"
html_short_title = "workbench"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
root_doc = "index"
exclude_patterns = ["docs/images", "docs/site", ".doctrees", ".extra", "**/state.json"]
templates_path = []

# Pages in Markdown. The pages of the repository have no mathematics, and dollars are dollars.
myst_enable_extensions = []
myst_heading_anchors = 4

# Notebooks come with their outputs (scripts/site/notebooks.py). Widgets need a kernel, so their pictures are shown.
nb_execution_mode = "off"
nb_ipywidgets_js = {}
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", None)]
nb_merge_streams = True
highlight_language = "none"  # literal blocks of docstrings are often tables

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "logo": {"text": "workbench"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": [], "reference/index": ["page-toc"]},
    "footer_start": ["copyright"],
    "footer_end": [],
    "header_links_before_dropdown": 8,
}
html_sidebars = {"index": []}
html_static_path = ["site.css", "site.js"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_context = {"default_mode": "auto"}  # the theme of the reader's system
html_favicon = "icon.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False


def setup(app):
    """Register the handlers of the site."""
    app.connect("source-read", guides.complete)
    app.connect("autodoc-process-docstring", reference.process_docstring)
    app.connect("html-page-context", reference.repair_back_links)
