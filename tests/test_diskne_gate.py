"""DisKnE's gate: each kind of planted leak is caught, and named."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import made_diskne
from medprobe.benchmarks import diskne, diskne_released
from medprobe.core.errors import BadInput
from medprobe.core.params import Params
from medprobe.sources import mednli
from medprobe.sources.annotation import read_released
from medprobe.stages.validate import validate

EXPECTATIONS = Path(__file__).parents[1] / "expectations"
RELEASED = Path(__file__).parents[1] / "../shared/data/diskne"
Tables = dict[str, pd.DataFrame]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The benchmark as it is built."""
    folder = tmp_path_factory.mktemp("clean")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        made_diskne.write(folder / "data")
        settings = diskne.Settings(negatives=2, positives=1)
        tables = diskne.build(folder / "data", settings, seed=1)
        replace(tables, builder="diskne").write(folder / "diskne")
    return folder / "diskne"


@pytest.fixture(scope="module")
def suites(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's suites; the small world has no positive among procedures."""
    folder = tmp_path_factory.mktemp("suites") / "expectations"
    shutil.copytree(EXPECTATIONS, folder)
    path = folder / "diskne/examples.json"
    content = json.loads(path.read_text())
    for listed in content["expectations"]:
        if listed["kwargs"].get("category") == "procedures":
            listed["kwargs"]["min_value"] = 0
    path.write_text(json.dumps(content))
    return folder


def gate(
    clean: Path,
    suites: Path,
    out: Path,
    change: Callable[[Tables], None],
    *,
    negatives: int = 2,
    text: bool = True,
) -> None:
    tables = {path.stem: pd.read_parquet(path) for path in clean.glob("*.parquet")}
    change(tables)
    (folder := out / "outputs/benchmarks/diskne").mkdir(parents=True)
    shutil.copy(clean / "about.json", folder)
    for name, table in tables.items():
        table.to_parquet(folder / f"{name}.parquet")
    (out / "expectations").symlink_to(suites)
    settings = {"negatives": negatives, "positives": 1}
    params = {"benchmarks": {"diskne": {"diskne": settings}}, "track": {"text": text}}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(out)
        validate("diskne", Params.model_validate(params))


def test_the_clean_benchmark_passes(clean: Path, suites: Path, tmp_path: Path) -> None:
    gate(clean, suites, tmp_path, lambda tables: None)
    assert json.loads((tmp_path / "outputs/validation/diskne/result.json").read_text())["success"]


def _trained(tables: Tables, target: str, split: str = "train") -> str:
    """An example that trains the target."""
    splits = tables["splits"]
    rows = splits[(splits["target"] == target) & (splits["split"] == split)]
    return str(rows["example_id"].iloc[0])


def _put(tables: Tables, example: str, column: str, text: str) -> None:
    examples = tables["examples"]
    examples.loc[examples["example_id"] == example, column] = text


def synonym_in_premise(tables: Tables) -> None:
    _put(tables, _trained(tables, "C0000004"), "premise", "Had the flu last year.")


def abbreviation_in_hypothesis(tables: Tables) -> None:
    _put(tables, _trained(tables, "C0000001"), "full_hypothesis", "The patient has AST.")


def canonical_name(tables: Tables) -> None:
    _put(tables, _trained(tables, "C0000005"), "hypothesis", "Measles")


def validation_row_of_the_target(tables: Tables) -> None:
    splits = tables["splits"]
    own = splits[(splits["target"] == "C0000001") & (splits["split"] == "test")].index[0]
    splits.loc[own, "split"] = "validation"


def descendant_as_negative(tables: Tables) -> None:
    examples = tables["examples"]
    row = examples.index[(examples["pair_id"] == "p4") & (examples["label"] == 0)][0]
    examples.loc[row, ["cui", "hypothesis"]] = ["C0000003", "acute gout"]


def ancestor_as_negative(tables: Tables) -> None:
    examples = tables["examples"]
    row = examples.index[(examples["pair_id"] == "p5") & (examples["label"] == 0)][0]
    examples.loc[row, ["cui", "hypothesis"]] = ["C0000002", "gout"]


def doubled_negative(tables: Tables) -> None:
    examples = tables["examples"]
    first, second = examples.index[examples["kind"] == "similar"][:2]
    columns = ["cui", "hypothesis"]
    examples.loc[second, columns] = examples.loc[first, columns]


def missing_negative(tables: Tables) -> None:
    examples = tables["examples"]
    tables["examples"] = examples.drop(examples.index[examples["kind"] == "random"][0])


def negative_of_no_positive(tables: Tables) -> None:
    examples, names = tables["examples"], tables["names"]
    tables["names"] = pd.concat([names, names.tail(1).assign(cui="C0000077", name="rickets")])
    row = examples.index[examples["label"] == 0][0]
    examples.loc[row, ["cui", "hypothesis"]] = ["C0000077", "rickets"]


def malformed_cui(tables: Tables) -> None:
    _put(tables, "0000", "cui", "C001")


def unknown_cui(tables: Tables) -> None:
    _put(tables, "0000", "original_cui", "C0000088")


def label_outside(tables: Tables) -> None:
    tables["examples"].loc[0, "label"] = 2


def other_name(tables: Tables) -> None:
    _put(tables, "0000", "hypothesis", "wheezing")


def missing_category(tables: Tables) -> None:
    examples = tables["examples"]
    examples.loc[examples["category"] == "terminological", "category"] = "tests"


def other_disease_tested(tables: Tables) -> None:
    splits = tables["splits"]
    row = splits.index[(splits["target"] == "C0000001") & (splits["split"] == "train")][0]
    splits.loc[row, "split"] = "test"


PLANTS = [
    (synonym_in_premise, r"C0000004 train .*in its premise: 'flu'"),
    (abbreviation_in_hypothesis, r"C0000001 train .*pair p\d, in its full_hypothesis: 'AST'"),
    (canonical_name, r"C0000005 train .*in its hypothesis: 'Measles'"),
    (validation_row_of_the_target, r"C0000001 validation 0000: reason = 'pair p1, C0000001 is"),
    (descendant_as_negative, r"expect_negatives_to_be_unrelated.*\n.*C0000002.*C0000003"),
    (ancestor_as_negative, r"expect_negatives_to_be_unrelated.*\n.*C0000003.*C0000002"),
    (doubled_negative, r"expect_compound_columns_to_be_unique.*\n.*p1"),
    (missing_negative, r"expect_positives_to_have_negatives.*'random'.*\n +row 1, 0000 p1"),
    (negative_of_no_positive, r"expect_negatives_to_be_of_other_positives.*\n.*C0000077"),
    (malformed_cui, r"expect_column_values_to_match_regex.*\n.*C001"),
    (unknown_cui, r"expect_cuis_to_be_known.*\n.*C0000088"),
    (label_outside, r"expect_column_values_to_be_in_set.*'label'.*\n.*label = 2"),
    (other_name, r"expect_names_to_be_of_their_cuis.*\n.*wheezing"),
    (missing_category, r"expect_positives_to_number.*'terminological', 'min_value': 1"),
    (other_disease_tested, r"expect_test_examples_to_be_of_the_target.*\n.*C0000001"),
]


@pytest.mark.parametrize(("plant", "message"), PLANTS, ids=[plant.__name__ for plant, _ in PLANTS])
def test_a_planted_fault_is_caught_and_named(  # noqa: PLR0917
    clean: Path,
    suites: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    plant: Callable[[Tables], None],
    message: str,
) -> None:
    with pytest.raises(BadInput, match="expect_"):
        gate(clean, suites, tmp_path, plant)
    assert re.search(message, capsys.readouterr().out)


def test_a_leak_is_told_without_text_of_the_data(
    clean: Path, suites: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadInput, match="expect_no_disease_leakage"):
        gate(clean, suites, tmp_path, synonym_in_premise, text=False)
    written = (tmp_path / "outputs/validation/diskne").iterdir()
    told = [capsys.readouterr().out, *(path.read_text() for path in written)]
    assert re.search(r"C0000004 train .*pair p\d, in its premise", told[0])
    assert not re.search(r"\bflu\b", "".join(told))


def test_another_number_of_negatives_than_params_yaml_says_is_a_failure(
    clean: Path, suites: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadInput):
        gate(clean, suites, tmp_path, lambda tables: None, negatives=4)
    assert re.search(r"expect_positives_to_have_negatives.*'n': 4", capsys.readouterr().out)


@pytest.mark.skipif(not RELEASED.is_dir(), reason="the released annotation is not there")
def test_released_annotation_passes_within_its_tolerances(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The released ids among invented texts and names: the gate counts what deviates."""
    monkeypatch.chdir(tmp_path)
    released = [read_released(path) for path in sorted(RELEASED.glob("*.csv"))]
    data = tmp_path / "data"
    shutil.copytree(RELEASED, data / "diskne")
    rows = pd.concat(released)
    pairs = [
        {"pairID": pair, "gold_label": "entailment", "sentence1": "x", "sentence2": "y " * 500}
        for pair in rows["pair_id"].unique()
    ]
    for name in mednli.MEDNLI:
        made_diskne.lines(data / "mednli" / name, [])
    made_diskne.lines(data / "mediqa" / mednli.MEDIQA, [])
    truth = "mednli_bionlp19_shared_task_ground_truth.csv"
    made_diskne.write_csv(data / "mediqa" / truth, [["pair_id", "label"]])
    made_diskne.lines(data / "mednli" / mednli.MEDNLI[0], [json.dumps(pair) for pair in pairs])
    cuis = sorted(set(rows["cui"]))
    names = [
        f"{cui}|ENG|P|L|PF|S|Y|A{cui}||||SNOMEDCT_US|PT|1|sickness {cui}|9|N||" for cui in cuis
    ]
    made_diskne.lines(data / "umls/MRCONSO.RRF", names)
    made_diskne.lines(data / "umls/MRREL.RRF", [])
    settings = diskne_released.BENCHMARK.settings()
    tables = diskne_released.build(data, settings, seed=1)
    examples = tables.others["examples"]
    assert examples["label"].value_counts().to_dict() == {0: 3750 + 2380, 1: 383 + 259}
    replace(tables, builder="diskne_released").write(tmp_path / "outputs/benchmarks/diskne")
    (tmp_path / "expectations").symlink_to(EXPECTATIONS)
    validate("diskne", Params.model_validate({"benchmarks": {"diskne_released": {"diskne": {}}}}))
    result = json.loads((tmp_path / "outputs/validation/diskne/result.json").read_text())
    failing = {
        check["type"]: check["failing"]
        for table in result["tables"]
        for check in table["checks"]
        if check["failing"]
    }
    assert failing["expect_positives_to_have_negatives"] == 26 + 25 + 18 + 2
    assert failing["expect_compound_columns_to_be_unique"] == 2 * (180 + 20)
    assert failing["expect_negatives_to_be_of_other_positives"] == 175
