"""What `medprobe doctor` says of sources and models."""

from pathlib import Path

from rich.table import Table

from medprobe.commands.doctor import missing_sources, models_table, sources_table
from medprobe.core.params import HubModel, ModelParams, Models, Params


def cells(table: Table) -> dict[str, tuple[str, ...]]:
    """A table's rows by their first cell."""
    columns = [list(column.cells) for column in table.columns]
    return {row[0]: row[1:] for row in zip(*columns, strict=True)}


def test_released_sources_and_sentence_sets_are_listed_with_sizes(tmp_path: Path) -> None:
    (tmp_path / "medlama").mkdir()
    (tmp_path / "medlama/may_treat_1.csv").write_bytes(b"x" * 1500)
    (tmp_path / "sentences").mkdir()
    (tmp_path / "sentences/other.txt").write_text("a sentence .\n")
    params = Params(sentence_sets={"mine": {}}, benchmarks={"medlama_released": {"real": {}}})
    rows = cells(sources_table(params, tmp_path))
    assert rows["medlama"] == ("1.5 kB", "real")
    assert rows["umls/MRREL.RRF"][0] == "missing"
    assert "(medlama)" in rows["umls/MRREL.RRF"][1]
    assert rows["sentences/mine.txt"] == ("missing", "rewiring on mine")
    assert missing_sources(params, tmp_path) == ["sentences/mine.txt"]
    assert rows["sentences/other.txt"] == ("13 bytes", "(rewiring on other)")
    assert {"lipid/LIPID.json", "lama", "biolama", "diskne"} <= set(rows)
    assert "sample" not in rows


def test_a_model_that_no_commit_pins_is_told(tmp_path: Path) -> None:
    names = {"loose": "main", "fixed": "0" * 40}
    params = Params(
        fetch={
            name: HubModel(hub="who/what", revision=revision) for name, revision in names.items()
        },
        models=Models(masked={name: ModelParams() for name in names}),
    )
    rows = cells(models_table(params))
    assert rows["loose"][1] == "who/what main (not pinned)"
    assert rows["fixed"][1] == f"who/what {'0' * 40}"


def test_where_sample_models_come_from_is_told(tmp_path: Path) -> None:
    params = Params(
        train={"base": {"kind": "causal"}},
        continued={"further": {"base": "base"}},
        models=Models(causal={name: ModelParams() for name in ("base", "further")}),
    )
    rows = cells(models_table(params))
    assert rows["base"][1] == "trained here"
    assert rows["further"][1] == "trained here, continues base"
    assert cells(sources_table(params, tmp_path))["sample"] == ("missing", "training base, further")
