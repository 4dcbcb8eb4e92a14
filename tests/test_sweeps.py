"""Curves over a method's settings: all of them, and by relation."""

import pandas as pd
import pytest

from medprobe.figures.sweeps import by_relation, draw
from medprobe.metrics.results import COMPARISON
from toy_project import METADATA

RELATIONS = [f"relation_{number}" for number in range(12)]


def rows(std: float | None = 0.02) -> pd.DataFrame:
    """A sweep over mask ratios: relation n has n per cent at 0.1, twice that at 0.5."""
    sweep_rows = []
    for ratio, times in ((0.1, 1), (0.5, 2)):
        values = {name: number / 100 * times for number, name in enumerate(RELATIONS)}
        for relation, value in {**values, "macro": 0.05, "micro": 0.06}.items():
            numbers = {"value": value, "low": 0.0, "high": 0.9, "n": 10, "std": std}
            keys = ("made_up", "full", relation, "taught", f"probe:mask_ratio-{ratio}", "acc_at_1")
            sweep_rows.append(dict(zip(COMPARISON[:6], keys, strict=True)) | numbers)
    return pd.DataFrame(sweep_rows)


def test_a_sweep_is_a_curve() -> None:
    [drawing] = draw(rows(), METADATA)
    assert drawing.caption == "acc@1 by mask ratio of probe (made_up, full)."


def test_by_relation_the_highest_and_the_mean() -> None:
    [drawing] = by_relation(rows(), METADATA)
    assert drawing.file == "made_up-taught-probe-mask_ratio-relations.svg"
    assert "acc@1 of taught by mask ratio of probe, by relation" in drawing.caption
    assert drawing.caption.endswith("deviation over replicates.")
    named_relations = [name for name in RELATIONS if f">{name.replace('_', ' ')}<" in drawing.svg]
    assert named_relations == RELATIONS[3:]  # nine of twelve
    assert ">micro<" in drawing.svg and ">macro<" not in drawing.svg


def test_bands_are_the_deviation_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[pd.DataFrame] = []

    def curves(points: pd.DataFrame, *more: object) -> str:
        seen.append(points)
        return ""

    monkeypatch.setattr("medprobe.figures.plots.curves", curves)
    by_relation(rows(0.02), METADATA)
    [without] = by_relation(rows(None), METADATA)
    with_std, plain = seen
    assert (with_std["high"] - with_std["value"]).round(9).eq(0.02).all()
    assert plain["high"].eq(0.9).all() and without.caption.endswith("intervals.")


def test_nothing_is_drawn_of_one_setting_or_one_relation() -> None:
    table = rows()
    assert not by_relation(table[table["method"].str.endswith("0.1")], METADATA)
    assert not by_relation(table[~table["relation"].isin(RELATIONS[1:])], METADATA)
    assert not by_relation(table.head(0), METADATA)
