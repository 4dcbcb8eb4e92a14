"""What each metric is: its direction, range and source. A metric that is not here is not shown."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Metric:
    """How to read a metric's values."""

    title: str
    better: str  # "higher", "lower", or "neither" for a diagnostic
    low: float
    high: float
    source: str

    @property
    def share(self) -> bool:
        """Is it a share, to be shown in per cent?"""
        return (self.low, self.high) == (0.0, 1.0)


_LAMA = "Petroni et al. 2019, section 4.3 (P@k); named acc@k by Meng et al. 2022, section 5"
_TIED = "expected acc@k where equal scores are drawn in random order"
_UCM = "Understand-Confuse-Misunderstand: the context-variance paper's share of rank changes"
_RC = "the context-variance paper's Table 1: ranks after a step less those before it"

METRICS: Final[dict[str, Metric]] = {
    "acc_at_1": Metric("acc@1", "higher", 0.0, 1.0, _LAMA),
    "acc_at_5": Metric("acc@5", "higher", 0.0, 1.0, _LAMA),
    "acc_at_10": Metric("acc@10", "higher", 0.0, 1.0, _LAMA),
    "acc_at_1_tied": Metric("acc@1, ties shared", "higher", 0.0, 1.0, _TIED),
    "acc_at_5_tied": Metric("acc@5, ties shared", "higher", 0.0, 1.0, _TIED),
    "subject_at_1": Metric(
        "own subject first", "neither", 0.0, 1.0, "a diagnostic of retrieval: how often it echoes"
    ),
    "f1": Metric("F1", "higher", 0.0, 1.0, "of the positive class; Alghanmi et al. 2021"),
    "f1_as_released": Metric(
        "F1 as released", "higher", 0.0, 1.0, "the authors' code: over positive examples alone"
    ),
    "perplexity": Metric(
        "perplexity", "lower", 1.0, float("inf"), "Salazar et al. 2020 for masked models"
    ),
    "understand": Metric("Understand", "higher", 0.0, 1.0, _UCM),
    "confuse": Metric("Confuse", "lower", 0.0, 1.0, _UCM),
    "misunderstand": Metric("Misunderstand", "lower", 0.0, 1.0, _UCM),
    **{
        f"rc_{series}": Metric(f"rank change of {of}", "neither", float("-inf"), float("inf"), _RC)
        for series, of in {
            "target": "the target",
            "added": "the added entity",
            "correct": "other correct objects",
            "incorrect": "incorrect entities",
        }.items()
    },
}
