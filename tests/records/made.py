"""A small scenario for tests of records, and every kind of file that is made from a run."""

import re

import workbench as wb

_RECORDS = re.compile(
    r'<metadata class="workbench-record">.*?</metadata>\n?'
    r'|<script type="application/json" class="workbench-record">.*?</script>',
    re.DOTALL,
)
KINDS = ("figure.png", "figure.svg", "figure.pdf", "page.html", "folder", "folder/trace.parquet", "folder/record.json")


def scenario(**changes):
    """Return a scenario of nine nodes on lossy links, with a sink and two sources."""
    workload = [wb.subscribe(0, "TEMP GE 20"), wb.publish([5, 8], "TEMP IS 26", every_s=2, start_s=2, stagger=True)]
    return wb.Scenario(
        wb.topology.grid(3, 3), wb.Diffusion(), workload, wb.Radio(loss=0.1), duration_s=12, seed=5
    ).replace(**changes)


def write(run, folder):
    """Write every kind of file of a run into a folder, under the names in `KINDS`."""
    run.figure().save(folder / "figure.png")
    run.figure(time_s=6, dark=True).save(folder / "figure.svg")
    run.figure(time_s=8).save(folder / "figure.pdf")
    run.save_html(folder / "page.html")
    run.save(folder / "folder")


def without(markup):
    """Return an SVG document or a page without its records."""
    return _RECORDS.sub("", markup)
