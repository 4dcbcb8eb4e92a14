"""DisKnE's gate end to end: with leaks in the built tables `dvc repro` stops before it trains."""

from pathlib import Path

import pandas as pd

from helpers.project import Project

TABLES = Path("outputs/benchmarks/diskne")
TRAINING = ("train", "rewire", "probe", "fetch")


def _leaks(folder: Path) -> list[str]:
    """Plant a leak of each kind in the tables below `folder`; what the gate must print of them."""
    examples, splits, names, ancestors = (
        pd.read_parquet(folder / f"{name}.parquet")
        for name in ("examples", "splits", "names", "ancestors")
    )
    ordered = names[~names["preferred"]].sort_values("name", key=lambda name: name.str.len())
    first, second = splits["target"].drop_duplicates()[:2]
    pairs = examples.set_index("example_id")["pair_id"]
    printed = []
    for target, split, column, place in (
        (first, "train", "premise", -1),  # its longest synonym
        (second, "validation", "full_hypothesis", 0),  # its shortest name, an abbreviation
    ):
        leaking = splits[(splits["target"] == target) & (splits["split"] == split)]
        example = leaking["example_id"].iloc[0]
        name = ordered.loc[ordered["cui"] == target, "name"].iloc[place]
        row = examples["example_id"] == example
        examples.loc[row, column] = f"He has a history of {name}."
        where = f"{target} {split} {example}"
        printed.append(f"{where}: reason = pair {pairs[example]}, in its {column}: {name}")
    row_index = splits.index[(splits["target"] == first) & (splits["split"] == "test")][0]
    splits.loc[row_index, "split"] = "validation"
    example = splits.loc[row_index, "example_id"]
    printed.append(
        f"{first} validation {example}: reason = pair {pairs[example]}, {first} is its cui"
    )
    negatives = examples.index[examples["kind"] == "similar"]
    below = ancestors[ancestors["ancestor"].isin(examples["cui"])].iloc[0]
    examples.loc[negatives[0], ["original_cui", "cui"]] = [below["ancestor"], below["cui"]]
    printed.append(f"{_row(examples, negatives[0])}: label = 0, original_cui = {below['ancestor']}")
    examples.loc[negatives[2], "cui"] = examples.loc[negatives[1], "cui"]
    fault = "pair_id, category, original_cui, kind, cui occur twice together"
    printed.append(f"{_row(examples, negatives[2])}: {fault}: category = ")
    examples.to_parquet(folder / "examples.parquet")
    splits.to_parquet(folder / "splits.parquet")
    return printed


def _row(examples: pd.DataFrame, place: int) -> str:
    return " ".join(examples.loc[place, ["example_id", "pair_id"]])


def _unquoted(text: str) -> str:
    return text.translate(str.maketrans("", "", "'\"\\"))


def test_leaks_stop_the_pipeline_before_it_trains(finished_project: Path, tmp_path: Path) -> None:
    """The clean tables of the same sample world were trained on."""
    project = Project.copy(finished_project, tmp_path / "project")
    project.replace(track={"text": True})
    for path in (project.folder / TABLES).iterdir():
        path.chmod(0o644)
    printed = _leaks(project.folder / TABLES)
    project.works("dvc", "commit", "--force", "build-diskne@diskne")
    stopped = project.run("dvc", "repro", "probe-masked@taught")
    assert stopped.returncode != 0
    assert "Running stage 'validate-diskne@diskne'" in stopped.stdout
    for text in printed:
        assert _unquoted(text) in _unquoted(stopped.stdout), stopped.stdout
    assert not any(f"Running stage '{stage}" in stopped.stdout for stage in TRAINING)
