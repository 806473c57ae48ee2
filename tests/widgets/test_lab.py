"""The lab without a browser: panels offer changes; the state, all panels and the run follow."""

import gc
import json
import struct
import threading
from datetime import UTC, datetime

import pytest
from ipywidgets.widgets import widget as ipywidgets

import workbench as wb
from workbench import gallery, motes
from workbench.sim import runner
from workbench.views.player import living
from workbench.widgets import filters, laboratory, run_panel, runs, sweep, why_not
from workbench.widgets.laboratory import Lab, protocol_named
from workbench.widgets.protocol import protocol_names


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """Yield a lab on the reference engine whose file is in a separate folder."""
    for module in (runs, sweep):
        monkeypatch.setattr(module, "engine_for", lambda scenario: "reference")
    monkeypatch.chdir(tmp_path)
    opened = Lab()
    assert opened.wait()
    yield opened
    opened.close()


def open_again():
    """Open a lab in the same folder and return it."""
    opened = Lab()
    assert opened.wait()
    return opened


def test_a_lab_outside_of_a_notebook_names_the_command_that_opens_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    wb.lab(name="plain").close()
    assert "`workbench lab` in a terminal opens one" in capsys.readouterr().err
    monkeypatch.setattr(laboratory, "notebook_kernel", lambda: "a kernel")
    wb.lab(name="plain").close()
    assert capsys.readouterr().err == ""


def test_a_new_lab_runs_its_scenario(lab):
    assert lab.run.metrics["delivery_ratio"] == 1.0
    assert lab.run.scenario == lab.scenario
    assert "reference engine" in lab._panel.message.value


def test_a_change_offered_by_a_panel_becomes_the_next_scenario_and_is_run(lab):
    lab._radio.fields["seed"].value = 77
    assert lab.wait() and lab.scenario.seed == lab.run.scenario.seed == 77
    lab._protocol.choice.value = "Flooding"
    assert lab.wait() and lab.run.scenario.protocol == wb.Flooding()
    assert lab._filters.value == wb.Flooding() == lab._workload.protocol
    lab._network.value = wb.topology.line(5)
    assert lab.wait() and len(lab.run.scenario.topology) == 5
    assert [item.at for item in lab.scenario.workload] == [(0,)]


def test_undo_restores_all_panels(lab):
    lab._protocol.choice.value = "Gossip"
    assert lab.wait()
    lab._undo.click()
    assert lab.wait() and lab._protocol.choice.value == "Diffusion"
    assert lab.run.scenario.protocol == lab._filters.value == wb.Diffusion()
    lab._redo.click()
    assert lab.wait() and type(lab.run.scenario.protocol) is wb.Gossip


@pytest.fixture
def shown(lab, monkeypatch):
    """Return the list of payloads that the player gets of runs that count as large: (seed, whether it is a preview)."""
    monkeypatch.setattr(living, "LARGE", 0)
    player, headers = lab._players.players[0], []
    player.wire.selection = {"node": None, "row": None, "time_s": 3.0}

    def note(change):
        if not change.new:  # the player is closed
            return
        (length,) = struct.unpack("<I", change.new[4:8])
        header = json.loads(change.new[8 : 8 + length])
        headers.append((int(header["workload"].rpartition(" ")[2]), header.get("is_preview", False)))

    player.wire.observe(note, "payload")
    return headers


def test_a_preview_of_a_large_run_is_shown_first(lab, shown):
    lab.change(seed=8)
    assert lab.wait() and shown == [(8, True), (8, False)]


def test_only_the_preview_of_an_outdated_run_is_shown(lab, shown, monkeypatch):
    player = lab._players.players[0]
    player.wire.observe(lambda _: lab.change(seed=9) if lab.scenario.seed == 8 else None, "payload")
    cards, seeds = lab._cards.value, []
    lab._cards.observe(lambda _: seeds.append(lab.run.scenario.seed), "value")
    lab.change(seed=8, duration_s=50)
    assert lab.wait() and shown == [(8, True), (9, True), (9, False)]
    assert seeds == [9] and lab._cards.value != cards


def test_the_run_of_a_preview_is_completed_if_the_newer_run_fails(lab, shown, monkeypatch):
    played = runner.play

    def run(scenario, **options):
        if scenario.seed == 9:
            raise wb.ScenarioError("this one cannot be")
        return played(scenario, **options)

    monkeypatch.setattr(runner, "play", run)
    player = lab._players.players[0]
    player.wire.observe(lambda _: lab.change(seed=9) if lab.scenario.seed == 8 else None, "payload")
    lab.change(seed=8)
    assert lab.wait() and "cannot be" in lab._panel.message.value
    assert shown == [(8, True), (8, False)]


def test_an_invalid_change_gives_an_error_and_the_run_stays(lab):
    before = lab.run
    assert not lab.change(protocol=wb.TinyMQ(roots=(999,)))
    assert "node 999" in lab._panel.message.value
    assert lab.wait() and lab.run is before


def test_the_buttons_of_the_map_give_roles_to_the_picked_nodes(lab):
    lab._network.asked = {"do": "fail", "nodes": [5], "count": 1}
    lab._network.asked = {"do": "sink", "nodes": [9], "count": 2}
    assert lab.wait()
    assert {5: "down", 9: "sink", 0: "sink", 31: "source"}.items() <= laboratory.roles(lab.scenario).items()
    assert lab._network.marks == laboratory.roles(lab.scenario)


def test_two_protocols_play_side_by_side_on_one_clock(lab):
    lab._beside.value = "Flooding"
    assert lab.wait() and len(lab.runs) == 2
    clocks = {player.wire.clock for player in lab._players.players}
    assert len(lab._players.players) == 2 and len(clocks) == 1 and "" not in clocks
    assert "Flooding" in lab._differences.value and "Diffusion" in lab._differences.value
    assert lab._below.titles[lab._below.selected_index] == "Differences" and "wb-two" in lab._middle._dom_classes
    lab._beside.value = "nothing"
    assert lab.wait() and len(lab.runs) == len(lab._players.players) == 1


def test_a_new_lab_restores_the_composed_scenario(lab):
    lab.change(seed=5)
    lab.change(beside=wb.Flooding())
    composed = lab._history.state
    lab.close()
    second = open_again()
    assert second._history.state == composed and len(second.runs) == 2
    second.close()


def test_a_lab_shows_the_given_scenario(lab):
    lab.change(seed=5)
    lab.close()
    scenario = wb.Scenario(wb.topology.line(3), wb.Flooding())
    second_lab = wb.lab(scenario)
    assert second_lab.scenario == scenario
    second_lab.change(seed=6)
    second_lab.close()
    assert wb.lab(scenario).scenario.seed == 6


def test_a_stopped_run_keeps_its_rows(lab):
    lab.change(duration_s=500_000.0)
    lab._panel.stop_button.click()
    assert lab.wait()
    assert lab.run.scenario.duration_s < 500_000 and "Stopped after" in lab._panel.message.value


def test_a_failing_filter_gives_an_error_and_the_lab_continues(lab):
    wb.register_filter("broken", lambda attributes: 1 / 0)
    lab.change(protocol=wb.Diffusion(filters=[wb.Filter("broken")]))
    assert lab.wait() and "ZeroDivisionError" in lab._panel.message.value
    lab.undo()
    assert lab.wait() and "reference engine" in lab._panel.message.value


def test_missing_motes_give_an_error(lab, monkeypatch):
    monkeypatch.setattr(run_panel.motes, "listing", list)
    lab._panel.where.value = run_panel.BOARDS
    assert "none are connected" in lab._panel.message.value
    lab._panel._play_on_motes(lab._history.state)
    assert "0 entries for 40 nodes" in lab._panel.message.value


def test_a_missing_kind_of_virtual_motes_names_what_it_needs(lab, monkeypatch):
    panel, lacking = lab._panel, {"c": "motes in C need a compiler"}
    monkeypatch.setattr(run_panel.motes, "missing", lacking.get)
    assert panel.kind.layout.display == "none"
    panel.where.value = run_panel.VIRTUAL
    shown = [label for label, _ in panel.kind.options]
    assert shown == ["micropython", "c, missing", "cortex-m3", run_panel.MIXED]
    assert panel.kind.layout.display == "" and "MicroPython" in panel.message.value
    panel.kind.value = "c"
    assert "motes in C need a compiler." in panel.message.value and "wb-error" in panel.message.value
    panel.kind.value = "cortex-m3"
    assert "QEMU" in panel.message.value and panel._choose_motes(3).kind == "cortex-m3"
    panel.kind.value = run_panel.MIXED
    assert panel._choose_motes(3).kind == ["micropython", "cortex-m3", "micropython"]
    lacking["cortex-m3"] = "a Cortex-M3 is emulated by QEMU"
    panel.where.value = run_panel.HERE
    assert panel.kind.layout.display == "none"
    panel.where.value = run_panel.VIRTUAL  # check again
    assert [label for label, _ in panel.kind.options][-1] == "cortex-m3, missing" and panel.kind.value == "micropython"


@pytest.mark.skipif(motes.missing(motes.C) is not None, reason=str(motes.missing(motes.C)))
def test_a_lab_runs_on_motes_in_c(lab):
    lab.change(topology=wb.topology.line(3), workload=[wb.subscribe(0, "TEMP GE 25")], duration_s=1.0)
    lab._panel.where.value = run_panel.VIRTUAL
    lab._panel.kind.value = "c"
    lab._panel._play_on_motes(lab._history.state)
    assert "Ran on 3 motes for" in lab._panel.message.value and set(lab._panel.runs[0].kinds.values()) == {"c"}


def test_exports_contain_the_displayed_scenario_and_run(lab):
    for kind in ("scenario (JSON)", "figure (SVG)", "figure (PDF)", "figure (PNG)", "run (Parquet)", "page that plays"):
        lab._take_away.offer(kind)
        assert "download=" in lab._take_away.link.value, kind
    assert lab._take_away.data("scenario (JSON)", lab.run).decode() == lab.scenario.to_json()


def test_a_sweep_starts_from_the_displayed_scenario(lab):
    panel = lab._sweep
    panel.path.value, panel.values.value, panel.repetitions.value = "radio.loss", "0, 0.3", 2
    panel.run()
    assert panel.wait() and len(panel.table) == 4
    assert "<svg" in panel._view.wire.picture or "<img" in panel._view.wire.picture
    panel.values.value = "nonsense"
    panel.run()
    assert panel.wait() and "wb-error" in panel._message.value


def test_the_parameter_of_a_sweep_can_be_chosen_in_the_forms(lab):
    for form, field, path in (
        (lab._protocol, lab._protocol.fields["ttl"], "protocol.ttl"),
        (lab._radio, lab._radio.fields["retries"], "radio.retries"),
        (lab._radio, lab._radio.share, "radio.loss"),
        (lab._radio, lab._radio.fields["seed"], "seed"),
        (lab._network.sources, lab._network.sources.fields["nodes"], "topology.nodes"),
        (lab._protocol, lab._protocol.fields["ttl"], "protocol.ttl"),
    ):
        form.vary.value = True
        lab._below.selected_index = 0
        field._vary.click()
        assert lab._sweep.path.value == path and lab._sweep.values.value
        assert lab._below.titles[lab._below.selected_index] == "Sweep"
        assert not form.vary.value and field._vary.layout.display == "none"


def test_a_sweep_over_the_size_of_the_network(lab):
    panel = lab._sweep
    panel.path.value, panel.repetitions.value = "topology.nodes", 1
    assert panel.values.value == "40, 80, 120, 160"
    panel.values.value = "40, 60"
    panel.run()
    assert panel.wait() and panel._message.value.count("2 points")
    panel.values.value = "10"
    panel.run()
    assert panel.wait() and "node 31" in panel._message.value


@pytest.mark.parametrize(
    "graph", [wb.topology.office(), wb.topology.random_geometric(50, 200, 200), wb.topology.ring(9)]
)
def test_arguments_of_each_generator_can_be_varied(lab, graph):
    lab.change(topology=graph, workload=[wb.subscribe(0, "TEMP GE 20"), wb.publish(3, "TEMP IS 25")])
    sources = lab._network.sources
    sources.vary.value = True
    for field in list(sources.fields.values()):
        field._vary.click()
        assert lab._sweep.path.value == sources.varied[0]
        assert lab._sweep.path.value.startswith("topology.")
        sources.vary.value = True


def test_every_parameter_that_forms_offer_can_be_swept(lab):
    for name in protocol_names():
        assert lab.change(protocol=protocol_named(name))
        lab._protocol.vary.value = lab._radio.vary.value = True
        offered = {f"protocol.{setting}" for setting, field in lab._protocol.fields.items() if field.is_offered}
        assert offered and offered == {path for path in lab._sweep.path.options if path.startswith("protocol.")}


def test_panels_have_a_one_line_text_form(lab):
    parts = (lab, lab._network, lab._workload, lab._filters, lab._protocol, lab._radio, lab._panel, lab._players)
    for part in parts:
        assert len(repr(part)) < 300, type(part)


def test_a_view_that_fails_does_not_end_the_lab(lab, monkeypatch, capsys):
    monkeypatch.setattr(lab._cards, "show", lambda *_: 1 / 0)
    lab.change(seed=3)
    assert lab.wait() and "cannot be shown: ZeroDivisionError" in lab._panel.message.value
    monkeypatch.undo()
    lab.change(seed=4)
    assert lab.wait() and lab.run.scenario.seed == 4
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_custom_protocol_can_be_compared(lab):
    class Shout(wb.Flooding):
        pass

    lab.change(beside=Shout())
    assert lab.wait() and type(lab.runs[1].scenario.protocol) is Shout
    assert lab._beside.value == "Shout"


def test_a_state_that_cannot_be_restored_is_renamed_with_an_error(lab, tmp_path):
    lab.change(seed=3)
    lab.close()
    path = tmp_path / ".workbench" / "lab.json"
    path.write_text(path.read_text().replace('"Diffusion"', '"not_here:Mine"'))
    second = open_again()
    assert path.with_suffix(".kept-1.json").exists()
    message = second.children[3].value
    assert "cannot be shown" in message and "kept-1.json" in message and "not_here" in message
    second.close()


def test_a_closed_lab_leaves_no_widgets(lab):
    before = len(ipywidgets._instances)
    second = open_again()
    second.change(protocol=wb.TinyMQ())
    assert second.wait()
    assert len(ipywidgets._instances) > before + 500
    second.close()
    second.close()
    assert len(ipywidgets._instances) <= before + 100


@pytest.mark.family
def test_reopened_labs_leave_no_widgets_and_threads(lab):
    labs = []  # a notebook stores the outputs of its cells like this

    def left():
        labs.append(wb.lab())
        assert labs[-1].wait()
        gc.collect()
        threads = sum(thread.name == "lab" for thread in threading.enumerate())
        return len(ipywidgets._instances), threads, len(gc.get_objects())

    left()
    widgets, _, objects = left()
    open_again, threads, more = [left() for _ in range(2)][-1]
    assert open_again == widgets
    assert more < objects + 1_500  # 8,700 for each lab whose objects stay alive
    assert all(closed_lab.scenario == labs[-1].scenario and closed_lab.run is None for closed_lab in labs[:-1])
    assert threads <= 3  # those of the fixture, of the last lab, and one that is about to end
    wb.lab().close()


def test_the_filter_form_knows_the_nodes_of_the_network(lab):
    assert lab._filters.nodes == tuple(sorted(lab.scenario.topology))


def test_explanations_follow_the_picture_and_do_not_delay_the_next_run(lab, monkeypatch):
    is_free, is_there = threading.Event(), threading.Event()

    def slow(run, look):
        is_there.set()
        is_free.wait(300)
        return "told late"

    monkeypatch.setattr(why_not, "_explanation_html", slow)
    lab.change(seed=5)
    assert lab.wait() and lab.run.scenario.seed == 5 and is_there.wait(300)
    lab.change(seed=6)
    assert lab.wait() and lab.run.scenario.seed == 6
    is_free.set()
    assert lab._why_not.wait() and lab._why_not._text.value == "told late"


def test_the_explanation_shows_where_each_reading_ended(lab):
    lab.change(radio=wb.Radio(), workload=(*lab.scenario.workload, wb.outage(8, start_s=23)))
    assert lab.wait() and lab._why_not.wait()
    assert "it was sent to node 8 at 27.4304 s, and that node was down" in lab._why_not._text.value


def test_a_newer_change_cancels_work_for_the_previous_run(lab, monkeypatch):
    ended = threading.Event()

    def played(run, progress):
        try:
            while True:
                progress(0.5)
        finally:
            ended.set()

    monkeypatch.setattr(filters, "decisions", played)
    lab._filters._results._fetch_button.click()
    lab.change(seed=5)
    assert ended.wait(300) and lab.wait()
    assert lab._filters._results.wait() and not lab._filters._results._rows.value


def test_rerunning_the_cell_of_a_lab_stays_within_jupyters_message_limit(lab):
    # The server drops messages beyond 3,000 in 3 s: here one for each closed and one for each created widget.
    before = len(ipywidgets._instances)
    second = open_again()
    created = len(ipywidgets._instances) - before
    second.close()
    assert 2 * created < 2_200


def test_a_protocol_with_node_drawings_gets_a_tab_for_the_selected_node(lab):
    assert "Selected node" not in lab._below.titles
    lab.change(protocol=wb.DPS())
    assert lab.wait() and lab._below.titles[-1] == "Selected node"
    lab._below.selected_index = len(lab._below.titles) - 1
    lab._players.selection = {"node": 0, "time_s": 50.0}
    assert lab._selected_node.wait() and "Filter of node 0 at 50 s" in lab._selected_node._picture.value
    lab._players.selection = {"node": -1, "time_s": 50.0}
    assert lab._selected_node.wait() and "Click a node" in lab._selected_node._picture.value
    lab.change(protocol=wb.Flooding())
    assert lab.wait() and "Selected node" not in lab._below.titles


def test_players_are_sent_again_until_a_page_shows_one(lab, monkeypatch):
    sent, is_complete = [], threading.Event()

    def send_state(name):
        sent.append(name)
        if len(sent) == 3:
            is_complete.set()

    monkeypatch.setattr(lab._players, "send_state", send_state)
    lab._is_displayed, lab._resend_s = False, [0.01, 0.01, 0.01]
    lab._resend_later()
    assert is_complete.wait(10)
    lab._resend_s = [0.01]
    lab._players.selection = {"node": 0}
    lab._resend_later()
    assert sent == ["children"] * 3


def test_the_gallery_shows_each_model_with_its_picture_and_opens_it(lab):
    lab._gallery_button.value = True
    assert lab._gallery.layout.display == "" and lab._gallery.wait()
    cards = lab._gallery.children[-1].children
    assert len(cards) == len(gallery.names())
    for name, card in zip(gallery.names(), cards, strict=True):
        picture, button, question = card.children
        assert button.description == gallery.model(name).title and gallery.model(name).question in question.value
        assert picture.value.startswith("<img") and f"alt='{button.description}'" in picture.value
    before = lab.scenario
    cards[gallery.names().index("gossip")].children[1].click()
    model = gallery.model("gossip")
    assert lab._gallery.layout.display == "none" and lab._history.state.beside == model.beside
    assert lab.scenario == model.scenario and model.question in lab._question.value
    assert lab.wait() and len(lab.runs) == 2
    lab.undo()
    assert lab.scenario == before and lab._question.value == ""


def button_of(panel, description):
    """Return the button with this description in the first row of a panel."""
    return next(child for child in panel.children[0].children if getattr(child, "description", "") == description)


def test_labs_are_stored_under_names_listed_and_opened(lab):
    lab._gallery_button.value = True
    gallery_panel, seed = lab._gallery, lab.scenario.seed
    assert gallery_panel.name.value == "lab"
    gallery_panel.name.value = "homework 1"
    button_of(gallery_panel, "Save under this name").click()
    assert "must have 1 to 60 letters" in gallery_panel.message.value
    gallery_panel.name.value = "homework-1"
    button_of(gallery_panel, "Save under this name").click()
    assert "later changes are stored there" in gallery_panel.message.value
    assert set(gallery_panel.stored.options) == {"homework-1", "lab"} or gallery_panel.stored.options == ("homework-1",)
    assert lab.change(seed=seed + 5)
    lab._store.flush()
    gallery_panel.name.value = "other"
    button_of(gallery_panel, "Save under this name").click()
    assert lab.change(seed=seed + 9)
    gallery_panel.stored.value = "homework-1"
    button_of(gallery_panel, "Open this lab").click()
    assert lab.scenario.seed == seed + 5 and lab._store.path.stem == "homework-1"
    # An undo would store the scenario of the other lab in this file.
    lab.undo()
    assert lab.scenario.seed == seed + 5
    gallery_panel.name.value = "other"
    button_of(gallery_panel, "Save under this name").click()
    assert "a lab is stored under the name other already" in gallery_panel.message.value


def test_a_new_scenario_can_be_undone(lab):
    lab._gallery_button.value = True
    first = lab.scenario
    assert lab.change(protocol=wb.Flooding())
    flooding = lab.scenario
    button_of(lab._gallery, "New").click()
    assert lab.scenario == first
    lab.undo()
    assert lab.scenario == flooding


def test_a_link_opens_a_scenario_and_a_damaged_one_gives_an_error(lab, monkeypatch):
    sent = []
    monkeypatch.setattr(lab._page_link, "send", lambda message: sent.append(message))
    first = lab.scenario
    lab._take_away.offer_link()
    assert lab.change(seed=first.seed + 1)
    lab._page_link._process_message(None, {"opened": f"#{sent[0]['link']}&t=3"}, [])
    assert lab.scenario == first and sent[1]["subject"] == f"run {first.hash}"
    lab._page_link._process_message(None, {"opened": "#s=abc"}, [])
    assert "the scenario in the link is damaged" in lab._panel.message.value and lab.scenario == first
    lab._page_link._process_message(None, {"dropped": "x.json"}, [b"{}"])
    assert "x.json" in lab._panel.message.value and lab.scenario == first
    lab._page_link._process_message(None, {"dropped": "x.json"}, [first.replace(seed=77).to_json().encode()])
    assert lab.scenario.seed == 77


def test_a_file_can_be_opened_and_an_unreadable_one_gives_an_error(lab):
    lab._gallery_button.value = True
    figure = lab.run.figure().to_svg().encode()
    opened, seed = lab.scenario, lab.scenario.seed
    assert lab.change(seed=seed + 1)

    def upload(name, content):
        file = {"name": name, "type": "", "size": len(content), "content": content, "last_modified": datetime.now(UTC)}
        lab._gallery.upload.value = (file,)

    upload("broken.svg", b"<svg")
    assert "broken.svg: the file contains no record" in lab._gallery.message.value and lab.scenario != opened
    upload("figure.svg", figure)
    assert lab.scenario == opened and lab._gallery.layout.display == "none" and lab._gallery.message.value == ""
