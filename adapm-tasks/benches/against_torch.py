"""Examples per second of adapm and of PyTorch at Wide & Deep, in turns: medians and their ratio.

    python adapm-tasks/benches/against_torch.py [RUNS] [THREADS] [BATCH]

Both train the same model with equal threads: 26 fields with 200,000 features in all, drawn by Zipf's law with exponent 1.1, an
embedding of 16 and a weight for each feature, layers of 256, 256 and 256 units, AdaGrad, batches of 128. In PyTorch embeddings are
`nn.Embedding(sparse=True)`, and batches are ready in memory before time is taken; adapm's time has reading and preparing them in it.
The first epoch of each is not counted. Needs torch and numpy; run it where `cargo` finds the workspace, or name the program in
$ADAPM.
"""

import json
import os
import statistics
import subprocess
import sys
import time

FIELDS, FEATURES, DIM, UNITS, EXAMPLES = 26, 200_000, 16, (256, 256, 256), 100_000


def adapm(threads, batch):
    program = [os.environ["ADAPM"]] if "ADAPM" in os.environ else ["cargo", "run", "--release", "--quiet", "-p", "adapm-tasks", "--"]
    command = program + ["train", "ctr", "--json", "--no-eval", "--nodes", 1, "--workers", threads, "--batch", batch]
    command += ["--examples", EXAMPLES, "--epochs", 3]
    lines = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout.splitlines()
    done = [line for line in map(json.loads, lines) if "epoch" in line][1:]
    return sum(line["examples"] for line in done) / sum(line["seconds"] for line in done)


def torch(threads, batch):
    """In a process of its own, as adapm is."""
    command = [sys.executable, __file__, "torch", str(threads), str(batch)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def batches(batch):
    """Each field has three quarters as many features as the one before, as adapm's generator does it."""
    import numpy
    import torch

    random = numpy.random.default_rng(1)
    steps, ids, first = EXAMPLES // batch, [], 0
    for size in numpy.maximum(FEATURES / 4 * 0.75 ** numpy.arange(FIELDS), 2).astype(int):
        weights = 1 / numpy.arange(1, size + 1) ** 1.1
        ids.append(first + random.choice(size, steps * batch, p=weights / weights.sum()))
        first += int(size)
    ids = torch.from_numpy(numpy.stack(ids, axis=1)).view(steps, batch, FIELDS)
    labels = torch.from_numpy(random.integers(0, 2, steps * batch)).float().view(steps, batch)
    return ids, labels, first


def train_torch(threads, batch):
    import torch
    from torch import nn

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    ids, labels, features = batches(batch)
    wide, deep = nn.Embedding(features, 1, sparse=True), nn.Embedding(features, DIM, sparse=True)
    nn.init.normal_(deep.weight, std=0.01)
    layers, inputs = [], FIELDS * DIM
    for outputs in UNITS:
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        inputs = outputs
    layers = nn.Sequential(*layers, nn.Linear(inputs, 1))
    settings = {"lr": 0.05, "initial_accumulator_value": 1.0}
    optimizers = [
        torch.optim.Adagrad([wide.weight, deep.weight], **settings),
        torch.optim.Adagrad(layers.parameters(), **settings),
    ]
    loss_of = nn.BCEWithLogitsLoss()

    def epoch():
        start = time.perf_counter()
        for of_batch, is_click in zip(ids, labels):
            for optimizer in optimizers:
                optimizer.zero_grad(set_to_none=True)
            logits = wide(of_batch).sum((1, 2)) + layers(deep(of_batch).flatten(1)).squeeze(1)
            loss_of(logits, is_click).backward()
            for optimizer in optimizers:
                optimizer.step()
        return len(labels) * batch / (time.perf_counter() - start)

    epoch()
    return epoch()


def main():
    if sys.argv[1:2] == ["torch"]:
        print(train_torch(int(sys.argv[2]), int(sys.argv[3])))
        return
    runs, threads, batch = (int(given) for given in sys.argv[1:] + ["5", "2", "128"][len(sys.argv) - 1 :])
    ours, theirs = [], []
    for _ in range(runs):
        ours.append(adapm(threads, batch))
        theirs.append(torch(threads, batch))
    for name, rates in (("adapm", ours), ("torch", theirs)):
        print(f"{name}  {statistics.median(rates):10,.0f} examples/s  ({min(rates):,.0f} to {max(rates):,.0f})")
    ratio = statistics.median(our / their for our, their in zip(ours, theirs))
    print(f"ratio  {ratio:.2f}  ({runs} runs, {threads} threads, batches of {batch})")


if __name__ == "__main__":
    main()
