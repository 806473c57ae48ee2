"""The player of a network that changes, in a real browser."""

import base64

import numpy as np
import pytest

from tests.views.changing import SECOND, scenario
from tests.views.test_browser import Player, paged
from workbench.views.player.payload import pack, preview
from workbench.views.seeing import see

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def run():
    return scenario().run(engine="reference")


@pytest.fixture(scope="module")
def player(chromium, run, tmp_path_factory):
    opened = Player(chromium, paged(tmp_path_factory.mktemp("changes"), run))
    opened.ask("(p.hidden.clear(), p.map.shown = null)")
    yield opened
    assert opened.complaints == []
    opened.page.close()


def test_positions_and_links_equal_those_of_python(player, run):
    plan = see(run).plan
    for time_s in (0, 3.5, 6.9, 8, 19.999, 20, 21, 30, 39):
        player.jump(time_s)
        moment = plan.at(round(time_s * SECOND))
        x, y, a, b, ab, ba = player.ask("['x', 'y', 'a', 'b', 'ab', 'ba'].map((name) => [...p.plan[name]])")
        assert (x, y) == (pytest.approx(moment.x_m.tolist()), pytest.approx(moment.y_m.tolist()))
        links = zip(*(moment.links[name].tolist() for name in ("a", "b", "pdr_ab", "pdr_ba")), strict=True)
        shown = {(*ends, ratio / 100, back / 100) for *ends, ratio, back in zip(a, b, ab, ba, strict=True)}
        assert shown == set(links)


def test_a_moving_node_is_drawn_and_found_at_its_position(player):
    for time_s in (0, 10, 20, 31):
        player.jump(time_s)
        x, y = player.ask("[p.map.left + 10 * p.map.px_m, p.map.top - p.time * p.map.px_m]")
        (shown,) = player.ask("[[...p.plan.id].indexOf(1)].map((i) => [p.map.px[i], p.map.py[i]])")
        assert shown == pytest.approx([x, y], abs=1e-3)
        opacity = player.ask(
            f"p.map.brushes[1].context.getImageData({x} * p.map.ratio, {y} * p.map.ratio, 1, 1).data[3]"
        )
        assert opacity == 255
        assert player.ask(f"p.plan.id[p.map.nearest([{x}, {y}], 5)]") == 1
        player.ask("(p.pickNode(-1), p.paint())")
        player.click_node(1)
        player.wait("p.selection.node >= 0")
        assert player.text(".wb-page-node h3") == "Node 1"


def test_a_link_that_has_vanished_is_not_painted(player):
    middle = "[(p.map.px[2] + p.map.px[3]) / 2, (p.map.py[2] + p.map.py[3]) / 2].map((one) => one * p.map.ratio)"
    painted = f"Math.max(...p.map.brushes[0].context.getImageData(...{middle}.map((one) => one - 2), 5, 5).data)"
    opacities = []
    for time_s in (19.5, 21, 31):
        player.jump(time_s)
        opacities.append(player.ask(painted))
    assert opacities[0] > 0 and opacities[1] == 0 and opacities[2] > 0
    assert player.ask(f"p.map.linkAt({middle}.map((one) => one / p.map.ratio))") >= 0


def test_a_node_is_absent_before_it_joins_and_marks_last_as_long_as_their_changes(player):
    labels = {}
    for time_s in (5, 11, 13, 17, 19, 21, 31):
        player.jump(time_s)
        labels[time_s] = (
            player.ask("p.map.nodeLooks[[...p.plan.id].indexOf(5)].label") == "node that joins later",
            player.ask("p.map.nodeLooks[[...p.plan.id].indexOf(2)].label") == "crashed node",
            player.ask("p.map.shown.some(([layer, rows]) => layer.mark == 'area' && rows.length > 0)"),
            player.ask(
                "p.map.shown.filter(([layer]) => layer.name == 'partition')"
                ".flatMap(([layer, rows]) => rows.map((row) => p.plan.id[layer.table.node[row]]))"
            ),
        )
    assert labels == {
        5: (True, False, False, []),
        11: (True, True, False, []),
        13: (False, True, False, []),
        17: (False, False, True, []),
        19: (False, False, False, []),
        21: (False, False, False, [3, 4]),
        31: (False, False, False, []),
    }


def test_tooltips_name_waypoints_and_jammers_and_the_inspector_states_the_history(player):
    player.jump(17)
    waypoint, jammer = (player.ask(f"p.map.changeAt(p.map.toPx({x}, {y}))") for x, y in ((10, 20), (30, 5)))
    assert (waypoint, jammer) == ("node 1 at 20.0 s", "jammer at (30, 5) m, reaches 6 m")
    player.ask("(p.pickNode([...p.plan.id].indexOf(2)), p.paint())")
    assert "crashed at 10 s, started again at 15 s (boot 1)" in player.text(".wb-page-node")


def test_tracks_are_switched_by_their_button(player):
    player.jump(5)
    ahead = (
        "(([x, y]) => Math.max(...p.map.brushes[1].context"
        ".getImageData((x - 2) * p.map.ratio, (y - 6) * p.map.ratio, 5, 13).data))"
    )
    seen = []
    for _ in range(2):
        seen.append(player.ask(f"{ahead}(p.map.toPx(10, 35))"))
        player.press("tracks")
        player.ask("p.paint()")
    assert seen[0] > 0 and seen[1] == 0


def test_the_view_remains_while_nodes_move_and_the_run_is_shown_again(player, run):
    player.jump(25)
    player.ask("(p.map.zoom(2), p.paint())")
    before = player.ask("[p.map.px_m, p.map.left, p.map.top]")
    player.jump(35)
    assert player.ask("[p.map.px_m, p.map.left, p.map.top]") == before
    view = see(run)
    for payload in (preview(view, 35.0), pack(view)):
        text = base64.b64encode(payload).decode()
        player.ask(f"p.feed(Uint8Array.from(atob('{text}'), (sign) => sign.charCodeAt(0)).buffer)")
        y = player.ask("p.plan.y[[...p.plan.id].indexOf(1)]")
        assert (player.ask("[p.map.px_m, p.map.left, p.map.top]"), y) == (before, pytest.approx(35))
    player.ask("(p.map.reset(), p.paint())")


def test_the_timeline_paints_bars_for_changes(player):
    player.ask("(p.timeline.isStill = false, p.paint())")
    x, y, faint = player.ask("[p.timeline.at(25), 3, p.timeline.at(35)]")
    alpha = "p.timeline.brushes[0].context.getImageData({} * p.timeline.ratio, 3 * p.timeline.ratio, 1, 1).data[3]"
    assert y == 3 and player.ask(alpha.format(x + 3)) > 150 and player.ask(alpha.format(faint + 3)) < 60


def test_random_tracks_are_drawn_near_the_present_only(player):
    pieces = player.ask(
        "(() => { const tracks = p.plan.tracks; const before = tracks.window; tracks.window = 10 / p.picture.tick_s;"
        " p.jump(20); p.paint(); const found = p.map.trackOf([...p.plan.id].indexOf(1));"
        " tracks.window = before; return found.map((part) => part.map(([tick]) => tick * p.picture.tick_s)) })()"
    )
    assert pieces == [pytest.approx([10, 20]), pytest.approx([20, 30])]
    assert np.isclose(player.ask("p.time"), 20)
