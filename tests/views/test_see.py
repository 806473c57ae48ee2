"""The view of a run (`see`), compared with a replay of its trace row by row."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.families import examples
from tests.views import replay_by_rows
from tests.views.replay_by_rows import Replay, Span
from tests.views.traces import trace_of
from workbench.protocols.coded_diffusion.views import layers as of_coded_diffusion
from workbench.protocols.diffusion.views import layers as of_diffusion
from workbench.protocols.diffusion.views.known import cached_interests, gradients
from workbench.sim.rows import Columns
from workbench.views import frames, nodes, paths
from workbench.views.layers import COLUMNS
from workbench.views.seeing import see

SECOND = 1_000_000


def rows_of(table, *names):
    """Return the rows of a table as a multiset of tuples."""
    return Counter(zip(*[np.asarray(table[name]).tolist() for name in names], strict=True))


def words_of(columns, words, *names):
    """Return the rows as a multiset of tuples that end with the words of column `text`."""
    texts = [words[code] for code in columns["text"].tolist()]
    return Counter(zip(*[columns[name].tolist() for name in names], texts, strict=True))


def spans_of(spans, *names):
    return Counter(tuple(getattr(span, name) for name in names) for span in spans)


TIMES = ("from_us", "until_us")


def assert_diffusion_equals_the_replay(columns, duration_us):
    """Check that gradients, their use and black lists equal those of a replay, and that no interval is empty."""
    spans = Replay(duration_us).run(columns)
    for intervals in (cached_interests(columns, duration_us)[0], gradients(columns, duration_us)):
        assert (intervals["from_us"] < intervals["until_us"]).all() and (intervals["until_us"] <= duration_us).all()
    fields = zip(*[intervals[name].tolist() for name in ("node", "peer", "origin", "sequence", *TIMES)], strict=True)
    shown = [Span(*place, "", 0, "") for place in fields]
    expected = [(*span[:6], weight) for span, weight in replay_by_rows.weighed(shown, columns)]
    weighed = of_diffusion.split_by_use(intervals, columns)
    assert rows_of(weighed, "node", "peer", "origin", "sequence", *TIMES, "weight") == Counter(expected)
    names = ("node", "peer", "origin", *TIMES)
    assert rows_of(of_diffusion.data_gradients(columns, duration_us), *names) == spans_of(
        spans["data_gradient"], *names
    )
    names = ("node", "peer", *TIMES)
    assert rows_of(of_diffusion.black_lists(columns, duration_us), *names) == spans_of(spans["blacklisted"], *names)


def assert_roles_equal_the_replay(columns, duration_us):
    spans = Replay(duration_us).run(columns)
    subscriptions, wants = nodes.subscribed(columns, duration_us)
    names = ("node", "sequence", "value", *TIMES)
    assert words_of(subscriptions, wants, *names) == spans_of(spans["subscription"], *names, "text")
    assert rows_of(nodes.failing(columns, duration_us), "node", *TIMES) == spans_of(spans["failed"], "node", *TIMES)
    holding = nodes.holding(columns, duration_us)
    assert rows_of(holding, "node", "origin", *TIMES) == Counter(replay_by_rows.holders(columns, duration_us))


def assert_ranks_equal_the_replay(run, columns, duration_us):
    layers = of_coded_diffusion.decoding_layers(SimpleNamespace(run=run, columns=columns, duration_us=duration_us))
    spans = replay_by_rows.decoding_spans(columns, duration_us)
    assert bool(layers) == bool(spans)
    for layer in (part.whole() for part in layers):
        fields = [
            columns[name][columns.where(event="originated")].tolist() for name in ("origin", "sequence", "time_us")
        ]
        originated = list(zip(*fields, strict=True))
        sizes = replay_by_rows.generation_sizes(columns)
        expected = Counter()
        for span in spans:
            later = [(s, t) for o, s, t in originated if o == span.origin and s > span.sequence]
            newest_us = min(later)[1] if later else duration_us
            weight = np.float32(span.value / sizes[span.origin, span.sequence])
            for look, start, until in (
                (0, span.from_us, min(span.until_us, newest_us)),
                (1, max(span.from_us, newest_us), span.until_us),
            ):
                if start < until:
                    expected[*span[:4], span.value, look, start, until, weight, span.text] += 1
        names = ("node", "peer", "origin", "sequence", "value", "look", *TIMES, "weight")
        assert words_of(layer.table, layer.words, *names) == expected


# States, compared with a replay

SEVERAL = st.integers(0, 2)
STATE_ROWS = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["gradient_set", "gradient_set", "head_set", "gradient_removed"]),
            st.fixed_dictionaries(
                {
                    "peer": SEVERAL,
                    "origin": st.integers(8, 9),
                    "sequence": SEVERAL,
                    "value": st.integers(0, 400),
                    "detail": st.sampled_from(["interest", "reinforcement", "expired"]),
                }
            ),
        ),
        st.tuples(
            st.just("interest_cached"),
            st.fixed_dictionaries({"origin": SEVERAL, "sequence": SEVERAL, "detail": st.sampled_from("ABC")}),
        ),
        st.tuples(
            st.just("interest_removed"),
            st.fixed_dictionaries(
                {
                    "origin": st.integers(-1, 2),
                    "sequence": SEVERAL,
                    "detail": st.sampled_from(["expired", "evicted", "cancelled"]),
                }
            ),
        ),
        st.tuples(
            st.sampled_from(["blacklisted", "data_gradient_set"]),
            st.fixed_dictionaries({"peer": SEVERAL, "origin": SEVERAL, "value": st.integers(0, 1)}),
        ),
        st.tuples(st.just("sent"), st.fixed_dictionaries({"message": st.just("data"), "peer": st.integers(-1, 2)})),
    ),
    max_size=60,
)


def of_states(rows, step_us):
    return Columns(trace_of(*[(step_us * i, i % 7 % 2, event, more) for i, (event, more) in enumerate(rows)]))


@pytest.mark.hypothesis
@pytest.mark.parametrize("step_us", [10, 0])
def test_states_of_nodes_equal_a_replay_row_by_row(step_us):
    @settings(max_examples=examples(150))
    @given(STATE_ROWS)
    def check_rows(rows):
        assert_diffusion_equals_the_replay(of_states(rows, step_us), 350)

    check_rows()


ROLE_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["subscribed", "unsubscribed", "failed", "recovered", "held", "originated", "published"]),
        st.fixed_dictionaries({"origin": SEVERAL, "sequence": SEVERAL, "value": st.integers(-1, 600)}),
    ),
    max_size=40,
)


@given(ROLE_ROWS)
def test_roles_of_nodes_equal_a_replay_row_by_row(rows):
    trace = trace_of(*[(10 * i, i % 4, event, more) for i, (event, more) in enumerate(rows)])
    assert_roles_equal_the_replay(Columns(trace), 350)


RANK_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["innovative", "innovative", "held", "dropped", "originated", "decoded"]),
        st.integers(0, 1),
        st.integers(0, 1),
    ),
    max_size=40,
)


@given(RANK_ROWS)
def test_ranks_and_pivots_equal_a_replay_row_by_row(rows):
    ranks, trace_rows = {}, []
    for i, (event, node, sequence) in enumerate(rows):
        fields = {"origin": 9, "sequence": sequence, "peer": i % 3}
        if event == "innovative":
            rank = ranks[node, sequence] = ranks.get((node, sequence), 0) % 5 + 1
            if rank == 1:  # A matrix starts with a row that contains its size.
                trace_rows.append((10 * i, node, "generation_begun", {**fields, "value": 5}))
            fields |= {"value": rank, "detail": str((3 * rank + sequence) % 5)}
        elif event in ("held", "dropped"):
            ranks.pop((node, sequence), None)
            fields |= {"detail": "expired"} if event == "dropped" else {}
        elif event == "decoded":
            fields |= {"value": 5 + sequence}
        trace_rows.append((10 * i, node, event, fields))
    assert_ranks_equal_the_replay(None, Columns(trace_of(*trace_rows)), 350)


# Runs, compared with a replay

TEMPERATURES = [
    wb.subscribe(at=1, what="TEMP GE 25", expires_s=25),
    wb.subscribe(at=1, what="TEMP GE 20", start_s=4, stop_s=18),
    wb.subscribe(at=33, what="TEMP GE 25", start_s=2),
    wb.subscribe(at=50, what="TEMP GE 10", start_s=8),
    wb.publish(at=60, what="TEMP IS 26.5", every_s=1),
    wb.publish(at=20, what="TEMP IS 27", every_s=3, stop_s=30),
    wb.outage(at=[22, 31, 40], start_s=9, stop_s=20),
    wb.outage(at=12, start_s=15),
]
FAST = {"refresh_s": 3, "gradient_lifetime_s": 8, "max_interests": 2, "max_gradients": 3, "blacklist_loss": 0.6}
PROTOCOLS = {
    "diffusion": wb.Diffusion(),
    "diffusion that forgets": wb.Diffusion(**FAST),
    "diffusion with filters": wb.Diffusion(filters=(wb.Filter("rate_limit", at="all", match="TEMP EQ_ANY"),)),
    "coded diffusion": wb.CodedDiffusion(generation_size=3, bootstrap_factor=4),
    "flooding": wb.Flooding(),
    "gossip": wb.Gossip(),
    "TinyMQ": wb.TinyMQ(),
    "DPS": wb.DPS(),
}


@pytest.fixture(scope="module", params=PROTOCOLS)
def run(request):
    """Return a run in the office: lossy links, collisions, several sinks, outages."""
    return wb.Scenario(
        topology=wb.topology.office(),
        protocol=PROTOCOLS[request.param],
        workload=TEMPERATURES,
        radio=wb.Radio(loss="links", collisions=True),
        duration_s=40,
        seed=7,
    ).run(engine="reference")


def test_the_view_of_a_run_equals_a_replay_row_by_row(run):
    columns, duration_us = Columns(run.trace), 40 * SECOND
    assert_roles_equal_the_replay(columns, duration_us)
    assert_diffusion_equals_the_replay(columns, duration_us)
    assert_ranks_equal_the_replay(run, columns, duration_us)


def test_rows_of_layers_have_valid_columns_and_end_within_the_run(run):
    view = see(run)
    for layer in view.layers:
        assert set(layer.table) <= set(COLUMNS), layer.name
        for name, column in layer.table.items():
            assert column.dtype == COLUMNS[name][0], (layer.name, name)
        start, until = layer.table["from_us"], layer.table["until_us"]
        assert (start < until).all(), layer.name
        assert (until <= view.duration_us).all(), layer.name
        assert (np.diff(start) >= 0).all(), layer.name
        assert layer.column("look").max(initial=0) < max(len(layer.looks), 1), layer.name
        assert layer.column("text").max(initial=-1) < max(len(layer.words), 1), layer.name
        assert layer.column("path").max(initial=-1) < max(len(view.paths.paths), 1), layer.name


# Frames, losses, deliveries


def sent_frame(message, peer=-1, airtime=1000, **more):
    return {"message": message, "peer": peer, "value": airtime, "size_B": 20, **more}


class Whispering(wb.Flooding):
    """Flooding that declares acknowledgements as quiet messages; no node sends any."""

    quiet_messages = ("ack",)


def seen_of(*rows, protocol=None, event=None, nodes=4):
    """Return the view of a run of one second with a trace of these rows, on a line of nodes."""
    scenario = wb.Scenario(
        topology=wb.topology.line(nodes), protocol=protocol or wb.Flooding(), workload=[], duration_s=1
    )
    return see(SimpleNamespace(scenario=scenario, kinds={}, trace=trace_of(*rows)), event)


def shown(layer, *names):
    """Return the rows of a layer, each with the label of its look."""
    labels = [layer.looks[look].label for look in layer.column("look").tolist()]
    return list(zip(labels, *[layer.column(name).tolist() for name in names], strict=True))


def fates(layer):
    return [layer.words[code] if code >= 0 else None for code in layer.column("text").tolist()]


def test_each_frame_is_a_row_from_the_start_of_its_airtime_with_its_outcome():
    frames_seen = seen_of(
        (5000, 0, "sent", sent_frame("flood", origin=7, sequence=3)),
        (5000, 1, "received", {"peer": 0, "message": "flood"}),
        (5000, 2, "lost", {"peer": 0, "message": "flood", "detail": "link"}),
        (9000, 2, "sent", sent_frame("flood", peer=1)),
        (9000, 1, "lost", {"peer": 2, "message": "flood", "detail": "collision"}),
        (12000, 2, "sent", sent_frame("flood", peer=1)),
        (12000, 1, "received", {"peer": 2, "message": "flood"}),
        (15000, 2, "sent", sent_frame("ack", peer=1)),
        protocol=Whispering(),
    ).layer("frames")
    names = ("node", "peer", "from_us", "value", "size", "row")
    assert shown(frames_seen, *names) == [
        ("flood", 0, -1, 4000, 5000, 20, 0),
        ("flood", 2, 1, 8000, 9000, 20, 3),
        ("flood", 2, 1, 11000, 12000, 20, 5),
        ("ack", 2, 1, 14000, 15000, 20, 7),
    ]
    assert fates(frames_seen) == ["heard by 1 of 2", "lost: collision", "received", None]
    assert frames_seen.column("weight").tolist() == pytest.approx([1, frames.LOST_AT, 1, 1])
    looks = [frames_seen.looks[look] for look in frames_seen.column("look").tolist()]
    assert [(look.mark, look.chip) for look in looks] == [
        ("wave", "broadcasts"),
        ("packet", "packets"),
        ("packet", "packets"),
        ("packet", "quiet messages"),
    ]
    assert looks[3].alpha < looks[2].alpha


def test_a_loss_begins_at_the_end_of_its_drawn_frame():
    view = seen_of(
        (5000, 2, "sent", sent_frame("flood", peer=1)),
        (5000, 1, "lost", {"peer": 2, "message": "flood", "detail": "collision"}),
        (12000, 0, "sent", sent_frame("flood")),
        (12000, 1, "received", {"peer": 0, "message": "flood"}),
        (12000, 2, "lost", {"peer": 0, "message": "flood", "detail": "link"}),
    )
    losses, sent_ones = view.layer("losses"), view.layer("frames")
    assert shown(losses, "node", "peer", "weight", "row") == [("lost", 1, 2, 1.0, 1), ("lost", 2, 0, 0.0, 4)]
    assert losses.table["from_us"].tolist() == sent_ones.table["until_us"].tolist()
    assert fates(losses) == ["collision", "link"]


def test_a_delivery_is_visible_for_a_moment_of_playback_at_its_node():
    view = seen_of(
        (5000, 2, "sent", sent_frame("flood")),
        (5000, 1, "delivered", {"peer": 2, "origin": 2, "sequence": 3, "value": 9}),
    )
    deliveries = view.layer("deliveries")
    assert shown(deliveries, "node", "origin", "sequence", "value", "from_us") == [("delivered", 1, 2, 3, 9, 5000)]
    moment = view.clock.at(deliveries.table["until_us"]) - view.clock.at(deliveries.table["from_us"])
    assert 0 < moment[0] < 1


def test_of_too_many_frames_quiet_messages_are_omitted_first_with_a_note(monkeypatch):
    monkeypatch.setattr(frames, "MOST", 60)
    rows = [(1000 * i + 1000, 0, "sent", sent_frame("flood" if i % 5 == 0 else "ack", airtime=100)) for i in range(200)]
    view = seen_of(*rows, protocol=Whispering())
    drawn = Counter(row[0] for row in shown(view.layer("frames")))
    assert drawn["flood"] == 40
    assert 10 <= drawn["ack"] <= 20
    assert f"Of 200 frames {drawn.total()} are drawn; all of them are counted." in view.notes


def test_the_view_of_an_event_has_only_its_frames():
    event = {"message": "flood", "origin": 0}
    rows = [
        (1000, 0, "published"),
        (1000, 0, "originated", {**event, "sequence": 0}),
        (5000, 0, "sent", sent_frame("flood", origin=0, sequence=0)),
        (6000, 0, "originated", {**event, "sequence": 1}),
        (9000, 0, "sent", sent_frame("flood", origin=0, sequence=1)),
        (9500, 3, "failed"),
    ]
    view = seen_of(*rows, event=(0, 1))
    assert shown(view.layer("frames"), "sequence", "row") == [("flood", 1, 4)]
    assert [row[0] for row in shown(view.layer("nodes"))] == ["source", "failed node"]
    with pytest.raises(wb.ParameterError, match="the argument `event` is .*, which this run does not have"):
        seen_of(*rows, event=(0, 2))


def test_an_empty_run_has_layers_without_rows():
    view = seen_of()
    assert not any(len(layer) for layer in view.layers)
    assert (view.paths.paths, view.notes) == ((), ())


def test_a_table_that_is_not_a_trace_is_refused():
    scenario = wb.Scenario(topology=wb.topology.line(2), protocol=wb.Flooding(), workload=[], duration_s=1)
    with pytest.raises(wb.DataError, match="no column 'event'"):
        see(SimpleNamespace(scenario=scenario, kinds={}, trace=trace_of().drop_columns(["event"])))


# MessagePaths


def test_the_path_of_a_publication_has_its_hops_deliveries_and_ends():
    flood = {"message": "flood", "origin": 0, "sequence": 5}
    view = seen_of(
        (1000, 0, "originated", {**flood, "value": 1}),
        (2000, 0, "sent", sent_frame("flood", origin=0, sequence=5)),
        (2000, 1, "held", {**flood, "peer": 0}),
        (2000, 1, "received", {**flood, "peer": 0}),
        (3000, 1, "sent", sent_frame("flood", peer=2, origin=0, sequence=5)),
        (3000, 2, "received", {**flood, "peer": 1}),
        (3000, 2, "held", {**flood, "peer": 1}),
        (3000, 2, "delivered", {**flood, "peer": 1}),
        (4000, 1, "dropped", {**flood, "peer": 2, "detail": "duplicate"}),
        (5000, 3, "dropped", {**flood, "peer": 2, "detail": "ttl"}),
        (6000, 3, "dropped", {**flood, "peer": 2, "detail": "ttl"}),
        (7000, 1, "sent", sent_frame("hello", origin=0, sequence=5)),
    )
    (path,) = view.paths.paths
    assert (path.from_us, path.frames, view.paths.is_newest) == (1000, ((0, 5, "flood"),), False)
    layer = view.layer("message path")
    assert layer.of_path
    assert shown(layer, "node", "peer", "from_us", "path") == [
        ("message path", 0, 1, 2000, 0),
        ("message path", 1, 2, 3000, 0),
        ("delivered", 2, 1, 3000, 0),
        ("dropped", 3, 2, 5000, 0),
    ]
    assert set(layer.table["until_us"].tolist()) == {view.duration_us}
    assert fates(layer)[3] == "ttl"
    assert view.layer("frames").column("path").tolist() == [0, 0, -1]


def test_of_too_many_publications_only_the_first_can_be_followed_with_a_note(monkeypatch):
    monkeypatch.setattr(paths, "MOST_ROWS", 25)
    rows = []
    for number in range(10):
        flood = {"message": "flood", "origin": 0, "sequence": number}
        rows.append((10 * number, 0, "originated", flood))
        rows += [(10 * number + hop, hop, "held", {**flood, "peer": hop - 1}) for hop in range(1, 10)]
    view = seen_of(*rows, nodes=10)
    assert [path.frames[0][1] for path in view.paths.paths] == [0, 1]
    assert len(view.layer("message path")) == 18
    assert "Of 10 publications the first 2 can be followed." in view.notes


# Filters


def test_the_results_of_filters_are_counted_per_node():
    scenario = wb.Scenario(
        topology=wb.topology.line(4),
        protocol=wb.Diffusion(filters=(wb.Filter("rate_limit", key=210, at="all", match="TEMP EQ_ANY"),)),
        workload=[],
        duration_s=1,
    )
    did = {"message": "data", "value": 210, "detail": "drop"}
    rows = [(10, 1, "filtered", did), (20, 2, "filtered", did), (40, 1, "filtered", did)]
    layer = see(SimpleNamespace(scenario=scenario, kinds={}, trace=trace_of(*rows))).layer("filters")
    names = ("node", "value", *TIMES)
    end = SECOND
    assert words_of(layer.table, layer.words, *names) == Counter(
        [
            (1, 1, 10, 40, "rate_limit: drop"),
            (1, 2, 40, end, "rate_limit: drop"),
            (2, 1, 20, end, "rate_limit: drop"),
        ]
    )


def test_nodes_with_individual_filters_are_marked():
    def marked(at):
        protocol = wb.Diffusion(filters=[wb.Filter("suppress_unchanged", match="TEMP GE 0", at=at)])
        workload = [wb.subscribe(0, "TEMP GE 1"), wb.publish(8, "TEMP IS 5", every_s=2)]
        view = see(wb.Scenario(wb.topology.grid(3, 3), protocol, workload, duration_s=5).run(engine="reference"))
        return [layer.table["node"].tolist() for layer in view.layers if layer.name == "filters" and layer.mark]

    assert marked([4, 5]) == [[4, 5]]
    assert marked(None) == []  # all nodes have it
