"""Publishing: a notebook becomes a paper and an artifact that other people can check.

    publish(notebook, out)    execute a notebook and write its artifact (``workbench publish paper.ipynb``)
    check(artifact)           execute the notebook of an artifact and compare the claims (``--check``)
    write_template(path)      write a notebook to begin a paper with (``--template``)

An artifact is a folder, and a ZIP file with the same files and fixed dates:

    paper.html, paper.pdf        the executed notebook; the page plays runs, the PDF is printed from it
    claims.json                  the claims that the notebook made with `wb.claim` (`artifact.claims_document`)
    figures/                     each displayed drawing as SVG and PDF, with the record of its runs
    notebook/                    the notebook without outputs, the modules beside it that it imports, and its files
    reproduce.sh                 makes an environment, executes the notebook, and compares the claims
    dist/, requirements.txt      the wheel of this workbench, and the versions of all libraries
    measured.json                minutes, peak memory and machine
    README.md, LICENSE, LICENSE-text.md, CITATION.cff, .zenodo.json, ro-crate-metadata.json, SHA256SUMS

Two executions of one notebook on one machine give equal files, unless the notebook itself displays times or other
values that change. The exception is measured.json, which `SHA256SUMS` does not list.

Modules
    paper          the notebook, the description in its metadata, and the files that it needs
    execution      executes the notebook in a kernel, with progress, time and peak memory
    collecting     runs in the kernel, and saves figures and claims
    pages          paper.html and paper.pdf
    descriptions   files for evaluators, archives and search engines
    packing        wheel, requirements, checksums, ZIP file
    artifact       puts an artifact together
    checking       compares an artifact with another execution

The extra ``publish`` installs the libraries that publishing needs; the PDF also needs Chromium. docs/PUBLISHING.md is
for authors.
"""

from workbench.keywords import hand_out

# Public name -> the module that defines it, within this package. A module is loaded when its name is first used.
_HOME = {
    "check": "checking",
    "publish": "artifact",
    "write_template": "artifact",
}

__getattr__ = hand_out(__name__, _HOME)
