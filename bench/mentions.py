"""Names in text and ancestors in a hierarchy, at full size.

    python -m bench.mentions          # about a minute on a free core

500,000 names are searched in 100 MB of text like abstracts'; the hierarchy is as large as SNOMED
CT's, 350,000 concepts and 600,000 edges, read from a file in MRREL's form. Seconds are CPU seconds.
"""

import itertools
import random
import resource
import tempfile
import time
from pathlib import Path

from medprobe.sources.hierarchy import Hierarchy
from medprobe.sources.mentions import Mentions

NAMES = 500_000
MEGABYTES = 100
CONCEPTS, EDGES, ASKED = 350_000, 600_000, 500


def words(count: int, seed: int) -> list[str]:
    """Invented words of two to ten letters."""
    rng = random.Random(seed)
    syllables = [first + second for first in "bcdfghklmnprstvz" for second in "aeiou"]
    made = (
        "".join(rng.choices(syllables, k=rng.choice((1, 2, 2, 3, 3, 4, 4, 5))))
        for _ in itertools.count()
    )
    return list(itertools.islice(dict.fromkeys(itertools.islice(made, 2 * count)), count))


def names(vocabulary: list[str], seed: int) -> list[str]:
    """Names of two to five words, and of one rarer word."""
    rng = random.Random(seed)
    weights = list(itertools.accumulate(1 / (rank + 2000) for rank in range(len(vocabulary))))
    found = set(vocabulary[1000::4])
    while len(found) < NAMES:
        found.add(
            " ".join(rng.choices(vocabulary, cum_weights=weights, k=rng.choice((2, 3, 4, 5))))
        )
    return sorted(found)


def documents(vocabulary: list[str], known: list[str], size: int, seed: int) -> list[str]:
    """Texts of 200 words and five names, by Zipf's law, of `size` characters together."""
    rng = random.Random(seed)
    weights = list(itertools.accumulate(1 / (rank + 10) for rank in range(len(vocabulary))))
    made, total = [], 0
    while total < size:
        chosen = rng.choices(vocabulary, cum_weights=weights, k=200)
        for _ in range(5):
            chosen[rng.randrange(200)] = rng.choice(known)
        text = "".join(
            f"{word}{'. ' if place % 15 == 14 else ', ' if place % 9 == 8 else ' '}"
            for place, word in enumerate(chosen)
        )
        made.append(text)
        total += len(text)
    return made


def mentions() -> None:
    vocabulary = words(50_000, 1)
    known = names(vocabulary, 2)
    texts = documents(vocabulary, known, 5_000_000, 3)
    size = sum(map(len, texts))
    before, begin = _memory(), time.process_time()
    finder = Mentions((name, str(number)) for number, name in enumerate(known))
    finder.find("")
    made, built = time.process_time() - begin, _memory() - before
    rounds = MEGABYTES * 1_000_000 // size
    begin = time.process_time()
    found = sum(len(finder.find(text)) for _ in range(rounds) for text in texts)
    seconds = time.process_time() - begin
    megabytes = rounds * size / 1e6
    print(f"mentions: {NAMES:,} names built in {made:.1f} s, {built} MB")
    print(
        f"mentions: {megabytes:.0f} MB searched in {seconds:.1f} s, "
        f"{megabytes / seconds:.1f} MB/s a core, {found:,} mentions"
    )


def hierarchy(folder: Path) -> None:
    rng = random.Random(4)
    edges = {(child, rng.randrange(child)) for child in range(1, CONCEPTS)}
    while len(edges) < EDGES:
        child = rng.randrange(1, CONCEPTS)
        edges.add((child, rng.randrange(child)))
    with (folder / "MRREL.RRF").open("w") as file:
        for child, parent in sorted(edges):
            ends = f"C{child:07d}|A1|CUI|PAR|C{parent:07d}|A2|CUI"
            file.write(f"{ends}|inverse_isa|R1||SNOMEDCT_US|SNOMEDCT_US|||N||\n")
    before, begin = _memory(), time.process_time()
    tree = Hierarchy.read(folder)
    read = time.process_time() - begin
    asked = [f"C{number:07d}" for number in rng.sample(range(CONCEPTS), ASKED)]
    begin = time.process_time()
    above = sum(len(tree.ancestors(cui)) for cui in asked)
    below = sum(len(tree.descendants(cui)) for cui in asked)
    seconds = time.process_time() - begin
    print(
        f"hierarchy: {CONCEPTS:,} concepts, {EDGES:,} edges read in {read:.1f} s, "
        f"{_memory() - before} MB; {ASKED} concepts' {above:,} ancestors and {below:,} descendants "
        f"in {seconds:.2f} s"
    )


def _memory() -> int:
    """The most memory this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        hierarchy(Path(folder))
    mentions()


if __name__ == "__main__":
    main()
