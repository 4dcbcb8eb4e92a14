"""The page and the pages of queries at real size: how large they are, how long they take to make
and to open in a headless browser (see `browser.py`).

    python -m bench.page                               # 16 models, 19,000 queries, 6 systems each
    python -m bench.page --models 4 --queries 2000

Numbers and answers are drawn at random: what is measured is their amount.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd

from bench.browser import browser, missing
from bench.made import names
from medprobe.core.tables import (
    PREDICTION_COLUMNS,
    QUERY_COLUMNS,
    BenchmarkTables,
    Metadata,
    write_predictions,
)
from medprobe.metrics.results import COMPARISON
from medprobe.metrics.significance import SIGNIFICANCE, paired
from medprobe.report import queries
from medprobe.report.page import chapters, render
from medprobe.report.results import Results

METHODS = ("fill_mask", "mask_average", "mask_average:relation")
METHODS += ("contrastive", "contrastive:original", "xfactr:confidence")
RELATIONS = 19
CANDIDATES = 23_000
SUBSETS = ("full", "hard")
PARTS = [
    f"full/answer-length:{length}" for length in ("1-10", "11-20", "21-30", "31-40", "over-40")
]
ACCURACIES = ("acc_at_1", "acc_at_5", "acc_at_10")


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print how long a block took."""
    start, used = time.perf_counter(), time.process_time()
    yield
    wall, cpu = time.perf_counter() - start, time.process_time() - used
    print(f"{what}: {wall:.1f} s, {cpu:.1f} CPU s", flush=True)


def results(models: list[str], rng: np.random.Generator) -> Results:
    """A comparison of all models and methods with its paired tests."""
    relations = [*(f"relation_{n}" for n in range(RELATIONS)), "macro", "micro"]
    cells = [*product(SUBSETS, relations), *product(PARTS, ["micro"])]
    rows = [
        ("facts", subset, relation, model, method, metric, value, value - 0.03, value + 0.03, 900)
        for (subset, relation), model, method, metric in product(cells, models, METHODS, ACCURACIES)
        for value in [rng.random()]
    ]
    systems = [*product(models, METHODS)]
    numbers, counts = (0.02, -0.1, 0.1, 0.01), (0.02, 9000, 9000)
    tests = [
        (
            "facts",
            subset,
            "macro",
            "acc_at_1",
            found.family,
            *a,
            *b,
            *numbers,
            rng.random(),
            *counts,
        )
        for subset in SUBSETS
        for a, b in combinations(systems, 2)
        if (found := paired(a, b))
    ]
    return Results(
        comparison=pd.DataFrame(rows, columns=COMPARISON[:-1]).assign(std=None),
        significance=pd.DataFrame(tests, columns=SIGNIFICANCE),
        benchmarks={"facts": Metadata("made-up facts", "nobody", "none", (), "acc_at_1")},
        queries=frozenset({"facts"}),
        twins={models[1]: models[0]},
    )


def predictions(folder: Path, models: list[str], count: int, rng: np.random.Generator) -> None:
    """A benchmark of so many queries, and ten answers of every system to each."""
    offered = names(CANDIDATES, 3)
    ids = [f"C{number:07}" for number in range(CANDIDATES)]
    answers = rng.integers(0, CANDIDATES, (count, 3))
    of, called = np.array(offered, dtype=object), np.array(ids, dtype=object)
    asked = pd.DataFrame(
        {
            "query_id": [f"q{n:05}" for n in range(count)],
            "benchmark": "facts",
            "relation": [f"relation_{n % RELATIONS}" for n in range(count)],
            "subject": offered[:count],
            "subject_id": ids[:count],
            "prompt": [f"{name} might treat [Y] ." for name in offered[:count]],
            "answers": of[answers].tolist(),
            "answer_ids": called[answers].tolist(),
            "subset": [SUBSETS[n % 2] for n in range(count)],
        }
    )
    listed = [
        pd.DataFrame({"name": offered, "id": ids, "type": "", "subset": subset})
        for subset in SUBSETS
    ]
    BenchmarkTables(asked[QUERY_COLUMNS], pd.concat(listed, ignore_index=True)).write(
        folder / "facts"
    )
    about = {
        "query_id": np.repeat(asked["query_id"].to_numpy(), 10),
        "rank": np.tile(np.arange(1, 11), count),
        "replicate": "",
        "score": 0.0,
    }
    for model, method in product(models, dict.fromkeys(m.partition(":")[0] for m in METHODS)):
        tables = []
        for variant in (m.partition(":")[2] for m in METHODS if m.partition(":")[0] == method):
            drawn = rng.integers(0, CANDIDATES, 10 * count)
            found = {"prediction": of[drawn], "prediction_id": called[drawn]}
            hit = rng.random(10 * count) < 0.05
            tables.append(pd.DataFrame({**about, **found, "variant": variant, "hit": hit}))
        path = folder / "predictions" / model / method / "facts.parquet"
        write_predictions(pd.concat(tables)[PREDICTION_COLUMNS], path, "accuracy")


def sizes(folder: Path) -> None:
    """Print what the pages weigh."""
    for path in (folder / "index.html", folder / "queries/facts.html"):
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB")
    pieces = [path.stat().st_size for path in (folder / "queries/facts").iterdir()]
    print(f"{len(pieces)} pieces of {max(pieces) / 1e6:.2f} MB at most, {sum(pieces) / 1e6:.0f} MB")


def opened(folder: Path) -> None:
    """Print how long pages take to open, and the answers to a query."""
    with browser() as driver:
        for address in ("index.html", "index.html#facts", "queries/facts.html"):
            driver.get("about:blank")
            start = time.perf_counter()
            driver.get(f"{folder.as_uri()}/{address}")
            driver.execute_script("return document.body.offsetHeight")
            print(f"{address}: {time.perf_counter() - start:.1f} s")
        start = time.perf_counter()
        driver.execute_async_script(
            "const done = arguments[0];"
            "new MutationObserver(() => document.querySelector('#query table') && done())"
            ".observe(document.getElementById('query'), { childList: true });"
            "choose('query', 'q00777');"
        )
        print(f"a query's answers: {time.perf_counter() - start:.1f} s")
        for text in ("q", "q0", "q01"):
            start = time.perf_counter()
            driver.execute_script(f"choose('search', '{text}'); return document.body.offsetHeight")
            print(f"search for {text}: {time.perf_counter() - start:.2f} s")


def main() -> None:
    """Make the pages, and open them where there is a browser."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=16)
    parser.add_argument("--queries", type=int, default=19_000)
    told = parser.parse_args()
    rng = np.random.default_rng(1)
    models = [f"model-{number}" for number in range(told.models)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with timed("the page"):
            found = results(models, rng)
            (folder / "index.html").write_text(render(found, chapters(found)), encoding="utf-8")
        predictions(folder, models, told.queries, rng)
        (folder / "queries").mkdir()
        with timed("the page of queries"):
            tables = folder.glob("predictions/*/*/*.parquet")
            answered = queries.answers(folder / "facts", tables)
            assert answered is not None
            shown = answered.shown(text=False)
            queries.write("facts", shown, folder / "queries", "../index.html", text=False)
        sizes(folder)
        if said := missing():
            print(f"not opened: {said}")
        else:
            opened(folder)


if __name__ == "__main__":
    main()
