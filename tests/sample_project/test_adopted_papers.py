"""Each paper in one step, and one after another."""

from pathlib import Path

import pytest
import yaml

from helpers import ROOT
from medprobe.core.papers import MEAN, built_benchmark, papers
from medprobe.core.params import Params, load_params
from medprobe.core.settings import parse_section
from medprobe.pipeline import check
from medprobe.pipeline.adopt import adopt, remarks
from papers.medlama.test_medlama_adopt import OWN_PARAMS


@pytest.fixture
def params_path(working_folder: Path) -> Path:
    path = Path("params.yaml")
    path.write_text(OWN_PARAMS, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", papers())
def test_every_paper_can_be_adopt(name: str, tmp_path: Path) -> None:
    """By the project's own params.yaml, held against the code to its leaves; and only once."""
    path = tmp_path / "params.yaml"
    path.write_text((ROOT / "params.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    before, after = adopt(name, path=path)
    assert before != after
    params = parse_section(Params, yaml.safe_load(after), name)  # as DVC and PyYAML read it
    check.check(params)
    hub = {model.hub: model.revision for model in papers()[name].models.values() if model.hub}
    assert {model.hub: model.revision for model in params.fetch.values()} == hub
    path.write_text(after, encoding="utf-8")
    assert adopt(name, path=path) == (after, after)


TABLES = [
    (name, number)
    for name, paper in papers().items()
    for number, table in paper.tables.items()
    if table.rows
]


@pytest.mark.parametrize(("name", "table"), TABLES)
def test_every_table_can_be_adopted(name: str, table: str, params_path: Path) -> None:
    """Each of its numbers has a result to compare with, but of models that nobody gives out."""
    params_path.write_text(adopt(name, table, params_path)[1], encoding="utf-8")
    params = load_params(params_path)
    check.check(params)
    built = {key: built_benchmark(params.builder(key)) for key in params.benchmark_names}
    results = {
        ((facts.published or "").rpartition("/")[2], method, built[benchmark])
        for model, facts in params.models.all().items()
        for method, benchmark in params.results(model)
    }
    paper = papers()[name]
    printed = [*paper.tables[table].rows]
    for number, models in paper.tables[table].repeats.items():
        printed += [row for row in paper.tables[number].rows if row.model in models]
    rows = {(row.model, row.method, row.benchmark) for row in printed}
    missing = {row for row in rows - results if row[0] != MEAN and paper.models[row[0]].hub}
    assert missing <= {("BioBERT v1.1", "mask_average", "medlama")}, "see `open` of the paper"
    assert {*built.values()} == {row[2] for row in rows}
    methods = {method for by_method in params.methods.values() for method in by_method}
    assert methods == {row[1] for row in rows}


def test_a_paper_empties_the_sections_that_other_papers_add(params_path: Path) -> None:
    sections = yaml.safe_load(adopt("diskne", path=params_path)[1])
    assert not any(sections[name] for name in ("rewire", "sentence_sets", "sweeps"))
    assert [*sections["benchmarks"]] == ["diskne_released"]


def test_papers_that_print_one_name_for_two_checkpoints_share_no_model(params_path: Path) -> None:
    """BioBERT, BERT, SciBERT and BlueBERT are others in each of the papers."""
    wanted: dict[str, str] = {}
    for name, paper in papers().items():
        params_path.write_text(adopt(name, path=params_path)[1], encoding="utf-8")
        wanted |= {printed: model.hub for printed, model in paper.models.items() if model.hub}
    params = load_params(params_path)
    models = params.models.all()
    fetched = {
        (models[name].published or "").rpartition("/")[2]: model.hub
        for name, model in params.fetch.items()
    }
    assert fetched == wanted
    stays = (
        "PubMedBERT: your model pubmedbert, microsoft/BiomedNLP-PubMedBERT-base-uncased-abstract"
    )
    remark = [line for line in remarks("template_free", path=params_path) if line.startswith(stays)]
    assert remark and "as encoder, stays" in remark[0] and "as masked" in remark[0]
