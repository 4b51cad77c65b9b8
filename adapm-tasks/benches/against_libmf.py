"""Cells per second of adapm and of libmf at equal rank, in turns: medians and their ratio.

    python adapm-tasks/benches/against_libmf.py [RUNS]

A matrix of 100 k x 10 k with 10 M cells whose rows and columns fall with exponent 1.1, rank 32, two workers or threads. Needs numpy and
the package libmf, which comes out about four times slower than its sources built by hand with
-O3 -march=native -DUSEAVX -DUSEOMP -fopenmp: `docs/mf.md` has figures of those.

An iteration of libmf is the difference between a run of many and a run of few, so that its preparations do not count.
"""

import json
import statistics
import subprocess
import sys
import time

import numpy
from libmf import mf as libmf

ROWS, COLUMNS, CELLS = 100_000, 10_000, 10_000_000
FEW, MANY = 2, 8


def adapm():
    command = ["cargo", "run", "--release", "--quiet", "-p", "adapm-tasks", "--", "train", "mf", "--json", "--no-eval"]
    command += ["--workers", "2", "--epochs", "4", "--dim", "32", "--rank", "32"]
    command += ["--rows", str(ROWS), "--columns", str(COLUMNS), "--cells", str(CELLS), "--test-cells", "1"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    epochs = [json.loads(line) for line in printed.splitlines()[1:-1]]
    return max(epoch["cells"] / epoch["seconds"] for epoch in epochs)


def shares(here, there):
    """Shares that fall with the rank, none above half of what there is room for."""
    weights = numpy.arange(1, here + 1) ** -1.1
    for _ in range(50):
        weights = numpy.minimum(weights / weights.sum(), there / 2 / CELLS)
    return weights / weights.sum()


def cells():
    """Different cells in random order, with normal values."""
    random = numpy.random.default_rng(1)
    found = numpy.empty(0, dtype=numpy.int64)
    while len(found) < CELLS:
        rows = random.choice(ROWS, CELLS, p=shares(ROWS, COLUMNS))
        columns = random.choice(COLUMNS, CELLS, p=shares(COLUMNS, ROWS))
        found = numpy.union1d(found, rows.astype(numpy.int64) * COLUMNS + columns)
    found = random.permutation(found)[:CELLS]
    rows = random.permutation(ROWS)[found // COLUMNS]
    return numpy.column_stack([rows, found % COLUMNS, random.standard_normal(CELLS)]).astype(numpy.float32)


def seconds(data, iterations):
    started = time.perf_counter()
    libmf.MF(k=32, nr_threads=2, nr_iters=iterations, quiet=True).fit(data)
    return time.perf_counter() - started


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    data = cells()
    rates = []
    for _ in range(runs):
        iteration = (seconds(data, MANY) - seconds(data, FEW)) / (MANY - FEW)
        rates.append((adapm(), CELLS / iteration))
    ours, theirs = (statistics.median(side) for side in zip(*rates))
    print(f"adapm {ours / 1e6:.1f} M cells/s, libmf {theirs / 1e6:.1f} M cells/s: {ours / theirs:.2f}, medians of {runs}")


if __name__ == "__main__":
    main()
