"""The motes for Contiki-NG and RIOT compile against stubs of their calls, and exchange readings on these stubs.

They were never compiled with the systems themselves. The stubs end a mote that breaks a rule of its system, such as a
timer that is set outside of its process. `console.h` describes how a test drives a mote.
"""

import functools
import re
import subprocess
from contextlib import ExitStack

import pytest

from tests.c_nodes import LIBRARY, SANITIZERS, WARNINGS, compile_c, folder_of, needs_compiler, scratch
from tests.repository import REPOSITORY
from tests.until import PATIENCE_S
from workbench.motes import in_c

pytestmark = needs_compiler
STUBS = REPOSITORY / "tests" / "c" / "systems"
BOARDS = LIBRARY / "boards"
NO_CORTEX_M3 = in_c.missing(in_c.CORTEX_M3)
STUB_OF = {"contiki-ng": "contiki.h", "riot": "riot.h"}
MAIN_OF = {"contiki-ng": "mote.c", "riot": "main.c"}
SYSTEMS = list(MAIN_OF)
# Make files in place of those of the systems: they use the variables of an application's make file as those do.
MAKE_FILES = {
    "contiki-ng": {
        "Makefile.include": """
VPATH = $(PROJECTDIRS)
$(CONTIKI_PROJECT): $(CONTIKI_PROJECT).c $(PROJECT_SOURCEFILES)
	gcc $(WARNINGS) $(CFLAGS) -I. $(PROJECTDIRS:%=-I%) -I$(CONTIKI) -I$(STUBS) $^ $(STUBS)/contiki.c -o $(OUT)
"""
    },
    "riot": {
        "Makefile.include": """
export CFLAGS INCLUDES
all:
	$(foreach folder,$(DIRS),$(MAKE) -C $(folder) &&) true
	gcc $(WARNINGS) $(CFLAGS) $(INCLUDES) -I$(RIOTBASE) -I$(STUBS) -Dmain=mote_main -c main.c -o $(OUT).main.o
	gcc $(WARNINGS) $(CFLAGS) -I$(STUBS) $(STUBS)/riot.c $(OUT).main.o $(OUT)-*.o -pthread -o $(OUT)
""",
        "Makefile.base": """
all: $(SRC:%.c=$(OUT)-%.o)
$(OUT)-%.o: %.c
	gcc $(WARNINGS) $(CFLAGS) $(INCLUDES) -c $< -o $@
""",
    },
}


@functools.cache
def system_folder(system):
    """Return a folder in place of the system's: the headers that the mote includes, and the make files."""
    folder = scratch() / f"system-{system}"
    source = (BOARDS / system / MAIN_OF[system]).read_text(encoding="utf-8")
    for name in set(re.findall(r'#include "(.+)"', source)) - {STUB_OF[system], "standalone.h"}:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f'#include "{STUB_OF[system]}"\n')
    for name, text in MAKE_FILES[system].items():
        (folder / name).write_text(text)
    return folder


@functools.cache
def program(system, options=()):
    """Return the path of the mote's program, made by the make file of its board."""
    path = scratch() / f"mote-{system}{'-sanitized' if options else ''}"
    place = "CONTIKI" if system == "contiki-ng" else "RIOTBASE"
    warnings = " ".join((*WARNINGS, "-O0", *options))
    variables = {place: system_folder(system), "STUBS": STUBS, "OUT": path, "WARNINGS": warnings}
    command = ["make", "-s", "-C", str(BOARDS / system), *(f"{name}={value}" for name, value in variables.items())]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    assert not list((BOARDS / system).rglob("*.o"))
    return path


class Mote:
    """A mote on a stub; ``lines`` are those that it has printed, ``frames`` those that it has sent and that wait."""

    def __init__(self, ends, system, node, start_us=0, options=()):
        self.node = node
        self.now_us = start_us
        self.lines, self.frames = [], []
        self._process = ends.enter_context(
            subprocess.Popen(
                [program(system, options), str(node), str(start_us), str(node)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        ends.callback(self._process.kill)
        self._read()

    def end(self):
        """End the input, and return the exit code of the program."""
        self._process.stdin.close()
        return self._process.wait(PATIENCE_S)

    def command(self, line):
        """Send a line of console.h, and read the lines that the mote prints then."""
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        self._read()

    def _read(self):
        while True:
            line = self._process.stdout.readline()
            assert line, "the program has ended"
            assert not line.startswith("broken"), line
            kind, _, rest = line.strip().partition(" ")
            if kind == "alarm":
                self.alarm_us = int(rest)
                return
            if kind == "send":
                destination, frame = rest.split()
                self.frames.append((int(destination), frame))
            else:
                self.lines.append(line.strip())


def advance(motes, until_us):
    """Let time pass, mote by mote in the order of their alarms."""
    while True:
        mote = min(motes, key=lambda mote: mote.alarm_us)
        if mote.alarm_us > until_us:
            return
        assert mote.alarm_us >= mote.now_us
        mote.now_us = max(mote.alarm_us, mote.now_us + 1)
        mote.command(f"time {mote.now_us}")
        settle(motes)


def settle(motes):
    """Deliver the frames to neighbors, the motes before and behind in the list, and report the outcomes."""
    while any(mote.frames for mote in motes):
        for place, mote in enumerate(motes):
            while mote.frames:
                destination, frame = mote.frames.pop(0)
                near = [other for other in motes[max(0, place - 1) : place + 2] if other is not mote]
                receivers = [other for other in near if destination in (-1, other.node)]
                for other in receivers:
                    other.command(f"frame {mote.node} {int(destination == -1)} {frame}")
                mote.command(f"outcome {int(destination == -1 or bool(receivers))}")


@pytest.mark.parametrize(
    ("systems", "options"),
    [
        (("contiki-ng", "riot", "contiki-ng"), ()),
        pytest.param(("contiki-ng", "contiki-ng", "riot"), SANITIZERS, marks=pytest.mark.family),
    ],
    ids=["both", "sanitized"],
)
def test_readings_travel_over_a_mote_between_to_the_subscriber(systems, options):
    with ExitStack() as ends:
        motes = [Mote(ends, system, node, 0, options) for system, node in zip(systems, (1, 2, 300), strict=True)]
        motes[0].command("line subscribe 25")
        settle(motes)
        for number, (at_s, reading) in enumerate(((1, "26.5"), (2, "24"), (3, "-3.25"), (70, "30"), (71, "25"))):
            advance(motes, 1_000_000 * at_s)
            motes[2].command(f"line publish {reading}")
            assert motes[2].lines[-1] == f"reading {number}"
            settle(motes)
        assert motes[0].lines == ["subscription 0", *(f"delivered {t} from 300" for t in ("26.50", "30.00", "25.00"))]
        assert not motes[1].lines
        assert [mote.end() for mote in motes] == [0, 0, 0]  # A sanitizer finds packets that were not released.


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("loss", ["outcome 0", "refuse"])
def test_reading_whose_frame_is_given_up_is_sent_again(system, loss):
    with ExitStack() as ends:
        sink, source = motes = [Mote(ends, system, node) for node in (1, 2)]
        sink.command("line subscribe 25")
        settle(motes)
        for _ in range(2):  # After the first reading, the path is reinforced, and data are unicast.
            advance(motes, source.now_us + 2_000_000)
            source.command("line publish 26")
            settle(motes)
        assert len(sink.lines) == 3
        if loss == "refuse":
            source.command("refuse")
        source.command("line publish 27")
        if loss != "refuse":
            [(destination, _)] = source.frames
            assert destination == sink.node
            source.frames.clear()
            source.command(loss)
        advance(motes, source.now_us + 10_000_000)
        assert sink.lines[3:] == ["delivered 27.00 from 2"]


@pytest.mark.parametrize("system", SYSTEMS)
def test_reading_whose_frame_is_acknowledged_is_sent_once(system):
    with ExitStack() as ends:
        sink, source = motes = [Mote(ends, system, node) for node in (1, 2)]
        sink.command("line subscribe 25")
        settle(motes)
        advance(motes, 2_000_000)
        for _ in range(2):
            source.command("line publish 26")
            settle(motes)
        source.command("line publish 27")
        [(destination, _)] = source.frames
        source.frames.clear()
        source.command("outcome 1")
        assert destination == sink.node and not source.frames
        source.command(f"time {source.now_us + 5_000_000}")
        assert not source.frames


@pytest.mark.parametrize("system", SYSTEMS)
def test_wrong_commands_are_answered(system):
    with ExitStack() as ends:
        mote = Mote(ends, system, 7)
        for line in ("publish", "publish x", "publish 400", "publish 1.234", "publish 1 2", "subscribe 2,5"):
            mote.command(f"line {line}")
            assert mote.lines.pop().startswith("commands are: subscribe 25, publish 26.5")
        for _ in range(21):
            mote.command("line subscribe 25")
            settle([mote])
        assert mote.lines[-1].startswith("refused: ")


@pytest.mark.parametrize("system", SYSTEMS)
def test_clock_goes_on_over_a_wrap_of_its_counter_and_a_mote_sleeps(system):
    with ExitStack() as ends:
        motes = [Mote(ends, system, node, 90_000_000_000) for node in (1, 2)]
        motes[0].command("line subscribe 25")
        settle(motes)
        alarms = 0
        while motes[0].now_us < 90_040_000_000:  # An interest is flooded again after 30 s.
            alarms += 1
            advance(motes, min(mote.alarm_us for mote in motes))
        assert alarms < 300
        motes[1].command("line publish 26")
        settle(motes)
        assert motes[0].lines[-1] == "delivered 26.00 from 2"


@pytest.mark.skipif(NO_CORTEX_M3 is not None, reason=str(NO_CORTEX_M3))
@pytest.mark.parametrize("system", SYSTEMS)
def test_mote_compiles_for_a_small_board_without_a_warning(system):
    standalone = LIBRARY / "standalone"
    folders = (system_folder(system), STUBS, LIBRARY, standalone, folder_of("diffusion"))
    sizes = ["-DMESSAGE_B=29", "-DMAX_INTERESTS=5", "-DMAX_GRADIENTS=4", "-DMAX_REINFORCEMENTS=4"]
    chip = ["-mcpu=cortex-m3", "-mthumb", "-Os"]
    for path in (BOARDS / system / MAIN_OF[system], standalone / "standalone.c"):
        flags = [*WARNINGS, *chip, *sizes, *(f"-I{folder}" for folder in folders), "-c", str(path), "-o", "/dev/null"]
        compile_c(flags, "arm-none-eabi-gcc")
