"""The web site: ``python -m scripts.site`` writes it to out/site, from docs/site and the files that it includes.

    sources      the tree of source files that Sphinx reads: docs/site, and links to the pages of the repository
    guides       sections of the README, as parts of other pages
    reference    a page for each public name, from docstrings
    gallery      a page for each scenario of the gallery, with the page that plays it
    notebooks    notebooks with the outputs of ``make notebooks``
    links        a check of the links between the pages

The build needs no network. docs/site/conf.py has the settings of Sphinx.
"""
