"""Virtual motes of several kinds in one run: processes in C, emulated Cortex-M3, MicroPython, and simulated nodes."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter

import pytest

import workbench as wb
from tests.c.networks import random_flood, random_kinds, random_scenario
from tests.golden import renew
from tests.motes.test_motes import played
from tests.repository import REPOSITORY
from tests.until import PATIENCE_S, wait_until
from workbench import cli, motes
from workbench.errors import LinkError, ParameterError, ScenarioError
from workbench.motes import CORTEX_M3, MICROPYTHON, SIMULATED, C, in_c, lockstep
from workbench.motes.mote import Mote
from workbench.motes.port import open_port
from workbench.motes.processes import CortexM3, CProcess
from workbench.protocols.diffusion.filters.built_in import registered
from workbench.sim import trace
from workbench.views.inspector import inspect_node

MISSING = {kind: motes.missing(kind) for kind in (C, CORTEX_M3, MICROPYTHON)}
needs_c = pytest.mark.skipif(MISSING[C] is not None, reason=str(MISSING[C]))
needs_cortex_m3 = pytest.mark.skipif(MISSING[CORTEX_M3] is not None, reason=str(MISSING[CORTEX_M3]))
needs_all = pytest.mark.skipif(any(MISSING.values()), reason=str([reason for reason in MISSING.values() if reason]))

EVERY_KIND = {0: C, 1: CORTEX_M3, 2: MICROPYTHON, 4: C, 5: CORTEX_M3, 7: MICROPYTHON}


def line(count, duration_s=60, **settings):
    """Return a scenario on a line of nodes: one end publishes readings for a subscription of the other end."""
    workload = [wb.subscribe(0, "TEMP GE 25"), wb.publish(count - 1, "TEMP IS 26", every_s=0.3, start_s=0.5)]
    protocol = wb.Diffusion(refresh_s=1, gradient_lifetime_s=2.5, **settings)
    return wb.Scenario(wb.topology.line(count), protocol, workload, radio=wb.Radio(loss="none"), duration_s=duration_s)


def rows_of(run, event, **wanted):
    rows = [row for row in run.so_far().trace.to_pylist() if row["event"] == event]
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def forwarders(run, since_us=0):
    rows = rows_of(run, "forwarded", message="data")
    return {row["node"] for row in rows if row["time_us"] > since_us}


# In lockstep


def assert_golden(kind):
    run = played(renew.scenario("diffusion-motes"), wb.motes.virtual(lockstep=True, kind=kind))
    assert run.trace_hash == json.loads(renew.DIGESTS.read_text(encoding="utf-8"))["diffusion-motes"]["trace_hash"]
    return run


@needs_cortex_m3
def test_network_of_cortex_m3_in_lockstep_gives_the_golden_trace():
    assert set(assert_golden(CORTEX_M3).kinds.values()) == {CORTEX_M3}


@needs_all
def test_network_of_all_kinds_in_lockstep_gives_the_golden_trace_and_the_kind_of_each_node():
    run = assert_golden(EVERY_KIND)
    assert run.kinds == {**dict.fromkeys(range(9), SIMULATED), **EVERY_KIND}
    assert inspect_node(run, 5).tables["Runs on"] == (("kind",), [("cortex-m3",)])
    assert inspect_node(run, 3).tables["Runs on"] == (("kind",), [("simulated",)])


@needs_cortex_m3
@pytest.mark.parametrize(
    ("make", "number"), [(random_scenario, 0), (random_scenario, 3), (random_scenario, 9), (random_flood, 2)]
)
def test_random_network_in_lockstep_gives_the_simulators_trace(make, number):
    scenario = make(number)
    kinds = random_kinds(number, list(scenario.topology), (C, CORTEX_M3, SIMULATED))
    run = scenario.run(on=wb.motes.virtual(lockstep=True, kind=kinds))
    assert len(run.trace) > 30 and run.trace_hash == scenario.run(engine="reference").trace_hash


def no_frost(attributes):
    """Replace a single negative value by 0: the filter of hardware/c/README.md, in Python."""
    is_frost = len(attributes) == 1 and attributes[0].value < 0
    return (attributes[0]._replace(value=0),) if is_frost else attributes


@needs_c
def test_filter_written_as_in_the_readme_gives_the_trace_of_its_twin_in_python(tmp_path, monkeypatch):
    monkeypatch.setitem(registered, "no_frost", no_frost)
    protocol = wb.Diffusion(filters=(wb.Filter("no_frost", match="TEMP EQ_ANY"), wb.Filter("running_mean", 201)))
    page = (REPOSITORY / "hardware" / "c" / "README.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```c\n(static enum filter_answer no_frost.*?)```", page, re.DOTALL)
    function, _, row = code.rpartition("\n\n")
    folder = shutil.copytree(in_c.folder_of(protocol), tmp_path / "c")
    table, path = "const struct filter_kind FILTER_KINDS[] = {\n", folder / "mote" / "filters.c"
    path.write_text(path.read_text().replace(table, f"{function}\n{table}{row}"))
    program = in_c.build(C, folder, {**protocol.sizes_in_c(), **protocol.room_in_c(3)}, in_c.STACK_B)
    cold, warm = (wb.publish(2, f"TEMP IS {value}", every_s=0.5, start_s=0.1) for value in (-5, 4))
    workload = [wb.subscribe(0, "TEMP LT 30"), cold, warm]
    scenario = wb.Scenario(wb.topology.line(3), protocol, workload, radio=wb.Radio(loss="none"), duration_s=3)
    processes = {node: CProcess(program) for node in range(3)}
    try:
        rows = lockstep.play(scenario, {node: process.url for node, process in processes.items()}).table()
    finally:
        for process in processes.values():
            process.kill()
    run = scenario.run(engine="reference")
    assert run.trace.column("event").to_pylist().count("filtered") > 5 and trace.digest(rows) == run.trace_hash


@needs_c
def test_program_of_a_run_has_room_for_as_many_subscriptions_as_the_run_makes():
    workload = [*(wb.subscribe(0, f"TEMP GE {number}") for number in range(21)), wb.publish(1, "TEMP IS 26", start_s=1)]
    scenario = wb.Scenario(wb.topology.line(2), wb.Flooding(), workload, duration_s=2)
    run = scenario.run(on=wb.motes.virtual(lockstep=True, kind={0: C}))
    assert run.trace_hash == scenario.run(engine="reference").trace_hash
    assert run.trace.column("event").to_pylist().count("delivered") == 21


# Live


@needs_all
def test_sixteen_nodes_of_four_kinds_relay_for_each_other_and_a_killed_node_comes_back():
    kinds = {3: CORTEX_M3, 8: CORTEX_M3, 4: C, 10: C, 5: MICROPYTHON, 12: MICROPYTHON}
    with wb.motes.virtual(kind=kinds) as virtual:
        run = line(16).run(on=virtual)
        assert {node for node, kind in run.kinds.items() if kind == SIMULATED} == set(range(16)) - set(kinds)
        wait_until(lambda: rows_of(run, "delivered", node=0) and forwarders(run) >= set(range(1, 15)))
        virtual.kill(8)
        wait_until(lambda: rows_of(run, "link_lost", node=8))
        virtual.restart(8)
        wait_until(lambda: rows_of(run, "recovered", node=8))
        [back] = rows_of(run, "link_found", node=8)
        assert back["sequence"] == 1  # The mote started once before.
        wait_until(lambda: forwarders(run, back["time_us"]) >= set(range(1, 15)))
        wait_until(lambda: rows_of(run, "delivered", node=0)[-1]["time_us"] > back["time_us"] + 500_000)
        assert run.stop()
    [note] = run.notes
    assert note.startswith("node 8: the connection to socket://127.0.0.1:") and "lost" in note
    assert {row["node"] for row in rows_of(run, "subscribed")} == {0}
    assert {row["node"] for row in rows_of(run, "published")} == {15}


@pytest.mark.family
@needs_cortex_m3
def test_clocks_run_at_the_speed_of_the_run():
    run = line(4, duration_s=8).run(on=wb.motes.virtual(speed=4, kind={1: C, 2: CORTEX_M3, 3: C}))
    assert run.wait(PATIENCE_S) and not run.notes
    published = [row["time_us"] for row in rows_of(run, "published", node=3)]
    assert len(published) == 25 and 7_500_000 < published[-1] < 8_000_000
    assert run.metrics["delivery_ratio"] > 0.5


@needs_cortex_m3
def test_motes_in_c_resend_data_that_the_radio_of_a_live_run_gave_up():
    scenario = line(3, duration_s=8).replace(radio=wb.Radio(loss=0.5, retries=1))
    resenders = set()
    # A live run has clocks of its own: on a busy machine, a run may lose every interest, and then sends no data.
    for seed in range(1, 6):
        run = scenario.replace(seed=seed).run(on=wb.motes.virtual(speed=2, kind={1: C, 2: CORTEX_M3}))
        assert run.wait(PATIENCE_S) and not run.notes
        frames = Counter((row["node"], row["origin"], row["sequence"]) for row in rows_of(run, "sent", message="data"))
        # The radio alone sends a frame twice at most.
        resenders |= {node for (node, _, _), count in frames.items() if count > 2}
        if resenders == {1, 2}:
            break
    assert resenders == {1, 2}


@needs_c
def test_simulated_nodes_fail_and_refuse_as_in_a_simulation():
    scenario = line(4, duration_s=3)
    too_many = [wb.subscribe(2, f"TEMP EQ {value}", start_s=0.2) for value in range(3)]
    actions = [wb.outage(1, start_s=1, stop_s=1.5), *too_many]
    protocol = wb.Diffusion(max_interests=2)
    scenario = scenario.replace(workload=[*scenario.workload, *actions], protocol=protocol)
    run = scenario.run(on=wb.motes.virtual(speed=2, kind={3: C}))
    assert run.wait(PATIENCE_S)
    [note] = run.notes
    assert note.startswith("node 2: ") and "max_interests" in note
    times = [[row["time_us"] for row in rows_of(run, event, node=1)] for event in ("failed", "recovered")]
    assert times == [[1_000_000], [1_500_000]]


# Stopping, restarting and resetting motes


@needs_c
def test_mote_that_dies_by_itself_is_noted_and_started_for_the_next_run():
    with wb.motes.virtual(kind=[C, C]) as virtual:
        run = line(2).run(on=virtual)
        wait_until(lambda: rows_of(run, "delivered"))
        shell = str(virtual._processes[1]._process.pid)
        search = subprocess.run(["pgrep", "-P", shell, "-f", f"^{virtual._compiled[1]}"], capture_output=True)
        os.kill(int(search.stdout), signal.SIGSEGV)
        wait_until(lambda: any(note.startswith("node 1: the mote's program ended") for note in run.notes))
        assert run.stop()
        run = line(2, duration_s=1.5).run(on=virtual)
        assert run.wait(PATIENCE_S) and not run.notes and rows_of(run, "delivered")


def is_silent(url):
    try:
        open_port(url).close()
    except LinkError:
        return True
    return False


@needs_cortex_m3
@pytest.mark.parametrize("make", [CProcess, CortexM3])
def test_mote_that_is_reset_restarts_on_the_same_line(make):
    kind = C if make is CProcess else CORTEX_M3
    process = make(in_c.program(kind, wb.Diffusion()))
    try:
        process.restart()
        mote = Mote(process.url, lambda kind, value: None, lambda: 0.0)
        assert mote.open().boot == 1
        mote.reset()
        wait_until(lambda: mote.greeting.boot == 2)
        assert 8_000 < mote.allocated_B() < 32_000
        mote.close()
    finally:
        process.kill()
    wait_until(lambda: is_silent(process.url))


@needs_cortex_m3
def test_no_mote_is_left_behind_by_a_host_that_was_killed():
    code = (
        "import time, workbench as wb\nfrom workbench.motes import in_c, processes\n"
        "programs = [in_c.program(kind, wb.Diffusion()) for kind in ('c', 'cortex-m3')]\n"
        "made = [processes.CProcess(programs[0]), processes.CortexM3(programs[1])]\n"
        "print(*[process.url for process in made], flush=True)\ntime.sleep(60)"
    )
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment) as host:
        urls = host.stdout.readline().split()
        assert len(urls) == 2 and not any(map(is_silent, urls))
        host.kill()
    wait_until(lambda: all(map(is_silent, urls)))


@needs_cortex_m3
def test_motes_report_their_memory_only_between_runs():
    with wb.motes.virtual(kind={0: C, 1: CORTEX_M3}) as virtual:
        run = line(3).run(on=virtual)
        wait_until(lambda: rows_of(run, "delivered"))
        assert virtual.memory().allocated_B == {0: None, 1: None}
        assert run.stop()
        allocated_B = virtual.memory().allocated_B
        whole = in_c.footprint(run.scenario.protocol)
        assert whole.ram_B - 1500 < allocated_B[1] < whole.ram_B and 0 < allocated_B[0] < allocated_B[1]
        with pytest.raises(LinkError, match=r"node 2 is simulated.*wb\.outage"):
            virtual.kill(2)


@needs_cortex_m3
def test_second_host_of_a_cortex_m3_is_refused_at_once_and_leaves_nothing_behind():
    process = CortexM3(in_c.program(CORTEX_M3, wb.Diffusion()))
    complaints = []
    try:
        with Mote(process.url, lambda *report: complaints.append(report)) as first:
            # On a busy machine the mote may begin in the middle of its first host's greeting, which is noise to it.
            assert first.allocated_B() > 0
            complaints.clear()
            for url in (process.url, process.line_url(False)):
                with pytest.raises(LinkError, match="is in use by another host, and this mote's line serves only one"):
                    Mote(url).open()
            assert first.allocated_B() > 0 and not complaints
        with Mote(process.url) as next_host:  # A queued greeting would have given this mote to the second host.
            assert next_host.allocated_B() > 0
    finally:
        process.kill()


# Refusals, and the compilation of programs


def test_unknown_kind_unknown_node_and_wrong_count_are_refused():
    with pytest.raises(ParameterError, match="`kind` is 'cortex'.*cortex-m3.*it must be one of micropython, c, "):
        wb.motes.virtual(kind={0: "cortex"})
    with pytest.raises(
        LinkError, match="`kind` has an entry for node 7, which is not in this network; remove the entry"
    ):
        line(3).run(on=wb.motes.virtual(kind={7: C}))
    with pytest.raises(LinkError, match="`kind` has 2 entries for 3 nodes"):
        line(3).run(on=wb.motes.virtual(kind=[C, C]))


@needs_c
def test_protocol_without_a_program_in_c_is_refused_before_a_mote_starts():
    for protocol in (wb.Gossip(), wb.CodedDiffusion()):
        virtual = wb.motes.virtual(kind=C)
        with pytest.raises(ScenarioError, match=f"{type(protocol).__name__} has no program in C.*micropython"):
            line(3).replace(protocol=protocol).run(on=virtual)
        assert not virtual._processes


@needs_c
def test_publication_that_does_not_fit_a_message_is_refused_in_a_sentence():
    scenario = line(2)
    scenario = scenario.replace(workload=[*scenario.workload, wb.publish(1, "TEMP IS 1", payload=bytes(1900))])
    with pytest.raises(LinkError, match="do not fit a message"):
        scenario.run(on=wb.motes.virtual(lockstep=True, kind=C))


@pytest.mark.parametrize("tool", ["gcc", "arm-none-eabi-gcc", "qemu-system-arm"])
def test_missing_tool_is_named_with_its_package(tool, monkeypatch):
    which = in_c.shutil.which
    monkeypatch.setattr(in_c, "newlib", lambda: "somewhere")
    monkeypatch.setattr(in_c.shutil, "which", lambda name: None if name == tool else which("sh"))
    kind = C if tool == "gcc" else CORTEX_M3
    package = {"arm-none-eabi-gcc": "gcc-arm-none-eabi libnewlib-arm-none-eabi"}.get(tool, tool)
    with pytest.raises(LinkError, match=f"but `{tool}` is not on the PATH: apt-get install {package}"):
        line(3).run(on=wb.motes.virtual(kind=kind))


def test_missing_library_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr(in_c, "newlib", lambda: "")
    monkeypatch.setattr(in_c.shutil, "which", lambda name: name)
    assert in_c.missing(CORTEX_M3).endswith("apt-get install libnewlib-arm-none-eabi")


@needs_c
def test_program_is_compiled_once_for_the_same_sources_and_sizes(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiled = []
    monkeypatch.setattr(in_c, "_compile", lambda command, made: (compiled.append(command), made.touch()))
    (tmp_path / "workbench" / "motes").mkdir(parents=True)
    first = in_c.program(C, wb.Diffusion())
    assert in_c.program(C, wb.Diffusion(refresh_s=3)) == first and len(compiled) == 1
    assert in_c.program(C, wb.Diffusion(max_data=21)) != first and len(compiled) == 2


@needs_c
def test_compiler_error_is_reported_and_leaves_nothing_in_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    sizes = wb.Diffusion().sizes_in_c() | {"MAX_INTERESTS": 256}
    with pytest.raises(LinkError, match="gcc cannot compile the program of a mote.*max_interests_fits"):
        in_c.build(C, in_c.folder_of(wb.Diffusion()), sizes, in_c.STACK_B)
    assert not list((tmp_path / "workbench" / "motes").iterdir())


@needs_c
def test_scenario_on_the_command_line_runs_on_kinds_by_node(tmp_path, capsys):
    path = tmp_path / "line.json"
    path.write_text(line(4, duration_s=2).to_json())
    out = str(tmp_path / "out")
    assert cli.main(["motes", "run", str(path), "--kind", "1=c,2=c", "--lockstep", "--out", out]) == 0
    assert "nodes: 2 c, 2 simulated" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        cli.main(["motes", "run", str(path), "--kind", "one=c"])
    assert "3=c,5=cortex-m3" in capsys.readouterr().err
