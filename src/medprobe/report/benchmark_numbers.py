"""The benchmarks in numbers: their builders' counts, and what tokenizers make of their answers."""

from collections.abc import Iterable, Mapping
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import pandas as pd

from medprobe.core.benchmark_statistics import KS, SHARES, token_statistics
from medprobe.core.code import code_key
from medprobe.core.params import ModelKind
from medprobe.core.parts import fingerprint, load_or_compute
from medprobe.core.places import PARTS
from medprobe.core.spreadsheets import read_csv
from medprobe.core.tables import DISTRACTOR, BenchmarkTables

COLUMNS: Final = ["benchmark", "subset", "relation", "model", "metric", "value", "n"]
ANY: Final = "any"  # the model of a number that is the benchmark's own
COUNTED: Final = (
    *("queries", "answers_per_query", "answer_characters", "effective_answers", "uncommon"),
    *(f"chance_at_{k}" for k in KS),
)
TOKENS: Final = ("single_token_share", "tokens_per_answer", *SHARES)
SHORTER: Final = "shorter_prompts"
READ: Final = (  # `slots.NameCounts` of candidates, and how many prompts are read in part
    *("names", "same_names", "unknown_names", "longest_name", SHORTER),
)
CODE: Final = ("core", "engine", "report/benchmark_numbers.py")  # that counts
DESCRIPTIONS: Final = (".json", ".txt", ".model")  # of a checkpoint's files, weights aside


def read_notes(
    benchmarks: Path, names: Iterable[str], file: Literal["statistics.csv", "dropped.csv"]
) -> dict[str, pd.DataFrame]:
    """Read the statistics of each of these benchmarks, or what its rules left out.

    A benchmark whose builder does not count it has no table.
    """
    paths = {name: benchmarks / name / file for name in sorted(names)}
    return {name: read_csv(path) for name, path in paths.items() if path.is_file()}


def tokens(benchmark: Path, models: Iterable[Path]) -> pd.DataFrame:
    """Count the tokens of a benchmark's answers, one row per subset and model.

    The columns are the share of a relation's distinct answers that are a single token inside a
    sentence, in the mean over relations; the tokens of all distinct answers in the mean; the
    shares of those of each length; of the names that are ranked the counts of
    `slots.NameCounts`; and how many prompts the model reads in part. Models without a checkpoint
    are left out.
    """
    parts = []
    about = [fingerprint([benchmark / "queries.parquet"]), code_key(*CODE)]
    for folder in models:
        if not (folder / "config.json").is_file():
            continue
        files = sorted(path for path in folder.iterdir() if path.suffix in DESCRIPTIONS)
        key = ["tokens", fingerprint(files), *about]
        part = load_or_compute(PARTS / "tokens", key, partial(_counted, benchmark, folder))
        parts.append(part.assign(model=folder.name))
    columns = ["subset", "model", *TOKENS, *READ]
    return pd.concat(parts)[columns] if parts else pd.DataFrame(columns=columns)


def count_parameters(models: Mapping[Path, ModelKind]) -> dict[str, int]:
    """Count the parameters of models, by name. Models without a checkpoint are left out."""
    sizes = {}
    for folder, kind in models.items():
        if (folder / "config.json").is_file():
            head = "causal" if kind == "chat" else kind
            key = ["parameters", head, fingerprint([folder / "config.json"])]
            key.append(code_key(*CODE))
            part = load_or_compute(PARTS, key, partial(_parameters, folder, head))
            sizes[folder.name] = int(part["parameters"].iloc[0])
    return sizes


def _parameters(folder: Path, head: Any) -> pd.DataFrame:
    from medprobe.engine.inspection import count_parameters

    return pd.DataFrame({"parameters": [count_parameters(folder, head)]})


def _counted(benchmark: Path, folder: Path) -> pd.DataFrame:
    from medprobe.engine.configuration import read_config
    from medprobe.engine.slots import ANCHOR, count_names, tokenize_inside
    from medprobe.engine.tokenizer import load_tokenizer
    from medprobe.engine.windows import shorten_prompts

    tokenizer = load_tokenizer(folder, read_config(folder))

    def lengths(names: list[str]) -> list[int]:
        return [len(ids) for ids in tokenize_inside(tokenizer, names, f"{ANCHOR} ")]

    tables = BenchmarkTables.read(benchmark)
    statistics = token_statistics(tables, lengths).rename(columns={"single_token": TOKENS[0]})
    counts = [
        count_names(tokenizer, candidates.loc[candidates["type"] != DISTRACTOR, "name"])
        for _, _, candidates in tables.subsets()
    ]
    _, ids = shorten_prompts(folder, tables)
    shorter = [int(queries["query_id"].isin(ids).sum()) for _, queries, _ in tables.subsets()]
    numbers = [
        (*astuple(of_names), of_prompts)
        for of_names, of_prompts in zip(counts, shorter, strict=True)
    ]
    return statistics.join(pd.DataFrame(numbers, columns=READ))


def rows(
    statistics: Mapping[str, pd.DataFrame], by_tokenizer: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """Combine the numbers of all benchmarks into one tidy table with `COLUMNS`.

    The statistics are under the model `any`, those of `tokens` under each model.
    """
    numbers: list[tuple] = []
    for benchmark, table in statistics.items():
        relations = table.loc[table["relation"] != "all", "subset"].value_counts()
        for subset, count in relations.items():
            numbers.append((benchmark, subset, "all", ANY, "relations", count, None))
        for row in table.to_dict("records"):
            keys = (benchmark, row["subset"], row["relation"], ANY)
            numbers += [(*keys, name, row[name], row["queries"]) for name in COUNTED if name in row]
    for benchmark, table in by_tokenizer.items():
        for row in table.to_dict("records"):
            keys = (benchmark, row["subset"], "all", row["model"])
            numbers += [(*keys, name, row[name], None) for name in (*TOKENS, *READ)]
    return pd.DataFrame(numbers, columns=COLUMNS)


def of_run(benchmark: Path, model: Path) -> pd.DataFrame:
    """Return the numbers of a benchmark under one model's tokenizer, over all relations.

    The columns are `COLUMNS`.
    """
    name = benchmark.name
    statistics = read_notes(benchmark.parent, [name], "statistics.csv")
    every = rows(statistics, {name: tokens(benchmark, [model])})
    return every[(every["relation"] == "all") & every["value"].notna()]
