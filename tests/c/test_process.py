"""A mote in C as a process behind the host link.

In lockstep its trace equals the simulator's, in a live run it delivers readings, and damaged input does it no harm.
"""

import functools
import json
import random
import re
import select
import socket
import subprocess
from contextlib import ExitStack, contextmanager

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.c.processes import MOTE, mote_includes, mote_sources, process, program
from tests.c_nodes import LIBRARY, SANITIZERS, WARNINGS, compile_c, declarations, needs_compiler, scratch
from tests.families import examples
from tests.golden import renew
from tests.until import PATIENCE_S, wait_until
from workbench.errors import LinkError
from workbench.motes import framing, lockstep, messages, rack
from workbench.motes.mote import Mote, configuration
from workbench.motes.program import program_files
from workbench.motes.session import protocol_on_a_mote
from workbench.protocols.contract import Delivered
from workbench.protocols.diffusion.filters import BUILT_IN
from workbench.protocols.diffusion.filters.built_in import registered
from workbench.sim import trace

pytestmark = needs_compiler
needs_node = pytest.mark.skipif(rack.missing() is not None, reason=str(rack.missing()))
SANITIZED = ("-O0", "-g1", *SANITIZERS)  # compiles in half the time of -O1 -g

FEW_FLOODS = wb.Flooding(ttl=3, max_events=4)


def golden(name):
    scenario = renew.scenario(name)
    return scenario, json.loads(renew.DIGESTS.read_text(encoding="utf-8"))[name]["trace_hash"]


def processes(stack, protocol, nodes, options=("-O1",)):
    """Start a process for each node, and return the URL of each node's process."""
    path = program(protocol, options)
    return {node: stack.enter_context(process(path))[1] for node in nodes}


@contextmanager
def opened(protocol):
    """Yield a mote in C under sanitizers, the list of its reports, and its process."""
    reports = []
    with process(program(protocol, SANITIZED)) as (started, url):
        mote = Mote(url, lambda kind, value: reports.append((kind, value)), lambda: 0.0)
        mote.open()
        yield mote, reports, started
        mote.close()


@pytest.fixture
def diffusion_mote():
    """Yield a mote for nodes of diffusion without filters, its reports, and its process."""
    with opened(wb.Diffusion()) as mote_and_reports:
        yield mote_and_reports


@pytest.fixture
def filtering_mote():
    """Yield a mote with room for two filters, its reports, and its process."""
    with opened(wb.Diffusion(filters=(wb.Filter("running_mean"), wb.Filter("rate_limit", 201)))) as mote_and_reports:
        yield mote_and_reports


@pytest.mark.parametrize("name", ["diffusion-motes", "diffusion-lossy", "flooding-disc"])
def test_processes_in_lockstep_give_the_golden_trace(name):
    scenario, recorded = golden(name)
    with ExitStack() as stack:
        urls = processes(stack, scenario.protocol, sorted(scenario.topology.nodes))
        assert trace.digest(lockstep.play(scenario, urls).table()) == recorded


@needs_node
def test_processes_and_micropython_together_in_lockstep_give_the_golden_trace():
    scenario, recorded = golden("diffusion-motes")
    nodes = sorted(scenario.topology.nodes)
    with ExitStack() as stack:
        virtual = stack.enter_context(rack.Rack(4, program_files("virtual", protocols=(wb.Diffusion,))))
        urls = processes(stack, scenario.protocol, nodes[4:]) | dict(zip(nodes[:4], virtual.urls, strict=True))
        assert trace.digest(lockstep.play(scenario, urls).table()) == recorded


@pytest.mark.parametrize("protocol", [wb.Diffusion(), wb.Flooding(max_events=50)], ids=["diffusion", "flooding"])
def test_processes_deliver_live_and_relay_for_each_other(protocol):
    workload = [wb.subscribe(0, "TEMP GE 25"), wb.publish(3, "TEMP IS 26", every_s=0.2, start_s=0.5)]
    scenario = wb.Scenario(wb.topology.line(4), protocol, workload, duration_s=2)
    with ExitStack() as stack:
        urls = processes(stack, scenario.protocol, range(4))
        run = scenario.run(on=wb.motes.boards(urls))
        assert run.wait(PATIENCE_S)
        rows = run.so_far().trace.to_pylist()
    assert not run.notes
    delivered = [row for row in rows if row["event"] == "delivered"]
    assert len(delivered) >= 5 and {row["node"] for row in delivered} == {0}
    assert {row["node"] for row in rows if row["event"] == "forwarded"} >= {1, 2}
    [published] = {row["detail"] for row in rows if row["event"] == "published"}
    assert published == "TEMP IS 26"
    [subscribed] = [row for row in rows if row["event"] == "subscribed"]
    assert (subscribed["node"], subscribed["detail"]) == (0, "TEMP GE 25")


@pytest.mark.parametrize("protocol", [wb.Diffusion(), wb.Flooding()], ids=["diffusion", "flooding"])
def test_program_compiled_by_hand_as_in_the_readme_accepts_the_default_settings(protocol, tmp_path):
    page = (LIBRARY / "README.md").read_text(encoding="utf-8")
    [commands] = re.findall(r"```\ncd hardware/c\n(D=[^`]*?)-o process\n\./process", page)
    folder = type(protocol).__name__.lower()
    assert f"{folder}/c" in commands
    commands = commands.replace("diffusion/c", f"{folder}/c", 1)
    subprocess.run(["sh", "-ec", f"{commands} -o {tmp_path}/process"], cwd=LIBRARY, check=True)
    with process(tmp_path / "process") as (_, url), Mote(url) as mote:
        mote.configure(1, protocol_on_a_mote(protocol), 1)
        assert mote.publish(wb.parse("TEMP IS 26")) == 0


def test_mote_names_the_limit_that_a_command_exceeds(diffusion_mote):
    mote, _, _ = diffusion_mote
    mote.configure(1, protocol_on_a_mote(wb.Diffusion()), 1)
    with pytest.raises(LinkError, match="there are more attributes than max_attributes=10$"):
        mote.publish(wb.parse(", ".join(f"TEMP IS {value}" for value in range(11))))
    for number in range(10):
        mote.subscribe(wb.parse(f"TEMP GE {number}"))
    with pytest.raises(LinkError, match="already has max_interests=10 different subscriptions$"):
        mote.subscribe(wb.parse("TEMP GE 10"))
    for _ in range(10):
        mote.subscribe(wb.parse("TEMP GE 1"))
    with pytest.raises(LinkError, match="already has MAX_SUBSCRIPTIONS=20 subscriptions$"):
        mote.subscribe(wb.parse("TEMP GE 1"))


def test_mote_refuses_settings_it_was_not_compiled_for_and_names_them(diffusion_mote):
    mote, _, _ = diffusion_mote
    for protocol, right in [
        (wb.Diffusion(max_data=7), "max_data=20; use that value, or compile"),
        (wb.Diffusion(profile="strict"), "profile='wide'$"),
        (wb.Diffusion(filters=(wb.Filter("rate_limit"),)), "MAX_FILTERS=0$"),
        (wb.Flooding(), "workbench.protocols.diffusion.node:DiffusionNode$"),
    ]:
        with pytest.raises(LinkError, match=f"this mote's program was compiled with {right}"):
            mote.configure(1, protocol_on_a_mote(protocol), 1)
    for more, name in [({"sensor": {"kind": "constant"}}, "sensor"), ({"keys": [[120, "A", "blob"]]}, "keys")]:
        with pytest.raises(LinkError, match=f"a mote in C cannot have this {name}$"):
            mote.configure(1, protocol_on_a_mote(wb.Diffusion()), 1, **more)
    with pytest.raises(LinkError, match="not configured"):
        mote.publish(wb.parse("TEMP IS 1"))


def test_mote_installs_the_filters_of_its_node_and_refuses_filters_it_does_not_have(filtering_mote, monkeypatch):
    mote, _, _ = filtering_mote
    for name in BUILT_IN:
        if name != "blob_fusion":
            on_both = wb.Filter(name, match="TEMP EQ_ANY"), wb.Filter("running_maximum", 201, at=1)
            mote.configure(1, protocol_on_a_mote(wb.Diffusion(filters=on_both), 1), 1)
    three = tuple(wb.Filter("rate_limit", key, at=[1]) for key in (200, 201, 202))
    mote.configure(2, protocol_on_a_mote(wb.Diffusion(filters=three), 2), 1)  # All three are at node 1.
    monkeypatch.setitem(registered, "joined", b"".join)
    monkeypatch.setitem(registered, "only_in_python", lambda attributes: None)
    for filters, problem in [
        ((wb.Filter("blob_fusion", function="joined"),), "this mote's program has no filter blob_fusion$"),
        ((wb.Filter("only_in_python"),), "this mote's program has no filter only_in_python$"),
        ((wb.Filter("running_mean", window=9),), "compiled with MAX_FILTER_WINDOW=5; use that value"),
        (
            (wb.Filter("rate_limit", interval_s=1e14),),
            "cannot have these settings of its filter rate_limit$",
        ),
        (three, "was compiled with MAX_FILTERS=2; use that value, or compile"),
    ]:
        with pytest.raises(LinkError, match=problem):
            mote.configure(1, protocol_on_a_mote(wb.Diffusion(filters=filters), 1), 1)
        with pytest.raises(LinkError, match="not configured"):
            mote.publish(wb.parse("TEMP IS 1"))


def test_mote_receives_only_its_own_filters_in_ascending_order_of_keys():
    at_some = wb.Filter("running_mean", 203, at=[1, 2]), wb.Filter("rate_limit", 201, at=3)
    filters = (wb.Filter("rate_limit", 205), *at_some)
    filters_by_node = [
        protocol_on_a_mote(wb.Diffusion(filters=filters), node)["settings"]["filters"] for node in (1, 3, 4)
    ]
    keys_by_node = [[setting["key"] for setting in node_filters] for node_filters in filters_by_node]
    assert keys_by_node == [[203, 205], [201, 205], [205]]


def test_mote_that_floods_obeys_commands_and_refuses_wrong_ones():
    with opened(FEW_FLOODS) as (mote, reports, _):
        for protocol, right in [(wb.Flooding(), "max_events=4; use that"), (wb.Diffusion(), ".*:FloodingNode$")]:
            with pytest.raises(LinkError, match=f"this mote's program was compiled with {right}"):
                mote.configure(1, protocol_on_a_mote(protocol), 1)
        mote.configure(1, protocol_on_a_mote(FEW_FLOODS), 1, boot=2)
        check_commands(mote, reports)


def test_mote_obeys_commands_and_refuses_wrong_ones(diffusion_mote):
    mote, reports, _ = diffusion_mote
    mote.configure(1, protocol_on_a_mote(wb.Diffusion()), 2**64 - 1, boot=2)
    check_commands(mote, reports)


def check_commands(mote, reports):
    """Send right and wrong commands to a mote that started twice before, and check its answers and reports."""
    first = 2 << 24
    assert [mote.subscribe(wb.parse("TEMP GE 25")), mote.subscribe(wb.parse("X EQ 1"), 3.0)] == [first, first + 1]
    assert mote.publish(wb.parse("TEMP IS 26, X IS 2")) == first
    for wrong in (
        lambda: mote.publish(wb.parse("TEMP GE 26")),
        lambda: mote.subscribe(wb.parse("TEMP IS 26")),
        lambda: mote.unsubscribe(99),
    ):
        with pytest.raises(LinkError):
            wrong()
    mote.unsubscribe(first)
    mote.unsubscribe(first)
    names = [value[1] for kind, value in reports if kind == "event" and value[1] >= messages.FIRST_OWN_EVENT]
    own = [messages.OWN_EVENTS[number - messages.FIRST_OWN_EVENT] for number in names]
    assert own == ["subscribed", "subscribed", "published", "unsubscribed"]
    kinds = [value[1] for kind, value in reports if kind == "event"]
    assert messages.EVENTS.index(Delivered) in kinds


@pytest.mark.parametrize("seed", range(4))
def test_noise_and_random_commands_do_a_mote_no_harm(seed):
    secret, dice = bytes(range(8)), random.Random(seed)
    protocol = FEW_FLOODS if seed == 3 else wb.Diffusion()
    configured = configuration(1, protocol_on_a_mote(protocol), 5)
    greeting = framing.encode(messages.encode(messages.HELLO, messages.MAGIC, messages.VERSION, 1, rest=secret))
    with ExitStack() as stack:
        started, url = stack.enter_context(process(program(protocol, SANITIZED)))
        line = stack.enter_context(socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))))
        heard = framing.Deframer()
        line.sendall(greeting)
        line.sendall(framing.encode(messages.encode(messages.CONFIGURE, secret, 0, rest=configured)))
        for _ in range(3000):
            # Noise, messages of noise, and commands of noise with the secret of their host.
            body = dice.randbytes(dice.choice([0, 1, 9, 20, 60, 300]))
            kind = bytes((dice.choice([2, *range(4, 11)]),))
            known = framing.encode(kind + secret + bytes(2) + body)
            line.sendall(dice.choice([body, framing.encode(body), known, known]))
            if dice.random() < 0.1:
                line.sendall(greeting)
            if select.select([line], [], [], 0)[0]:
                heard.feed(line.recv(1 << 20))
        line.sendall(b"\0" + greeting + framing.encode(messages.encode(messages.PING, secret, 77)))
        answered = []
        while 77 not in answered:
            data = line.recv(1 << 20)
            assert data, started.stderr.read()
            decoded = [messages.decode(body) for body in heard.feed(data)]
            answered += [fields[0] for kind, fields, _ in decoded if kind == messages.ANSWER]


def test_truncated_configuration_is_refused_and_never_read_past_its_end(diffusion_mote):
    mote, _, started = diffusion_mote
    text = configuration(1, protocol_on_a_mote(wb.Diffusion()), 5)
    for end in range(0, len(text), 7):
        with pytest.raises(LinkError):
            mote.command(messages.CONFIGURE, rest=text[:end])
    mote.command(messages.CONFIGURE, rest=text)
    assert started.poll() is None


def test_truncated_or_damaged_filters_are_refused_or_installed(filtering_mote):
    mote, _, started = filtering_mote
    filters = (wb.Filter("threshold_alarm", match="TEMP EQ_ANY"), wb.Filter("rate_limit", 201))
    text = configuration(1, protocol_on_a_mote(wb.Diffusion(filters=filters)), 5)
    begin, end, dice = text.index(b'"filters"'), text.rindex(b"]"), random.Random(5)
    outcomes = set()
    for position in range(begin, end):
        wrong = [text[:position], text[:position] + bytes([dice.choice(b'"{}[],:0z')]) + text[position + 1 :]]
        for wrong_text in wrong:
            try:
                outcomes.add(mote.command(messages.CONFIGURE, rest=wrong_text).number)
            except LinkError as error:
                outcomes.add(str(error).rpartition(": ")[2])
    assert len(outcomes) > 5 and started.poll() is None
    mote.command(messages.CONFIGURE, rest=text)


@settings(max_examples=50)
@given(st.binary(max_size=600) | st.integers(0, 778).map(lambda size: bytes(range(1, 255)) * 5 + bytes(size)))
def test_bodies_are_framed_as_in_python(framer, body):
    ffi, functions = framer
    written = bytearray()

    @ffi.callback("void(void *, const uint8_t *, size_t)")
    def write(_, data, size):
        written.extend(ffi.buffer(data, size))

    enframer = ffi.new("struct enframer *")
    functions.enframe_begin(enframer, ffi.NULL, write)
    for byte in body:
        functions.enframe_put(enframer, byte)
    functions.enframe_end(enframer)
    assert written == framing.encode(body)
    deframer, _memory = make_deframer(ffi)
    sizes = [functions.deframe(deframer, byte) for byte in written]
    assert sizes[:-1] == [-1] * (len(written) - 1) and sizes[-1] == len(body)
    assert bytes(ffi.buffer(deframer.bytes, len(body))) == body


@settings(max_examples=50)
@given(st.lists(st.integers(0, 255), max_size=300), st.binary(max_size=40))
def test_noise_between_frames_is_counted_as_in_python(framer, noise, body):
    ffi, functions = framer
    reference, (deframer, _memory) = framing.Deframer(), make_deframer(ffi)
    for data in (bytes(noise), framing.encode(body)):
        bodies = []
        for byte in data:
            size = functions.deframe(deframer, byte)
            if size >= 0:
                bodies.append(bytes(ffi.buffer(deframer.bytes, size)))
        assert bodies == reference.feed(data)
        assert deframer.spoilt == reference.spoilt


def make_deframer(ffi):
    """Return a deframer, and its memory, which must stay referenced."""
    memory = ffi.new("uint8_t[3000]")
    return ffi.new("struct deframer *", {"room": 3000, "bytes": memory}), memory


@pytest.fixture(scope="module", params=[258, 1024], ids=["written block by block", "written at once"])
def framer(request):
    """Compile the C of framing alone, with the smallest output buffer and with a larger one."""
    import cffi

    path = scratch() / f"framing-{request.param}.so"
    room = f"-DENFRAMER_B={request.param}"
    compile_c([*WARNINGS, "-O1", "-fPIC", "-shared", room, str(MOTE / "framing.c"), "-o", str(path)])
    ffi = cffi.FFI()
    ffi.cdef(declarations([room, f"-I{MOTE}"], ["framing.h"]))
    return ffi, ffi.dlopen(str(path))


def test_mote_that_is_reset_or_restarted_is_greeted_again():
    path = program(wb.Diffusion())
    with process(path, boot=3) as (started, url):
        port = int(url.rpartition(":")[2])
        mote = Mote(url, lambda kind, value: None, lambda: 0.0)
        assert mote.open().boot == 3
        mote.reset()
        wait_until(lambda: started.poll() is not None)
        with process(path, port, boot=4):
            wait_until(lambda: mote.greeting.boot == 4)
            mote.close()


DECIMALS = st.floats(-1e9, 1e9, allow_subnormal=False) | st.sampled_from([0.1, 0.75, 30.0, 1e-5, 1e22, 5e-22, 65535.0])


@settings(max_examples=examples(200))
@given(DECIMALS)
@example(0.30000000000000004)
def test_small_board_reads_a_number_as_python_does_or_refuses_it(number):
    ffi, functions = freestanding()
    text = protocol_on_a_mote(wb.Diffusion())
    text["settings"]["blacklist_loss"] = number
    settings_in_c = ffi.new("struct diffusion_settings *")
    problem = functions.settings_read(json.dumps(text["settings"], separators=(",", ":")).encode(), settings_in_c)
    digits = len(repr(abs(number)).partition("e")[0].replace(".", "").lstrip("0"))
    if problem.why == ffi.NULL:
        assert settings_in_c.blacklist_loss == number
    else:
        assert ffi.string(problem.what) == b"blacklist_loss" and (digits > 15 or not 1e-8 < abs(number) < 1e22)


@functools.cache
def freestanding():
    """Compile the C that reads settings as for a small board, and return its interface and library."""
    import cffi

    path = scratch() / "settings.so"
    flags = [*WARNINGS, "-O1", "-ffreestanding", "-fPIC", "-shared", *mote_includes("diffusion")]
    files = [file for file in mote_sources("diffusion") if file.endswith(("/json.c", "/settings.c"))]
    compile_c([*flags, *files, "-o", str(path)])
    ffi = cffi.FFI()
    ffi.cdef(declarations(mote_includes("diffusion"), ["node_calls.h", "settings.h"]))
    return ffi, ffi.dlopen(str(path))
