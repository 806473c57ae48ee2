"""Nodes in C with mutated frames: ``benchmarks/c_fuzz.py [--frames 10000000] [--seed 1]``.

Random and mutated frames, and all else that may happen to a node, under AddressSanitizer and
UndefinedBehaviorSanitizer: what the tests do with 100,000 frames (`tests/c/fuzz.c`), at the definition file's sizes and
where all lists are full. It needs gcc. Whatever a sanitizer finds ends the run with what it says.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.c.fuzzing import CASES, fuzz


def main() -> None:
    """Fuzz each case, and print what it met."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            begun = time.perf_counter()
            said = fuzz(case, options.frames, folder, options.seed)
            print(f"{case} ({time.perf_counter() - begun:.0f} s): {said}", flush=True)


if __name__ == "__main__":
    main()
