"""What DisKnE's diseases are called: by UMLS, and by the texts that were annotated.

Source: Alghanmi et al. 2021, sections 3.3 and 3.4. The annotated texts' own words for a disease are
names of it too, as in the released code: they need not be in UMLS.
"""

from collections import Counter
from pathlib import Path

import pandas as pd
import polars as pl

from medprobe.papers.diskne.benchmarks.diskne.negatives import surfaces
from medprobe.sources import rrf


def read(
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


def preferred(names: pd.DataFrame) -> dict[str, str]:
    """Return the preferred name of each disease."""
    return names[names["preferred"]].set_index("cui")["name"].to_dict()


def labels(umls: Path, cuis: list[str], vocabulary: str) -> dict[str, str]:
    """Read a vocabulary's names of concepts: the first preferred term (TTY=PT) of each."""
    is_label = (pl.col("SAB") == vocabulary) & (pl.col("TTY") == "PT") & (pl.col("LAT") == "ENG")
    wanted = pl.DataFrame({"CUI": cuis}, {"CUI": pl.String})
    rows = rrf.read_mrconso(umls, ["CUI", "STR"], is_label, wanted)
    return dict(rows.group_by("CUI").agg(pl.col("STR").sort_by("line").first()).rows())
