"""The results file: what one group gives others, as one JSON file that they can check.

It holds every number with what it was made from, and of each benchmark hashes that tell whether two
groups used the same queries: no text of queries, candidates or predictions. What paired tests
compare can be next to it in UNITS, one table per result: numbers query by query, and ids as hashes.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import chdir
from importlib import metadata
from math import isfinite
from pathlib import Path
from typing import Any, Final, Literal, Self

import pandas as pd
from pydantic import Field, field_validator, model_validator

from medprobe import benchmark_numbers
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.params import Name, Params, ScoreParams, Section, load_params, parse_section
from medprobe.core.places import PARAMS
from medprobe.core.tables import BenchmarkTables, Metadata, candidate_hash, check_columns
from medprobe.metrics import Scores, Scoring, catalog
from medprobe.metrics.results import is_compared
from medprobe.metrics.significance import paired_table
from medprobe.tracking import lineage

NAME: Final = "results.json"
UNITS: Final = Path("units")
IDS: Final = ["query_id", "cluster"]  # what goes by hashes in a table of UNITS, and so does:
ANSWER: Final = "answer"  # where queries have answers that are drawn
KEYS: Final = ["variant", "replicate", "subset", "weight", *IDS]  # its columns next to the metrics
ROUNDED: Final = 1e-6  # scores have so many digits
SCHEMA: Final = "medprobe-results-1"
MEAN: Final = "macro"  # the mean over relations
NUMBERS: Final = {"value", "low", "high", "std", "n"}  # of a metric, of which any can be unknown
SCORE_NAME: Final = re.compile(r"[\w .,:+/=()'-]{1,200}")  # of a variant, subset or relation


class BenchmarkRecord(Section):
    """What a benchmark is."""

    about: dict[str, Any]  # `Metadata`: its description, citation, licence, main metric
    builder: str
    normalise: str  # the rule for equal answers
    queries: dict[str, str]  # a subset: SHA-256 of its queries' ids, prompts and answers
    candidates: dict[str, str]  # a subset: SHA-256 of its candidates' names
    statistics: list[dict[str, Any]] = Field([])  # rows of its statistics.csv: counts and chance

    @field_validator("about")
    @classmethod
    def _is_metadata(cls, about: dict[str, Any]) -> dict[str, Any]:
        """Refuse what `Metadata` cannot hold, and a main metric that this version does not know."""
        try:
            metric = Metadata.from_json(about).primary_metric
        except (KeyError, TypeError):
            raise ValueError("a field is missing or unknown") from None
        if metric not in catalog():
            raise ValueError(f"unknown metric {str(metric)[:40]!r}")
        return about

    @model_validator(mode="after")
    def _has_candidates(self) -> Self:
        if without := sorted(set(self.queries) - set(self.candidates)):
            raise ValueError(f"subset {without[0][:40]!r} has queries and no candidates")
        return self

    @property
    def metadata(self) -> Metadata:
        """The field `about` as `Metadata`."""
        return Metadata.from_json(self.about)


class ResultRecord(Section):
    """What one model gave under one method on one benchmark."""

    benchmark: Name
    model: Name
    method: Name
    kind: str = ""  # of the model, such as masked; empty where it is not known
    params: dict[str, Any]  # under which it was made, as far as it is recorded
    inputs: dict[str, str]  # DVC's hashes of the data, the benchmark and the checkpoint
    made: dict[str, Any]  # when, on what machine, with which versions
    code: str  # the commit of the project that held it
    scores: Scores

    @field_validator("scores")
    @classmethod
    def _has_valid_names(cls, scores: Scores) -> Scores:
        """Refuse names that are no text of a table, and metrics that this version does not know."""
        for variant, subsets in scores.items():
            for subset, relations in subsets.items():
                for relation, metrics in relations.items():
                    for name in (variant, subset, relation):
                        if not SCORE_NAME.fullmatch(name):
                            raise ValueError(f"invalid name {name[:40]!r}")
                    if unknown := sorted(set(metrics) - set(catalog())):
                        raise ValueError(f"unknown metric {unknown[0][:40]!r}")
                    for metric, numbers in metrics.items():
                        if not (set(numbers) <= NUMBERS and all(map(isfinite, numbers.values()))):
                            raise ValueError(f"{metric} has numbers that are unknown or infinite")
        return scores

    @property
    def table(self) -> Path:
        """Where its tables are, below folders of such tables."""
        return Path(self.model, self.method, f"{self.benchmark}.parquet")

    def means(self) -> Iterator[tuple[str, str, str, dict[str, float]]]:
        """Variant, subset, metric and numbers of each mean over relations that has a value."""
        for variant, subsets in self.scores.items():
            for subset, relations in subsets.items():
                for metric, numbers in relations.get(MEAN, {}).items():
                    if "value" in numbers:
                        yield variant, subset, metric, numbers


class ResultsFile(Section):
    """Results of one or several groups."""

    format: Literal["medprobe-results-1"] = SCHEMA
    medprobe: str  # the version that wrote the file
    benchmarks: dict[Name, BenchmarkRecord] = Field({})
    results: list[ResultRecord] = Field([])


def read(path: Path) -> ResultsFile:
    """The results of a project's folder, or those of a results file or the folder that holds one.

    Raises BadInput where there are none, or where the file is amiss.
    """
    file = path / NAME if path.is_dir() else path
    if not file.is_file():
        return of_project(path)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise BadInput(file, "no results file", "`medprobe merge` writes one") from None
    return parse_section(ResultsFile, content, file)


def of_project(folder: Path) -> ResultsFile:
    """All results of the project in a folder."""
    if not (folder / places.SCORES).is_dir():
        raise BadInput(folder, f"neither {NAME} nor {places.SCORES}", "name a project's folder")
    with chdir(folder):
        commit, kinds = lineage.commit(), _kinds()
        results = [
            _result(path, benchmark, scores, commit, kinds)
            for path in sorted(places.SCORES.glob("*/*.json"))
            for benchmark, scores in json.loads(path.read_text(encoding="utf-8")).items()
        ]
        benchmarks = {
            name: _benchmark(name) for name in sorted({result.benchmark for result in results})
        }
    return ResultsFile(
        medprobe=metadata.version("medprobe"), benchmarks=benchmarks, results=results
    )


def _kinds() -> dict[str, str]:
    """The kinds of the models that params.yaml names, where it is there."""
    if not PARAMS.is_file():
        return {}
    named = load_params(PARAMS).models.by_kind()
    return {name: kind for kind, models in named.items() for name in models}


def _result(
    path: Path, benchmark: str, scores: Scores, commit: str, kinds: dict[str, str]
) -> ResultRecord:
    """A result in the project's folder; its login name stays there."""
    model, method = path.parent.name, path.stem
    out = places.PREDICTIONS / model / method / f"{benchmark}.parquet"
    origin = lineage.record(places.RUNS / model / method / f"{benchmark}.json", out)
    return ResultRecord(
        benchmark=benchmark,
        model=model,
        method=method,
        kind=kinds.get(model, ""),
        params=lineage.recorded_params(out) or {},
        inputs=lineage.inputs(model, benchmark, ()),
        made={name: value for name, value in origin.items() if name != "user"},
        code=commit,
        scores=scores,
    )


def _benchmark(name: str) -> BenchmarkRecord:
    about = Metadata.read(places.ABOUT / f"{name}.json")
    tables = BenchmarkTables.read(places.BENCHMARKS / name)
    counts = benchmark_numbers.counts(places.BENCHMARKS, [name]).get(name, pd.DataFrame())
    return BenchmarkRecord(
        about=json.loads(json.dumps(vars(about))),
        builder=tables.builder,
        normalise=tables.normalise,
        queries={subset: query_hash(queries) for subset, queries, _ in tables.subsets()},
        candidates={subset: candidate_hash(names["name"]) for subset, _, names in tables.subsets()},
        statistics=json.loads(counts.to_json(orient="records")),
    )


def query_hash(queries: pd.DataFrame) -> str:
    """SHA-256 of queries, whatever their order: ids, prompts and answers."""
    rows = sorted(
        [str(row.query_id), str(row.prompt), *sorted(map(str, row.answers))]
        for row in queries.itertuples()
    )
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def units(files: Mapping[Path, ResultsFile]) -> dict[Path, pd.DataFrame]:
    """Return what paired tests compare of the results that `read` found at these paths.

    Returns:
        `ResultRecord.table` -> a `paired_table`, whose queries and clusters go by hashes. Results
        with neither predictions nor UNITS have none.

    Raises:
        BadInput: a table does not give the scores of its result.
    """
    tables: dict[Path, pd.DataFrame] = {}
    for path, file in files.items():
        for result in file.results:
            if result.table not in tables and (table := _units(path, result)) is not None:
                tables[result.table] = table
    return tables


def _units(path: Path, result: ResultRecord) -> pd.DataFrame | None:
    folder = path if path.is_dir() else path.parent
    if (file := folder / UNITS / result.table).is_file():
        check_columns(file, KEYS)
        table = pd.read_parquet(file)
        _check(table, result, file)
        return table
    predictions = folder / places.PREDICTIONS / result.table
    if not predictions.is_file():
        return None
    metadata = Metadata.read(folder / places.ABOUT / f"{result.benchmark}.json")
    scoring = Scoring(ScoreParams(), Params().seed, metadata.cluster)
    table = paired_table(predictions, folder / places.BENCHMARKS / result.benchmark, scoring)
    _check(table, result, predictions)
    for column in [*IDS, *({ANSWER} & {*table})]:
        hashed = {
            name: hashlib.sha256(f"{result.benchmark} {name}".encode()).hexdigest()[:16]
            for name in table[column].unique()
        }
        table[column] = table[column].map(hashed)
    return table


def _check(table: pd.DataFrame, result: ResultRecord, path: Path) -> None:
    """Raises BadInput where the means of what is tested are not the macro means of the scores."""
    names = [*KEYS[:3], *IDS, *({ANSWER} & {*table})]
    values = table.drop(columns=names).apply(pd.to_numeric, errors="coerce")
    weight = values.pop("weight")
    weights = values.notna().mul(weight, axis=0)
    groups = [table["variant"], table["subset"]]
    sums = values.mul(weights).groupby(groups).sum()
    means = sums.div(weights.groupby(groups).sum()).stack().dropna().to_dict()
    scores = {
        ("" if variant == "default" else variant, subset, metric): numbers["value"]
        for variant, subset, metric, numbers in result.means()
        if is_compared(variant) and catalog()[metric].tested
    }
    for key in sorted({*means, *scores}):
        mean, score = (numbers_by_key.get(key, float("nan")) for numbers_by_key in (means, scores))
        if not abs(mean - score) <= ROUNDED:
            problem = f"{' '.join(filter(None, key))} is {mean:.6f} here, and {score:.6f} in {NAME}"
            remedy = "take both from one `medprobe merge`; in a project, run `medprobe repro` first"
            raise BadInput(path, problem, remedy)


def write(file: ResultsFile, tables: Mapping[Path, pd.DataFrame], folder: Path) -> None:
    """Write the results file and the tables of `units` into a folder."""
    text = json.dumps(file.model_dump(mode="json"), indent=1, ensure_ascii=False)
    (folder / NAME).write_text(text + "\n", encoding="utf-8")
    for path, table in tables.items():
        (folder / UNITS / path).parent.mkdir(parents=True, exist_ok=True)
        table.to_parquet(folder / UNITS / path, index=False)


def merge(files: dict[str, ResultsFile]) -> ResultsFile:
    """Merge the results of several files, by where each came from.

    A result that several of them contain appears once.

    Raises BadInput where a benchmark of one name differs, with what does, and where two results of
    the same names do.
    """
    benchmarks: dict[str, tuple[str, BenchmarkRecord]] = {}
    results: dict[tuple[str, str, str], tuple[str, ResultRecord]] = {}
    for where, file in files.items():
        for name, benchmark in file.benchmarks.items():
            first, other = benchmarks.setdefault(name, (where, benchmark))
            if differs := _differences(other, benchmark):
                problem = f"its benchmark {name} is not that of {first}: {differs}"
                raise BadInput(where, problem, "build both from the same data and settings")
        for result in file.results:
            key = (result.benchmark, result.model, result.method)
            first, other_result = results.setdefault(key, (where, result))
            if other_result.scores != result.scores:
                problem = f"{' '.join(key)} has other numbers than in {first}"
                raise BadInput(where, problem, "give one of the models another name")
    return ResultsFile(
        medprobe=metadata.version("medprobe"),
        benchmarks={name: benchmark for name, (_, benchmark) in sorted(benchmarks.items())},
        results=[result for _, (_, result) in sorted(results.items(), key=lambda item: item[0])],
    )


def _differences(first: BenchmarkRecord, other: BenchmarkRecord) -> str:
    """What tells two benchmarks apart for their numbers; empty where they are the same."""
    described = {"about", "statistics"}
    a, b = first.model_dump(exclude=described), other.model_dump(exclude=described)
    return ", ".join(name for name in a if a[name] != b[name])
