"""DisKnE's expectations on similarity: negatives are cui2vec's nearest, read again from its file.

Source: Alghanmi et al. 2021, section 3.2; random negatives, section 4.3. This module shares nothing
with the builder's reader and search.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.gate.checks import Context, row_check, says
from medprobe.papers.diskne.expectations.diskne import related_diseases

VECTORS = places.DATA / "cui2vec/cui2vec_pretrained.csv"
CLOSE = 1e-5  # cosines that differ by less are equal


@row_check
@says("its disease is not one of the nearest")
def expect_similar_negatives_to_be_nearest(
    rows: pd.DataFrame, context: Context, negatives: int, sample: int
) -> pd.Series:
    """A similar negative's disease is one of the nearest to the original one.

    Columns `kind, original_cui, cui`. Nearest are so many `negatives` by the cosine of their
    vectors, among the diseases of all positives that are neither above nor below the original one.
    A sample of original diseases is checked, or all. All rows of a disease fail whose vector is as
    near to all others, since then nothing is nearest.
    """
    kind, original, cui = rows.columns
    similar = rows[rows[kind] == "similar"]
    pool = sorted(rows.loc[rows[kind] == "positive", cui].unique())
    drawn = similar[original].drop_duplicates()
    drawn = drawn.sample(min(sample, len(drawn)), random_state=0)
    related = related_diseases(context)
    vectors = _vectors(VECTORS, {*pool, *drawn})
    accepted = pd.Series(True, index=rows.index)
    for disease in drawn:
        chosen = similar.index[similar[original] == disease]
        others = [
            other
            for other in pool
            if other != disease and other in vectors and (disease, other) not in related
        ]
        if disease not in vectors or len(others) <= negatives:
            accepted[chosen] = disease in vectors
            continue
        cosines = {other: float(vectors[disease] @ vectors[other]) for other in others}
        least = sorted(cosines.values(), reverse=True)[negatives - 1] - CLOSE
        differ = max(cosines.values()) - min(cosines.values()) > CLOSE
        accepted[chosen] = [
            differ and cosines.get(other, -2) >= least for other in similar.loc[chosen, cui]
        ]
    return accepted


def _vectors(path: Path, cuis: set[str]) -> dict[str, np.ndarray]:
    """The vectors of these concepts, each of length 1."""
    if not path.is_file():
        raise BadInput(path, "no such file", "the gate ranks a sample of negatives again")
    vectors = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            cui = line[: line.find(",")].strip('"')
            if cui in cuis:
                vector = np.array(line.split(",")[1:], dtype=np.float64)
                vectors[cui] = vector / max(float(np.linalg.norm(vector)), 1e-30)
    return vectors
