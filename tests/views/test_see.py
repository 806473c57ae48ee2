"""What there is to see of a run, beside a replay of its trace row after row."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.views import replay_by_rows
from tests.views.replay_by_rows import Replay
from tests.views.traces import trace_of
from workbench.protocols.coded_diffusion.views import layers as of_coded_diffusion
from workbench.protocols.diffusion.views import layers as of_diffusion
from workbench.protocols.diffusion.views import replay
from workbench.views import nodes
from workbench.views.layers import COLUMNS
from workbench.views.player.columns import Columns
from workbench.views.see import see

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
PLACE = ("node", "peer", "origin", "sequence", "value", *TIMES)


def assert_diffusion_is_that_of_the_rows(columns, duration_us):
    """Caches, gradients, black lists: the arrays' intervals are the replay's."""
    spans = Replay(duration_us).run(columns)
    interests, words = replay.cached(columns, duration_us)
    names = ("node", "origin", "sequence", "value", *TIMES)
    assert words_of(interests, words, *names) == spans_of(spans["interest"], *names, "text")
    found = replay.gradients(columns, duration_us)
    looks = np.where(found["look"] == replay.RESERVE, "reserve", "head")
    assert rows_of({**found, "shown": looks}, *PLACE, "shown") == spans_of(spans["gradient"], *PLACE, "look")
    path = {name: column[found["look"] == replay.REINFORCED] for name, column in found.items()}
    assert rows_of(path, *PLACE) == spans_of(spans["reinforced"], *PLACE)
    weighed = of_diffusion.by_use(found, columns)
    expected = [(*span[:4], *span[4:6], weight) for span, weight in replay_by_rows.weighed(spans["gradient"], columns)]
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
    layers = of_coded_diffusion.layers(SimpleNamespace(run=run, columns=columns, duration_us=duration_us))
    spans = replay_by_rows.decoding_spans(columns, duration_us)
    assert bool(layers) == bool(spans)
    for layer in layers:
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
            st.sampled_from(["gradient_set", "gradient_set", "gradient_set", "gradient_removed"]),
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


@pytest.mark.parametrize("most_in_python", [replay.MOST_IN_PYTHON, 0], ids=["Python", "machine code"])
@pytest.mark.parametrize("step_us", [10, 0])
def test_what_nodes_know_is_what_a_replay_row_by_row_knows(most_in_python, step_us, monkeypatch):
    monkeypatch.setattr(replay, "MOST_IN_PYTHON", most_in_python)

    @settings(max_examples=150)
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
        assert layer.column("way").max(initial=-1) < max(len(seen.ways.ways), 1), layer.name
