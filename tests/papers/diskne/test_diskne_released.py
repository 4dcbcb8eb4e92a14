"""What comes of DisKnE's released annotation by parameters, among invented texts and names."""

import shutil
from pathlib import Path

import pytest

from helpers import FolderOf
from helpers.printed import rows_of
from medprobe.core.papers import concepts, papers
from medprobe.core.tables import BenchmarkTables
from medprobe.metrics.summary import MEANS
from medprobe.papers.diskne.benchmarks import diskne_released
from papers.diskne import diskne_world, released_diskne_world


@pytest.fixture(scope="module")
def data(released_data: FolderOf, tmp_path_factory: pytest.TempPathFactory) -> Path:
    annotation = released_data("diskne")
    data = tmp_path_factory.mktemp("released") / "data"
    shutil.copytree(annotation, data / "diskne")
    released_diskne_world.write(data, annotation)
    return data


def test_what_is_adopted_has_the_counts_that_the_page_compares_with(
    data: Path, tmp_path: Path
) -> None:
    """Diseases and their positives in each mean, and the diseases that tables 2 to 6 print."""
    paper = papers()["diskne"]
    tables = build(data, **paper.adopted.benchmarks["diskne_released"]["diskne"])
    tables.write(tmp_path / "diskne")
    scores = diskne_world.score(tables)
    found = {}
    for subset in paper.released["diskne"]:
        diseases = {name: value for name, value in scores[subset].items() if name not in MEANS}
        positives = sum(value["f1"]["n"] for value in diseases.values())
        assert scores[subset]["macro"]["f1"]["n"] == positives
        found[subset] = {"queries": positives, "relations": len(diseases)}
        rows = [row for row in rows_of(paper) if row.subset == subset.partition("/")[0]]
        printed = {row.relation for row in rows} - {*MEANS}
        if subset != "terminological":
            assert {concepts()[cui] for cui in diseases} == printed
    assert found == paper.released["diskne"]


def build(data: Path, **settings: object) -> BenchmarkTables:
    return diskne_released.build(data, diskne_released.Settings.model_validate(settings), seed=1)


@pytest.mark.parametrize(
    ("positives", "diseases"),
    [
        (2, {"symptoms": 21, "treatments": 13, "tests": 17, "procedures": 10}),  # tables 2 to 5
        (5, {"symptoms": 4, "treatments": 2, "tests": 4, "procedures": 3}),
        (1, {"symptoms": 56, "treatments": 33, "tests": 63, "procedures": 35}),
    ],
)
def test_diseases_with_the_positives_that_are_asked_for_are_reported(
    data: Path, positives: int, diseases: dict[str, int]
) -> None:
    reported = diskne_world.report(build(data, positives=positives))
    assert {category: len(reported[category]) for category in diseases} == diseases


@pytest.mark.parametrize(
    ("rules", "medical", "terminological"),
    [
        ((), (112, 60, 116, 69, 3927), (234, 2574)),  # table 1's medical rows, but for the 70
        (("without_negatives",), (122, 69, 123, 69, 3953), (259, 2599)),
        (("without_negatives", "duplicates"), (122, 69, 123, 69, 4133), (259, 2619)),
        (("without_negatives", "duplicates", "orphans"), (122, 69, 123, 69, 4133), (259, 2639)),
    ],
)
def test_the_papers_counts_by_settings(
    data: Path, rules: tuple[str, ...], medical: tuple[int, ...], terminological: tuple[int, int]
) -> None:
    """Table 1 prints 112, 60, 116, 70 and 259, section 3.2 prints 4,133 and 2,639: no one setting
    gives them all. A count of examples comes last."""
    examples = build(data, **dict.fromkeys(rules, "keep")).others["examples"]
    is_terminological = examples["category"] == "terminological"
    positives = examples[examples["label"] == 1]["category"].value_counts()
    names = ["symptoms", "treatments", "tests", "procedures"]
    assert (*positives[names], (~is_terminological).sum()) == medical
    assert (positives["terminological"], is_terminological.sum()) == terminological
