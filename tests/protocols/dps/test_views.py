"""The views of DPS's meshes: what comes out of traces, what is drawn of it, and the player in a real browser."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench import views
from workbench.errors import DataError, ParameterError
from workbench.protocols.dps.views import (
    filters as dps_filters,
)
from workbench.protocols.dps.views import (
    mesh as dps,
)
from workbench.protocols.dps.views import (
    packing as dps_packing,
)
from workbench.protocols.dps.views import (
    player as dps_player,
)
from workbench.protocols.dps.views import (
    publications as dps_publications,
)
from workbench.views.drawing import Text
from workbench.views.ground import lay_out

SECOND = 1_000_000


@pytest.fixture(scope="module")
def run():
    """A grid with loops: two subscribers, publications that match both, one, and nobody; a node fails at 30 s."""
    return wb.Scenario(
        wb.topology.grid(3, 4),
        wb.DPS(filter_bits=256, update_s=0.5, acknowledge=True),
        [
            wb.subscribe(2, 'TOPIC EQ "house/+/temp"', start_s=8),
            wb.subscribe(11, 'TOPIC EQ "house/kitchen/#"', start_s=10),
            wb.publish(4, 'TOPIC IS "house/kitchen/temp"', start_s=25),
            wb.publish(4, 'TOPIC IS "house/bath/temp"', start_s=26),
            wb.publish(6, 'TOPIC IS "garden/pump"', start_s=27),
            wb.outage(9, start_s=30),
        ],
        wb.Radio(loss="none"),
        duration_s=50,
        seed=2,
    ).run(engine="reference")


def texts(drawing):
    return [item.text for item in drawing.items if isinstance(item, Text)]


def rows(run, **equal):
    table = run.trace.to_pandas()
    for name, value in equal.items():
        table = table[table[name] == value]
    return table


# The mesh, replayed


def test_links_have_the_state_that_either_end_told_last(run):
    seen = dps.mesh_of(run)
    for time_us in (0, 5 * SECOND, 20 * SECOND, 49 * SECOND):
        told = {}
        for row in rows(run, event="link_set").itertuples():
            if row.time_us <= time_us:
                told.setdefault(frozenset((row.node, row.peer)), {})[row.node] = row.detail
        expected = {}
        for ends, states in told.items():
            left = [state for state in states.values() if state != "gone"]
            if left:
                expected[tuple(sorted(ends))] = dps.both_ends(left)
        assert seen.links_at(time_us) == expected
    assert {"active", "muted"} == set(seen.links_at(20 * SECOND).values())


def test_filters_have_the_bits_that_were_told_last(run):
    seen = dps.mesh_of(run)
    for time_us in (5 * SECOND, 9 * SECOND, 24 * SECOND):
        told = {}
        for row in rows(run, event="interests_set").itertuples():
            if row.time_us <= time_us:
                told[row.node, row.peer] = row.value, int(row.detail)
        sums = {node: values for (node, peer), values in told.items() if peer == dps.EVERYTHING}
        assert {node: (one.bits, one.needs) for node, one in seen.sums_at(time_us).items()} == sums
        links = {ends: values[0] for ends, values in told.items() if ends[1] != dps.EVERYTHING}
        assert {ends: one.bits for ends, one in seen.filters_at(time_us).items()} == links


def test_what_a_neighbor_told_goes_with_its_link(run):
    seen = dps.mesh_of(run)
    gone = rows(run, event="link_set", detail="gone").iloc[0]
    ends = (gone.node, gone.peer)
    assert ends in seen.filters_at(gone.time_us - 1) and ends not in seen.filters_at(gone.time_us)
    assert tuple(sorted(ends)) in seen.links_at(gone.time_us - 1)


@pytest.mark.parametrize("count_muted", [True, False])
def test_what_was_told_before_a_link_was_muted_stands_only_if_it_counts(run, count_muted):
    # What the node drops when it mutes is in no row of the trace: the setting has to tell.
    muted = next(
        row
        for row in rows(run, event="link_set", detail="muted").itertuples()
        if (row.node, row.peer) in dps.mesh_of(run).filters_at(row.time_us - 1)
        and not len(rows(run, event="interests_set", node=row.node, peer=row.peer, time_us=row.time_us))
    )
    told = dps.mesh(run.trace, 256, 50 * SECOND, count_muted).filters_at(muted.time_us)
    assert ((muted.node, muted.peer) in told) == count_muted


def test_spans_never_overlap_and_stay_within_the_run(run):
    seen = dps.mesh_of(run)
    for spans in (seen.links, seen.filters):
        last = {}
        for span in spans:
            assert 0 <= span.from_us < span.until_us <= seen.duration_us
            assert last.get((span.node, span.peer), 0) <= span.from_us
            last[span.node, span.peer] = span.until_us
    assert seen.down_at(29 * SECOND) == set() and seen.down_at(31 * SECOND) == {9}


def test_steps_are_what_the_mesh_says_at_each_time(run):
    seen = dps.mesh_of(run)
    table = dps.steps(seen, 12)
    assert (np.diff(table["time_us"]) > 0).all()
    for time_us, mean, most, muted in zip(*(table[name] for name in ("time_us", "mean", "most", "muted")), strict=True):
        fills = [seen.fill(one.bits) for one in seen.sums_at(int(time_us)).values()]
        assert mean == pytest.approx(sum(fills) / 12) and most == pytest.approx(max(fills, default=0))
        assert muted == Counter(seen.links_at(int(time_us)).values())["muted"]


def test_runs_of_others_and_tables_that_are_no_traces_are_refused(run):
    other = wb.Scenario(wb.topology.line(2), wb.Flooding(), duration_s=1).run()
    for view in (dps.mesh_of, dps_filters.filters_drawing, dps_publications.publication_path, dps_player.dps_figure):
        with pytest.raises(ParameterError, match="run of Flooding, which has no filters"):
            view(other)
    with pytest.raises(DataError, match="no trace"):
        dps.mesh(run.trace.drop_columns(["peer"]), 256, SECOND)


def test_a_run_in_which_nobody_asks_is_drawn():
    quiet = wb.Scenario(wb.topology.line(3), wb.DPS(), duration_s=3).run()
    assert dps.mesh_of(quiet).most_bits == 1
    assert "0: 0" not in texts(dps_filters.filters_drawing(quiet, 0))
    dps_filters.fill_chart(quiet)
    dps_player.dps_figure(quiet)
    with pytest.raises(ParameterError, match="this run has 0 publications"):
        dps_publications.publication_path(quiet)


# The way of a publication


def test_every_frame_of_a_publication_is_a_hop(run):
    ways = dps_publications.paths(run)
    assert [way.what.text for way in ways] == [
        'TOPIC IS "house/kitchen/temp"',
        'TOPIC IS "house/bath/temp"',
        'TOPIC IS "garden/pump"',
    ]
    for way in ways:
        sent = rows(run, event="sent", origin=way.what.node, sequence=way.what.sequence)
        frames = sorted((row.node, row.peer) for row in sent.itertuples())
        assert sorted((hop.sender, hop.receiver) for hop in way.hops) == frames
        acknowledgements = (sent.message == "acknowledgement").sum()
        assert way.count("acknowledged") == acknowledgements
        dropped = rows(run, event="dropped", origin=way.what.node, sequence=way.what.sequence, detail="dead_end")
        assert way.nodes("dead_end") == sorted(set(dropped.node))


def test_useful_hops_lead_from_the_publisher_to_each_delivery_and_the_others_do_not(run):
    for way in dps_publications.paths(run):
        useful = {hop.receiver: hop.sender for hop in way.hops if hop.look == "useful"}
        for node in way.nodes("delivered"):
            while node != way.what.node:
                node = useful.pop(node, node) if node in useful else way.what.node
        assert not useful, "a useful hop leads to no delivery"
        firsts = [hop.receiver for hop in way.hops if hop.look in ("useful", "in vain")]
        assert len(firsts) == len(set(firsts))


def test_who_is_delivered_to_is_who_asked_for_it(run):
    both, one, nobody = dps_publications.paths(run)
    assert both.nodes("delivered") == [2, 11] and both.matches == 2 and both.count("useful") >= 4
    assert one.nodes("delivered") == [2]
    assert nobody.matches == 0 and nobody.count("useful") == 0


def test_a_path_up_to_a_hop_has_its_first_hops_and_earlier_marks(run):
    way = dps_publications.publication_path(run)
    assert way.until(0).hops == () and way.until(len(way.hops)).hops == way.hops
    part = way.until(2)
    assert part.hops == way.hops[:2]
    assert all(mark.at_us <= max(hop.arrived_us for hop in part.hops) for mark in part.marks)
    assert part.matches == len(part.nodes("delivered")) and way.until(len(way.hops)).matches == way.matches


def test_short_filters_make_hops_in_vain_for_what_nobody_asked_for():
    asked = [wb.subscribe(node, f'TOPIC EQ "a{node}/b/+"', start_s=5) for node in range(8)]
    said = wb.publish(0, 'TOPIC IS "x/y/z"', start_s=20)
    ways = []
    for filter_bits in (64, 8192):
        protocol = wb.DPS(filter_bits=filter_bits, update_s=0.2)
        run = wb.Scenario(wb.topology.line(8), protocol, [*asked, said], wb.Radio(loss="none"), duration_s=25).run()
        ways.append(dps_publications.publication_path(run))
        written = texts(dps_publications.publication_drawing(run))
        assert any(text.startswith("got it in vain: ") for text in written) == (filter_bits == 64)
    short, long = ways
    assert short.matches == long.matches == 0
    assert short.count("in vain") > 0 == long.count("in vain")
    assert len(short.nodes("dead_end")) == 1
    assert "no filter said yes" in long.in_words()


def test_lost_frames_are_hops_that_did_not_arrive():
    asked = wb.subscribe(2, 'TOPIC EQ "a/b"', start_s=3)
    said = wb.publish(0, 'TOPIC IS "a/b"', start_s=20)
    scenario = wb.Scenario(
        wb.topology.line(3), wb.DPS(), [asked, wb.outage(1, start_s=19), said], wb.Radio(loss="none"), duration_s=25
    )
    run = scenario.run()
    way = dps_publications.publication_path(run)
    assert [(hop.sender, hop.receiver, hop.look) for hop in way.hops] == [(0, 1, "lost")]
    assert "lost on this link" in texts(dps_publications.publication_drawing(run))


def test_there_are_as_many_slides_as_hops_and_one_for_the_beginning(run):
    way = dps_publications.publication_path(run)
    slides = dps_publications.publication_slides(run)
    assert len(slides.drawings) == len(way.hops) + 1
    assert len({(one.width, one.height) for one in slides.drawings}) == 1
    assert "published, and not sent yet" in texts(slides.drawings[0]) and way.in_words() in texts(slides.drawings[-1])
    with pytest.raises(ParameterError, match="which is 3; this run has 3 publications"):
        dps_publications.publication_path(run, 3)


# Figures


def test_a_figure_of_filters_says_how_full_they_are(run):
    seen = dps.mesh_of(run)
    written = texts(dps_filters.filters_drawing(run, 24))
    for node, one in seen.sums_at(24 * SECOND).items():
        assert one.bits and f"{node}: {dps_filters.percent(seen.fill(one.bits))}" in written
    assert {str(node) for node in range(12)} <= set(texts(dps_filters.filters_drawing(run, 5)))
    assert "muted link: it closes a loop" in written and "subscriber" in written
    assert "failed node" not in written and "failed node" in texts(dps_filters.filters_drawing(run))
    assert "11: 3.5 %" not in texts(dps_filters.filters_drawing(run, names=False))
    with pytest.raises(ParameterError, match="time_s is 51; this run lasts from 0 to 50 s"):
        dps_filters.filters_drawing(run, 51)
    with pytest.raises(ParameterError, match="times_s is empty"):
        dps_filters.filters_slides(run, [])


@pytest.mark.parametrize(
    "fill, said", [(0, "0"), (0.0001, "< 0.1 %"), (0.035, "3.5 %"), (0.1, "10 %"), (0.09951, "10 %"), (1, "100 %")]
)
def test_fills_are_written_for_readers(fill, said):
    assert dps_filters.percent(fill) == said


def test_the_browser_is_sent_every_span_and_hop(run):
    seen, plan = dps.mesh_of(run), lay_out(run.scenario.topology)
    packed = dps_packing.pack(run, seen, plan)
    ways = dps_publications.paths(run)
    sizes = {what: len(table["at" if "at" in table else "from"]) for what, table in packed.tables.items()}
    assert sizes["links"] == len(seen.links)
    assert sizes["told"] + sizes["sums"] == len(seen.filters)
    assert sizes["hops"] == sum(len(way.hops) for way in ways)
    assert sizes["marks"] == sum(len(way.marks) for way in ways)
    assert len(packed.names) == len(packed.texts) == len(ways) and not packed.notes


def test_of_very_many_spans_the_first_are_sent_and_a_note_says_so(run, monkeypatch):
    monkeypatch.setattr(dps_packing, "MOST_SPANS", 5)
    seen, plan = dps.mesh_of(run), lay_out(run.scenario.topology)
    packed = dps_packing.pack(run, seen, plan)
    assert len(packed.tables["links"]["from"]) == 5
    assert f"Of {len(seen.links):,} changes of links the first 5 are drawn." in packed.notes


def test_outside_of_a_notebook_the_player_is_a_page(run, tmp_path, monkeypatch, capsys):
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    views.show_dps(run)
    path = Path("out") / f"workbench-dps-{run.scenario.hash[:12]}.html"
    assert f"wrote {path}" in capsys.readouterr().out
    assert "mesh halves" in path.read_text(encoding="utf-8")


# In a browser

CHROMIUM = Path("/usr/bin/chromium")
SKIN = "Bokeh.documents[0].get_model_by_name('mesh discs').data_source.skin"


@pytest.mark.browser
def test_the_player_draws_the_mesh_of_its_time(run, tmp_path):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"there is no {CHROMIUM}")
    from bokeh.embed import file_html
    from bokeh.resources import Resources

    page_path = tmp_path / "mesh.html"
    page_path.write_text(file_html(dps_player.dps_figure(run), Resources(mode="inline")), encoding="utf-8")
    seen = dps.mesh_of(run)
    way = dps_publications.publication_path(run)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1040, "height": 1200})
        complaints = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(page_path.as_uri())
        page.wait_for_function(f"window.Bokeh?.documents.length && {SKIN}")
        player = "Bokeh.documents[0].get_model_by_name('nodes').data_source.player"
        for time_s in (0, 24, 25.5):
            page.evaluate(f"() => {player}.jump({time_s})")
            page.wait_for_function(f"() => {SKIN}.time == {time_s}")
            shown = page.evaluate(
                f"() => Object.fromEntries(Object.entries({SKIN}.drawn)"
                ".map(([name, { data }]) => [name, (data.x0 ?? data.x).length]))"
            )
            states = Counter(seen.links_at(round(time_s * SECOND)).values())
            assert shown["muted"] == states["muted"]
            assert shown["halves"] == 2 * states["active"]
            assert shown["ground"] == states["active"] + states["pending"]
            hops = len([hop for hop in way.hops if hop.arrived_us <= time_s * SECOND])
            assert shown["trail"] == hops
        assert shown["delivered"] == 2 and shown["dead"] == len(way.nodes("dead_end"))
        assert page.evaluate(f"() => {SKIN}.widgets.said.text") == way.in_words()
        assert complaints == []
        browser.close()
