"""The benchmarks in numbers: their builders' counts, and answers in tokens."""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import pandas as pd

from medprobe.benchmarks.statistics import token_statistics
from medprobe.engine.load import load_tokenizer, read_config
from medprobe.engine.slots import ANCHOR, inside_sentence
from medprobe.report.tables import COMPARISON
from medprobe.tables import Benchmark

METHOD: Final = "statistics"  # stands in the comparison's column for methods
COUNTED: Final = ("queries", "answers_per_query", "answer_characters")
TOKENS: Final = ("single_token_share", "tokens_per_answer")


def counts(benchmarks: Path) -> dict[str, pd.DataFrame]:
    """Each benchmark's own table of statistics: a row a subset and relation."""
    files = sorted(benchmarks.glob("*/statistics.csv"))
    return {path.parent.name: pd.read_csv(path) for path in files}


def tokens(benchmark: Path, models: Iterable[Path]) -> pd.DataFrame:
    """One row a subset and model: the share of its distinct answers that are a single token inside
    a sentence, and their tokens in the mean. Models without a folder are left out."""
    parts = []
    for folder in filter(Path.is_dir, models):
        tokenizer = load_tokenizer(folder, read_config(folder))
        part = token_statistics(Benchmark.read(benchmark), partial(_lengths, tokenizer))
        parts.append(part.rename(columns={"single_token": TOKENS[0]}).assign(model=folder.name))
    columns = ["subset", "model", *TOKENS]
    return pd.concat(parts)[columns] if parts else pd.DataFrame(columns=columns)


def _lengths(tokenizer: Any, names: list[str]) -> list[int]:
    return [len(ids) for ids in inside_sentence(tokenizer, names, f"{ANCHOR} ")]


def rows(
    statistics: Mapping[str, pd.DataFrame], by_tokenizer: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """All of it as rows of the comparison, method `statistics`: what a tokenizer makes of answers
    under each model that brings it, the rest under model `any`."""
    found = []
    for benchmark, table in statistics.items():
        relations = table.loc[table["relation"] != "all", "subset"].value_counts()
        for subset, count in relations.items():
            found.append((benchmark, subset, "all", "any", METHOD, "relations", count, None))
        for row in table.to_dict("records"):
            place = (benchmark, row["subset"], row["relation"], "any", METHOD)
            found += [(*place, name, row[name], row["queries"]) for name in COUNTED if name in row]
    for benchmark, table in by_tokenizer.items():
        for row in table.to_dict("records"):
            place = (benchmark, row["subset"], "all", row["model"], METHOD)
            found += [(*place, name, row[name], None) for name in TOKENS]
    columns = [name for name in COMPARISON if name not in ("low", "high")]
    return pd.DataFrame(found, columns=columns).reindex(columns=COMPARISON)


def of_run(benchmark: Path, model: Path) -> dict[str, float]:
    """The numbers of a benchmark under one model's tokenizer, as `statistics/<subset>/<name>`."""
    name = benchmark.name
    known = {key: table for key, table in counts(benchmark.parent).items() if key == name}
    every = rows(known, {name: tokens(benchmark, [model])})
    chosen = every[(every["relation"] == "all") & every["value"].notna()]
    return {
        f"{METHOD}/{subset}/{metric}": float(value)
        for subset, metric, value in zip(
            chosen["subset"], chosen["metric"], chosen["value"], strict=True
        )
    }
