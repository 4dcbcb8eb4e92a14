"""Curves over a method's settings: all of them, and by relation."""

import re

import pandas as pd
import pytest

from helpers.toy_project import METADATA
from medprobe.metrics.results import COMPARISON
from medprobe.papers.medlama.sections.sweeps import by_relation, draw
from medprobe.report.figures.plots import curves

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
    caption = (
        "acc@1 by mask ratio of probe (made_up, full); bands are the deviation over replicates."
    )
    assert drawing.caption == caption
    [drawing] = draw(rows(None), METADATA)
    assert drawing.caption.endswith("(made_up, full); bands are intervals.")


def test_by_relation_the_highest_and_the_mean() -> None:
    [drawing] = by_relation(rows(), METADATA)
    assert drawing.file == "made_up-taught-probe-mask_ratio-relations.svg"
    assert "acc@1 of taught by mask ratio of probe, by relation" in drawing.caption
    assert drawing.caption.endswith("deviation over replicates.")
    named_relations = [name for name in RELATIONS if f">{name.replace('_', ' ')}<" in drawing.svg]
    assert named_relations == RELATIONS[3:]  # nine of twelve
    assert ">micro<" in drawing.svg and ">macro<" not in drawing.svg


def test_nothing_is_drawn_of_one_setting_or_one_relation() -> None:
    table = rows()
    assert not by_relation(table[table["method"].str.endswith("0.1")], METADATA)
    assert not by_relation(table[~table["relation"].isin(RELATIONS[1:])], METADATA)
    assert not by_relation(table.head(0), METADATA)


def variants(points: dict[str, float], model: str = "taught", std: float = 0.01) -> pd.DataFrame:
    """Macro means of variants, without a deviation for the model before rewiring."""
    variant_rows = []
    for subset in ("full", "hard"):
        for variant, value in points.items():
            deviation = None if variant == "original" else std
            numbers = {"value": value, "low": 0.0, "high": 0.9, "n": 10, "std": deviation}
            keys = ("made_up", subset, "macro", model, f"probe:{variant}".rstrip(":"), "acc_at_1")
            variant_rows.append(dict(zip(COMPARISON[:6], keys, strict=True)) | numbers)
    return pd.DataFrame(variant_rows)


Drawn = list[tuple[pd.DataFrame, str, str]]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """The points, the column of x and the column of lines of each drawing."""
    seen: Drawn = []

    def curves(points: pd.DataFrame, x: str, series: str, *more: object, **options: object) -> str:
        seen.append((points, x, series))
        return ""

    monkeypatch.setattr("medprobe.report.figures.plots.curves", curves)
    return seen


def test_bands_are_the_deviation_where_there_is_one(drawn: Drawn) -> None:
    by_relation(rows(0.02), METADATA)
    [without] = by_relation(rows(None), METADATA)
    (with_std, *_), (plain, *_) = drawn
    assert (with_std["high"] - with_std["value"]).round(9).eq(0.02).all()
    assert plain["high"].eq(0.9).all() and without.caption.endswith("intervals.")


def test_values_by_step_are_lines_over_the_steps_on_each_subset(drawn: Drawn) -> None:
    values = {"": 0.3, "original": 0.1, "step-20": 0.2, "step-40": 0.3}
    for ratio in ("0.1", "0.5"):
        for step in (20, 40):
            values[f"mask_ratio-{ratio}-step-{step}"] = float(ratio) * step / 100
        values[f"mask_ratio-{ratio}"] = float(ratio) * 0.4
    drawings = draw(variants(values), METADATA)
    files = [f"made_up-{subset}-taught-probe-mask_ratio-step.svg" for subset in ("full", "hard")]
    assert {*files} < {drawing.file for drawing in drawings}
    points = [points for points, _, series in drawn if series == "line"]
    assert len(points) == 2
    for lines in points:
        assert list(lines["line"].unique()) == ["mask ratio 0.1", "mask ratio 0.5"]
        assert list(lines["at"]) == [20, 40, 20, 40]
        assert list(lines["value"]) == pytest.approx([0.02, 0.04, 0.1, 0.2])
        assert (lines["high"] - lines["low"]).tolist() == pytest.approx([0.02] * 4)
    [caption] = [drawing.caption for drawing in drawings if drawing.file == files[1]]
    assert caption == (
        "acc@1 of taught by step and mask ratio of probe (made_up, hard); "
        "bands are the deviation over replicates."
    )


def test_the_model_before_rewiring_has_no_band_and_the_caption_says_so(drawn: Drawn) -> None:
    table = variants({"original": 0.1, "step-20": 0.2, "step-40": 0.3})
    drawing, _ = draw(table, METADATA)
    points = drawn[0][0].set_index("at")
    assert points.loc[0, ["low", "high"]].isna().all()
    assert points.loc[20.0, ["low", "high"]].tolist() == pytest.approx([0.19, 0.21])
    note = "0 is the model before rewiring, which has no replicates and no band; "
    assert drawing.caption.endswith(f"; {note}bands are the deviation over replicates.")
    by = [table.assign(relation=name) for name in RELATIONS[:3]]
    [drawing] = by_relation(pd.concat(by), METADATA)
    points = drawn[-1][0]
    assert points.loc[points["at"] == 0, ["low", "high"]].isna().all(axis=None)
    assert note in drawing.caption


def test_bands_begin_where_deviations_do() -> None:
    table = pd.DataFrame({"at": [0.0, 20, 40], "value": [0.1, 0.2, 0.3], "line": "taught"})
    points = table.assign(low=[None, 0.19, 0.29], high=[None, 0.21, 0.31])
    svg = curves(points, "at", "line", ("step", "value"), False)
    [band] = re.findall(r'fill-opacity:0\.16"><defs><path id="\w+" d="(.*?)"', svg)
    [line] = re.findall(r'<path d="(M [^"]*)" style="fill:none;stroke:#0072b2', svg)
    [of_band, of_line] = ({*re.findall(r"[ML] (\S+)", path)} for path in (band, line))
    assert len(of_line) == 3 and of_band == of_line - {min(of_line, key=float)}


def test_the_two_sweeps_over_layers_are_one_drawing(drawn: Drawn) -> None:
    read = {f"read_layers-{n}": n / 100 for n in (1, 2, 4)}
    cut = {f"layers-{n}": n / 50 for n in (1, 2, 4)}
    both = pd.concat([variants(read | cut), variants(read | cut, "untaught")])
    drawing, hard = draw(both, METADATA, ["taught", "untaught"])
    assert drawing.file == "made_up-full-probe-layers.svg" != hard.file
    points, _, series = drawn[0]
    lines = points.groupby(series)["value"].apply(list).to_dict()
    assert lines["taught, cut"] == [0.02, 0.04, 0.08] and lines["taught, read"] == [
        0.01,
        0.02,
        0.04,
    ]
    assert [*lines] == ["taught, cut", "taught, read", "untaught, cut", "untaught, read"]
    assert "cut: rewired without the layers above; read: a layer of the whole" in drawing.caption
    [alone, _] = draw(variants(read), METADATA)
    assert alone.file == "made_up-full-probe-read_layers.svg"
    [alone, _] = draw(variants(cut), METADATA)
    assert "cut: rewired without the layers above;" in alone.caption
    assert "read:" not in alone.caption
