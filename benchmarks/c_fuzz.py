"""Nodes in C with mutated frames: ``benchmarks/c_fuzz.py [--frames 10000000] [--seed 1]``.

A node gets random and mutated frames, commands and timer events (`tests/c/fuzz.c`) under AddressSanitizer and
UndefinedBehaviorSanitizer. The tests do the same with 100,000 frames. The sizes are those of the definition file, and
small sizes at which all lists are full. It needs gcc. An error that a sanitizer finds ends the run with its message.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.c.fuzzing import CASES, fuzz


def main() -> None:
    """Test the node in C with mutated frames in each case (sizes and filters of the node), and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            begun = time.perf_counter()
            output = fuzz(case, options.frames, folder, options.seed)
            print(f"{case} ({time.perf_counter() - begun:.0f} s): {output}", flush=True)


if __name__ == "__main__":
    main()
