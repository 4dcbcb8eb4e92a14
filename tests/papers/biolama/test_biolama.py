import json

import pandas as pd
import pytest

from helpers import gate_helpers
from medprobe.core import answers
from medprobe.core.errors import BadInput
from medprobe.papers.biolama.benchmarks import biolama
from medprobe.papers.biolama.samples import biolama as sample
from medprobe.sample.settings import SampleSettings
from medprobe.sample.world import build as build_world

ROW = {
    "uuid": "CD1_test0",
    "predicate_id": "CD1",
    "sub_uri": "D1",
    "sub_label": "velotrine",
    "sub_type": "",
    "sub_aliases": [],
    "obj_uris": ["M1", "M2"],
    "obj_labels": ["Karsten syndrome", "Chronic pain"],
    "obj_types": [],
    "obj_aliases": [["KS", "Karsten's syndrome"], []],
}


def write(data, template="[X] treats [Y] .", **splits):
    folder = data / "biolama" / "ctd"
    rows = {split: [ROW] for split in ("train", "dev", "test")} | splits
    for split, of_split in rows.items():
        path = folder / "triples_processed" / "CD1" / f"{split}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in of_split))
    (folder / "prompts").mkdir(exist_ok=True)
    prompt = {"relation": "CD1", "template": template}
    (folder / "prompts" / "manual.jsonl").write_text(json.dumps(prompt))
    return data


def settings(**changes):
    return biolama.Settings(**{"sources": ("ctd",), **changes})


def failing(benchmark, folder, data=None):
    benchmark.write(folder)
    tables = {path.stem: pd.read_parquet(path) for path in folder.glob("*.parquet")}
    return [
        check["notes"]
        for check in gate_helpers.failing("biolama", tables, data=data or folder.parent)
    ]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    sample.write(build_world(SampleSettings(), 1), data, 1)
    return data


def test_a_row_becomes_a_query_with_aliases_as_answers(tmp_path):
    benchmark = biolama.build(write(tmp_path), settings(), 0)
    (query,) = benchmark.queries.itertuples()
    assert query.query_id == "ctd:CD1:CD1_test0"
    assert query.prompt == "velotrine treats [Y] ."
    assert query.template == "[X] treats [Y] ."
    assert query.answers == ["Karsten syndrome", "KS", "Karsten's syndrome", "Chronic pain"]
    assert query.answer_ids == ["M1", "M1", "M1", "M2"]
    assert benchmark.candidates["name"].tolist() == ["Chronic pain", "Karsten syndrome"]


def test_an_object_without_a_name_is_no_answer_called_none(tmp_path):
    half = ROW | {"obj_labels": [None, "Chronic pain"], "obj_aliases": [None, [None, "pain"]]}
    none = ROW | {"uuid": "CD1_test1", "obj_labels": [None, " "]}
    benchmark = biolama.build(
        write(tmp_path, test=[half, none], train=[ROW], dev=[ROW]), settings(), 0
    )
    assert benchmark.queries["answers"].tolist() == [["Chronic pain", "pain"]]
    assert "None" not in benchmark.candidates["name"].tolist()
    read = benchmark.others["sources"].set_index(["what", "name"])["rows"]
    assert (read["triples", "CD1/test"], read["dropped", "CD1/test"]) == (2, 1)
    assert not any("triples" in note for note in failing(benchmark, tmp_path / "out"))


def test_subjects_are_candidates_where_asked(tmp_path):
    benchmark = biolama.build(write(tmp_path), settings(candidates="entities"), 0)
    assert benchmark.candidates["name"].tolist() == [
        "Chronic pain",
        "Karsten syndrome",
        "velotrine",
    ]


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The  Karsten-Syndrome", "karstensyndrome"),
        ("an Ache, a fever", "ache fever"),
        ("Vitamin A deficiency", "vitamin deficiency"),
        ("other", "other"),
    ],
)
def test_normalised_as_by_the_released_evaluator(text, normal, tmp_path):
    benchmark = biolama.build(write(tmp_path), settings(), 0)
    assert answers.find_rule(benchmark.normalise)(text) == normal


def test_the_sample_world_has_three_sources_in_three_splits(world):
    benchmark = biolama.build(world, biolama.Settings(), 0)
    assert benchmark.queries["subset"].unique().tolist() == ["ctd", "wikidata", "umls"]
    sizes = [len(benchmark.others["train"]), len(benchmark.others["dev"]), len(benchmark.queries)]
    assert sizes == pytest.approx([0.4 * sum(sizes), 0.1 * sum(sizes), 0.5 * sum(sizes)], abs=7)


def test_the_sample_worlds_queries_are_read_as_often_as_all_facts(world):
    read = {}  # of each relation: how often the facts of each subject are
    for fact in build_world(SampleSettings(), 1).facts:
        read.setdefault(fact.relation, {})[fact.subject.name] = fact.times
    benchmark = biolama.build(world, biolama.Settings(), 0)
    codes = {code: name for names in sample.SOURCES.values() for code, name in names.items()}
    for code, of_code in benchmark.queries.groupby("relation"):
        times = pd.Series(read[codes[code]])
        counts = times[of_code["subject"]].value_counts()
        every = times.value_counts()
        assert (counts - every / 2).abs().max() <= 1
        assert (times[of_code["subject"]] > 0).sum() == len(of_code) / 2


def test_missing_things_are_named(tmp_path):
    with pytest.raises(BadInput, match=r"ctd/triples_processed: no relations; put its files"):
        biolama.build(tmp_path, settings(), 0)
    write(tmp_path)
    with pytest.raises(BadInput, match=r"no relation 'CD2' \(did you mean 'CD1'\?\)"):
        biolama.build(tmp_path, settings(relations=("CD2",)), 0)
    with pytest.raises(BadInput, match=r"template has no \[Y\]"):
        biolama.build(write(tmp_path, template="[X] treats ."), settings(), 0)


def test_families_have_all_templates_and_aliases_and_leave_the_queries_as_they_are(tmp_path):
    row = ROW | {"sub_aliases": ["Velora", "velotrine", None, "VLT"]}
    data = write(tmp_path, test=[row])
    path = data / "biolama/ctd/prompts/manual.jsonl"
    further = {"relation": "CD1", "template": "[Y] is treated with [X] ."}
    path.write_text(f"{path.read_text()}\n{json.dumps(further)}\n")
    alone = biolama.build(data, settings(), 0)
    benchmark = biolama.build(data, settings(families={"names": {"at_most": 1}}), 0)
    queries = benchmark.queries
    pd.testing.assert_frame_equal(queries.loc[[0], alone.queries.columns], alone.queries)
    assert queries["prompt"].tolist()[1:] == [
        "velotrine treats [Y] .",
        "Velora treats [Y] .",
        "[Y] is treated with velotrine .",
        "[Y] is treated with Velora .",
    ]
    assert set(queries["subset"]) == {"ctd", "families"}
    assert queries["template"].tolist()[3:] == ["[Y] is treated with [X] ."] * 2
    assert failing(benchmark, tmp_path / "with") == failing(alone, tmp_path / "without")


def test_each_source_has_families_of_its_own(world):
    both = ("ctd", "wikidata")
    chosen = settings(sources=both, distractors={"ctd": "wikidata"}, families={"at_most": 2})
    benchmark = biolama.build(world, chosen, 0)
    members = benchmark.queries[benchmark.queries["family_id"] != ""]
    assert set(members["subset"]) == {"ctd-families", "wikidata-families"}
    assert members.groupby("relation")["family_id"].nunique().tolist() == [2] * 4
    names = benchmark.candidates.groupby("subset")
    ctd_names = names.get_group("ctd").query("type != 'distractor'")["name"]
    assert names.get_group("ctd-families")["name"].tolist() == ctd_names.tolist()


def test_two_templates_of_one_wording_are_refused(tmp_path):
    data = write(tmp_path)
    lines = [
        {"relation": "CD1", "template": f"[X] {verb} [Y] .", "wording": "plain"}
        for verb in ("treats", "cures", "ends")
    ]
    path = data / "biolama/ctd/prompts/manual.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(BadInput, match=r"line 3: .* already has a template of the wording plain"):
        biolama.build(data, settings(), 0)
