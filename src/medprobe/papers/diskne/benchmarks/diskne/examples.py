"""DisKnE's tables from its positives and negatives, whatever their source.

The usual two tables hold the positives as prompts. The others are: `examples`, all positives and
negatives; `splits`, what trains, validates and tests for each target disease, and the `fewest`
positives that a category needs to be reported; `names` and `ancestors` of every disease in them.
"""

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Final, Literal

import pandas as pd
import polars as pl
from pydantic import Field

from medprobe.benchmarks import counts
from medprobe.core.errors import BadInput
from medprobe.core.settings import Section
from medprobe.core.tables import SLOT, BenchmarkTables
from medprobe.papers.diskne import mednli
from medprobe.papers.diskne.annotation import CATEGORIES, Category, is_premise
from medprobe.papers.diskne.benchmarks.diskne.negatives import assemble, surfaces
from medprobe.papers.diskne.benchmarks.diskne.splits import (
    Match,
    split,
    split_as_released,
    touched,
)
from medprobe.papers.diskne.concepts import Hierarchy
from medprobe.papers.diskne.metrics.f1 import PARTS
from medprobe.sources import rrf

UMLS: Final = ("umls/MRCONSO.RRF", "umls/MRREL.RRF")
PAIRS: Final = tuple(
    [f"mednli/{name}" for name in mednli.MEDNLI]
    + [f"mediqa/{name}" for name in (mednli.MEDIQA, mednli.MEDIQA_LABELS)]
)
TABLES: Final = ("examples", "splits", "names", "ancestors")  # further ones, for methods
MissingRule = Literal["error", "leave out"]


class DiseasePart(Section):
    """Some of a category's diseases, of which means are taken, too."""

    category: Category
    targets: tuple[str, ...] = Field(min_length=1)
    """CUIs of the diseases."""


class DiskneSettings(Section):
    """Settings of both builders.

    Where the paper and its released code differ, the defaults are the paper's.
    """

    vocabulary: str = "SNOMEDCT_US"
    """The UMLS vocabulary with the hierarchy of diseases."""
    categories: tuple[Category, ...] = Field(CATEGORIES, min_length=1)
    """Categories of examples. The released code trains on medical and terminological examples
    apart: name the categories of one kind only."""
    targets: tuple[str, ...] | None = None
    """CUIs of the diseases to test. Empty: all that can be tested."""
    parts: dict[str, DiseasePart] = Field({})
    """Further means of F1, each over some diseases of a category. The means of a part `24` of
    terminological examples are `terminological/diseases:24`."""
    positives: int = Field(2, gt=0)
    """Positive examples that a disease needs to be tested."""
    validation: float = Field(0.1, gt=0, lt=1)
    """Share of the training examples that validates."""
    match: Match = "forms"
    """Find mentions of a disease by the `forms` of its names, or as `substrings`."""
    shared_premises: bool = False
    """A tested premise may train another disease."""
    descendants: Literal["train", "leave out"] = "train"
    """Examples that mention a descendant of the tested disease: `train` on them, or `leave out`. A
    descendant is then never trained on: an example of pneumonia teaches about disorders of the
    lung."""
    split: Literal["pairs", "released"] = "pairs"
    """How examples are divided: by `pairs`, or by rows as `released`."""
    hypothesis: Literal["preferred", "surface"] = "preferred"
    """The disease in the hypothesis: its UMLS `preferred` name, or the `surface` form in the
    text."""
    unknown_pairs: MissingRule = "error"
    """Unknown pair ids: stop with an `error`, or `leave out`."""
    unnamed: MissingRule = "error"
    """Diseases without any name: stop with an `error`, or `leave out`."""


def read_pairs(data: Path) -> tuple[pd.DataFrame, list[counts.CountRow]]:
    """Read all pairs of MedNLI and MEDIQA-NLI, and count the rows read of each file.

    The files of the UMLS are counted as well, and pairs that are left out.
    """
    dropped: Counter[str] = Counter()
    files = [f"mednli/{name}" for name in mednli.MEDNLI] + [f"mediqa/{mednli.MEDIQA}"]
    pairs = mednli.read(data / "mednli", data / "mediqa", dropped)
    left_out = [("mednli", "dropped", rule, count) for rule, count in dropped.items() if count]
    return pairs, [*counts.lines(data, *files, *UMLS), *left_out]


def with_texts(
    rows: pd.DataFrame,
    pairs: pd.DataFrame,
    unknown_pairs: MissingRule,
    source: str,
    dropped: Counter[str],
) -> pd.DataFrame:
    """Annotated rows with the `premise` and `full_hypothesis` of their pair.

    Two of the released ids are the text of a premise. They mean the pair that is entailed by it,
    and are left out where no such pair exists.
    """
    rows = _by_premise(rows, pairs)
    texts = pairs.rename(columns={"hypothesis": "full_hypothesis"}).drop(columns="label")
    rows = rows.merge(texts, on="pair_id", how="left")
    missing = rows["premise"].isna()
    lost = missing & is_premise(rows["pair_id"])
    unknown = missing & ~lost
    if unknown.any() and unknown_pairs == "error":
        remedy = "fetch the files again, or set `unknown_pairs: leave out`"
        problem = f"pair {rows.loc[unknown, 'pair_id'].iloc[0]} is in no MedNLI file"
        raise BadInput(source, problem, remedy)
    dropped["row: pair in no MedNLI file"] += int(unknown.sum())
    dropped["row: its id is a premise that no pair has"] += int(lost.sum())
    rows = rows[~missing]
    outside = rows["end"] > rows["full_hypothesis"].str.len()
    for row in rows[outside].head(1).itertuples():
        problem = f"span {row.start} to {row.end} is not in the hypothesis of pair {row.pair_id}"
        raise BadInput(source, problem)
    return rows.reset_index(drop=True)


def _by_premise(rows: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """Replace each id that is the text of a premise by the id of its entailed pair.

    The pair's premise equals or begins with that text, and its hypothesis is long enough for the
    annotated span.
    """
    entailed = pairs[pairs["label"] == "entailment"]
    pair_ids: dict[str, str] = {}
    for row in rows[is_premise(rows["pair_id"]) & (rows["label"] == 1)].itertuples():
        begins = entailed["premise"].str.strip().str.startswith(row.pair_id.strip())
        fits = entailed[begins & (entailed["hypothesis"].str.len() >= row.end)]
        if len(fits) == 1:
            pair_ids[row.pair_id] = fits["pair_id"].iloc[0]
    return rows.assign(pair_id=rows["pair_id"].replace(pair_ids)) if pair_ids else rows


def tables(
    data: Path,
    settings: DiskneSettings,
    seed: int,
    *,
    positives: pd.DataFrame,
    negatives: pd.DataFrame,
    hierarchy: Hierarchy,
    dropped: Counter[str],
    read: list[counts.CountRow],
) -> BenchmarkTables:
    """Assemble all tables of the benchmark.

    `positives` are annotated rows with their texts, `negatives` the diseases to put in their place
    (`position, kind, original_cui, cui, row`).
    """
    named = read_names(data / "umls", positives, negatives, dropped)
    nameless = sorted({*positives["cui"], *negatives["cui"]} - set(named["cui"]))
    if nameless and settings.unnamed == "error":
        listing = f"{', '.join(nameless[:3])}{', …' * (len(nameless) > 3)}"
        remedy = "take the UMLS that the annotation is of (2020AA), or set `unnamed: leave out`"
        raise BadInput(data / "umls/MRCONSO.RRF", f"no English name of {listing}", remedy)
    dropped["row: its disease has no name"] += len(negatives[negatives["cui"].isin(nameless)])
    negatives = negatives[~negatives["cui"].isin(nameless)].reset_index(drop=True)
    preferred = preferred_names(named)
    labels = None
    if settings.hypothesis == "surface":
        vocabulary_labels = read_labels(data / "umls", sorted(preferred), settings.vocabulary)
        labels = preferred | vocabulary_labels
    examples = assemble(positives, negatives, preferred, labels)
    by_disease = named.groupby("cui")["name"].agg(list).to_dict()
    targets = {target: by_disease[target] for target in _targets(examples, settings)}
    below = {
        target: {cui: by_disease[cui] for cui in hierarchy.descendants(target) & {*by_disease}}
        for target in (targets if settings.descendants == "leave out" else ())
    }
    above = [
        (cui, ancestor)
        for cui in sorted(preferred)
        for ancestor in sorted(hierarchy.ancestors(cui))
    ]
    queries = _queries(examples)
    splits = _split(examples, targets, below, settings, seed).assign(fewest=settings.positives)
    parts = _parts(settings, targets)
    return BenchmarkTables(
        queries=queries,
        candidates=_candidates(examples, preferred),
        notes={
            "dropped": pd.DataFrame(sorted(dropped.items()), columns=["rule", "count"]),
            "kinds": _count(examples, "category", "kind"),
            "split_sizes": _count(splits, "target", "split"),
        },
        others={
            "examples": examples,
            "splits": splits,
            "names": named,
            "ancestors": pd.DataFrame(above, columns=["cui", "ancestor"], dtype=str),
            "sources": counts.table([*read, *counts.by_name("", "queries", queries["subset"])]),
            **({PARTS: parts} if len(parts) else {}),
        },
    )


def _parts(settings: DiskneSettings, targets: Collection[str]) -> pd.DataFrame:
    """The diseases of each part: `part, category, target`."""
    for name, part in settings.parts.items():
        for cui in sorted({*part.targets} - {*targets}):
            problem = f"{cui} is no disease that is tested"
            raise BadInput(f"params.yaml: parts.{name}", problem, "remove it")
    rows = [
        (name, part.category, cui) for name, part in settings.parts.items() for cui in part.targets
    ]
    return pd.DataFrame(rows, columns=["part", "category", "target"])


def _count(rows: pd.DataFrame, key: str, column: str) -> pd.DataFrame:
    """How many rows of each key have each value of a column: a row and a column each."""
    return rows.groupby([key, column]).size().unstack(fill_value=0).reset_index()


def _split(
    examples: pd.DataFrame,
    targets: dict[str, list[str]],
    below: dict[str, dict[str, list[str]]],
    settings: DiskneSettings,
    seed: int,
) -> pd.DataFrame:
    mentions = touched(examples, targets, settings.match, below)
    share = settings.validation
    if settings.split == "released":
        return split_as_released(examples, mentions, [*targets], share)
    shared = settings.shared_premises
    return split(examples, mentions, [*targets], share, seed, shared_premises=shared)


def _targets(examples: pd.DataFrame, settings: DiskneSettings) -> list[str]:
    """List the diseases with enough positives in a category that the settings name.

    The released split counts rows alike once.
    """
    if settings.split == "released":
        alike = ["original_cui", "category", "premise", "hypothesis"]
        examples = examples.drop_duplicates(alike)
    sizes = examples[examples["label"] == 1].groupby(["cui", "category"]).size()
    enough = sorted(set(sizes[sizes >= settings.positives].index.get_level_values("cui")))
    if settings.targets is None:
        return enough
    for cui in sorted(set(settings.targets) - set(enough)):
        problem = f"{cui} has no {settings.positives} positives in a category"
        raise BadInput("params.yaml: targets", problem, f"there are {', '.join(enough[:9])}, …")
    return [cui for cui in enough if cui in settings.targets]


def _queries(examples: pd.DataFrame) -> pd.DataFrame:
    """Make prompts of the positives: the hypothesis after its premise, the disease a slot."""
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


def _candidates(examples: pd.DataFrame, preferred: dict[str, str]) -> pd.DataFrame:
    cuis = sorted(set(examples["cui"]))
    names = [preferred[cui] for cui in cuis]
    diseases = pd.DataFrame({"name": names, "id": cuis, "type": "disease"})
    return pd.DataFrame({"subset": examples["category"].unique()}).merge(diseases, how="cross")


def read_names(
    umls: Path,
    positives: pd.DataFrame,
    negatives: pd.DataFrame,
    dropped: Counter[str],
) -> pd.DataFrame:
    """Read the names of the diseases of these rows as a table `cui, name, preferred`.

    These are all English names in the UMLS, suppressed ones too, and what the texts call them. One
    name of each disease is preferred: that of the UMLS, otherwise what most texts say, which is
    counted in `dropped`. A disease with neither has no row.
    """
    cuis = sorted({*positives["cui"], *negatives["cui"], *negatives["original_cui"]})
    wanted = pl.DataFrame({"CUI": cuis}, {"CUI": pl.String})
    english = rrf.read_mrconso(umls, ["CUI", "STR"], pl.col("LAT") == "ENG", wanted)
    listed = english.select(cui="CUI", name="STR").unique(maintain_order=True)
    first = rrf.read_preferred_names(umls, wanted).to_pandas()
    used = rrf.read_english_names(umls, wanted).to_pandas()
    surface_names = pd.DataFrame({"cui": positives["cui"], "name": surfaces(positives)})
    surface_names = surface_names[surface_names["name"] != ""]
    best = surface_names.groupby("cui")["name"].agg(lambda texts: texts.mode().iloc[0]).to_dict()
    dropped["disease: named by the texts only"] += len(set(best) - set(used["CUI"]))
    best |= used.groupby("CUI")["STR"].first().to_dict()
    best |= dict(zip(first["CUI"], first["STR"], strict=True))
    every = pd.concat([listed.to_pandas(), surface_names]).drop_duplicates()
    every = every[every["cui"].isin(best)]
    every["preferred"] = every["name"] == every["cui"].map(best)
    return every.sort_values(["cui", "name"], kind="stable").reset_index(drop=True)


def preferred_names(names: pd.DataFrame) -> dict[str, str]:
    """Return the preferred name of each disease."""
    return names[names["preferred"]].set_index("cui")["name"].to_dict()


def read_labels(umls: Path, cuis: list[str], vocabulary: str) -> dict[str, str]:
    """Read a vocabulary's names of concepts: the first preferred term (TTY=PT, by AUI) of each."""
    is_label = (pl.col("SAB") == vocabulary) & (pl.col("TTY") == "PT") & (pl.col("LAT") == "ENG")
    wanted = pl.DataFrame({"CUI": cuis}, {"CUI": pl.String})
    rows = rrf.read_mrconso(umls, ["CUI", "AUI", "STR"], is_label, wanted)
    return dict(rows.group_by("CUI").agg(pl.col("STR").sort_by("AUI").first()).rows())
