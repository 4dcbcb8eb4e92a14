"""How far two annotators agree."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Agreement:
    """What two annotators said of the same items, yes or no."""

    items: int
    yes_first: float  # share of the items
    yes_second: float
    agreed: float  # share of the items
    kappa: float  # Cohen's; not a number where both gave one and the same answer to all


def agreement(first: Sequence[bool], second: Sequence[bool]) -> Agreement:
    """Cohen's kappa (1960) and what it is made of: agreement beyond what chance would give.

    >>> agreement([True, True, False, False], [True, False, False, False])
    Agreement(items=4, yes_first=0.5, yes_second=0.25, agreed=0.75, kappa=0.5)
    """
    from sklearn.metrics import cohen_kappa_score

    a, b = np.array(first, bool), np.array(second, bool)
    constant = len({*first, *second}) < 2
    kappa = float("nan") if constant else float(cohen_kappa_score(a, b))
    return Agreement(len(a), float(a.mean()), float(b.mean()), float((a == b).mean()), kappa)
