"""False alarms of the gate's search for leaks: what it finds in sentences of articles.

    python -m bench.alarms FOLDER SENTENCES    # released MedLAMA's files, and a file of sentences

The names are those of diseases and genes in the released MedLAMA. The search is held against words
alone (`sources.mentions`).
"""

import argparse
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from medprobe.gate.leaks import Diseases
from medprobe.papers.medlama import source as medlama
from medprobe.sources.mentions import Mentions

RELATIONS: Final = ("disease_mapped_to_gene", "may_treat", "may_prevent", "occurs_after")
PRINTED: Final = 40  # mentions that are printed


def main() -> None:
    """Print how many mentions each search adds, and the first ones."""
    parser = argparse.ArgumentParser(prog="python -m bench.alarms")
    parser.add_argument("folder", type=Path)
    parser.add_argument("sentences", type=Path)
    parser.add_argument("--at-most", type=int, default=5000, help="sentences that are searched")
    options = parser.parse_args()
    files, _ = medlama.find_released_files(options.folder)
    queries = [medlama.read_queries(files[name], name) for name in RELATIONS if name in files]
    names = sorted(
        {(name, name) for part in queries for answers in part["answers"] for name in answers}
        | {(name, name) for part in queries for name in part["subject"]}
    )
    sentences = options.sentences.read_text(encoding="utf-8").splitlines()[: options.at_most]
    plain = Mentions(names)
    searches: dict[str, Callable[[str], Iterable[str]]] = {
        "words": lambda text: {mention.id for mention in plain.every(text)},
        "stops": Diseases(names).find,
    }
    mentions: dict[str, set[tuple[str, str]]] = {}
    for kind, search in searches.items():
        start = time.process_time()
        mentions[kind] = {(text, name) for text in sentences for name in search(text)}
        print(f"{kind}: {len(mentions[kind]):,} mentions, {time.process_time() - start:.0f} CPU s")
    more = sorted(mentions["stops"] - mentions["words"])
    print(f"stops: {len(more):,} more")
    for text, name in more[:: max(1, len(more) // PRINTED)]:
        print(f"  {name} | {text[:200]}")


if __name__ == "__main__":
    main()
