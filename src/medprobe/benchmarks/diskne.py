"""DisKnE: does this premise entail that the patient has this disease? Binary, per disease.

Source: Alghanmi et al. 2021, "Probing Pre-Trained Language Models for Disease Knowledge". Positives
are MedNLI pairs whose hypothesis gives the patient a disease; negatives put a similar disease in
its place. For each disease, nothing that mentions it is trained on.

Beside the usual two tables, which hold the positives as prompts, there are: `examples`, all
positives and negatives; `splits`, what trains, validates and tests for each target disease; `names`
and `ancestors` of every disease in them.
"""

from collections import Counter
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import polars as pl
from pydantic import Field

from medprobe import places
from medprobe.benchmarks import Metadata
from medprobe.benchmarks.diskne_candidates import DISEASES, candidates
from medprobe.benchmarks.diskne_negatives import assemble, choose, replaceable
from medprobe.benchmarks.diskne_splits import Match, split
from medprobe.errors import BadInput
from medprobe.metrics.f1 import paired as paired  # noqa: PLC0414 - the benchmark's own metric
from medprobe.metrics.f1 import score as score  # noqa: PLC0414
from medprobe.params import Section
from medprobe.sources import annotation, cui2vec, mednli, rrf
from medprobe.sources.hierarchy import Hierarchy
from medprobe.tables import SLOT, Benchmark

METADATA = Metadata(
    description="Does a clinical sentence entail that the patient has a disease?",
    citation="Alghanmi, Espinosa-Anke and Schockaert, Findings of ACL 2021",
    licence="MedNLI and MEDIQA-NLI: PhysioNet credentialed; UMLS licence",
    sources=("mednli", "mediqa", "umls", "cui2vec", "diskne"),
    primary_metric="f1",
    many_relations=True,  # a disease each
)


class Settings(Section):
    """Where DisKnE's sources are, relative to `data/`, and its rules; the defaults are the paper's.

    `diskne` holds `annotation.csv` (the sheet, filled in) or the released annotation files.
    """

    mednli: Path = Path("mednli")
    mediqa: Path | None = Path("mediqa")
    umls: Path = Path("umls")
    cui2vec: Path = Path("cui2vec/cui2vec_pretrained.csv")
    diskne: Path = Path("diskne")
    vocabulary: str = "SNOMEDCT_US"  # whose hierarchy tells ancestors and descendants
    diseases: tuple[str, ...] = Field(DISEASES, min_length=1)  # semantic types to annotate
    negatives: int = Field(10, gt=0)  # of each kind, for each positive
    positives: int = Field(2, gt=0)  # fewest in a category for a disease to be tested in it
    validation: float = Field(0.1, gt=0, lt=1)  # share of the training pairs
    match: Match = "words"  # how mentions are found; substrings: as the released code does
    unknown_pairs: Literal["error", "leave out"] = "error"  # ids that are in no MedNLI file


def build(data: Path, settings: Settings, seed: int) -> Benchmark:
    """Build the examples, and a split for each disease that has enough positives.

    Raises BadInput for sources that are missing or amiss, and where nobody has annotated yet: the
    sheet to fill in is then written to `outputs/annotation/diskne.csv`.
    """
    dropped: Counter[str] = Counter()
    pairs = mednli.read(data / settings.mednli, settings.mediqa and data / settings.mediqa)
    rows = _with_texts(_annotated(data, settings, pairs), pairs, settings, dropped)
    hierarchy = Hierarchy.read(data / settings.umls, settings.vocabulary)
    given = rows[rows["label"] == 0]
    positives = rows[rows["label"] == 1].reset_index(drop=True)
    if given.empty:
        vectors = cui2vec.read(data / settings.cui2vec, places.PARTS)
        positives = replaceable(positives, hierarchy, vectors, settings.negatives, dropped)
        negatives = choose(positives, hierarchy, vectors, settings.negatives, seed)
    else:
        negatives = _placed(given, positives)
    cuis = sorted({*positives["cui"], *negatives["cui"], *negatives["original_cui"]})
    names = _names(data / settings.umls, cuis)
    examples = assemble(positives, negatives, names)
    by_target = names.groupby("cui")["name"].agg(list)
    targets = {target: by_target[target] for target in _targets(positives, settings.positives)}
    splits = split(examples, targets, settings.validation, seed, settings.match)
    above = [(cui, one) for cui in cuis for one in sorted(hierarchy.ancestors(cui))]
    return Benchmark(
        queries=_queries(examples),
        candidates=_candidates(examples),
        notes={"dropped": pd.DataFrame(sorted(dropped.items()), columns=["rule", "count"])},
        others={
            "examples": examples.drop(columns=["start", "end"]),
            "splits": splits,
            "names": names,
            "ancestors": pd.DataFrame(above, columns=["cui", "ancestor"], dtype=str),
        },
    )


def _annotated(data: Path, settings: Settings, pairs: pd.DataFrame) -> pd.DataFrame:
    """The annotation that is there, with its `origin`: the filled-in sheet (`built`), else the
    `released` files. `kind` is positive, or the kind of negative: similar or random."""
    folder = data / settings.diskne
    if (sheet := folder / "annotation.csv").is_file():
        return annotation.read_sheet(sheet).assign(kind="positive", origin="built")
    found = sorted(folder.glob("DisknE_*_annotation.csv"))
    if not found:
        path = Path("outputs/annotation/diskne.csv")
        annotation.write_sheet(candidates(pairs, data / settings.umls, settings.diseases), path)
        remedy = f"fill in {path} and save it there, or run `medprobe import annotation FOLDER`"
        raise BadInput(sheet, "nobody has annotated yet", remedy)
    tables = []
    for path in found:
        kind = "random" if "_random_" in path.name else "similar"
        table = annotation.read_released(path)
        table["kind"] = np.where(table["label"] == 1, "positive", kind)
        if path.with_name(path.name.replace("_random_", "_similar_")) in set(found) - {path}:
            table = table[table["label"] == 0]  # its positives stand in the other file too
        tables.append(table)
    return pd.concat(tables, ignore_index=True).assign(origin="released")


def _with_texts(
    rows: pd.DataFrame, pairs: pd.DataFrame, settings: Settings, dropped: Counter[str]
) -> pd.DataFrame:
    """Annotated rows with the `premise` and `full_hypothesis` of their pair."""
    texts = pairs.rename(columns={"hypothesis": "full_hypothesis"}).drop(columns="label")
    rows = rows.merge(texts, on="pair_id", how="left")
    unknown = rows["premise"].isna()
    if unknown.any() and settings.unknown_pairs == "error":
        remedy = "fetch the files anew, or set `unknown_pairs: leave out`"
        problem = f"pair {rows.loc[unknown, 'pair_id'].iloc[0]} is in no MedNLI file"
        raise BadInput(settings.diskne, problem, remedy)
    dropped["row: pair in no MedNLI file"] += int(unknown.sum())
    rows = rows[~unknown]
    outside = rows["end"] > rows["full_hypothesis"].str.len()
    for row in rows[outside].head(1).itertuples():
        problem = f"span {row.start} to {row.end} is not in the hypothesis of pair {row.pair_id}"
        raise BadInput(settings.diskne, problem)
    return rows.reset_index(drop=True)


def _placed(given: pd.DataFrame, positives: pd.DataFrame) -> pd.DataFrame:
    """The negatives of released files: `position` (of their positive), `kind, original_cui, cui`.

    Where no positive has their pair, category and disease, theirs is the one of pair and category.
    """
    exact, loose = ["pair_id", "category", "original_cui"], ["pair_id", "category"]
    found = pd.Series(np.nan, index=given.index)
    for keys in (exact, loose):
        place = positives.drop_duplicates(keys).reset_index(names="position")[[*keys, "position"]]
        found = found.fillna(
            given.merge(place, on=keys, how="left").set_index(given.index)["position"]
        )
    for row in given[found.isna()].head(1).itertuples():
        raise BadInput("diskne", f"negative {row.cui} of pair {row.pair_id} has no positive")
    placed = given[["kind", "original_cui", "cui"]].assign(position=found.astype(int))
    return placed.sort_values("position", kind="stable").reset_index(drop=True)


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
