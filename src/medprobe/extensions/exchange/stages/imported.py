"""Stage `imported`: the prediction tables of a model that another program asked.

`medprobe import results` puts what the program logged into data/imported. This stage holds it
against the benchmarks as they are built, and says what is a hit by their rules.
"""

import json
from pathlib import Path
from typing import Any, Final

import pandas as pd

from medprobe.core import places
from medprobe.core.answers import find_rule, loose, with_hits
from medprobe.core.errors import BadInput
from medprobe.core.files import replacing
from medprobe.core.parts import fingerprint
from medprobe.core.tables import (
    OF,
    PART,
    BenchmarkTables,
    check_scores,
    read_table,
    write_predictions,
)
from medprobe.extensions.chat import extraction
from medprobe.methods import K

IMPORTED: Final = Path("data/imported")
COLUMNS: Final = ["variant", "query_id", "rank", "prediction", "score", "written"]
KEYS: Final = ["variant", "query_id"]
ORIGIN: Final = "imported.json"  # in the folder of the model: where its tables came from
AGAIN: Final = "run `medprobe import results` again"


def imported(model: str) -> None:
    """Write the prediction tables of an imported model, and a record of where each came from.

    A file ORIGIN replaces the checkpoint.

    Raises:
        BadInput: There are no imported results, or they do not fit the benchmark.
    """
    folder = IMPORTED / model
    paths = sorted(folder.glob("*/*.parquet"))
    if not paths:
        raise BadInput(folder, "no imported results", "run `medprobe import results`")
    with (
        replacing(places.PREDICTIONS / model) as predictions,
        replacing(places.RUNS / model) as records,
        replacing(places.MODELS / model) as place,
    ):
        for path in paths:
            name = path.relative_to(folder)
            tables = BenchmarkTables.read(places.BENCHMARKS / path.stem)
            part = model if origin(path).get("imported.partial") else ""
            table = prediction_table(read_table(path, COLUMNS), tables, path, part=part)
            (predictions / name).parent.mkdir(parents=True, exist_ok=True)
            write_predictions(table, predictions / name, "accuracy")
            out = fingerprint([predictions / name])
            _write({**origin(path), "out": out}, records / name.with_suffix(".json"))
        origins = {path.relative_to(folder).as_posix(): origin(path) for path in paths}
        _write(origins, place / ORIGIN)


def _write(content: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def origin(path: Path) -> dict[str, str]:
    """Where an imported table came from."""
    try:
        content = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        return {f"imported.{name}": str(value) for name, value in content.items()}
    except (OSError, ValueError, AttributeError):
        raise BadInput(path.with_suffix(".json"), "missing or cut", AGAIN) from None


def prediction_table(
    table: pd.DataFrame, tables: BenchmarkTables, where: object, *, part: str = ""
) -> pd.DataFrame:
    """Imported rows as predictions of a benchmark.

    Args:
        table: Has the columns COLUMNS. `written`: the model wrote the text freely.
        tables: The benchmark.
        where: Names the rows in errors.
        part: Names what was asked of a subset that is answered in part only: it becomes the subset
            `<subset>-of-<part>` of its own, in the column PART.

    Raises:
        BadInput: A query is unknown, or a subset is answered in part only without `part`: an
            unanswered query would count as wrong. Or a rank is double, or a score is not a number.
    """
    subsets = tables.queries.set_index("query_id")["subset"]
    for query in table.loc[~table["query_id"].isin(subsets.index), "query_id"].head(1):
        problem = f"query {query} is not in the benchmark"
        raise BadInput(where, problem, "build the benchmark that the model was asked")
    check_scores(table, where)
    for row in table[table.duplicated([*KEYS, "rank"])].head(1).itertuples():
        raise BadInput(where, f"query {row.query_id} has two predictions of rank {row.rank}")
    partial: dict[tuple[object, str], str] = {}
    for variant, rows in table.groupby("variant"):
        answered = set(rows["query_id"])
        for subset in sorted({*subsets[subsets.index.isin(answered)]}):
            of_subset = subsets[subsets == subset].index
            if missing := [query for query in of_subset if query not in answered]:
                if part:
                    partial[variant, subset] = f"{subset}{OF}{part}"
                    continue
                problem = f"{subset}{f' ({variant})' if variant else ''} has {len(of_subset)} "
                problem += f"queries, and {len(missing)} have no answer, the first {missing[0]}"
                remedy = "ask all of them, give those an empty prediction, or import with --partial"
                raise BadInput(where, problem, remedy)
    rows = table.assign(replicate="", prediction=table["prediction"].fillna("").astype(str))
    written = rows["written"].astype(bool)
    rule = loose(find_rule(tables.normalise))  # of free answers, as under `answering`
    ranked, free = rows[~written], rows[written]
    parts = [with_hits(ranked, tables)] if len(ranked) or free.empty else []
    if len(free):
        parts.append(with_hits(_read_texts(free, tables), tables, rule))
    predictions = pd.concat(parts, ignore_index=True).drop(columns="written")
    if partial:
        keys = zip(predictions["variant"], predictions["query_id"].map(subsets), strict=True)
        predictions[PART] = [partial.get(key, "") for key in keys]
    return predictions


def _read_texts(rows: pd.DataFrame, tables: BenchmarkTables) -> pd.DataFrame:
    """The answers that written texts are (`chat.extraction`), ranked again."""
    queries = {row.query_id: row for row in tables.queries.itertuples()}
    names = {}
    for subset, of_subset, candidates in tables.subsets():
        for relation, of_relation in of_subset.groupby("relation"):
            ranked = tables.restrict(candidates, str(relation))
            names[subset, relation] = extraction.Names.of_tables(of_relation, ranked)
    read = []
    for (variant, query_id), texts in rows.sort_values([*KEYS, "rank"]).groupby(KEYS):
        query = queries[query_id]
        best = extraction.rank_answers(
            ((row.prediction, False, row.score) for row in texts.itertuples()),
            names[query.subset, query.relation],
            query,
            extraction.Extraction(),
            add=bool((texts["score"] > 0).all()),  # shares of draws, no log-probabilities
        )
        for rank, answer in enumerate(best[:K], 1):
            further = {"text": answer.text, "unanswered": answer.unanswered}
            row = {"variant": variant, "replicate": "", "query_id": query_id, "rank": rank}
            row |= {"prediction": answer.name, "score": answer.score, "written": True}
            read.append({**row, **further})
    return pd.DataFrame(read)
