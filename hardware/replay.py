"""Load a mote's program, replay what its node received in a simulated run, and print the memory at each stage.

The file "calls" has one record for each call: time in µs u64, kind u8, length u16 (little-endian), then bytes. Kind 0
is a datagram for the radio's stub, kind 1 are bytes of the host link. The first records, which all
have the same time, greet and configure the mote.

Output: a line for each stage, its name and the allocated bytes without garbage; then "heap" and the bytes of the heap.
A problem of the mote ends the program with a traceback.

This file runs on MicroPython's port for Unix (board_memory.py).
"""

import gc
import struct

import inbox

RECORD = "<QBH"
RECORD_B = 11
SHORTEST_WAIT_US = 20000

problems = []
clock = [0]


def show(stage):
    """Print a line with the name of a stage and the allocated bytes, after a garbage collection."""
    gc.collect()
    print(stage, gc.mem_alloc())


def records():
    """Yield (time in µs, kind, bytes) of each record in the file "calls"."""
    with open("calls", "rb") as file:
        while True:
            header = file.read(RECORD_B)
            if not header:
                return
            time_us, kind, size = struct.unpack(RECORD, header)
            yield time_us, kind, file.read(size)


def check(mote):
    """Raise MemoryError if the mote has reported a problem, or its radio found no memory for a frame."""
    faults = getattr(mote.radio, "faults", {})
    if problems or "no_heap" in faults or "no_mem" in faults:
        raise MemoryError(problems[0] if problems else "no memory for a frame")


def let_pass(mote, until_us):
    """Let the mote execute its steps that are due before the time ``until_us``, and set the clock to this time."""
    while True:
        wait_us = mote.step()
        check(mote)
        if inbox.datagrams:
            continue
        if wait_us is None or clock[0] + wait_us >= until_us:
            break
        clock[0] += max(wait_us, SHORTEST_WAIT_US if wait_us else 0)
    clock[0] = until_us


def main():
    """Replay the calls, and print the memory at each stage."""
    show("stubs")
    import board
    from mote import Mote

    # A board's clock and line, without a host: a clock of the replay, and a line without a reader.
    board.now_us = lambda: clock[0]
    board.write = lambda data: None
    mote = Mote(board)
    mote._report_error = problems.append
    show("program")
    start_us = None
    for time_us, kind, data in records():
        if start_us is None:
            start_us = clock[0] = time_us
        if start_us != time_us and start_us:
            mote.step()
            show("configured")
            start_us = 0
        let_pass(mote, time_us)
        if kind:
            mote.feed(data)
            check(mote)
        else:
            inbox.datagrams.append(data)
    let_pass(mote, time_us + 1000000)
    show("used")
    print("heap", gc.mem_alloc() + gc.mem_free())


main()
