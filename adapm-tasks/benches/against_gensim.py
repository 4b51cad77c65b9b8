"""Words per second of adapm and of gensim on the same text, in turns: medians and their ratio.

    python adapm-tasks/benches/against_gensim.py TEXT [RUNS]

Both train one epoch of skip-gram: dimension 100, window 5, 5 negatives, minimum count 5, sample 1e-3, two workers. Needs gensim;
run it where `cargo` finds the workspace. Counting the vocabulary is not in the time of either.
"""

import json
import statistics
import subprocess
import sys
import time

from gensim.models import Word2Vec
from gensim.models.word2vec import LineSentence


def adapm(text):
    command = ["cargo", "run", "--release", "--quiet", "-p", "adapm-tasks", "--", "train", "wv", "--json", "--no-eval"]
    command += ["--data", text, "--workers", "2", "--epochs", "1"]
    epoch = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[0])
    return epoch["words"] / epoch["seconds"]


def gensim(text):
    model = Word2Vec(
        vector_size=100, window=5, negative=5, min_count=5, sample=1e-3, sg=1, hs=0, workers=2, seed=1, epochs=1
    )
    model.build_vocab(corpus_file=text)
    words = sum(model.wv.get_vecattr(word, "count") for word in model.wv.index_to_key)
    started = time.perf_counter()
    sentences = LineSentence(text)
    model.train(sentences, total_examples=model.corpus_count, epochs=1)
    return words / (time.perf_counter() - started)


def main():
    text = sys.argv[1]
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    rates = [(adapm(text), gensim(text)) for _ in range(runs)]
    ours, theirs = (statistics.median(side) for side in zip(*rates))
    print(f"adapm {ours / 1e3:.0f} k words/s, gensim {theirs / 1e3:.0f} k words/s: {ours / theirs:.2f}, medians of {runs}")


if __name__ == "__main__":
    main()
