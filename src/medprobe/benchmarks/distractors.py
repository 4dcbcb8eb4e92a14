"""Further candidates for a subset: what more entities do to the same queries.

Source: Shaier et al., section 5.6 and Table 6 ("Amount of Entities").
"""

from collections.abc import Iterable

import pandas as pd

from medprobe.core.tables import DISTRACTOR


def with_distractors(candidates: pd.DataFrame, subset: str, names: Iterable[str]) -> pd.DataFrame:
    """Add names as distractors of a subset, except those that are its candidates already.

    A method that knows of distractors ranks with and without them in one pass; others never see
    them.
    """
    present = set(candidates.loc[candidates["subset"] == subset, "name"])
    new = [name for name in dict.fromkeys(names) if name not in present]
    more = pd.DataFrame({"name": new, "id": new, "type": DISTRACTOR, "subset": subset})
    return pd.concat([candidates, more], ignore_index=True)
