"""Plug-ins: the protocol of the contributors' page and a plug-in of each other kind are built, installed and used."""

import os
import subprocess
import sys
import warnings

import pytest

import workbench as wb
from tests.project.test_contributing import FILES
from tests.repository import REPOSITORY
from workbench import plugins
from workbench.cli import doctor
from workbench.sim.python_lines import python_lines
from workbench.sweeps import ProcessRunner, user_code

# Plug-ins of the other kinds, in a separate module.
EXTRAS = '''
import networkx as nx
import workbench as wb

LOOKS_AT = ("delivered",)
SLOW = wb.Radio(bit_rate_bps=50_000)


def wheel(spokes=5, radius_m=10.0):
    """Return a hub with nodes around it."""
    return nx.star_graph(spokes)


def colder(attributes):
    """Halve each reading."""
    return [(key, operator, value // 2) for key, operator, value in attributes]


def measure(scenario, rows):
    (nodes,) = rows.columns("delivered", "node")
    return {"delivered_per_node": len(nodes) / len(scenario.topology)}


def count_silenced(run):
    return run.trace["event"].to_pylist().count("silenced")
'''
GROUPS = """
[project.entry-points."workbench.topologies"]
wheel = "coin_flooding.extras:wheel"

[project.entry-points."workbench.filters"]
colder = "coin_flooding.extras:colder"

[project.entry-points."workbench.metrics"]
per_node = "coin_flooding.extras"

[project.entry-points."workbench.radios"]
slow = "coin_flooding.extras:SLOW"
broken = "coin_flooding.extras:NOWHERE"

[project.entry-points."workbench.views"]
count_silenced = "coin_flooding.extras:count_silenced"
"""
WORKER = """
import sys
from workbench.sweeps import user_code
from workbench.sweeps.work import run_point
plan = user_code.unpack(open(sys.argv[1], "rb").read())
row = run_point(plan, 0)
print(row.code, row.error, row.metrics["silenced_share"], row.metrics["delivered_per_node"])
"""

pytestmark = pytest.mark.filterwarnings("ignore:.*its plug-in broken")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Install the distribution of the page, with a plug-in of each other kind; return the folder."""
    pytest.importorskip("hatchling", reason="hatchling is not installed: pip install hatchling")
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    files = FILES | {"coin_flooding/extras.py": EXTRAS, "pyproject.toml": FILES["pyproject.toml"] + GROUPS}
    for name, text in files.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(site), str(source)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert process.returncode == 0, process.stderr
    return site


@pytest.fixture
def plugged_in(site, monkeypatch):
    """Let this process find the distribution during a test; yield its folder."""
    monkeypatch.syspath_prepend(site)
    _forget()
    yield site
    _forget()


def _forget():
    plugins._find_entry_points.cache_clear()
    for table in (plugins._loaded, plugins._errors, plugins._provided):
        table.clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "coin_flooding"]:
        del sys.modules[name]


def scenario(**changes):
    workload = [wb.subscribe(0, "TEMP GE 20"), wb.publish(5, "TEMP IS 26", every_s=1)]
    return wb.Scenario(wb.topology.grid(3, 3), wb.CoinFlooding(probability=0.5), workload, duration_s=4).replace(
        **changes
    )


def test_plugin_is_loaded_when_its_name_is_needed(plugged_in):
    assert wb.Flooding().ttl and "CoinFlooding" in plugins.names("protocols")
    assert "coin_flooding" not in sys.modules
    assert wb.CoinFlooding().probability == 0.7
    assert "coin_flooding" in sys.modules
    with pytest.raises(AttributeError, match="'CoinFloodin'"):
        wb.CoinFloodin


def test_scenario_file_needs_no_import(plugged_in):
    text = scenario().to_json()
    assert '"coin_flooding:CoinFlooding"' in text
    assert "protocol=wb.CoinFlooding(probability=0.5)" in python_lines(scenario())
    _forget()
    assert wb.Scenario.from_json(text).to_json() == text


def test_plugins_of_every_kind_are_found_by_name(plugged_in):
    network = wb.topology.wheel(spokes=4)
    assert network.graph["recipe"] == {"kind": "wheel", "spokes": 4, "radius_m": 10.0}
    assert wb.topology.to_dict(wb.topology.from_dict(wb.topology.to_dict(network))) == wb.topology.to_dict(network)
    with pytest.raises(wb.ParameterError, match="did you mean spokes"):
        wb.topology.wheel(spoke=4)
    run = scenario(topology=network, protocol=wb.CoinFlooding(), workload=[wb.publish(4, "TEMP IS 1")]).run()
    assert wb.views.count_silenced(run) == run.trace["event"].to_pylist().count("silenced")
    assert "count_silenced" in dir(wb.views)
    halves = wb.Diffusion(filters=[wb.Filter("colder", match="TEMP EQ_ANY")])
    assert scenario(protocol=wb.Flooding()).run().metrics["delivered_per_node"] > 0
    assert halves.filters[0].user_code().keys() == {"colder"}


def test_forms_offer_plugins(plugged_in):
    from workbench.protocols.diffusion.filters import catalogue
    from workbench.widgets.network.sources import Sources
    from workbench.widgets.protocol import ProtocolForm
    from workbench.widgets.radio import RadioForm

    form = ProtocolForm()
    form.choice.value = "CoinFlooding"
    assert type(form.value).__name__ == "CoinFlooding" and set(form.fields) == {"probability", "max_events"}
    networks = []
    sources = Sources(networks.append)
    sources.choice.value = ("wheel", "")
    assert set(sources.fields) == {"spokes", "radius_m"} and len(networks[-1]) == 6
    assert "colder" in {kind.name for kind in catalogue.kinds()}
    radios = RadioForm()
    radios.radios.value = dict(radios.radios.options)["slow"]
    assert radios.value.radio.bit_rate_bps == 50_000


def test_lab_compares_with_a_plugin(plugged_in):
    lab = wb.lab(scenario(protocol=wb.Flooding()), name="plugins")
    try:
        assert "CoinFlooding" in lab._beside.options
    finally:
        lab.close()


def test_sweep_of_a_plugin_in_other_processes(plugged_in):
    protocols = [wb.Flooding(), wb.CoinFlooding()]
    table = wb.Sweep(scenario(), {"protocol": protocols}).run(runner=ProcessRunner(1)).to_pandas()
    assert (table["delivered_per_node"] > 0).all()


def test_code_travels_to_a_worker_that_has_no_plugin(plugged_in, tmp_path):
    from workbench.sweeps.processes import pack

    plan = wb.Sweep(scenario(), {"seed": [1]}).plan
    packed = tmp_path / "packed"
    packed.write_bytes(pack(plan))
    metrics = scenario(seed=1).run(record="metrics").metrics
    hidden = plugged_in.with_name("hidden")
    plugged_in.rename(hidden)
    try:
        environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
        command = [sys.executable, "-c", WORKER, str(packed)]
        process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    finally:
        hidden.rename(plugged_in)
    assert process.returncode == 0, process.stderr
    code, error, *numbers = process.stdout.split()
    assert error == "None" and code == plan.codes.digest(scenario().protocol)
    assert [float(number) for number in numbers] == [metrics["silenced_share"], metrics["delivered_per_node"]]


def test_digest_changes_with_the_code_of_a_plugin(plugged_in):
    named = user_code.of(wb.Flooding())
    assert list(named) == ["plug-in metrics per_node of delivered"]
    assert user_code.of(wb.CoinFlooding()).keys() > named.keys()


def test_broken_plugin_is_reported_in_one_warning_and_by_the_doctor(plugged_in):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            assert plugins.load("radios", "broken") is None
    (warning,) = caught
    assert str(warning.message).startswith("coin-flooding 0.1: its plug-in broken (workbench.radios) is ignored: ")
    assert "NOWHERE" in str(warning.message)
    findings = {finding.subject: finding for finding in doctor.examine()}
    protocol, radio = findings["protocols: CoinFlooding"], findings["radios: broken"]
    assert protocol.is_ok and protocol.version == "coin-flooding 0.1"
    assert not radio.is_ok and "NOWHERE" in radio.remedy


def test_metric_that_fails_is_omitted_with_a_warning(plugged_in, monkeypatch):
    def fail(scenario, rows):
        raise KeyError("none")

    monkeypatch.setattr(plugins.load("metrics", "per_node"), "measure", fail)
    with pytest.warns(UserWarning, match=r"per_node \(workbench.metrics\) is ignored: KeyError"):
        metrics = scenario().run().metrics
    assert metrics["delivered"] > 0 and "delivered_per_node" not in metrics
