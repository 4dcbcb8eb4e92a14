"""DisKnE's gate: each kind of planted leak and fault is caught, named, and nothing else is."""

import json
import re
import shutil
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import ROOT, FolderOf
from medprobe.core.errors import BadInput
from medprobe.core.papers import papers
from medprobe.core.params import Params
from medprobe.core.tables import BenchmarkTables
from medprobe.gate import run as checks
from medprobe.gate import suites as suite_files
from medprobe.gate.checks import Context
from medprobe.papers.diskne.benchmarks import diskne, diskne_released
from medprobe.papers.diskne.expectations.diskne import expect_texts_to_name_their_diseases
from medprobe.papers.diskne.leaks import NAMED, NEARLY, find_leaks
from medprobe.pipeline.stages.validate import validate
from medprobe.sources import forms
from medprobe.sources.forms import Forms
from papers.diskne import diskne_world, released_diskne_world

EXPECTATIONS = ROOT / "expectations"
SETTINGS = diskne.Settings(negatives=2, positives=1)
Tables = dict[str, pd.DataFrame]
RunGate = Callable[..., dict[str, list[dict[str, Any]]]]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project's folder with the sources, the benchmark as it is built, and the project's suites;
    the small world has no positive among procedures."""
    folder = tmp_path_factory.mktemp("clean")
    shutil.copytree(EXPECTATIONS, folder / "expectations")
    path = folder / "expectations/diskne/examples.json"
    content = json.loads(path.read_text())
    for listed in content["expectations"]:
        if listed["kwargs"].get("category") == "procedures":
            listed["kwargs"]["min_value"] = 0
    path.write_text(json.dumps(content))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        diskne_world.write(folder / "data")
        suppressed = "C0000004|ENG|S|L|PF|S|Y|A77||||MTH|SY|1|la grippe|9|O||\n"
        with (folder / "data/umls/MRCONSO.RRF").open("a") as umls:
            umls.write(suppressed)
        tables = diskne.build(folder / "data", SETTINGS, seed=1)
        replace(tables, builder="diskne").write(folder / "outputs/benchmarks/diskne")
    return folder


@pytest.fixture(scope="module")
def loaded(clean: Path) -> list[suite_files.Suite]:
    settings = SETTINGS.model_dump(mode="json")
    return suite_files.load(clean / "expectations/diskne", [], settings)


@pytest.fixture
def run_gate(
    clean: Path, loaded: list[suite_files.Suite], monkeypatch: pytest.MonkeyPatch
) -> RunGate:
    """What the gate finds after a change, in some tables: the failing rows of each failed check."""
    monkeypatch.chdir(clean)

    def run(
        change: Callable[[Tables], None],
        of: Collection[str] = ("examples", "splits", "queries"),
        severity: str = "critical",
    ) -> dict[str, list[dict[str, Any]]]:
        folder = clean / "outputs/benchmarks/diskne"
        tables = {path.stem: pd.read_parquet(path) for path in folder.glob("*.parquet")}
        change(tables)
        reports = checks.run([s for s in loaded if s.table in of], tables, text=True)
        failed = [c for report in reports for c in report["checks"] if not c["success"]]
        rows: dict[str, list[dict[str, Any]]] = {}
        for check in (check for check in failed if check["severity"] == severity):
            rows.setdefault(check["type"], []).extend(check["examples"])
        return rows

    return run


def stage(clean: Path, out: Path, change: Callable[[Tables], None], **settings: Any) -> None:
    """The gate as a stage of the pipeline."""
    built = clean / "outputs/benchmarks/diskne"
    tables = {path.stem: pd.read_parquet(path) for path in built.glob("*.parquet")}
    change(tables)
    (folder := out / "outputs/benchmarks/diskne").mkdir(parents=True)
    shutil.copy(built / "about.json", folder)
    for name, table in tables.items():
        table.to_parquet(folder / f"{name}.parquet")
    for name in ("expectations", "data"):
        (out / name).symlink_to(clean / name)
    chosen = {"negatives": 2, "positives": 1, **settings}
    text = chosen.pop("text", True)
    params = {"benchmarks": {"diskne": {"diskne": chosen}}, "track": {"text": text}}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(out)
        validate("diskne", Params.model_validate(params))


def test_the_clean_benchmark_passes(clean: Path, tmp_path: Path) -> None:
    stage(clean, tmp_path, lambda tables: None)
    assert json.loads((tmp_path / "outputs/validation/diskne/result.json").read_text())["success"]


def _trained(tables: Tables, target: str, split: str = "train") -> str:
    """An example that trains the target."""
    splits = tables["splits"]
    rows = splits[(splits["target"] == target) & (splits["split"] == split)]
    return str(rows["example_id"].iloc[0])


def _put(tables: Tables, example: str, column: str, text: str) -> None:
    examples = tables["examples"]
    examples.loc[examples["example_id"] == example, column] = text


def _put_premise(tables: Tables, example: str, text: str) -> None:
    """Give a pair this premise, as its source would."""
    examples, queries = tables["examples"], tables["queries"]
    pair = examples.loc[examples["example_id"] == example, "pair_id"].iloc[0]
    for row in examples[(examples["pair_id"] == pair) & (examples["label"] == 1)].itertuples():
        is_of = queries["query_id"] == row.example_id
        prompt = queries.loc[is_of, "prompt"].iloc[0]
        queries.loc[is_of, "prompt"] = text + prompt.removeprefix(row.premise)
    examples.loc[examples["pair_id"] == pair, "premise"] = text


def synonym_in_premise(tables: Tables) -> None:
    _put_premise(tables, _trained(tables, "C0000004"), "Had the flu last year.")


def suppressed_name_in_premise(tables: Tables) -> None:
    """UMLS has the name, and has suppressed it."""
    _put_premise(tables, _trained(tables, "C0000004"), "recovered from la grippe")


def cui_in_premise(tables: Tables) -> None:
    _put_premise(tables, _trained(tables, "C0000004"), "known C0000004")


def abbreviation_in_hypothesis(tables: Tables) -> None:
    _put(tables, _trained(tables, "C0000001"), "full_hypothesis", "The patient has AST.")


def surface_form(tables: Tables) -> None:
    """What a hypothesis calls its disease is a name of it, though UMLS has none such."""
    examples = tables["examples"]
    row_index = examples.index[(examples["kind"] == "positive") & (examples["cui"] == "C0000004")][
        0
    ]
    examples.loc[row_index, "full_hypothesis"] = "He has the Dutch bug ."
    examples.loc[row_index, ["start", "end"]] = [11, 20]
    _put_premise(tables, _trained(tables, "C0000004"), "Known DUTCH-bug.")


def name_that_the_builder_forgot(tables: Tables) -> None:
    tables["names"] = tables["names"][tables["names"]["name"] != "podagra"]
    _put_premise(tables, _trained(tables, "C0000002"), "Known podagra.")


LEAK = "expect_no_disease_leakage"
# Leaks, and what is said of them; broken.py breaks the other rules.
PLANTS = {
    synonym_in_premise: r"C0000004 train .*in its premise: 'flu'",
    suppressed_name_in_premise: r"C0000004 train .*in its premise: 'la grippe'",
    cui_in_premise: r"C0000004 train .*in its premise",
    abbreviation_in_hypothesis: r"C0000001 train .*in its full_hypothesis: 'AST'",
    surface_form: r"C0000004 train .*in its premise: 'Dutch bug'",
    name_that_the_builder_forgot: r"C0000002 train .*in its premise: 'podagra'",
}


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_a_planted_leak_is_caught_and_named(
    run_gate: RunGate, plant: Callable[[Tables], None]
) -> None:
    failed, message = run_gate(plant, {"splits"}), PLANTS[plant]
    assert set(failed) == {LEAK}
    rows = [f"{row['row']} {row}" for examples in failed.values() for row in examples]
    assert re.search(message, " ".join(rows))


def test_each_check_gives_its_own_reason_for_a_row(run_gate: RunGate) -> None:
    def plant(tables: Tables) -> None:
        text = "Had the flu, the grippe as la Mancha has."
        _put_premise(tables, _trained(tables, "C0000004"), text)

    for check, severity, name in (
        (LEAK, "critical", "flu"),
        ("expect_no_disease_nearly_named", "warning", "la grippe"),
    ):
        reason = run_gate(plant, ["splits"], severity)[check][0]["reason"]
        assert reason.endswith(f"in its premise: '{name}'")


@pytest.mark.parametrize(
    ("form", "how"),
    [
        ("Known Cilund-DYSTROPHY, stable", {NAMED}),
        ("Cilund muscular dystrophy", {NEARLY}),  # a word between
        ("a dystrophy of type Cilund", {NEARLY}),  # another order, over a word
        ("Cilund dystr. since 1998", {NEARLY}),  # clipped
        ("known Cilund's", set()),  # the eponym alone can be another disease
        ("Seen by Dr Cilund. No dystrophy", set()),
        ("h/o MI", {NAMED}),
        ("the mi is", set()),
        ("macildundystrophyx", set()),
    ],
)
def test_the_naive_search_tells_names_from_near_names(form: str, how: set[str]) -> None:
    names = [("Cilund dystrophy", "C1"), ("MI", "C2"), ("B", "C3")]
    assert {found for found, *_ in find_leaks(form, names)} == how


PIECES = [
    *(
        "MI",
        "mi",
        "CLD",
        "cld",
        "s",
        "'s",
        "\u2019s",
        "_",
        "-",
        " ",
        " ",
        " ",
        ", ",
        "/",
        ".",
        "of",
    ),
    *("kidney", "disease", "diseases", "stenos", "is", "es", "ies", "y", "ic", "al", "dystroph"),
    *("\u00a0", "ß", "A", "8", "µ", " and ", "<b>"),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=9).map("".join)


@settings(max_examples=500)
@given(st.lists(TEXTS, max_size=5), TEXTS)
def test_the_gate_stops_at_nothing_that_the_builder_keeps(names: list[str], text: str) -> None:
    """Where it did, it would stop sound tables."""
    pairs = [(name, str(number)) for number, name in enumerate(names)]
    named = {cui for how, _, cui in find_leaks(text, pairs) if how == NAMED}
    assert named <= Forms(pairs).diseases(text)


@pytest.mark.parametrize(
    "breaks",
    [{"fold": str}, {"readings": lambda text: {text.split(";")[-1]}}],
    ids=["case", "clauses"],
)
def test_the_gate_finds_what_a_broken_builder_misses(
    clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: dict[str, Any]
) -> None:
    """Its search shares nothing with the builder's, whose normalisation is broken on purpose."""
    shutil.copytree(clean, tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    path = Path("data/mednli/mli_train_v1.jsonl")
    path.write_text(path.read_text().replace("Uric acid is high", "Had FLU; uric acid is high"))
    sheet = Path("data/diskne/annotation.csv")
    sheet.write_text(sheet.read_text().replace("Uric acid is high", "Had FLU; uric acid is high"))

    def gate() -> list[str]:
        tables = diskne.build(Path("data"), SETTINGS, seed=1)
        suites = suite_files.load(Path("expectations/diskne"), [], SETTINGS.model_dump(mode="json"))
        chosen = [suite for suite in suites if suite.table == "splits"]
        reports = checks.run(chosen, {"queries": tables.queries, **tables.others}, text=True)
        return [
            example["reason"]
            for check in reports[0]["checks"]
            if not check["success"] and check["type"] == LEAK
            for example in check["examples"]
        ]

    assert gate() == []
    for name, broken in breaks.items():
        monkeypatch.setattr(forms, name, broken)
    assert "pair p5, in its premise: 'flu'" in gate()


def _shuffle(tables: Tables) -> None:
    for name in ("examples", "splits", "queries"):
        tables[name] = tables[name].sample(frac=1, random_state=1).reset_index(drop=True)


def _without_first(tables: Tables) -> None:
    """One example of each target does not train it."""
    splits = tables["splits"]
    first = ~splits.duplicated(["target", "split"]) & (splits["split"] == "train")
    tables["splits"] = splits[~first].reset_index(drop=True)


def test_another_order_and_one_example_fewer_are_legal(run_gate: RunGate) -> None:
    assert run_gate(lambda tables: (_without_first(tables), _shuffle(tables))) == {}


@pytest.mark.parametrize("shift", range(9))
def test_a_text_that_names_another_disease_than_its_id_is_seen(
    clean: Path, monkeypatch: pytest.MonkeyPatch, shift: int
) -> None:
    """The ids of the positives are shifted. One text is misspelt, which names no disease."""
    monkeypatch.chdir(clean)
    built = clean / "outputs/benchmarks/diskne"
    tables = {
        name: pd.read_parquet(built / f"{name}.parquet") for name in ("examples", "ancestors")
    }
    examples = tables["examples"]
    rows = examples.loc[examples["label"] == 1, ["cui", "full_hypothesis", "start", "end"]]
    own = rows["cui"].to_list()
    rows = rows.assign(cui=[*own[shift:], *own[:shift]])
    rows.iloc[0, 1] = "The patient has asmtha."
    related = [{"C0000002", "C0000003"}]  # gout, and the gout below it
    expected = [
        number == 0 or a == b or {a, b} in related
        for number, (a, b) in enumerate(zip(own, rows["cui"], strict=True))
    ]
    assert expect_texts_to_name_their_diseases(rows, Context(tables)) == expected


def test_the_pipeline_stops_with_an_error_without_text_of_the_data(
    clean: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadInput, match="expect_no_disease_leakage"):
        stage(clean, tmp_path, synonym_in_premise, text=False)
    written = (tmp_path / "outputs/validation/diskne").iterdir()
    outputs = [capsys.readouterr().out, *(path.read_text() for path in written)]
    assert re.search(r"C0000004 train .*pair p\d, in its premise", outputs[0])
    assert not re.search(r"\bflu\b", "".join(outputs))


def test_another_number_of_negatives_than_params_yaml_says_is_a_failure(
    clean: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadInput):
        stage(clean, tmp_path, lambda tables: None, negatives=4)
    output = capsys.readouterr().out
    assert re.search(r"expect_positives_to_have_negatives.*'min_value': 4", output)


class TestReleased:
    """The four released files at full size, among invented texts and names."""

    @pytest.fixture(scope="class")
    def released(self, released_data: FolderOf) -> list[Path]:
        return [released_data("diskne"), released_data("diskne-random")]

    @pytest.fixture(scope="class")
    def data(self, released: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
        data = tmp_path_factory.mktemp("released") / "data"
        (data / "diskne").mkdir(parents=True)
        for path in [path for folder in released for path in folder.glob("*.csv")]:
            shutil.copyfile(path, data / "diskne" / path.name)
        released_diskne_world.write(data, *released)
        return data

    def build(self, data: Path, settings: dict[str, Any]) -> BenchmarkTables:
        chosen = diskne_released.Settings.model_validate(settings)
        return diskne_released.build(data, chosen, seed=1)

    def test_all_of_it_passes_the_gate(
        self, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        built_tables = self.build(data, {})
        monkeypatch.chdir(data.parent)
        replace(built_tables, builder="diskne_released").write(Path("outputs/benchmarks/diskne"))
        Path("expectations").symlink_to(EXPECTATIONS)
        validate(
            "diskne", Params.model_validate({"benchmarks": {"diskne_released": {"diskne": {}}}})
        )
        assert capsys.readouterr().out.endswith(" checks passed, 0 warnings\n")
        examples = built_tables.others["examples"]
        assert examples["kind"].value_counts().to_dict() == {
            "positive": 591,
            "similar": 5910,
            "random": 5702,
        }

    def test_sets_of_diseases_by_parameters(self, data: Path) -> None:
        variants = papers()["diskne"].variants
        for chosen, diseases in (
            ({"categories": ["terminological"]}, 39),
            ({"categories": ["terminological"], "without_negatives": "keep"}, 43),
            (variants["as-released-medical"], 37),
            (variants["as-released-terminological"], 39),
        ):
            splits = self.build(data, chosen).others["splits"]
            assert splits["target"].nunique() == diseases
        assert set(variants["as-released-terminological"]["targets"]) == set(splits["target"])

    def test_random_negatives_alone(self, data: Path) -> None:
        examples = self.build(data, {"kinds": ["random"]}).others["examples"]
        assert examples["kind"].value_counts().to_dict() == {"positive": 593, "random": 5720}

    def test_premises_in_place_of_ids_may_be_in_no_pair(
        self, released: list[Path], data: Path, tmp_path: Path
    ) -> None:
        shutil.copytree(data, tmp_path / "data")
        released_diskne_world.write(tmp_path / "data", *released, premises=False)
        built_tables = self.build(tmp_path / "data", {"kinds": ["similar"]})
        dropped = built_tables.notes["dropped"].set_index("rule")["count"]
        assert dropped["row: its id is a premise that no pair has"] == 2 + 20
        assert (built_tables.queries["subset"] == "tests").sum() == 114
