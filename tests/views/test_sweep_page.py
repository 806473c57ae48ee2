"""The page of a sweep in Chromium, offline: sliders and charts choose a run, and player and metrics follow."""

import pytest

import workbench as wb
from tests.jupyter import WITHIN_S
from workbench.views.player.payload import pack
from workbench.views.seeing import see
from workbench.views.sweeps import page

pytestmark = pytest.mark.browser
PAGE = "globalThis.workbenchSweep"


@pytest.fixture(scope="module")
def table():
    workload = [wb.subscribe(0, "TEMP GE 1"), wb.publish([15, 12], "TEMP IS 5", every_s=1)]
    scenario = wb.Scenario(wb.topology.grid(4, 4), wb.Diffusion(), workload, wb.radios.cc2420(), duration_s=5)
    over = {"protocol.ttl": [3, 8], "radio.retries": [0, 3], "seed": [1, 2]}
    return wb.Sweep(scenario, over, engine="reference").run(progress=False)


def test_sliders_and_charts_choose_runs_offline(table, chromium, tmp_path):
    path = table.save_html(tmp_path / "sweep.html", by="radio.retries", progress=False)
    opened = chromium.new_page(viewport={"width": 1366, "height": 1000})
    errors, requests = [], []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("request", lambda request: requests.append(request.url))
    opened.goto(path.as_uri())
    opened.wait_for_function(f"() => {PAGE}?.live.length == 3", timeout=1000 * WITHIN_S)
    opened.get_by_label("retries", exact=True).fill("1")
    opened.get_by_label("ttl (hops)", exact=True).fill("1")
    chosen = table.to_pandas().query("`protocol.ttl` == 8 and `radio.retries` == 3 and seed == 1").iloc[0]
    opened.wait_for_function(f"() => {PAGE}.chosen == {chosen.name}")
    assert chosen.scenario in opened.inner_text(".wb-sweep-run")
    sent = opened.locator(".metrics td", has_text="transmissions").first.locator("xpath=following-sibling::td")
    assert sent.inner_text() == f"{int(chosen.transmissions):,}"
    # The point of the chosen run is selected in each chart; a click on another point chooses its first run.
    selected = f"() => {PAGE}.live.map((one) => one.sources[0]['marks 1'].selected.indices)"
    opened.wait_for_function(f"() => {PAGE}.live.every((one) => one.sources[0]['marks 1'].selected.indices[0] == 1)")
    assert opened.evaluate(selected) == [[1], [1], [1]]
    opened.evaluate(f"() => {PAGE}.live[0].onTap([1])")
    opened.wait_for_function(f"() => {PAGE}.chosen == 1")
    assert opened.locator(".wb-sweep-axes output").all_inner_texts() == ["3", "0", "2"]
    title = opened.evaluate("() => document.querySelector('.wb-sweep-player').workbenchPlayer.picture.workload")
    assert "seed 2" in title and errors == [] and {url.partition(":")[0] for url in requests} <= {"file", "blob"}
    opened.close()


def test_a_compact_payload_is_smaller_and_has_the_same_frames(table):
    view = see(table.run(0))
    whole, compact = pack(view), pack(view, is_compact=True)
    assert len(compact) < len(whole)
    assert f'"rows":{len(view.layer("frames"))}'.encode() in compact


def test_a_page_has_a_limit_of_runs_and_names_it(table, monkeypatch, tmp_path):
    monkeypatch.setattr(page, "MOST_RUNS", 7)
    with pytest.raises(wb.ParameterError, match="the table has 8 runs; a page can have at most 7"):
        table.save_html(tmp_path / "sweep.html")


def test_runs_with_equal_values_are_chosen_by_their_number(table, monkeypatch):
    monkeypatch.setattr(type(table), "varied", ["protocol.ttl"])
    (axis,) = page._describe_sliders(table)
    assert axis["title"] == "run" and axis["at"] == [*range(8)]
