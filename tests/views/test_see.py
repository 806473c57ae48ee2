"""What there is to see of a run, beside a replay of its trace row after row."""

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
    """The rows of a table as a multiset of tuples."""
    return Counter(zip(*[np.asarray(table[name]).tolist() for name in names], strict=True))


def words_of(some, words, *names):
    """The same, with the words of ``text`` at the end."""
    told = [words[code] for code in some["text"].tolist()]
    return Counter(zip(*[some[name].tolist() for name in names], told, strict=True))


def spans_of(spans, *names):
    return Counter(tuple(getattr(span, name) for name in names) for span in spans)


TIMES = ("from_us", "until_us")


def assert_diffusion_is_that_of_the_rows(columns, duration_us):
    """Use of gradients, black lists: the arrays' intervals are the replay's. Whatever the rows, all intervals last."""
    spans = Replay(duration_us).run(columns)
    for found in (cached_interests(columns, duration_us)[0], gradients(columns, duration_us)):
        assert (found["from_us"] < found["until_us"]).all() and (found["until_us"] <= duration_us).all()
    places = zip(*[found[name].tolist() for name in ("node", "peer", "origin", "sequence", *TIMES)], strict=True)
    shown = [Span(*place, "", 0, "") for place in places]
    expected = [(*span[:6], weight) for span, weight in replay_by_rows.weighed(shown, columns)]
    weighed = of_diffusion.split_by_use(found, columns)
    assert rows_of(weighed, "node", "peer", "origin", "sequence", *TIMES, "weight") == Counter(expected)
    names = ("node", "peer", "origin", *TIMES)
    assert rows_of(of_diffusion.data_gradients(columns, duration_us), *names) == spans_of(
        spans["data_gradient"], *names
    )
    names = ("node", "peer", *TIMES)
    assert rows_of(of_diffusion.black_lists(columns, duration_us), *names) == spans_of(spans["blacklisted"], *names)


def assert_roles_are_those_of_the_rows(columns, duration_us):
    spans = Replay(duration_us).run(columns)
    subscriptions, wants = nodes.subscribed(columns, duration_us)
    names = ("node", "sequence", "value", *TIMES)
    assert words_of(subscriptions, wants, *names) == spans_of(spans["subscription"], *names, "text")
    assert rows_of(nodes.failing(columns, duration_us), "node", *TIMES) == spans_of(spans["failed"], "node", *TIMES)
    holding = nodes.holding(columns, duration_us)
    assert rows_of(holding, "node", "origin", *TIMES) == Counter(replay_by_rows.holders(columns, duration_us))


def assert_ranks_are_those_of_the_rows(run, columns, duration_us):
    layers = of_coded_diffusion.decoding_layers(SimpleNamespace(run=run, columns=columns, duration_us=duration_us))
    spans = replay_by_rows.decoding_spans(columns, duration_us)
    assert bool(layers) == bool(spans)
    for layer in (one.whole() for one in layers):
        told = [columns[name][columns.where(event="originated")].tolist() for name in ("origin", "sequence", "time_us")]
        made = list(zip(*told, strict=True))
        sizes = replay_by_rows.generation_sizes(columns)
        expected = Counter()
        for span in spans:
            later = [(s, t) for o, s, t in made if o == span.origin and s > span.sequence]
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


# States, beside a replay

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
def test_what_nodes_know_is_what_a_replay_row_by_row_knows(step_us):
    @settings(max_examples=examples(150))
    @given(STATE_ROWS)
    def whatever_the_rows(rows):
        assert_diffusion_is_that_of_the_rows(of_states(rows, step_us), 350)

    whatever_the_rows()


ROLE_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["subscribed", "unsubscribed", "failed", "recovered", "held", "originated", "published"]),
        st.fixed_dictionaries({"origin": SEVERAL, "sequence": SEVERAL, "value": st.integers(-1, 600)}),
    ),
    max_size=40,
)


@given(ROLE_ROWS)
def test_roles_of_nodes_are_those_of_a_replay_row_by_row(rows):
    trace = trace_of(*[(10 * i, i % 4, event, more) for i, (event, more) in enumerate(rows)])
    assert_roles_are_those_of_the_rows(Columns(trace), 350)


RANK_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["innovative", "innovative", "held", "dropped", "originated", "decoded"]),
        st.integers(0, 1),
        st.integers(0, 1),
    ),
    max_size=40,
)


@given(RANK_ROWS)
def test_ranks_and_pivots_are_those_of_a_replay_row_by_row(rows):
    ranks, told = {}, []
    for i, (event, node, sequence) in enumerate(rows):
        more = {"origin": 9, "sequence": sequence, "peer": i % 3}
        if event == "innovative":
            rank = ranks[node, sequence] = ranks.get((node, sequence), 0) % 5 + 1
            if rank == 1:  # A matrix begins with a row that has its size.
                told.append((10 * i, node, "generation_begun", {**more, "value": 5}))
            more |= {"value": rank, "detail": str((3 * rank + sequence) % 5)}
        elif event in ("held", "dropped"):
            ranks.pop((node, sequence), None)
            more |= {"detail": "expired"} if event == "dropped" else {}
        elif event == "decoded":
            more |= {"value": 5 + sequence}
        told.append((10 * i, node, event, more))
    assert_ranks_are_those_of_the_rows(None, Columns(trace_of(*told)), 350)


# Runs, beside a replay

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
    """A run in the office: lossy links, collisions, several sinks, outages."""
    return wb.Scenario(
        topology=wb.topology.office(),
        protocol=PROTOCOLS[request.param],
        workload=TEMPERATURES,
        radio=wb.Radio(loss="links", collisions=True),
        duration_s=40,
        seed=7,
    ).run(engine="reference")


def test_what_is_seen_of_a_run_is_what_a_replay_row_by_row_finds(run):
    columns, duration_us = Columns(run.trace), 40 * SECOND
    assert_roles_are_those_of_the_rows(columns, duration_us)
    assert_diffusion_is_that_of_the_rows(columns, duration_us)
    assert_ranks_are_those_of_the_rows(run, columns, duration_us)


def test_each_row_of_each_layer_is_one_of_its_columns_and_lasts_within_the_run(run):
    seen = see(run)
    for layer in seen.layers:
        assert set(layer.table) <= set(COLUMNS), layer.name
        for name, column in layer.table.items():
            assert column.dtype == COLUMNS[name][0], (layer.name, name)
        start, until = layer.table["from_us"], layer.table["until_us"]
        assert (start < until).all(), layer.name
        assert (until <= seen.duration_us).all(), layer.name
        assert (np.diff(start) >= 0).all(), layer.name
        assert layer.column("look").max(initial=0) < max(len(layer.looks), 1), layer.name
        assert layer.column("text").max(initial=-1) < max(len(layer.words), 1), layer.name
        assert layer.column("path").max(initial=-1) < max(len(seen.paths.paths), 1), layer.name


# Frames, losses, deliveries


def sent(message, peer=-1, airtime=1000, **more):
    return {"message": message, "peer": peer, "value": airtime, "size_B": 20, **more}


class Whispering(wb.Flooding):
    """Flooding, with acknowledgements that nobody sends."""

    quiet_messages = ("ack",)


def seen_of(*rows, protocol=None, event=None, nodes=4):
    """What is seen of a run of one second with a trace of these rows, on a line of nodes."""
    scenario = wb.Scenario(
        topology=wb.topology.line(nodes), protocol=protocol or wb.Flooding(), workload=[], duration_s=1
    )
    return see(SimpleNamespace(scenario=scenario, kinds={}, trace=trace_of(*rows)), event)


def shown(layer, *names):
    """The rows of a layer, each with what its look says."""
    said = [layer.looks[look].label for look in layer.column("look").tolist()]
    return list(zip(said, *[layer.column(name).tolist() for name in names], strict=True))


def fates(layer):
    return [layer.words[code] if code >= 0 else None for code in layer.column("text").tolist()]


def test_each_frame_is_a_row_from_the_start_of_its_airtime_and_says_what_became_of_it():
    frames_seen = seen_of(
        (5000, 0, "sent", sent("flood", origin=7, sequence=3)),
        (5000, 1, "received", {"peer": 0, "message": "flood"}),
        (5000, 2, "lost", {"peer": 0, "message": "flood", "detail": "link"}),
        (9000, 2, "sent", sent("flood", peer=1)),
        (9000, 1, "lost", {"peer": 2, "message": "flood", "detail": "collision"}),
        (12000, 2, "sent", sent("flood", peer=1)),
        (12000, 1, "received", {"peer": 2, "message": "flood"}),
        (15000, 2, "sent", sent("ack", peer=1)),
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


def test_a_loss_begins_where_the_picture_of_its_frame_ends():
    seen = seen_of(
        (5000, 2, "sent", sent("flood", peer=1)),
        (5000, 1, "lost", {"peer": 2, "message": "flood", "detail": "collision"}),
        (12000, 0, "sent", sent("flood")),
        (12000, 1, "received", {"peer": 0, "message": "flood"}),
        (12000, 2, "lost", {"peer": 0, "message": "flood", "detail": "link"}),
    )
    losses, sent_ones = seen.layer("losses"), seen.layer("frames")
    assert shown(losses, "node", "peer", "weight", "row") == [("lost", 1, 2, 1.0, 1), ("lost", 2, 0, 0.0, 4)]
    assert losses.table["from_us"].tolist() == sent_ones.table["until_us"].tolist()
    assert fates(losses) == ["collision", "link"]


def test_a_delivery_is_seen_for_a_moment_of_film_at_the_node_that_got_it():
    seen = seen_of(
        (5000, 2, "sent", sent("flood")), (5000, 1, "delivered", {"peer": 2, "origin": 2, "sequence": 3, "value": 9})
    )
    deliveries = seen.layer("deliveries")
    assert shown(deliveries, "node", "origin", "sequence", "value", "from_us") == [("delivered", 1, 2, 3, 9, 5000)]
    moment = seen.clock.at(deliveries.table["until_us"]) - seen.clock.at(deliveries.table["from_us"])
    assert 0 < moment[0] < 1


def test_of_too_many_frames_those_of_quiet_messages_go_first_and_a_sentence_says_so(monkeypatch):
    monkeypatch.setattr(frames, "MOST", 60)
    rows = [(1000 * i + 1000, 0, "sent", sent("flood" if i % 5 == 0 else "ack", airtime=100)) for i in range(200)]
    seen = seen_of(*rows, protocol=Whispering())
    drawn = Counter(row[0] for row in shown(seen.layer("frames")))
    assert drawn["flood"] == 40
    assert 10 <= drawn["ack"] <= 20
    assert f"Of 200 frames {drawn.total()} are drawn; all of them are counted." in seen.notes


def test_one_event_of_a_run_has_frames_of_its_own_and_those_of_none():
    made = {"message": "flood", "origin": 0}
    rows = [
        (1000, 0, "published"),
        (1000, 0, "originated", {**made, "sequence": 0}),
        (5000, 0, "sent", sent("flood", origin=0, sequence=0)),
        (6000, 0, "originated", {**made, "sequence": 1}),
        (9000, 0, "sent", sent("flood", origin=0, sequence=1)),
        (9500, 3, "failed"),
    ]
    seen = seen_of(*rows, event=(0, 1))
    assert shown(seen.layer("frames"), "sequence", "row") == [("flood", 1, 4)]
    assert [row[0] for row in shown(seen.layer("nodes"))] == ["source", "failed node"]
    with pytest.raises(wb.ParameterError, match="event is .*, which this run does not have"):
        seen_of(*rows, event=(0, 2))


def test_a_run_in_which_nothing_happens_has_layers_without_rows():
    seen = seen_of()
    assert not any(len(layer) for layer in seen.layers)
    assert (seen.paths.paths, seen.notes) == ((), ())


def test_a_table_that_is_no_trace_is_refused():
    scenario = wb.Scenario(topology=wb.topology.line(2), protocol=wb.Flooding(), workload=[], duration_s=1)
    with pytest.raises(wb.DataError, match="no column 'event'"):
        see(SimpleNamespace(scenario=scenario, kinds={}, trace=trace_of().drop_columns(["event"])))


# MessagePaths


def test_a_publication_goes_from_node_to_node_is_delivered_and_ends_where_it_was_not_known():
    flood = {"message": "flood", "origin": 0, "sequence": 5}
    seen = seen_of(
        (1000, 0, "originated", {**flood, "value": 1}),
        (2000, 0, "sent", sent("flood", origin=0, sequence=5)),
        (2000, 1, "held", {**flood, "peer": 0}),
        (2000, 1, "received", {**flood, "peer": 0}),
        (3000, 1, "sent", sent("flood", peer=2, origin=0, sequence=5)),
        (3000, 2, "received", {**flood, "peer": 1}),
        (3000, 2, "held", {**flood, "peer": 1}),
        (3000, 2, "delivered", {**flood, "peer": 1}),
        (4000, 1, "dropped", {**flood, "peer": 2, "detail": "duplicate"}),
        (5000, 3, "dropped", {**flood, "peer": 2, "detail": "ttl"}),
        (6000, 3, "dropped", {**flood, "peer": 2, "detail": "ttl"}),
        (7000, 1, "sent", sent("hello", origin=0, sequence=5)),
    )
    (way,) = seen.paths.paths
    assert (way.from_us, way.frames, seen.paths.is_newest) == (1000, ((0, 5, "flood"),), False)
    layer = seen.layer("message path")
    assert layer.of_path
    assert shown(layer, "node", "peer", "from_us", "path") == [
        ("message path", 0, 1, 2000, 0),
        ("message path", 1, 2, 3000, 0),
        ("delivered", 2, 1, 3000, 0),
        ("dropped", 3, 2, 5000, 0),
    ]
    assert set(layer.table["until_us"].tolist()) == {seen.duration_us}
    assert fates(layer)[3] == "ttl"
    assert seen.layer("frames").column("path").tolist() == [0, 0, -1]


def test_of_too_many_publications_the_first_can_be_followed_and_a_sentence_says_so(monkeypatch):
    monkeypatch.setattr(paths, "MOST_ROWS", 25)
    rows = []
    for number in range(10):
        flood = {"message": "flood", "origin": 0, "sequence": number}
        rows.append((10 * number, 0, "originated", flood))
        rows += [(10 * number + hop, hop, "held", {**flood, "peer": hop - 1}) for hop in range(1, 10)]
    seen = seen_of(*rows, nodes=10)
    assert [way.frames[0][1] for way in seen.paths.paths] == [0, 1]
    assert len(seen.layer("message path")) == 18
    assert "Of 10 publications the first 2 can be followed." in seen.notes


# Filters


def test_the_filters_of_a_node_are_counted_by_what_they_did():
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


def test_nodes_with_a_filter_of_their_own_are_marked():
    def marked(at):
        protocol = wb.Diffusion(filters=[wb.Filter("suppress_unchanged", match="TEMP GE 0", at=at)])
        workload = [wb.subscribe(0, "TEMP GE 1"), wb.publish(8, "TEMP IS 5", every_s=2)]
        seen = see(wb.Scenario(wb.topology.grid(3, 3), protocol, workload, duration_s=5).run(engine="reference"))
        return [layer.table["node"].tolist() for layer in seen.layers if layer.name == "filters" and layer.mark]

    assert marked([4, 5]) == [[4, 5]]
    assert marked(None) == []  # all nodes have it
