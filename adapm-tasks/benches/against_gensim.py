"""Words per second of adapm and of gensim on the same text, in turns: medians and their ratios.

    python adapm-tasks/benches/against_gensim.py TEXT [RUNS] [EPOCHS]

Both train skip-gram with the same settings: dimension 100, window 5, 5 negatives, minimum count 5, sample 1e-3, two workers,
5 epochs. A word is an occurrence of a word of the vocabulary, thinned or not, for both; reading the text while training is in the
time of both, counting the vocabulary in that of neither. gensim runs in its usual way (LineSentence: one thread reads, two train)
and in its fastest (corpus_file: two threads read and train). Processor seconds are those of training, of all threads: they
say more than the clock where other programs run. EPOCHS is 2 or more. Needs gensim; run it where `cargo` finds the workspace, or name the program in
$ADAPM.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import time

DIM, WINDOW, NEGATIVES, MIN_COUNT, SAMPLE, WORKERS = 100, 5, 5, 5, 1e-3, 2


def seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def adapm(text, epochs):
    program = [os.environ["ADAPM"]] if "ADAPM" in os.environ else ["cargo", "run", "--release", "--quiet", "-p", "adapm-tasks", "--"]
    settings = ["--dim", DIM, "--window", WINDOW, "--negatives", NEGATIVES, "--min-count", MIN_COUNT, "--sample", SAMPLE]
    command = program + ["train", "wv", "--json", "--no-eval", "--data", text, "--workers", WORKERS]

    def run(epochs):
        before = seconds_of_children()
        arguments = [str(word) for word in command + settings + ["--epochs", epochs]]
        lines = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.splitlines()
        return [json.loads(line) for line in lines], seconds_of_children() - before

    # One epoch and `epochs` of them differ by training alone.
    _, one = run(1)
    lines, used = run(epochs)
    done = [line for line in lines if "epoch" in line]
    words, seconds = (sum(line[field] for line in done) for field in ("words", "seconds"))
    return words / seconds, (used - one) * epochs / (epochs - 1)


def gensim(text, epochs, is_file):
    """In a process of its own, as adapm is."""
    command = [sys.executable, __file__, "gensim", text, str(epochs), str(int(is_file))]
    words, seconds, used = map(float, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    return words / seconds, used


def train_gensim(text, epochs, is_file):
    from gensim.models import Word2Vec
    from gensim.models.word2vec import LineSentence

    model = Word2Vec(
        vector_size=DIM, window=WINDOW, negative=NEGATIVES, min_count=MIN_COUNT, sample=SAMPLE, sg=1, hs=0, workers=WORKERS, seed=1
    )
    model.build_vocab(corpus_file=text)
    words = sum(model.wv.get_vecattr(word, "count") for word in model.wv.index_to_key)
    source = {"corpus_file": text, "total_words": model.corpus_total_words} if is_file else {"corpus_iterable": LineSentence(text)}
    started, used = time.perf_counter(), time.process_time()
    model.train(total_examples=model.corpus_count, epochs=epochs, **source)
    print(epochs * words, time.perf_counter() - started, time.process_time() - used)


def main():
    text = sys.argv[1]
    runs, epochs = (int(sys.argv[at]) if len(sys.argv) > at else default for at, default in ((2, 3), (3, 5)))
    ways = {
        "adapm": lambda: adapm(text, epochs),
        "gensim, LineSentence": lambda: gensim(text, epochs, False),
        "gensim, corpus_file": lambda: gensim(text, epochs, True),
    }
    rates = {name: [] for name in ways}
    for run in range(runs):
        for name, way in ways.items():
            rates[name].append(way())
            rate, used = rates[name][-1]
            print(f"run {run + 1}: {name}: {rate / 1e3:.0f} k words/s, {used:.1f} processor seconds", flush=True)
    medians = {name: [statistics.median(side) for side in zip(*measured)] for name, measured in rates.items()}
    (rate, used) = medians["adapm"]
    for name, (others, others_used) in medians.items():
        ratios = f"adapm is {rate / others:.2f} times as fast with {used / others_used:.2f} times the processor seconds"
        print(f"{name}: {others / 1e3:.0f} k words/s, {others_used:.1f} processor seconds; {ratios}")
    print(f"medians of {runs} runs of {epochs} epochs, in turns")


if __name__ == "__main__":
    if sys.argv[1:2] == ["gensim"]:
        train_gensim(sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1")
    else:
        main()
