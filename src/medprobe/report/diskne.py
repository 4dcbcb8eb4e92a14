"""How DisKnE's classifiers learnt: the curves that the page draws, from the losses on disk."""

from pathlib import Path

import pandas as pd

BENCHMARK = "diskne"
METHOD = "classifier"
KEYS = ["model", "variant", "loss", "epoch"]


def curves(predictions: Path) -> pd.DataFrame:
    """Losses by epoch, for every model: columns `model, variant, loss` (train or validation),
    `epoch, value, low, high, n`.

    `value` is the median over diseases and seeds, `low` and `high` the quartiles, `n` how many of
    them trained that long. No rows where nothing was fine-tuned.
    """
    parts = [pd.DataFrame(columns=[*KEYS, "value", "low", "high", "n"])]
    for file in sorted(predictions.glob(f"*/{METHOD}/{BENCHMARK}-curves.csv")):
        table = pd.read_csv(file, keep_default_na=False)
        rows = table.melt(["variant", "epoch"], ["train", "validation"], "loss")
        by = rows.assign(model=file.parent.parent.name).groupby(KEYS, sort=True)["value"]
        numbers = {"value": by.median(), "low": by.quantile(0.25), "high": by.quantile(0.75)}
        part = pd.DataFrame(numbers | {"n": by.size()}).reset_index()
        parts.append(part)
    return pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)
