"""DisKnE's tables from its positives and negatives, whoever annotated them.

Beside the usual two, which hold the positives as prompts, there are: `examples`, all positives and
negatives; `splits`, what trains, validates and tests for each target disease; `names` and
`ancestors` of every disease in them.
"""

from collections import Counter
from pathlib import Path
from typing import Final, Literal

import pandas as pd
import polars as pl
from pydantic import Field

from medprobe.benchmarks import counts
from medprobe.benchmarks.diskne.negatives import assemble
from medprobe.benchmarks.diskne.splits import Match, split
from medprobe.core.errors import BadInput
from medprobe.core.params import Section
from medprobe.core.tables import SLOT, BenchmarkTables
from medprobe.sources import mednli, rrf
from medprobe.sources.hierarchy import Hierarchy

UMLS: Final = ("umls/MRCONSO.RRF", "umls/MRREL.RRF")
Unknown = Literal["error", "leave out"]


class Choices(Section):
    """Settings of both builders; the defaults are the paper's."""

    vocabulary: str = "SNOMEDCT_US"  # whose hierarchy tells ancestors and descendants
    positives: int = Field(2, gt=0)  # fewest in a category for a disease to be tested in it
    validation: float = Field(0.1, gt=0, lt=1)  # share of the training pairs
    match: Match = "words"  # how mentions are found; substrings: as the released code does
    unknown_pairs: Unknown = "error"  # ids that are in no file of MedNLI or MEDIQA-NLI


def read_pairs(data: Path) -> tuple[pd.DataFrame, list[counts.Row]]:
    """All pairs of MedNLI and MEDIQA-NLI, and how many rows were read of which file, the UMLS's
    files too."""
    files = [f"mednli/{name}" for name in mednli.MEDNLI] + [f"mediqa/{mednli.MEDIQA}"]
    pairs = mednli.read(data / "mednli", data / "mediqa")
    return pairs, counts.lines(data, *files, *UMLS)


def with_texts(
    rows: pd.DataFrame,
    pairs: pd.DataFrame,
    unknown_pairs: Unknown,
    source: str,
    dropped: Counter[str],
) -> pd.DataFrame:
    """Annotated rows with the `premise` and `full_hypothesis` of their pair. Raises BadInput for a
    span outside the hypothesis and, unless told to leave it out, for a pair that is not there."""
    texts = pairs.rename(columns={"hypothesis": "full_hypothesis"}).drop(columns="label")
    rows = rows.merge(texts, on="pair_id", how="left")
    unknown = rows["premise"].isna()
    if unknown.any() and unknown_pairs == "error":
        remedy = "fetch the files anew, or set `unknown_pairs: leave out`"
        problem = f"pair {rows.loc[unknown, 'pair_id'].iloc[0]} is in no MedNLI file"
        raise BadInput(source, problem, remedy)
    dropped["row: pair in no MedNLI file"] += int(unknown.sum())
    rows = rows[~unknown]
    outside = rows["end"] > rows["full_hypothesis"].str.len()
    for row in rows[outside].head(1).itertuples():
        problem = f"span {row.start} to {row.end} is not in the hypothesis of pair {row.pair_id}"
        raise BadInput(source, problem)
    return rows.reset_index(drop=True)


def tables(
    data: Path,
    settings: Choices,
    seed: int,
    *,
    positives: pd.DataFrame,
    negatives: pd.DataFrame,
    hierarchy: Hierarchy,
    dropped: Counter[str],
    read: list[counts.Row],
) -> BenchmarkTables:
    """All tables. `positives` are annotated rows with their texts, `negatives` the diseases to put
    in their place (`position, kind, original_cui, cui`)."""
    cuis = sorted({*positives["cui"], *negatives["cui"], *negatives["original_cui"]})
    names = _names(data / "umls", cuis)
    examples = assemble(positives, negatives, names)
    by_target = names.groupby("cui")["name"].agg(list)
    targets = {target: by_target[target] for target in _targets(positives, settings.positives)}
    above = [(cui, one) for cui in cuis for one in sorted(hierarchy.ancestors(cui))]
    queries = _queries(examples)
    return BenchmarkTables(
        queries=queries,
        candidates=_candidates(examples),
        notes={"dropped": pd.DataFrame(sorted(dropped.items()), columns=["rule", "count"])},
        others={
            "examples": examples.drop(columns=["start", "end"]),
            "splits": split(examples, targets, settings.validation, seed, settings.match),
            "names": names,
            "ancestors": pd.DataFrame(above, columns=["cui", "ancestor"], dtype=str),
            "sources": counts.table([*read, *counts.by_name("", "queries", queries["subset"])]),
        },
    )


def _names(umls: Path, cuis: list[str]) -> pd.DataFrame:
    """`cui, name, preferred`: all English names of these concepts; one of each is preferred."""
    wanted = pl.col("CUI").is_in(cuis)
    every = rrf.english_names(umls).filter(wanted).collect(engine="streaming").to_pandas()
    first = rrf.preferred_names(umls).filter(wanted).collect(engine="streaming").to_pandas()
    every = every.drop_duplicates().rename(columns={"CUI": "cui", "STR": "name"})
    best = every.groupby("cui")["name"].first().to_dict()
    best |= dict(zip(first["CUI"], first["STR"], strict=True))
    if missing := sorted(set(cuis) - set(best)):
        raise BadInput(umls / "MRCONSO.RRF", f"no English name of {missing[0]}")
    every["preferred"] = every["name"] == every["cui"].map(best)
    return every.sort_values(["cui", "name"], kind="stable").reset_index(drop=True)


def _targets(positives: pd.DataFrame, fewest: int) -> list[str]:
    """The diseases with enough positives in a category."""
    sizes = positives.groupby(["cui", "category"]).size()
    return sorted(set(sizes[sizes >= fewest].index.get_level_values("cui")))


def _queries(examples: pd.DataFrame) -> pd.DataFrame:
    """The positives as prompts: the hypothesis after its premise, the disease a slot."""
    rows = examples[examples["label"] == 1]
    prompts = [
        f"{row.premise} {row.full_hypothesis[: row.start]}{SLOT}{row.full_hypothesis[row.end :]}"
        for row in rows.itertuples()
    ]
    return pd.DataFrame(
        {
            "query_id": rows["example_id"],
            "benchmark": "diskne",
            "relation": rows["cui"],
            "subject": rows["premise"],
            "subject_id": rows["pair_id"],
            "prompt": prompts,
            "answers": [[name] for name in rows["disease"]],
            "answer_ids": [[cui] for cui in rows["cui"]],
            "subset": rows["category"],
        }
    )


def _candidates(examples: pd.DataFrame) -> pd.DataFrame:
    """The diseases of the examples, in each category."""
    diseases = examples.drop_duplicates("cui").sort_values("cui")
    return pd.concat(
        [
            pd.DataFrame({"name": diseases["hypothesis"], "id": diseases["cui"]}).assign(
                type="disease", subset=category
            )
            for category in examples["category"].unique()
        ],
        ignore_index=True,
    )
