"""The signatures, documentation and completions that notebooks and editors show, from tables of parameters."""

import copy
import dataclasses
import inspect
import pickle
from typing import Literal

import pytest
from IPython.core.completer import IPCompleter, provisionalcompleter

import workbench as wb
from workbench import keywords
from workbench.errors import ParameterError
from workbench.protocols.diffusion.filters import BUILT_IN
from workbench.protocols.protocol import Parameter, Protocol
from workbench.public_names import HOME, PROTOCOLS, RENAMED
from workbench.records.differences import Difference


class Ants(Protocol):
    """Ants and their settings."""

    parameters = (
        Parameter("trails", 3, 1, None, "trails", "more are lost"),
        Parameter("mood", "calm", ("calm", "busy"), None, "", "most are"),
        Parameter("share", 0.5, 0.0, 1.0, "share", "half"),
        Parameter("homes", (), None, None, "nodes", ""),
    )


class Bees(Ants):
    parameters = (Parameter("hives", True, None, None, "", "they have"),)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocols_signature_is_its_table(name):
    cls = getattr(wb, name)
    shown = inspect.signature(cls).parameters
    assert [(parameter.name, parameter.default) for parameter in shown.values()] == [
        (parameter.name, parameter.default) for parameter in cls.parameters
    ]
    assert {parameter.kind for parameter in shown.values()} <= {inspect.Parameter.KEYWORD_ONLY}
    for parameter in cls.parameters:
        assert f"\n{parameter.name} : " in cls.__doc__
        assert parameter.reason in cls.__doc__
    assert cls.__doc__.count("Parameters\n---") == 1


def test_a_protocol_of_ones_own_has_signature_and_documentation_too():
    assert str(inspect.signature(Ants)) == (
        "(*, trails: int = 3, mood: Literal['calm', 'busy'] = 'calm', share: float = 0.5, homes: tuple = ())"
    )
    assert inspect.signature(Ants).parameters["mood"].annotation == Literal["calm", "busy"]
    assert inspect.getdoc(Ants) == "\n".join(
        [
            *("Ants and their settings.", "", "Parameters", "----------"),
            *("trails : int, default 3", "    1 or more trails; more are lost"),
            *("mood : str, default 'calm'", "    one of 'calm', 'busy'; most are"),
            *("share : float, default 0.5", "    0.0 to 1.0 share; half"),
            *("homes : tuple, default ()", "    nodes"),
        ]
    )
    assert Ants().__doc__ == Ants.__doc__


def test_a_kind_of_a_protocol_shows_its_own_table():
    assert list(inspect.signature(Bees).parameters) == ["hives"]
    assert "hives : bool" in Bees.__doc__ and "trails" not in Bees.__doc__


def test_a_filter_shows_the_settings_of_all_built_in_ones():
    shown = inspect.signature(wb.Filter).parameters
    assert list(shown)[:5] == ["name", "key", "match", "at", "messages"]
    for name, kind in BUILT_IN.items():
        assert f"\n{name}\n{'-' * len(name)}\n" in wb.Filter.__doc__
        for parameter in kind.parameters:
            assert shown[parameter.name].kind is inspect.Parameter.KEYWORD_ONLY
            assert parameter.reason in wb.Filter.__doc__
    assert shown["window"].default == 5
    assert shown["of"].default is ...  # TEMP for some, PAYLOAD for others


@pytest.mark.parametrize("use_jedi", [True, False])
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("wb.Diffusion(rein", {"reinforce_after="}),
        ("wb.Diffusion(ttl=5, blacklist", {"blacklist_hysteresis=", "blacklist_loss="}),
        ("wb.Filter('running_mean', win", {"window="}),
        ("wb.Radio(colli", {"collisions="}),
        ("wb.Scenario(topo", {"topology="}),
        ("wb.publish(at=3, wha", {"what="}),
        ("wb.subscribe(expi", {"expires_s="}),
    ],
)
def test_tab_completes_what_can_be_set(typed, completed, use_jedi):
    completer = IPCompleter(namespace={"wb": wb}, use_jedi=use_jedi, disable_matchers=["IPCompleter.magic_matcher"])
    with provisionalcompleter():
        completions = {completion.text for completion in completer.completions(typed, len(typed))}
    assert {completion for completion in completions if completion.endswith("=")} == completed


@pytest.mark.parametrize("use_jedi", [True, False])
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("wb.tinymq.vi", {"views"}),
        ("wb.tinymq.views.route_", {"route_drawing", "route_slides"}),
        ("wb.dps.views.fi", {"fill_chart", "filter_bits", "filter_drawing", "filters_slides"}),
    ],
)
def test_tab_completes_a_protocols_views(typed, completed, use_jedi):
    completer = IPCompleter(namespace={"wb": wb}, use_jedi=use_jedi, disable_matchers=["IPCompleter.magic_matcher"])
    with provisionalcompleter():
        completions = {completion.text for completion in completer.completions(typed, len(typed))}
    assert {completion.rpartition(".")[2] for completion in completions} == completed


def test_a_protocols_parameters_are_among_its_attributes():
    assert {"trails", "mood", "share", "homes", "settings", "make_node"} <= set(dir(Ants()))


def test_error_for_a_wrong_name_survives_pickling():
    with pytest.raises(AttributeError) as wrong:
        _ = wb.topology.gird
    restored = pickle.loads(pickle.dumps(wrong.value))
    assert (
        type(restored) is type(wrong.value)
        and str(restored) == str(wrong.value)
        and "did you mean grid" in str(restored)
    )


def test_a_checked_class_or_function_is_what_it_was():
    radio = wb.Radio(csma=True)
    assert list(inspect.signature(wb.Radio).parameters) == [field.name for field in dataclasses.fields(wb.Radio)]
    assert dataclasses.replace(radio, retries=3) == wb.Radio(csma=True, retries=3)
    assert pickle.loads(pickle.dumps(radio)) == radio
    assert wb.publish.__name__ == "publish" and wb.publish.__doc__.startswith("Return an item: node ``at`` publishes")
    with pytest.raises(
        TypeError, match=r"publish lacks the argument what; it is called as publish\(at, what, every_s=None, "
    ):
        wb.publish(at=3)
    with pytest.raises(
        ParameterError, match=r"Radio.airtime_us lacks the argument frame_B; .* Radio.airtime_us\(frame_B\)"
    ):
        radio.airtime_us()
    with pytest.raises(ParameterError, match="subscribe has no parameter 'hops'; it has: at, what, expires_s, "):
        wb.subscribe(at=3, what="TEMP GE 3", hops=4)


# Code that a mote loads is not wrapped. All other public functions are, and classes with their own constructor.
ON_MOTES = {"Attribute", "is_within", "key_of", "one_way_match", "parse", "register_key", "to_text", "two_way_match"}
PLAIN = {"Filter", "LocalRunner", "register_filter"}


@pytest.mark.parametrize("name", sorted(set(HOME) - set(PROTOCOLS) - ON_MOTES - PLAIN))
def test_whatever_is_public_answers_a_keyword_that_it_does_not_have(name):
    public = getattr(wb, name)
    if inspect.ismodule(public) or (isinstance(public, type) and issubclass(public, Exception)):
        return
    with pytest.raises(ParameterError, match="has no parameter 'zzz'"):
        public(zzz=1)


def test_a_property_that_fails_says_so_itself():
    @keywords.checked
    class Broken:
        @property
        def width(self):
            return None.something

    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'something'"):
        Broken().width
    assert not hasattr(Broken(), "_repr_html_")
    assert getattr(Broken(), "height", 3) == 3


def test_what_answers_wrong_names_can_be_copied_and_pickled():
    scenario = wb.Scenario(wb.topology.line(2), wb.Flooding())
    assert copy.deepcopy(scenario) == scenario == pickle.loads(pickle.dumps(scenario))
    assert copy.copy(wb.Flooding()) == wb.Flooding()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: wb.Flooding(3),
            "Flooding: the value 3 has no name; pass parameters by name: ttl, max_events",
        ),
        (lambda: wb.TinyMQ([0], retries=2), r"TinyMQ: the value \[0\] has no name; .*: roots, "),
        (lambda: Bees(True), "Bees: the value True has no name; pass parameters by name: hives"),
        (
            lambda: wb.views.inspect_node(3),
            r"inspect_node lacks the argument node; it is called as inspect_node\(run, node, ",
        ),
        (lambda: wb.views.line_chart(), r"line_chart lacks the argument series; it is called as line_chart\(series, "),
        (lambda: wb.views.sweep_chart(), r"sweep_chart lacks the arguments table and y; .* \*\*options\)"),
        (lambda: wb.tinymq.views.route(1, 2, 3, 4, 5, 6), r"route was called with wrong arguments \(too many"),
        (
            lambda: wb.views.PlayerView(),
            r"PlayerView lacks the argument run; it is called as PlayerView\(run, event=None",
        ),
    ],
)
def test_a_wrong_call_gets_one_sentence(call, sentence):
    with pytest.raises(ParameterError, match=sentence):
        call()


def test_every_public_view_answers_a_wrong_call():
    owners = [wb.views, wb.coded_diffusion.views, wb.dps.views, wb.tinymq.views]
    views = [getattr(owner, name) for owner in owners for name in dir(owner)]
    assert sum(isinstance(view, type(keywords.checked)) for view in views) > 25
    for view in views:
        if callable(view):
            with pytest.raises(ParameterError):
                view(*range(20))
    assert wb.views.show is wb.views.show


def test_motes_list_what_is_public_and_show_their_settings():
    assert {"boards", "virtual"} <= set(dir(wb.motes)) <= {*wb.motes.__all__}
    assert {"Any", "json", "threading", "CProcess"}.isdisjoint(dir(wb.motes))
    assert repr(wb.motes.virtual(speed=10)) == "VirtualMotes(speed=10, lockstep=False, kind='micropython')"
    assert repr(wb.motes.boards(["/dev/ttyUSB0"])) == "Boards(['/dev/ttyUSB0'])"


def test_a_player_shows_its_scenario():
    scenario = wb.Scenario(wb.topology.line(2), wb.Flooding(), duration_s=1)
    assert repr(wb.views.PlayerView(scenario.run("reference"))) == f"PlayerView({scenario!r})"


def test_renamed_public_names_work_and_warn_where_they_are_used():
    run = wb.Scenario(wb.topology.line(3), wb.Flooding(), [wb.publish(0, "TEMP IS 1")], duration_s=2).run()
    with pytest.warns(DeprecationWarning, match="take_apart is now called dissect") as warned:
        assert wb.take_apart is wb.dissect
    assert warned[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="network_drawing: way is now called message") as warned:
        wb.views.network_drawing(run, time_s=1, way=None)
    assert warned[0].filename == __file__
    difference = Difference("delivery_ratio", "1.0", "0.5")
    with pytest.warns(DeprecationWarning, match="Difference: was is now called recorded") as warned:
        assert difference.was == difference.recorded
    assert warned[0].filename == __file__


def test_every_renamed_name_has_a_present_one():
    for owner, names in RENAMED.items():
        for former_name, present in names.items():
            assert former_name != present and present.isidentifier(), owner
