"""A scenario is read from each kind of file that has one."""

import re

import pytest

import workbench as wb
from workbench.errors import DataError, WorkbenchError


@pytest.fixture(scope="module")
def run():
    workload = [wb.subscribe(0, "TEMP GE 1"), wb.publish(3, "TEMP IS 2", start_s=1)]
    return wb.Scenario(wb.topology.line(4), wb.Diffusion(ttl=9), workload, duration_s=3, seed=5).run(engine="reference")


@pytest.fixture(scope="module")
def written(run, tmp_path_factory):
    """Return {kind: path} of the files of a run."""
    folder = tmp_path_factory.mktemp("files")
    paths = {kind: folder / f"file.{kind}" for kind in ("json", "svg", "png", "html")}
    paths["json"].write_text(run.scenario.to_json(), encoding="utf-8")
    for kind in ("svg", "png"):
        run.figure().save(paths[kind])
    run.save_html(paths["html"])
    paths["folder"] = run.save(folder / "run")
    paths["parquet"] = paths["folder"] / "trace.parquet"
    return paths


@pytest.mark.parametrize("kind", ["json", "svg", "png", "html", "folder", "parquet"])
def test_each_kind_of_file_has_the_scenario_of_its_run(run, written, kind):
    assert wb.open_scenario(written[kind]) == run.scenario


@pytest.mark.parametrize("kind", ["json", "svg", "png", "html", "parquet"])
def test_a_damaged_file_is_an_error_that_names_the_file(written, tmp_path, kind):
    content = written[kind].read_bytes()
    for damaged in (b"", content[:40], b"\xff" * 100):
        path = tmp_path / f"damaged.{kind}"
        path.write_bytes(damaged)
        with pytest.raises(WorkbenchError, match="^" + re.escape(str(path))):
            wb.open_scenario(path)


def test_the_chart_of_a_sweep_is_refused(run, tmp_path):
    sweep = wb.Sweep(run.scenario, {"protocol.ttl": [3, 9]}).run(progress=False)
    path = tmp_path / "chart.svg"
    sweep.plot("protocol.ttl").save(path)
    with pytest.raises(DataError, match="a scenario in each row"):
        wb.open_scenario(path)
