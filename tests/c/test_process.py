"""A mote in C as a process behind the host link: in lockstep its trace is the simulator's, live it delivers, and it
survives whatever comes over its line."""

import functools
import json
import random
import select
import socket
from contextlib import ExitStack

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import workbench as wb
from tests.c.processes import MOTE, mote_includes, mote_sources, process, program
from tests.c_nodes import SANITIZERS, WARNINGS, compile_c, declarations, needs_compiler, scratch
from tests.golden import renew
from tests.until import wait_until
from workbench.errors import LinkError
from workbench.motes import framing, lockstep, messages, rack
from workbench.motes.crew import protocol_on_a_mote
from workbench.motes.mote import Mote, configuration
from workbench.motes.program import program_files
from workbench.protocols.contract import Delivered
from workbench.sim import trace

pytestmark = needs_compiler
needs_node = pytest.mark.skipif(rack.missing() is not None, reason=str(rack.missing()))
SANITIZED = ("-O1", "-g", *SANITIZERS)


def golden(name):
    scenario = renew.scenario(name)
    return scenario, json.loads(renew.DIGESTS.read_text(encoding="utf-8"))[name]["trace_hash"]


def processes(stack, protocol, nodes, options=("-O1",)):
    """URLs of a process for each node."""
    path = program(protocol, options)
    return {node: stack.enter_context(process(path))[1] for node in nodes}


@pytest.fixture
def mote():
    """A mote in C under sanitizers, and what it tells."""
    told = []
    with process(program(wb.Diffusion(), SANITIZED)) as (started, url):
        one = Mote(url, lambda kind, value: told.append((kind, value)), lambda: 0.0)
        one.open()
        yield one, told, started
        one.close()


def test_processes_in_lockstep_give_the_golden_trace():
    scenario, recorded = golden("diffusion-motes")
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


def test_processes_deliver_live_and_relay_for_each_other():
    workload = [wb.subscribe(0, "TEMP GE 25"), wb.publish(3, "TEMP IS 26", every_s=0.2, start_s=0.5)]
    scenario = wb.Scenario(wb.topology.line(4), wb.Diffusion(), workload, duration_s=2)
    with ExitStack() as stack:
        urls = processes(stack, scenario.protocol, range(4))
        run = scenario.run(on=wb.motes.boards(urls))
        assert run.wait(30)
        rows = run.so_far().trace.to_pylist()
    assert not run.notes
    delivered = [row for row in rows if row["event"] == "delivered"]
    assert len(delivered) >= 5 and {row["node"] for row in delivered} == {0}
    assert {row["node"] for row in rows if row["event"] == "forwarded"} >= {1, 2, 3}
    [published] = {row["detail"] for row in rows if row["event"] == "published"}
    assert published == "TEMP IS 26"
    [subscribed] = [row for row in rows if row["event"] == "subscribed"]
    assert (subscribed["node"], subscribed["detail"]) == (0, "TEMP GE 25")


def test_mote_refuses_what_it_was_not_compiled_for_and_says_what(mote):
    one, _, _ = mote
    for protocol, said in [
        (wb.Diffusion(max_data=7), "max_data"),
        (wb.Diffusion(profile="strict"), "profile"),
        (wb.Diffusion(filters=(wb.Filter("rate_limit"),)), "filters"),
        (wb.Flooding(), "node"),
    ]:
        with pytest.raises(LinkError, match=f"compiled for another setting.*{said}"):
            one.configure(1, protocol_on_a_mote(protocol), 1)
    with pytest.raises(LinkError, match="not configured"):
        one.publish(wb.parse("TEMP IS 1"))


def test_commands_are_done_and_wrong_ones_are_refused(mote):
    one, told, _ = mote
    one.configure(1, protocol_on_a_mote(wb.Diffusion()), 2**64 - 1, boot=2)
    first = 2 << 24
    assert [one.subscribe(wb.parse("TEMP GE 25")), one.subscribe(wb.parse("X EQ 1"), 3.0)] == [first, first + 1]
    assert one.publish(wb.parse("TEMP IS 26, X IS 2")) == first
    for wrong in (
        lambda: one.publish(wb.parse("TEMP GE 26")),
        lambda: one.subscribe(wb.parse("TEMP IS 26")),
        lambda: one.unsubscribe(99),
    ):
        with pytest.raises(LinkError):
            wrong()
    one.unsubscribe(first)
    one.unsubscribe(first)
    names = [value[1] for kind, value in told if kind == "event" and value[1] >= messages.FIRST_OWN_EVENT]
    own = [messages.OWN_EVENTS[number - messages.FIRST_OWN_EVENT] for number in names]
    assert own == ["subscribed", "subscribed", "published", "unsubscribed"]
    kinds = [value[1] for kind, value in told if kind == "event"]
    assert messages.EVENTS.index(Delivered) in kinds


@pytest.mark.parametrize("seed", range(3))
def test_whatever_comes_over_the_line_does_a_mote_no_harm(seed):
    secret, dice = bytes(range(8)), random.Random(seed)
    configured = configuration(1, protocol_on_a_mote(wb.Diffusion()), 5)
    greeting = framing.encode(messages.encode(messages.HELLO, messages.MAGIC, messages.VERSION, 1, rest=secret))
    with ExitStack() as stack:
        started, url = stack.enter_context(process(program(wb.Diffusion(), SANITIZED)))
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
            said = [messages.decode(body) for body in heard.feed(data)]
            answered += [fields[0] for kind, fields, _ in said if kind == messages.ANSWER]


def test_configuration_cut_anywhere_is_refused_or_read_but_never_read_past(mote):
    one, _, started = mote
    text = configuration(1, protocol_on_a_mote(wb.Diffusion()), 5)
    for end in range(0, len(text), 7):
        with pytest.raises(LinkError):
            one.command(messages.CONFIGURE, rest=text[:end])
    one.command(messages.CONFIGURE, rest=text)
    assert started.poll() is None


@settings(max_examples=200)
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
    found = [functions.deframe(deframer, byte) for byte in written]
    assert found[:-1] == [-1] * (len(written) - 1) and found[-1] == len(body)
    assert bytes(ffi.buffer(deframer.bytes, len(body))) == body


@settings(max_examples=200)
@given(st.lists(st.integers(0, 255), max_size=300), st.binary(max_size=40))
def test_what_is_no_frame_is_counted_as_in_python(framer, noise, body):
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
    """A deframer, and the memory that it needs."""
    memory = ffi.new("uint8_t[3000]")
    return ffi.new("struct deframer *", {"room": 3000, "bytes": memory}), memory


@pytest.fixture(scope="module", params=[258, 1024], ids=["written block by block", "written at once"])
def framer(request):
    """The C of framing alone, with as little room for what goes out as there may be, and with some."""
    import cffi

    path = scratch() / f"framing-{request.param}.so"
    room = f"-DENFRAMER_B={request.param}"
    compile_c([*WARNINGS, "-O1", "-fPIC", "-shared", room, str(MOTE / "framing.c"), "-o", str(path)])
    ffi = cffi.FFI()
    ffi.cdef(declarations([room, f"-I{MOTE}"], ["framing.h"]))
    return ffi, ffi.dlopen(str(path))


def test_mote_that_is_reset_or_restarted_is_greeted_anew():
    path = program(wb.Diffusion())
    with process(path, boot=3) as (started, url):
        port = int(url.rpartition(":")[2])
        one = Mote(url, lambda kind, value: None, lambda: 0.0)
        assert one.open().boot == 3
        one.reset()
        wait_until(lambda: started.poll() is not None)
        with process(path, port, boot=4):
            wait_until(lambda: one.greeting.boot == 4)
            one.close()


DECIMALS = st.floats(-1e9, 1e9, allow_subnormal=False) | st.sampled_from([0.1, 0.75, 30.0, 1e-5, 1e22, 5e-22, 65535.0])


@settings(max_examples=400)
@given(DECIMALS)
@example(0.30000000000000004)
def test_small_board_reads_a_number_as_python_does_or_refuses_it(number):
    ffi, functions = freestanding()
    text = protocol_on_a_mote(wb.Diffusion())
    text["settings"]["blacklist_loss"] = number
    made = ffi.new("struct diffusion_settings *")
    said = functions.settings_read(json.dumps(text["settings"], separators=(",", ":")).encode(), made)
    digits = len(repr(abs(number)).partition("e")[0].replace(".", "").lstrip("0"))
    if said == ffi.NULL:
        assert made.blacklist_loss == number
    else:
        assert ffi.string(said) == b"blacklist_loss" and (digits > 15 or not 1e-8 < abs(number) < 1e22)


@functools.cache
def freestanding():
    """The C that reads settings, as a small board has it."""
    import cffi

    path = scratch() / "settings.so"
    how = [*WARNINGS, "-O1", "-ffreestanding", "-fPIC", "-shared", *mote_includes("diffusion")]
    files = [one for one in mote_sources("diffusion") if one.endswith(("/json.c", "/settings.c"))]
    compile_c([*how, *files, "-o", str(path)])
    ffi = cffi.FFI()
    ffi.cdef(declarations(mote_includes("diffusion"), ["settings.h"]))
    return ffi, ffi.dlopen(str(path))
