"""MedLAMA's paper in one step: what changes in params.yaml, and what stays."""

from pathlib import Path

import pytest

from medprobe.core.papers import papers, published
from medprobe.core.params import load_params
from medprobe.papers.medlama.settings.rewire import REWIRE, RewireSettings, checkpoint_steps
from medprobe.papers.medlama.settings.sentence_sets import SENTENCE_SETS
from medprobe.papers.medlama.settings.sweeps import SWEEPS
from medprobe.pipeline.adopt import adopt, remarks

OWN_PARAMS = """seed: 7
engine: {precision: float32}
folders: {mine: checkpoints/mine}
models: {masked: {mine: {}}}
rewire: {steps: 3, batch: 8}
score: {bootstrap: 9}
track: {text: false}
"""


@pytest.fixture
def params_path(working_folder: Path) -> Path:
    path = Path("params.yaml")
    path.write_text(OWN_PARAMS, encoding="utf-8")
    return path


def test_models_benchmarks_and_rewiring_become_the_papers(params_path: Path) -> None:
    params_path.write_text(adopt("contrastive-probe-acl2022", path=params_path)[1], "utf-8")
    params = load_params(params_path)
    assert set(params.models.masked) == {
        *("mine", "bert-base-uncased", "bert-base-cased", "bluebert-base-pubmed", "biobert-v1-2")
    }
    assert "biobert-v1-1" in params.models.encoder  # it comes without a head
    rewire = REWIRE.of(params)
    assert (rewire["batch"], rewire["learning_rate"]) == (192, 2e-5)
    assert params.benchmarks == {"medlama_released": {"medlama": {}}, "biolama": {"biolama": {}}}


@pytest.mark.parametrize("paper", ["contrastive-probe-acl2022", "contrastive-probe-v1"])
def test_each_model_is_rewired_on_the_sentences_of_its_numbers(
    params_path: Path, paper: str
) -> None:
    """BERT on Wikipedia, all others on PubMed's ten sets (appendix A), and a model on nothing that
    has no number of Contrastive-Probe."""
    params_path.write_text(adopt(paper, path=params_path)[1], encoding="utf-8")
    params = load_params(params_path)
    pubmed = {f"pubmed_sents_no_punkt_10k_{number}" for number in range(10)}
    rows = [row for table in papers()[paper].tables.values() for row in table.rows]
    probed = {row.model for row in rows if row.method == "contrastive"}
    for model, facts in {**params.models.masked, **params.models.encoder}.items():
        sets = {name for name, found in SENTENCE_SETS.of(params).items() if found.is_for(model)}
        printed = (facts.published or "").rpartition("/")[2]
        if printed == "BERT-base-uncased":
            assert sets == {"wiki_sents_no_punkt_10k"}
        else:
            assert sets == (pubmed if printed in probed or model == "mine" else set()), model


def test_a_table_has_the_sentences_of_its_models(params_path: Path) -> None:
    """Ten of PubMed for table 5's models but BERT, which has Wikipedia's."""
    paper = "contrastive-probe-acl2022"
    params_path.write_text(adopt(paper, "5", params_path)[1], encoding="utf-8")
    params = load_params(params_path)
    assert params.benchmarks == {"medlama_released": {"medlama": {}}}
    assert set(params.fetch) == {
        *("bert-base-uncased", "bluebert-base-pubmed", "biobert-v1-1", "clinicalbert"),
        *("scibert-uncased", "pubmedbert", "sapbert", "coderbert"),
    }
    assert {key: [*by_method] for key, by_method in params.methods.items()} == {
        kind: ["contrastive"] for kind in ("masked", "encoder")
    }
    sets = SENTENCE_SETS.of(params)
    assert sets["wiki_sents_no_punkt_10k"].models == ("bert-base-uncased",)
    assert sets["pubmed_sents_no_punkt_10k_9"].without == ("bert-base-uncased",)
    assert len(sets) == 11 and REWIRE.of(params)["batch"] == 192
    params_path.write_text(adopt(paper, "figure 8", params_path)[1], encoding="utf-8")
    params = load_params(params_path)
    assert set(params.fetch) == {"pubmedbert"} and len(SENTENCE_SETS.of(params)) == 10


@pytest.mark.parametrize(
    ("paper", "table"),
    [
        (name, table)
        for name in ("contrastive-probe-acl2022", "contrastive-probe-v1")
        for table, found in papers()[name].tables.items()
        if found.repeats or any(row.method == "contrastive" for row in found.rows)
    ],
)
def test_a_table_is_rewired_to_the_step_that_it_probes_and_no_other(
    params_path: Path, paper: str, table: str
) -> None:
    """Each step that is kept is probed; a table's numbers are of one."""
    params_path.write_text(adopt(paper, table, params_path)[1], encoding="utf-8")
    params = load_params(params_path)
    steps = checkpoint_steps(RewireSettings.model_validate(REWIRE.of(params)))
    probed = params.methods["encoder"]["contrastive"].values()
    assert {*steps} == {settings["step"] for settings in probed}


def test_a_table_has_the_rows_that_it_shares_with_another_one(params_path: Path) -> None:
    """Contrastive-Probe's rows of table 4, and of tables 3 and 4 of the preprint."""
    for paper, table, models in (
        ("contrastive-probe-acl2022", "4", {"bert-base-uncased", "biobert-v1-1", "t5-base"}),
        ("contrastive-probe-v1", "3", {"bert-base-uncased", "biobert-v1-1", "t5-base"}),
        ("contrastive-probe-v1", "4", {"bert-base-uncased", "biobert-v1-1", "coderbert"}),
    ):
        params_path.write_text(adopt(paper, table, params_path)[1], encoding="utf-8")
        params = load_params(params_path)
        assert models <= {*params.fetch} and len(SENTENCE_SETS.of(params)) == 11
        for kind in ("masked", "encoder"):
            assert "contrastive" in params.methods[kind]


@pytest.mark.parametrize(
    ("place", "swept", "sets", "steps"),
    [
        ("8", {"learning_rate", "mask_ratio", "temperature", "max_sentences"}, 1, 350),
        ("figure 4", set(), 10, 350),
        ("figure 6", {"layers"}, 2, 200),
        ("figure 7", {"layers"}, 1, 200),
        ("figure 9", {"mask_ratio"}, 10, 350),
    ],
)
def test_a_figure_has_its_sweeps(
    params_path: Path, place: str, swept: set[str], sets: int, steps: int
) -> None:
    """Each value is rewired and probed; the base value is the method's own."""
    adopted = adopt("contrastive-probe-acl2022", place, params_path)[1]
    params_path.write_text(adopted, encoding="utf-8")
    params = load_params(params_path)
    assert "pubmedbert" in params.fetch and len(SENTENCE_SETS.of(params)) == sets
    sweeps = {name: values for name, values in SWEEPS.of(params).values().items() if values}
    probed = params.methods["encoder"]["contrastive"]["medlama"]
    assert {*sweeps} == swept == {*probed.get("sweeps", {})}
    assert all({*sweeps[name]} == {*probed["sweeps"][name]} for name in swept)
    assert {*SWEEPS.of(params).models} == ({*params.fetch} if swept else set())
    assert max(checkpoint_steps(RewireSettings.model_validate(REWIRE.of(params)))) == steps


def test_the_groups_are_those_of_the_papers_tables(params_path: Path) -> None:
    """Table 10 of the preprint, and the two panels of table 5 of the version in print."""
    params_path.write_text(
        adopt("contrastive-probe-acl2022", path=params_path)[1], encoding="utf-8"
    )
    models = load_params(params_path).models.all().values()
    groups = {model.published: model.group for model in models if model.group}
    enhanced = {name for name, group in groups.items() if group == "knowledge-enhanced"}
    table_5 = {row.model for row in papers()["contrastive-probe-acl2022"].tables["5"].rows}
    assert {*groups} == table_5 - {"UmlsBERT"}  # which is not on the hub
    assert enhanced == {"SapBERT", "CoderBERT"}
    assert {*groups.values()} == {"pure", "knowledge-enhanced"}


def test_after_the_preprint_is_adopted_its_numbers_are_compared_with(params_path: Path) -> None:
    """Also of models that are there already, and the version in print comes back."""
    place = ("medlama", "full", "macro", "contrastive")
    for paper, version, number in (
        ("contrastive-probe-acl2022", "ACL 2022", 5.71),
        ("contrastive-probe-v1", "arXiv v1, 2021", 7.32),
        ("contrastive-probe-acl2022", "ACL 2022", 5.71),
    ):
        params_path.write_text(adopt(paper, path=params_path)[1], encoding="utf-8")
        name = load_params(params_path).models.encoder["pubmedbert"].published
        assert name
        values = {
            found.version: row.values["acc_at_1"] for found, _, row in published(name, *place)
        }
        assert values[version] == number and len(values) == 1


def test_models_are_compared_by_the_papers_own_method(params_path: Path) -> None:
    """By Contrastive-Probe, though other methods probe masked ones, too; not so by other papers."""
    for paper, table, main in (
        ("contrastive-probe-acl2022", "", {"masked": "contrastive"}),
        ("contrastive-probe-acl2022", "7", {"masked": "contrastive"}),
        ("diskne", "", {}),
    ):
        params_path.write_text(adopt(paper, table, path=params_path)[1], encoding="utf-8")
        assert load_params(params_path).score.main == main, (paper, table)


def test_the_released_form_of_the_builder_from_the_umls_is_named(params_path: Path) -> None:
    from medprobe.papers.medlama.benchmarks.medlama import Settings

    for paper in ("contrastive-probe-acl2022", "contrastive-probe-v1"):
        assert Settings(**papers()[paper].variants["from-umls"]).obsolete
        assert any(
            "{medlama: {obsolete: true}}" in line for line in remarks(paper, path=params_path)
        )
