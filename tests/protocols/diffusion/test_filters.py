"""Filters: their input and order, the effects of their results, and each built-in filter."""

import pytest

from tests.neighbor import data, hear, interest, make_node, of, reasons, sent
from tests.network import SECOND, Network, taken
from workbench.attributes.keys import make, register_key
from workbench.attributes.model import IS, Attribute
from workbench.attributes.text import parse, to_text
from workbench.errors import AttributeFormatError, ParameterError
from workbench.protocols.diffusion import Diffusion
from workbench.protocols.diffusion.events import Filtered
from workbench.protocols.diffusion.filters import BUILT_IN, Filter, register_filter, registered_filters

LINE = [(0, 1), (1, 2), (2, 3)]


def add(number):
    """Return a filter function that adds a number to every integer value."""

    def plus(attributes):
        return [Attribute(key, operator, value + 100 * number) for key, operator, value in attributes]

    return plus


class CountTo:
    """A custom filter with a setting and a state: passes the first `most` messages."""

    def __init__(self, most=2):
        self.most = most
        self.count = 0

    def decide(self, attributes, origin, now):
        self.count += 1
        return attributes if self.count <= self.most else None


register_filter("plus_one", add(1))
register_filter("plus_ten", add(10))
register_filter("times_two", lambda attributes: [Attribute(k, o, 2 * v) for k, o, v in attributes])
register_filter("drop_everything", lambda attributes: None)
register_filter("pass_everything", lambda attributes: list(attributes))
register_filter("join", lambda blobs: b"+".join(blobs))
register_filter("count_to", CountTo)


def results_of(filter_, *readings, origin=1, every_s=1.0):
    """Return the texts of readings that pass a filter on one node in turn, or None for each dropped reading."""
    on_node = filter_.instance()
    texts = []
    for number, reading in enumerate(readings):
        answer, attributes = on_node.decide(parse(reading), origin, int(number * every_s * SECOND))
        texts.append(None if answer == "drop" else to_text(attributes))
    return texts


def temperatures(filter_, *values, **options):
    """Return the temperatures that pass a filter, or None for each dropped one."""
    texts = results_of(filter_, *[f"TEMP IS {value}" for value in values], **options)
    return [None if text is None else float(text.split()[2]) for text in texts]


# On a node


def on_relay(*filters, reading="TEMP IS 26", of_interest="TEMP GE 0"):
    """Return (forwarded attributes as text or None, events) of data that passes a node with these filters."""
    node = make_node(filters=filters)
    hear(node, interest(of_interest, hop=2))
    sent(node)
    events = hear(node, data(reading, hop=3))
    texts = [to_text(message.attributes) for _, message in sent(node)]
    return (texts[0] if texts else None), events


def test_passed_message_is_forwarded_unchanged_without_an_event():
    text, events = on_relay(Filter("pass_everything"))
    assert text == "TEMP IS 26"
    assert of(Filtered, events) == []


def test_replaced_message_is_forwarded_with_its_new_attributes():
    text, events = on_relay(Filter("plus_one", key=207))
    assert text == "TEMP IS 27"
    assert of(Filtered, events) == [Filtered(-1, "data", 8, 1, 207, "replace")]


def test_dropped_message_ends_at_the_node_with_a_reason():
    text, events = on_relay(Filter("drop_everything", key=250))
    assert text is None
    assert of(Filtered, events) == [Filtered(-1, "data", 8, 1, 250, "drop")]
    assert reasons(events) == ["filter"]


def test_filters_are_called_in_ascending_order_of_keys_also_after_a_replacement():
    text, events = on_relay(Filter("times_two", key=230), Filter("plus_one", key=210), Filter("plus_ten", key=220))
    assert text == f"TEMP IS {2 * (26 + 1 + 10)}"
    assert [event.value for event in of(Filtered, events)] == [210, 220, 230]


def test_filters_after_one_that_drops_are_not_called():
    _, events = on_relay(Filter("plus_one", key=230), Filter("drop_everything", key=220), Filter("plus_ten", key=210))
    assert [event.value for event in of(Filtered, events)] == [210, 220]


def test_filter_sees_the_messages_that_match_its_attributes():
    only_hot = Filter("plus_one", match="TEMP GE 30")
    assert on_relay(only_hot, reading="TEMP IS 26")[0] == "TEMP IS 26"
    assert on_relay(only_hot, reading="TEMP IS 30")[0] == "TEMP IS 31"
    # The second filter gets the attributes that the first one returned.
    assert on_relay(Filter("plus_ten", key=200), Filter("plus_one", key=201, match="TEMP GE 30"))[0] == "TEMP IS 37"


def test_interest_cache_is_searched_after_the_filters():
    assert on_relay(Filter("plus_ten"), reading="TEMP IS 26", of_interest="TEMP GE 30")[0] == "TEMP IS 36"
    text, events = on_relay(Filter("plus_ten"), reading="TEMP IS 26", of_interest="TEMP LE 30")
    assert (text, reasons(events)) == (None, ["no_interest"])


def test_duplicate_never_reaches_a_filter():
    node = make_node(filters=(Filter("count_to", most=1),))
    hear(node, interest("TEMP GE 0"))
    assert reasons(hear(node, data(hop=3, sequence=1))) == []
    assert reasons(hear(node, data(hop=4, sequence=1))) == ["duplicate"]
    assert reasons(hear(node, data(hop=4, sequence=2))) == ["filter"]


def test_message_that_is_too_long_after_a_filter_is_dropped_with_a_reason():
    register_filter("much_more", lambda attributes: attributes * 9)
    assert reasons(on_relay(Filter("much_more"), reading="TEMP IS 26, X IS 1")[1]) == ["too_long"]
    node = make_node(filters=(Filter("much_more", messages="interest"),))
    assert reasons(hear(node, interest("TEMP GE 25, X GE 1"))) == ["too_long"]
    assert not node.outbox and not node.cache.entries


def test_result_that_is_not_a_publication_is_an_error_that_names_the_filter():
    register_filter("ask_instead", lambda attributes: parse("TEMP GE 5"))
    with pytest.raises(AttributeFormatError, match="only IS attributes describe data"):
        on_relay(Filter("ask_instead"))


# 0 --- 1 --- 2 --- 3      sink 0, source 3, the filter on some of the nodes
@pytest.mark.parametrize(("at", "expected"), [(None, 30), ((1, 2), 28), ((3,), 27), ((0,), 27), ((9,), 26)])
def test_filter_runs_on_the_nodes_that_it_names(at, expected):
    network = Network(Diffusion(filters=(Filter("plus_one", at=at),)), LINE)
    subscription = network.subscribe(0, "TEMP GE 25")
    network.publish(3, "TEMP IS 26")
    assert taken(subscription) == [f"TEMP IS {expected}"]


def test_each_node_has_its_own_filter_state():
    diffusion = Diffusion(filters=(Filter("count_to", most=1),))
    for address in (5, 6):
        node = diffusion.make_node(address, None)
        hear(node, interest("TEMP GE 0"))
        assert reasons(hear(node, data(sequence=1))) == []
        assert reasons(hear(node, data(sequence=2))) == ["filter"]


# On interests


def test_filters_apply_only_to_their_kind_of_message():
    node = make_node(filters=(Filter("drop_everything", messages="interest", at=(5,)),))
    node.publish(parse("TEMP IS 26"), 0)
    subscription = node.subscribe(parse("TEMP GE 25"), 0)
    hear(node, data(hop=3))
    assert taken(subscription) == ["TEMP IS 26"]
    node = make_node(filters=(Filter("drop_everything", messages="data"),))
    assert reasons(hear(node, interest())) == []


def test_dropped_interest_is_neither_cached_nor_passed_on():
    node = make_node(filters=(Filter("drop_everything", messages="interest"),))
    events = hear(node, interest())
    assert of(Filtered, events) == [Filtered(-1, "interest", 9, 1, 200, "drop")]
    assert reasons(events) == ["filter"]
    assert node.cache.entries == [] and sent(node) == []
    assert reasons(hear(node, interest(hop=3))) == ["duplicate"]


def test_replaced_interest_is_cached_and_forwarded_with_its_new_attributes():
    filters = (Filter("plus_one", key=201, messages="interest"), Filter("plus_ten", key=200, messages="interest"))
    node = make_node(5, filters=filters)
    events = hear(node, interest("TEMP GE 25", hop=2))
    assert [event.value for event in of(Filtered, events)] == [200, 201]
    assert sent(node) == [(None, interest("TEMP GE 36", hop=5, ttl=49))]
    assert [to_text(entry.attributes) for entry in node.cache.entries] == ["TEMP GE 36"]
    hear(node, interest("TEMP GE 25", hop=2, round=1, expiration_s=0))
    assert node.cache.entries == []


def test_invalid_interest_from_a_filter_is_an_error_that_names_the_filter():
    register_filter("spoil", lambda attributes: (Attribute(7, IS, 0),))
    node = make_node(filters=(Filter("spoil", messages="interest"),))
    with pytest.raises(AttributeFormatError, match="key is 7; it must be from 50 to 250"):
        hear(node, interest())


# Filters as values


def test_filter_is_a_value_and_is_read_back_from_its_plain_form():
    filter_ = Filter("running_mean", key=201, match="temp_key >= 5", at=[2, 1], window=3)
    assert filter_.to_dict() == {"name": "running_mean", "key": 201, "match": "TEMP GE 5", "at": [2, 1],
                             "messages": "data", "settings": {"window": 3}}  # fmt: skip
    again = Filter.from_dict(filter_.to_dict())
    assert again == filter_ and hash(again) == hash(filter_)
    assert filter_ != Filter("running_mean", key=201, match="TEMP GE 5", at=[2, 1], window=4)
    assert repr(filter_) == "Filter('running_mean', key=201, match='TEMP GE 5', at=[2, 1], window=3)"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            {"name": "mean"},
            r"is registered as 'mean' .*running_mean.*; register it with register_filter\('mean', function\)",
        ),
        ({"name": "running_mean", "key": 199}, "key 199; it must be from 200 to 250"),
        ({"name": "running_mean", "key": 251}, "key 251; it must be from 200 to 250"),
        ({"name": "running_mean", "key": 200.0}, "from 200 to 250"),
        ({"name": "running_mean", "messages": "reinforcement"}, "'data' or 'interest'"),
        ({"name": "running_mean", "windows": 5}, "no setting 'windows' .did you mean window.*; it has: of, window"),
        ({"name": "running_mean", "window": 0}, "window is 0; it must be a whole number from 1 to 100"),
        ({"name": "running_mean", "of": "WARMTH"}, "key is WARMTH; known keys are"),
        ({"name": "running_mean", "of": "PAYLOAD"}, "PAYLOAD is a blob"),
        ({"name": "suppress_unchanged", "of": "PAYLOAD"}, "PAYLOAD is a blob"),
        ({"name": "neighborhood_average", "of": "PAYLOAD"}, "PAYLOAD is a blob"),
        ({"name": "threshold_alarm", "of": "PAYLOAD"}, "PAYLOAD is a blob"),
        ({"name": "threshold_alarm", "low": 31}, "low is 31.* high is 30"),
        ({"name": "blob_fusion", "of": "TEMP", "function": "join"}, "TEMP is not a blob"),
        ({"name": "blob_fusion"}, "function='', which is not registered"),
        ({"name": "rate_limit", "interval_s": float("inf")}, "interval_s is inf"),
        ({"name": "suppress_unchanged", "heartbeat_s": float("nan")}, "heartbeat_s is nan"),
        (
            {"name": "plus_one", "by": 2},
            "filter plus_one is a plain function, which has no settings; remove the setting by",
        ),
    ],
)
def test_wrong_filter_is_refused_at_construction(arguments, complaint):
    with pytest.raises((ParameterError, AttributeFormatError), match=complaint):
        Filter(**arguments)
    with pytest.raises((ParameterError, AttributeFormatError), match=complaint):
        rest = {name: value for name, value in arguments.items() if name in ("name", "key", "messages")}
        Filter.from_dict(rest | {"settings": {n: v for n, v in arguments.items() if n not in rest}})


def test_invalid_match_of_a_filter_is_refused():
    with pytest.raises(AttributeFormatError, match="key is WARMTH; known keys are"):
        Filter("running_mean", match="WARMTH GE 5")


@pytest.mark.parametrize(
    "values", ["running_mean", {}, {"name": "running_mean", "keys": 5}, {"name": "count_to", "settings": {"least": 1}}]
)
def test_invalid_plain_form_of_a_filter_is_refused(values):
    with pytest.raises(ParameterError):
        Filter.from_dict(values)


def test_only_functions_and_classes_are_registered_and_built_in_names_are_reserved():
    with pytest.raises(ParameterError, match="must be a function or a class"):
        register_filter("number", 5)
    with pytest.raises(ParameterError, match="running_mean is a built-in filter"):
        register_filter("running_mean", add(1))
    registered_filters().clear()
    assert "plus_one" in registered_filters()


def test_custom_filter_class_gets_its_settings_and_a_state():
    assert temperatures(Filter("count_to", most=3), 1, 2, 3, 4) == [1, 2, 3, None]
    assert temperatures(Filter("count_to"), 1, 2, 3, 4) == [1, 2, None, None]


# Built-in filters


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_built_in_filter_has_a_description_and_passes_unrelated_data(name):
    assert BUILT_IN[name].__doc__
    settings = {"function": "join"} if name == "blob_fusion" else {}
    for parameter in BUILT_IN[name].parameters:
        assert parameter.reason
    assert results_of(Filter(name, **settings), "HUMIDITY IS 5")[0] == "HUMIDITY IS 5"


def test_unchanged_readings_are_suppressed():
    filter_ = Filter("suppress_unchanged", tolerance=0.5)
    assert temperatures(filter_, 20, 20.5, 20.6, 20.1, 20.2, 19.6) == [20, None, 20.6, None, None, 19.6]
    assert temperatures(Filter("suppress_unchanged"), 20, 20, 20.01) == [20, None, 20.01]


def test_difference_as_large_as_the_tolerance_is_no_change():
    # 0.29 * 100 is 28.999999999999996
    assert temperatures(Filter("suppress_unchanged", tolerance=0.29), 20, 20.29, 20.3) == [20, None, 20.3]


def test_suppressed_reading_is_passed_periodically_as_a_heartbeat():
    filter_ = Filter("suppress_unchanged", heartbeat_s=3)
    assert temperatures(filter_, 20, 20, 20, 20, 20, 20, 20) == [20, None, None, 20, None, None, 20]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("running_mean", [20, 21, 21, 22.33, 20, 16.33]),
        ("running_minimum", [20, 20, 20, 21, 15, 10]),
        ("running_maximum", [20, 22, 22, 24, 24, 24]),
    ],
)
def test_reading_is_replaced_by_a_summary_of_the_last_few(name, expected):
    assert temperatures(Filter(name, window=3), 20, 22, 21, 24, 15, 10) == expected


@pytest.mark.parametrize(
    ("values", "mean"), [((1, 2), 1.5), ((0.01, 0.02), 0.02), ((-0.01, -0.02), -0.01), ((-1, 1), 0)]
)
def test_mean_is_rounded_half_up(values, mean):
    assert temperatures(Filter("running_mean"), *values)[-1] == mean


def test_each_source_has_a_separate_window():
    on_node = Filter("running_mean").instance()
    assert on_node.decide(parse("TEMP IS 10"), 1, 0)[1] == parse("TEMP IS 10")
    assert on_node.decide(parse("TEMP IS 20"), 2, 0)[1] == parse("TEMP IS 20")
    assert on_node.decide(parse("TEMP IS 20"), 1, 0)[1] == parse("TEMP IS 15")


def test_summary_leaves_other_attributes_unchanged():
    texts = results_of(Filter("running_maximum", of="X"), "TEMP IS 20, X IS 5, Y IS 1", "TEMP IS 21, X IS 4, Y IS 2")
    assert texts[1] == "TEMP IS 21, X IS 5, Y IS 2"


def test_neighborhood_is_averaged_over_the_latest_reading_of_each_source():
    on_node = Filter("neighborhood_average", period_s=5).instance()
    readings = [(0, 1, 10), (1, 2, 20), (2, 1, 30), (5, 3, 40), (6, 1, 5), (10, 2, 7)]
    answers_ = [on_node.decide(parse(f"TEMP IS {value}"), origin, s * SECOND) for s, origin, value in readings]
    assert [answer for answer, _ in answers_] == ["drop", "drop", "drop", "replace", "drop", "replace"]
    assert answers_[3][1] == parse("TEMP IS 30")
    assert answers_[5][1] == parse("TEMP IS 6")


def test_rate_of_each_source_is_limited():
    assert temperatures(Filter("rate_limit", interval_s=2), 1, 2, 3, 4, 5) == [1, None, 3, None, 5]
    on_node = Filter("rate_limit", interval_s=2).instance()
    assert [on_node.decide(parse("TEMP IS 1"), origin, 0)[0] for origin in (1, 2, 1)] == ["pass", "pass", "drop"]


def test_alarm_is_raised_once_and_cleared_once():
    filter_ = Filter("threshold_alarm", high=30, low=28)
    values = [20, 30, 30.01, 35, 29, 28, 27.99, 20, 29, 31]
    assert temperatures(filter_, *values) == [None, None, 30.01, None, None, None, 27.99, None, None, 31]


def test_reading_on_the_threshold_has_not_crossed_it():
    # 1.1 * 100 is 110.00000000000001
    assert temperatures(Filter("threshold_alarm", high=2.3, low=1.1), 2.3, 2.31, 1.1, 1.09) == [None, 2.31, None, 1.09]


def test_blobs_are_fused_by_a_custom_function():
    register_key(160, "SKETCH", type="blob")
    filter_ = Filter("blob_fusion", of="SKETCH", count=3, function="join")
    texts = results_of(filter_, *[f'X IS {n}, SKETCH IS "{n}"' for n in range(6)])
    assert texts == [None, None, 'X IS 2, SKETCH IS "0+1+2"', None, None, 'X IS 5, SKETCH IS "3+4+5"']


def test_fusion_function_may_return_nothing():
    register_filter("nothing_yet", lambda blobs: None)
    filter_ = Filter("blob_fusion", count=2, function="nothing_yet")
    assert results_of(filter_, 'PAYLOAD IS "a"', 'PAYLOAD IS "b"') == [None, None]


def test_filter_may_use_a_custom_key():
    register_key(161, "VIBRATION", steps=1000)
    text = results_of(Filter("running_maximum", of="VIBRATION"), "VIBRATION IS 0.002", "VIBRATION IS 0.001")[1]
    assert parse(text) == (make("VIBRATION", "IS", 0.002),)


def test_interest_without_constraints_passes_a_node_without_filters():
    node = make_node(filters=(Filter("running_mean", at=(7,)),))
    assert reasons(hear(node, interest("", hop=2))) == []
    assert len(sent(node)) == 1


def test_a_filter_sees_one_sample_of_an_aggregated_message_at_a_time():
    node = make_node(filters=(Filter("threshold_alarm", high=30.0, low=28.0),))
    hear(node, interest("TEMP EQ_ANY", hop=2))
    sent(node)
    hear(node, data("TEMP IS 20, TEMP IS 35, TEMP IS 36", hop=3, is_aggregate=True))
    assert [to_text(message.attributes) for _, message in sent(node)] == ["TEMP IS 35"]


def test_two_filters_with_the_same_key_are_refused():
    with pytest.raises(ParameterError, match="two filters for data messages have the key 200"):
        Diffusion(filters=(Filter("rate_limit"), Filter("running_mean")))


def test_interests_are_selected_by_their_keys():
    warm = Filter("rate_limit", match="TEMP EQ_ANY", messages="interest").instance()
    assert warm.wants("interest", parse("TEMP GE 25, X GE 3"))
    assert not warm.wants("interest", parse("X GE 3"))
    assert not warm.wants("data", parse("TEMP IS 25"))


# --- typical mistakes ---


@pytest.mark.parametrize(("at", "nodes"), [(3, (3,)), ([1, 2], (1, 2)), (range(2), (0, 1)), ("all", None)])
def test_filter_accepts_nodes_like_the_workload(at, nodes):
    assert Filter("rate_limit", at=at).at == nodes


@pytest.mark.parametrize("at", ["sink", [[1]], 1.5, True, {1: 2}])
def test_filter_at_an_invalid_node_is_refused(at):
    with pytest.raises(
        ParameterError,
        match=r'filter rate_limit: `at` is .*it must be the address of a node, several addresses, or "all"',
    ):
        Filter("rate_limit", at=at)


def test_filters_may_be_a_list_and_a_single_filter_is_refused():
    filter_ = Filter("rate_limit")
    assert Diffusion(filters=[filter_]) == Diffusion(filters=(filter_,))
    with pytest.raises(ParameterError, match=r"filters is Filter\(.*it must be a tuple or a list"):
        Diffusion(filters=filter_)


def test_numbers_of_numpy_are_numbers_and_become_pythons():
    np = pytest.importorskip("numpy")
    assert Filter("rate_limit", at=np.int64(3)).at == (3,)
    assert Filter("rate_limit", at=[np.int32(1), 2]).at == (1, 2)
    protocol = Diffusion(ttl=np.int64(5), blacklist_loss=np.float64(0.5), filters=[Filter("running_mean", window=3)])
    assert type(protocol.ttl) is int and type(protocol.blacklist_loss) is float
    for wrong in (np.int64(0), np.float64(5), np.bool_(True), np.array([5, 6])):
        with pytest.raises(ParameterError, match=r"ttl is .*it must be a whole number from 1 to 255"):
            Diffusion(ttl=wrong)
    Filter("running_mean", window=np.int16(3))


@pytest.mark.parametrize("answer", ["TEMP IS 26", 5, True, Attribute(51, IS, 2600), [None], [(51, IS)]])
def test_result_that_is_not_a_sequence_of_attributes_is_an_error_that_names_the_filter(answer):
    register_filter("odd", lambda attributes: answer)
    with pytest.raises(AttributeFormatError, match="filter odd returned .*it must return a sequence of attributes"):
        Filter("odd").instance().decide(parse("TEMP IS 26"), 1, 0)


def test_filter_that_raises_is_named_with_its_error():
    register_filter("broken", lambda attributes: 1 / 0)
    with pytest.raises(ParameterError, match="filter broken failed with ZeroDivisionError: divi"):
        Filter("broken").instance().decide(parse("TEMP IS 26"), 1, 0)
