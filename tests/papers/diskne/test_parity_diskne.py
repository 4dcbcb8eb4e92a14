"""DisKnE against what its released code gives for invented files: texts, splits, and F1.

MEDPROBE_PARITY may name another folder of fixtures than tests/fixtures/parity.
"""

import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from helpers import FIXTURES
from medprobe.core.tables import BenchmarkTables
from medprobe.papers.diskne import mednli
from medprobe.papers.diskne.annotation import RELEASED_CATEGORIES
from medprobe.papers.diskne.benchmarks import diskne_released
from medprobe.papers.diskne.metrics.f1 import count_outcomes, f1
from papers.diskne import diskne_world

DEFAULT = FIXTURES / "parity"
INPUT_FOLDER = Path(os.environ.get("MEDPROBE_PARITY", DEFAULT)).resolve() / "diskne"
RELEASED = json.loads((INPUT_FOLDER / "outputs.json").read_text(encoding="utf-8"))
FILES = {
    "medical_similar": ("symptoms", "treatments", "tests", "procedures"),
    "terminological_similar": ("terminological",),
}
AS_RELEASED = {  # as src/medprobe/papers/diskne/published/diskne.yaml has it
    "split": "released",
    "match": "substrings",
    "hypothesis": "surface",
    "shared_premises": True,
    "without_negatives": "keep",
    "duplicates": "keep",
    "orphans": "keep",
    "kinds": ["similar"],
}
SPLITS = [
    (file, category, target)
    for file, categories in RELEASED["splits"].items()
    for category, targets in categories.items()
    for target in targets
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The invented files as sources of the builder."""
    folder = tmp_path_factory.mktemp("parity") / "data"
    (folder / "diskne").mkdir(parents=True)
    for path in INPUT_FOLDER.glob("*_annotation.csv"):
        shutil.copyfile(path, folder / "diskne" / path.name)
    pairs = (INPUT_FOLDER / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    for number, name in enumerate(mednli.MEDNLI, 1):
        diskne_world.lines(folder / "mednli" / name, [diskne_world.other_pair(number)])
    diskne_world.lines(folder / "mednli" / mednli.MEDNLI[0], pairs)
    diskne_world.lines(folder / "mediqa" / mednli.MEDIQA, [diskne_world.other_pair(0)])
    diskne_world.write_csv(folder / "mediqa" / mednli.MEDIQA_LABELS, [["pair_id", "label"]])
    rows = []
    for concept in json.loads((INPUT_FOLDER / "concepts.json").read_text(encoding="utf-8")):
        for place, name in enumerate([concept["name"], *concept["synonyms"]]):
            rank, term = ("S", "SY") if place else ("P", "PT")
            start = f"{concept['cui']}|ENG|{rank}|L|PF|S|Y|A{place}||||SNOMEDCT_US"
            rows.append(f"{start}|{term}|1|{name}|9|N||")
    diskne_world.lines(folder / "umls/MRCONSO.RRF", rows)
    diskne_world.lines(folder / "umls/MRREL.RRF", [diskne_world.OTHER_RELATION])
    return folder


def build(data: Path, file: str, **changes: Any) -> BenchmarkTables:
    choices = {"categories": FILES[file], **changes}
    return diskne_released.build(data, diskne_released.Settings.model_validate(choices), 1)


@pytest.fixture(scope="module")
def built(data: Path) -> dict[str, pd.DataFrame]:
    """By file, the examples of the released way; its splits are in the column of each target."""
    tables = {}
    for file in FILES:
        other_tables = build(data, file, positives=1, **AS_RELEASED).others
        examples = other_tables["examples"]
        for target, rows in other_tables["splits"].groupby("target"):
            examples[target] = examples["example_id"].map(rows.set_index("example_id")["split"])
        tables[file] = examples
    return tables


@pytest.mark.parametrize("file", RELEASED["constructed"])
def test_texts_are_those_of_the_released_code(built: dict[str, pd.DataFrame], file: str) -> None:
    ours = built[file][["premise", "hypothesis"]].values.tolist()
    assert ours == [[row["P"], row["Disease"]] for row in RELEASED["constructed"][file]]


@pytest.mark.parametrize(("file", "category", "target"), SPLITS)
def test_splits_are_those_of_the_released_code(
    built: dict[str, pd.DataFrame], file: str, category: str, target: str
) -> None:
    ours, theirs = both_splits(built, file, category, target)
    assert ours == theirs


def both_splits(
    built: dict[str, pd.DataFrame], file: str, category: str, target: str
) -> tuple[list[Any], list[Any]]:
    """Ours and the released one, row by row. A category's test set is what the whole one has of it,
    and a disease is kept for a category where that has two positives."""
    released = RELEASED["splits"][file][category][target]
    rows = built[file].reset_index()
    tested = rows[rows[target] == "test"]
    if category:
        tested = tested[tested["category"] == RELEASED_CATEGORIES[category]]
    tested = tested.drop_duplicates(["premise", "hypothesis"])  # of two categories
    ours = [rows.index[rows[target] == part].tolist() for part in ("train", "validation")]
    theirs = [sorted(released[part]) for part in ("train", "dev", "test")]
    is_kept = bool(tested["label"].sum() >= 2)
    return [*ours, tested.index.tolist(), is_kept], [*theirs, released["kept"]]


def test_a_disease_is_kept_where_a_category_has_two_positives_that_differ(data: Path) -> None:
    for file, categories in RELEASED["splits"].items():
        ours = set(build(data, file, **AS_RELEASED).others["splits"]["target"])
        named = {
            name: categories_kept for name, categories_kept in categories.items() if name
        } or categories
        assert ours == {
            target
            for categories_kept in named.values()
            for target, category_rows in categories_kept.items()
            if category_rows["kept"]
        }


def test_our_splits_test_the_same_diseases_on_no_row_that_mentions_them(data: Path) -> None:
    """Where ours differ: what tests a disease is what the released code tests it on, less rows
    without a counterpart; what trains is a part of what the released code trains on, since names
    are found in more forms, and no premise or pair is on two sides."""
    for file, categories in RELEASED["splits"].items():
        other_tables = build(data, file, positives=1).others
        table = other_tables["splits"].merge(other_tables["examples"], on="example_id")
        assert set(table["target"]) <= set(categories[""])
        constructed = RELEASED["constructed"][file]
        for target, rows in table.groupby("target"):
            released = categories[""][target]
            theirs = {
                part: {constructed[row]["P"] for row in released[part]}
                for part in ("test", "train", "dev")
            }
            ours = {part: set(part_rows["premise"]) for part, part_rows in rows.groupby("split")}
            assert ours["test"] <= theirs["test"]
            assert ours["train"] | ours["validation"] <= theirs["train"] | theirs["dev"]
            assert not ours["test"] & (ours["train"] | ours["validation"])


CASES = json.loads((INPUT_FOLDER / "f1_inputs.json").read_text(encoding="utf-8"))


def our_rows(case: dict[str, Any]) -> pd.DataFrame:
    """A case as rows of predictions."""
    return pd.DataFrame(
        {
            "replicate": "",
            "query_id": case["example_ids"],
            "label": case["labels"],
            "prediction": [str(score) for score in case["predictions"]],
            "score": [float(score) for score in case["predictions"]],
        }
    )


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_f1_as_released(case: dict[str, Any]) -> None:
    rows = our_rows(case)
    ours, as_released = f1(count_outcomes(rows).counts.sum(axis=1)[0])
    assert math.isclose(as_released, RELEASED["f1"][case["id"]], abs_tol=1e-12)
    predicted_true, true = rows["prediction"] == "1", rows["label"] == 1
    right = 2 * (predicted_true & true).sum()
    assert math.isclose(ours, right / (predicted_true.sum() + true.sum()), abs_tol=1e-12)
