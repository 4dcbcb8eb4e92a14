"""Calibration: what every method says of models whose reading is known, over several sample worlds.

    python -m bench.calibration --worlds 10                # two at a time with --processes 2

Each world is a project of its own, outputs/calibration/<seed> (`bench.worlds`). What is finished
there is not done again, so a stopped run goes on; after a change of the code delete the folder.
Then all finished worlds are measured together, with `--worlds 0` no more than that. Writes
bench/calibration.csv, docs/concepts/calibration.md and its drawings.
"""

import argparse
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from bench import worlds
from bench.calibration_document import DOCUMENT, PICTURES, drawings, update
from bench.calibration_table import (
    ALL,
    COLUMNS,
    READ,
    RESULT,
    SYSTEM,
    TWINS,
    read_table,
)
from medprobe import metrics
from medprobe.core import params as settings
from medprobe.core import places
from medprobe.core.files import replacing
from medprobe.core.params import Params, ScoreParams
from medprobe.core.tables import BenchmarkTables, Metadata, metric_of_predictions
from medprobe.metrics import Scoring
from medprobe.metrics.comparisons import holm, permutation
from medprobe.metrics.results import prediction_tables, write_csv
from medprobe.metrics.significance import (
    Differences,
    evaluate_difference,
    paired_table,
    split_by_variant,
)
from medprobe.metrics.splits import TIMES, bins
from medprobe.metrics.summary import summarise
from medprobe.report.sections.calibration import NEVER
from medprobe.sample.settings import find_recipe

FIRST: Final = 2021  # the seed of the first world
METRICS: Final = ("acc_at_1", "judged_right", "perplexity")  # by which a method is judged
ABOUT: Final = ("variant", "replicate", "query_id", "subset", "relation", "cluster", "answer")
AGAIN: Final = "hard"  # a subset whose queries are in another one too
LEVEL: Final = 0.05
QUERIES: Final = (20, 40, 80, 160)  # of which the power of a test is measured
DRAWS: Final = 100  # of queries, for it


def main() -> None:
    """Make the worlds that are asked for, measure all finished ones, and write the results."""
    parser = argparse.ArgumentParser(prog="python -m bench.calibration")
    parser.add_argument("--worlds", type=int, default=10, help="to make, unless they are finished")
    parser.add_argument("--processes", type=int, default=1, help="worlds made at the same time")
    options = parser.parse_args()
    seeds = range(FIRST, FIRST + options.worlds)
    with ProcessPoolExecutor(options.processes, max_tasks_per_child=1) as pool:
        list(pool.map(worlds.make, seeds))
    folders = sorted(path for path in worlds.FOLDER.glob("*") if worlds.is_finished(path))
    if not folders:
        parser.error(f"no world is finished in {worlds.FOLDER}")
    write(measure(folders), pd.concat([worlds.record(folder) for folder in folders]))


def write(table: pd.DataFrame, steps: pd.DataFrame) -> None:
    """Write the table, its drawings, and the measured parts of the document."""
    write_csv(table, RESULT)
    measured = read_table()
    with replacing(PICTURES) as folder:
        folder.mkdir(parents=True)
        for name, svg in drawings(measured).items():
            (folder / name).write_text(svg, encoding="utf-8")
    text = DOCUMENT.read_text(encoding="utf-8")
    with replacing(DOCUMENT) as path:
        path.write_text(update(text, measured, steps), encoding="utf-8")


def measure(folders: Sequence[Path]) -> pd.DataFrame:
    """The table of what worlds show together, with COLUMNS."""
    values = pd.concat([_values(folder) for folder in folders], ignore_index=True)
    return table(values)


def table(values: pd.DataFrame) -> pd.DataFrame:
    """The table, with COLUMNS, of one value a query.

    Args:
        values: the columns SYSTEM, `world`, `corpus` (what the model has read), `query`, `read`,
            `cluster`, `answer` and `value`.
    """
    rows: list[dict[str, Any]] = []
    for keys, of_pair in values.groupby(SYSTEM[:-1], sort=True):
        for names, queries in _different(of_pair):
            about = dict(zip(SYSTEM, (*keys, names[0]), strict=True))
            about["same"] = " ".join(names[1:])
            metric = str(about["metric"])
            compared = _comparable(queries, metric)
            measured = [*_doses(queries, metric), *_tests(compared), *_power(compared, metric)]
            rows += [about | row for row in measured]
    numbers = pd.DataFrame(rows).reindex(columns=COLUMNS)
    tested = numbers[numbers["p"].notna()]
    families = tested.groupby([tested["number"], tested["read"], tested["world"] == ALL])["p"]
    numbers.loc[tested.index, "p_holm"] = families.transform(lambda p: holm(p.to_numpy()))
    return numbers


def _values(folder: Path) -> pd.DataFrame:
    """One value a query of every model, method and variant of a world."""
    params = settings.load_params(folder / "params.yaml")
    facts = pd.read_csv(folder / places.DATA / "sample" / metrics.FACTS)
    read: dict[str, pd.Series] = {}
    parts = []
    for path in prediction_tables(folder / places.PREDICTIONS, params):
        model, method, benchmark = path.parent.parent.name, path.parent.name, path.stem
        about = Metadata.read(folder / places.ABOUT / f"{benchmark}.json")
        built = folder / places.BENCHMARKS / benchmark
        if benchmark not in read:
            queries = BenchmarkTables.read(built).queries
            read[benchmark] = times_read(queries, facts)
        scoring = Scoring(params.score, params.seed, about.cluster)
        rows = paired_table(path, built, scoring)
        catalog = {metric.name for metric in metrics.find(metric_of_predictions(path)).METRICS}
        (metric,) = catalog.intersection(METRICS)
        for (_, name), of_variant in split_by_variant(rows, model, method).items():
            part = of_variant.reset_index()
            part = part[part["subset"] != AGAIN]
            prefix = f"{params.seed} {benchmark} "
            parts.append(
                pd.DataFrame(
                    {
                        "benchmark": benchmark,
                        "metric": metric,
                        "taught": _taught(model, params),
                        "method": name,
                        "world": str(params.seed),
                        "corpus": find_recipe(model, params)[0].corpus,
                        "query": prefix + part["query_id"],
                        "read": part["query_id"].map(read[benchmark]),
                        "cluster": prefix + part["cluster"],
                        "answer": prefix + part["answer"],
                        "value": part[metric].to_numpy(float),
                    }
                )
            )
    return pd.concat(parts, ignore_index=True).dropna(subset="read")


def _taught(model: str, params: Params) -> str:
    return params.models.all()[model].untaught_twin_of or model


def times_read(queries: pd.DataFrame, facts: pd.DataFrame) -> pd.Series:
    """How often a taught model has read the fact that each query asks for, by `query_id`: 0, 1, 2,
    3-4, and so on; missing where it is none of the world's facts.

    A fact is asked for where one of its names is an answer and the prompt has the other one.

    Args:
        queries: a benchmark's, with prompts and answers by name.
        facts: the columns `subject`, `object` and `times`.
    """
    other: dict[str, list[tuple[str, int]]] = {}
    for subject, answer, times in facts[["subject", "object", "times"]].itertuples(index=False):
        other.setdefault(answer, []).append((subject, times))
        other.setdefault(subject, []).append((answer, times))
    most = {}
    for row in queries.itertuples():
        matched = [
            times
            for answer in row.answers
            for name, times in other.get(answer, [])
            if name in row.prompt
        ]
        if matched:
            most[row.query_id] = max(matched)
    return pd.Series(bins([*most.values()], TIMES), [*most], dtype=object)


def _different(values: pd.DataFrame) -> Iterator[tuple[list[str], pd.DataFrame]]:
    """The variants of a benchmark's methods by name, with their values; those of a method that have
    the same value for each query of each model are one."""
    variants: dict[tuple[str, bytes], tuple[list[str], pd.DataFrame]] = {}
    for name, of_variant in values.groupby("method", sort=True):
        rows = of_variant.sort_values(["corpus", "query"], ignore_index=True)
        content = rows[["corpus", "query", "value"]].to_csv().encode()
        key = (str(name).partition(":")[0], content)
        variants.setdefault(key, ([], rows))[0].append(str(name))
    yield from variants.values()


def _doses(values: pd.DataFrame, metric: str) -> Iterator[dict[str, Any]]:
    """The value of each model on facts that were read so often, with its interval."""
    rows = values.assign(
        variant="",
        replicate="",
        relation="",
        query_id=values["query"],
        subset=values["corpus"] + "/" + values["read"],
    ).rename(columns={"value": metric})
    scores = summarise(
        rows[[*ABOUT, metric]], Scoring(ScoreParams(), 0), [metrics.catalog()[metric]]
    )
    for part, means in scores["default"].items():
        corpus, _, read = part.partition("/")
        numbers = means["micro"][metric]
        shares = {key: numbers.get(key, np.nan) for key in ("value", "low", "high", "n")}
        yield {"number": corpus, "read": read, "world": ALL, **shares}


def _comparable(values: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The values as differences are taken of them: logarithms of what is averaged by these."""
    if metrics.catalog()[metric].logarithmic:
        return values.assign(value=np.log(values["value"]))
    return values


def _tests(values: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The paired differences between the taught model and its twins, on facts that were read and on
    those that were not: of all worlds, and of each."""
    for twin in TWINS:
        both = _paired(values, twin)
        for read, part in (
            (NEVER, both[both["read"] == NEVER]),
            (READ, both[both["read"] != NEVER]),
        ):
            for world, queries in [(ALL, part), *part.groupby("world", sort=True)]:
                if len(queries):
                    keys = {"number": f"taught - {twin}", "read": read, "world": world}
                    yield keys | paired_test(queries)


def _paired(values: pd.DataFrame, twin: str) -> pd.DataFrame:
    """One row a query with the column `difference` of the taught model from its twin."""
    by = values.set_index("query")
    taught, other = by[by["corpus"] == "taught"], by[by["corpus"] == twin]["value"]
    return taught.assign(difference=taught["value"] - other).dropna(subset="difference")


def paired_test(rows: pd.DataFrame) -> dict[str, float]:
    """The mean of differences with its interval and p, both the stricter ones of the two questions:
    for these answers, and for the relation.

    Args:
        rows: the columns `difference`, `cluster` and `answer`.
    """
    answers = pd.factorize(rows["answer"])[0]
    difference = Differences(
        rows["difference"].to_numpy(float),
        np.ones(len(rows)),
        pd.factorize(rows["cluster"])[0],
        answers,
    )
    numbers = evaluate_difference(difference, ScoreParams(), 0)
    return {
        "value": numbers["difference"],
        "low": numbers["low"],
        "high": numbers["high"],
        "n": difference.n,
        "p": numbers["p"],
    }


def _power(values: pd.DataFrame, metric: str) -> Iterator[dict[str, Any]]:
    """How often the paired test of so many queries, facts read and not as they come, finds the
    taught model above its twins."""
    sign = -1 if metrics.catalog()[metric].better == "lower" else 1
    for twin in TWINS:
        both = _paired(values, twin)
        for size in (size for size in QUERIES if size <= len(both)):
            power = _share_of_clear(both, size, sign)
            name = f"power against {twin}"
            yield {"number": name, "read": "", "world": ALL, "value": power, "n": size}


def _share_of_clear(rows: pd.DataFrame, size: int, sign: int) -> float:
    """In how many draws of so many queries, whole clusters at a time, the difference is clear."""
    sums = rows.groupby("cluster")["difference"].agg(["sum", "size"]).to_numpy(float)
    generator = np.random.default_rng(size)
    clear = 0
    for _ in range(DRAWS):
        order = generator.permutation(len(sums))
        last = int(np.searchsorted(np.cumsum(sums[order, 1]), size)) + 1
        drawn = sums[order[:last], 0]
        clear += bool(sign * drawn.sum() > 0 and permutation(drawn) < LEVEL)
    return clear / DRAWS


if __name__ == "__main__":
    main()
