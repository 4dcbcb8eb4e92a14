"""Further candidates for a subset: what more entities do to the same queries.

Source: Shaier et al., section 5.6 and Table 6 ("Amount of Entities").
"""

from collections.abc import Iterable
from dataclasses import replace

import pandas as pd

from medprobe.tables import DISTRACTOR, Benchmark


def with_distractors(benchmark: Benchmark, subset: str, names: Iterable[str]) -> Benchmark:
    """The benchmark with these names as distractors of a subset, those that are none of its
    candidates already. A method that knows of distractors ranks with and without them in one pass;
    others never see them."""
    known = set(benchmark.candidates.loc[benchmark.candidates["subset"] == subset, "name"])
    new = [name for name in dict.fromkeys(names) if name not in known]
    more = pd.DataFrame({"name": new, "id": new, "type": DISTRACTOR, "subset": subset})
    candidates = pd.concat([benchmark.candidates, more], ignore_index=True)
    return replace(benchmark, candidates=candidates)
