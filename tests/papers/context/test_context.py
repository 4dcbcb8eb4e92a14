"""The context benchmark: from UMLS, notes and articles to steps, and what is refused."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from medprobe.core.errors import BadInput
from medprobe.core.settings import parse_section
from medprobe.core.tables import SLOT, BenchmarkTables, check_prompts
from medprobe.papers.context.benchmarks import context
from medprobe.papers.context.benchmarks.context.steps import Evidence, Limits, steps
from medprobe.papers.context.samples.context import write as write_sample
from medprobe.papers.context.texts import Document
from medprobe.sample.settings import SampleSettings
from medprobe.sample.world import World
from medprobe.sample.world import build as build_world

TYPES = {"disease": "Disease or Syndrome", "finding": "Sign or Symptom"}
RELATION = "disease_may_have_finding"
Concept = tuple[str, str, list[str]]  # CUI, type, names: the preferred one first


pytestmark = pytest.mark.usefixtures("working_folder")


def write_umls(folder: Path, concepts: list[Concept], facts: list[tuple[str, str]]) -> None:
    """RRF files of these concepts and of facts (subject, object) of the one relation."""
    folder.mkdir(parents=True, exist_ok=True)
    names, types = [], []
    for cui, kind, spelled in concepts:
        for number, name in enumerate(spelled):
            status = "P" if number == 0 else "S"
            atom = [cui, "ENG", status, "L", "PF", "S", "Y", "A", "", "", "", "SRC", "PT", "1"]
            names.append([*atom, name, "0", "N", ""])
        types.append([cui, "T000", "A1", kind, "AT", ""])
    relations = [
        [tail, "", "CUI", "RO", head, "", "CUI", RELATION, "R", "", "SRC", "SRC", "", "", "N", ""]
        for head, tail in facts
    ]
    for file, rows in {"MRCONSO": names, "MRSTY": types, "MRREL": relations}.items():
        lines = "".join("|".join(row) + "|\n" for row in rows)
        (folder / f"{file}.RRF").write_text(lines, encoding="utf-8")


CHOICES: dict[str, Any] = {
    "resources": {"clinic": {"form": "texts", "path": "clinic.jsonl"}},
    "relations": {
        RELATION: {
            "prompt": "[X] has symptoms such as [Y].",
            "subjects": ["Disease or Syndrome"],
            "objects": ["Sign or Symptom"],
        }
    },
}


def choose(**more: Any) -> context.Settings:
    return parse_section(context.Settings, CHOICES | more, "test")


CASE = (
    "Since spring she had heartburn at night, felt sick in the morning, and with her nasal polyps "
    "came a runny nose and mucus in the throat; her nose was blocked. No wheeze was heard."
)
CONCEPTS: list[Concept] = [
    ("C1", TYPES["disease"], ["nasal polyp", "nasal polyps"]),
    ("C2", TYPES["finding"], ["nasal discharge", "runny nose"]),
    ("C3", TYPES["finding"], ["postnasal drip", "mucus in the throat"]),
    ("C4", TYPES["finding"], ["nasal stuffiness", "nose was blocked"]),
    ("C5", TYPES["finding"], ["heartburn"]),
    ("C6", TYPES["finding"], ["sick feeling", "felt sick"]),
    ("C7", TYPES["finding"], ["wheeze"]),
    ("C8", TYPES["finding"], ["shortness of breath"]),
]
FACTS = [("C1", "C2"), ("C1", "C3"), ("C1", "C4"), ("C1", "C8")]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data folder of the case: one document."""
    folder = tmp_path / "data"
    write_umls(folder / "umls", CONCEPTS, FACTS)
    rows = [{"id": "note-1", "text": CASE}, {"id": "note-2", "text": "A nasal polyp, no wheeze."}]
    (folder / "clinic.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return folder


def select_steps(benchmark: BenchmarkTables, fact: str, centre: str, kind: str) -> pd.DataFrame:
    table = benchmark.queries
    chosen = (table["fact_id"] == fact) & (table["centre"] == centre) & (table["kind"] == kind)
    return table[chosen].sort_values("step")


def test_the_case_grows_around_its_target(data: Path) -> None:
    benchmark = context.build(data, choose(), seed=1)
    rows = select_steps(benchmark, "C2", "target", "real")
    assert rows["added"].tolist() == [
        "",
        "nasal discharge",
        "sick feeling",
        "postnasal drip",
        "heartburn",
        "nasal stuffiness",
        "wheeze",
    ]
    roles = ["", "target", "incorrect", "correct", "incorrect", "correct", "incorrect"]
    assert rows["added_role"].tolist() == roles
    prompt = f"nasal polyp has symptoms such as {SLOT}."
    assert rows["prompt"].iloc[0] == prompt
    first = "in the morning, and with her nasal polyps came a runny nose and"
    assert rows["prompt"].iloc[1] == f"{first} {prompt}"
    assert rows["prompt"].iloc[2] == f"at night, felt sick {first} {prompt}"
    assert rows["prompt"].iloc[6] == f"{CASE} {prompt}"
    assert rows["subset"].tolist() == ["alone", *["steps"] * 5, "full"]
    assert set(rows["answers"].iloc[0]) == {
        "nasal discharge",
        "postnasal drip",
        "nasal stuffiness",
        "shortness of breath",
    }


def test_the_case_grows_around_its_negative_target_too(data: Path) -> None:
    benchmark = context.build(data, choose(), seed=1)
    rows = select_steps(benchmark, "C2", "negative", "real")
    assert rows["target"].unique().tolist() == ["sick feeling"]
    assert rows["added"].tolist()[1:4] == ["sick feeling", "heartburn", "nasal discharge"]
    assert rows["added_role"].tolist()[1:4] == ["target", "incorrect", "correct"]


def test_synthetic_contexts_hold_entities_alone(data: Path) -> None:
    benchmark = context.build(data, choose(max_segments=3), seed=1)
    prompt = f" nasal polyp has symptoms such as {SLOT}."
    only = select_steps(benchmark, "C2", "target", "knowledge-only")["prompt"].tolist()
    in_order = select_steps(benchmark, "C2", "target", "knowledge-sorted")["prompt"].tolist()
    assert only[3] == f"felt sick, runny nose, mucus in the throat.{prompt}"
    assert in_order[3] == f"runny nose, felt sick, mucus in the throat.{prompt}"


def test_two_builds_are_the_same_and_the_seed_matters(data: Path) -> None:
    first, again = (context.build(data, choose(), seed=1) for _ in range(2))
    pd.testing.assert_frame_equal(first.queries, again.queries)
    pd.testing.assert_frame_equal(first.candidates, again.candidates)
    other = context.build(data, choose(), seed=2)
    assert first.queries["prompt"].tolist() != other.queries["prompt"].tolist()


def test_random_contexts_are_drawn_as_often_as_is_asked(data: Path) -> None:
    single, three = (context.build(data, choose(random_draws=n), seed=1).queries for n in (1, 3))
    pd.testing.assert_frame_equal(three[three["draw"] == 0].reset_index(drop=True), single)
    assert set(three.loc[three["draw"] > 0, "kind"]) == {"knowledge-random"}
    contexts = three[three["kind"] == "knowledge-random"].groupby("context_id")
    orders = pd.DataFrame({"order": contexts["added_id"].agg(tuple)})
    orders["entities"] = orders["order"].map(frozenset)
    assert orders["order"].nunique() > orders["entities"].nunique()
    assert (
        len(orders)
        == 3 * (single["kind"] == "knowledge-random").groupby(single["context_id"]).any().sum()
    )


def test_a_context_ends_where_the_window_does(data: Path) -> None:
    wide = context.build(data, choose(), seed=1).queries
    narrow = context.build(data, choose(window=45), seed=1).queries
    assert narrow["prompt"].map(lambda p: len(re.findall(r"\w+|[^\w\s]", p))).max() <= 45
    kinds = ["pair_id", "centre"]
    assert narrow.groupby(kinds)["step"].max().max() < wide.groupby(kinds)["step"].max().max()


def test_candidates_are_objects_and_mentioned_entities(data: Path) -> None:
    benchmark = context.build(data, choose(), seed=1)
    names = {name for _, kind, (name, *_) in CONCEPTS if kind == TYPES["finding"]}
    for subset, part in benchmark.candidates.groupby("subset"):
        assert set(part["name"]) == names, subset
    assert not benchmark.candidates.duplicated(["name", "subset"]).any()


def test_what_is_left_out_is_counted(data: Path) -> None:
    write_umls(data / "umls", CONCEPTS, [*FACTS, ("C1", "C1"), ("C2", "C3"), ("C1", "C99")])
    rows = [
        {"id": "a", "text": CASE},
        {"id": "b", "text": f"{CASE} {SLOT}"},
        {"id": "c", "text": "nasal polyp with runny nose"},
    ]
    (data / "clinic.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    benchmark = context.build(data, choose(), seed=1)
    counts = dict(benchmark.notes["dropped"].itertuples(index=False, name=None))
    assert counts == {
        "document: its text holds the slot": 3,
        "document: no incorrect entity in the context": 1,
        "fact: object of another type or without a name": 2,
        "fact: subject of another type or without a name": 1,
    }
    assert benchmark.notes["resources"].to_dict("records") == [
        {"resource": "clinic", "documents": 3, "kept": 3, "mentions": 16, "skipped": ""}
    ]


def test_a_document_without_the_object_is_refused() -> None:
    evidence = Evidence(
        resource="clinic",
        document=Document("note-1", "secret text"),
        mentions=[(0, 6, "C1")],
        relation=RELATION,
        subject_id="C1",
        fact_id="C2",
        prompt=f"nasal polyp has symptoms such as {SLOT}.",
        correct=frozenset({"C2"}),
        pool=frozenset({"C2"}),
    )
    with pytest.raises(BadInput, match="clinic, document note-1: does not mention C2") as error:
        steps(evidence, Limits(10, 300), 1, Counter())
    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objects": ["Sign of Symptom"]}, "'Sign of Symptom' .did you mean 'Sign or Symptom'"),
        ({"objects": ["Disease or Syndrome"]}, "no fact of relation disease_may_have_finding"),
        ({"prompt": "[X] has symptoms."}, r"the prompt needs one \[X\] and one \[Y\]"),
    ],
)
def test_a_relation_that_does_not_fit_is_refused(
    data: Path, change: dict[str, Any], message: str
) -> None:
    relation = choose().relations[RELATION].model_dump() | change
    with pytest.raises(BadInput, match=message):
        context.build(data, choose(relations={RELATION: relation}), seed=1)


def test_documents_that_give_no_context_are_refused(data: Path) -> None:
    (data / "clinic.jsonl").write_text('{"id": 1, "text": "nasal polyp, wheeze"}', "utf-8")
    with pytest.raises(BadInput, match="no document gives a context"):
        context.build(data, choose(), seed=1)


def test_concepts_of_one_name_are_one_entity(data: Path) -> None:
    twin = ("C0", TYPES["finding"], ["wheeze", "whistling breath"])
    write_umls(data / "umls", [*CONCEPTS, twin], FACTS)
    benchmark = context.build(data, choose(), seed=1)
    ids = dict(zip(benchmark.candidates["name"], benchmark.candidates["id"], strict=True))
    assert ids["wheeze"] == "C0"
    assert "C7" not in set(benchmark.queries["added_id"])


# The sample world


RESOURCES = {  # of the sample world
    "notes": {"form": "notes", "path": "notes/NOTEEVENTS.csv"},
    "articles": {"form": "articles", "path": "articles"},
}


def sample(folder: Path) -> tuple[Path, World, context.Settings]:
    world = build_world(SampleSettings(queries=20, reserve=8), 3)
    data = folder / "data"
    concepts = [
        (e.cui, TYPES[e.type], [e.name, *e.synonyms]) for e in world.entities if e.type in TYPES
    ]
    facts = [(f.subject.cui, f.object.cui) for f in world.facts if f.relation == RELATION]
    write_umls(data / "umls", concepts, facts)
    write_sample(world, data, 3)
    return data, world, choose(resources=RESOURCES)


@pytest.fixture(scope="module")
def sample_benchmark(tmp_path_factory: pytest.TempPathFactory) -> tuple[BenchmarkTables, Path]:
    folder = tmp_path_factory.mktemp("sample")
    data, _, settings = sample(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        benchmark = context.build(data, settings, seed=1)
    replace(benchmark, builder="context").write(folder / "context")
    return benchmark, folder / "context"


def test_the_sample_gives_contexts_from_both_resources(
    sample_benchmark: tuple[BenchmarkTables, Path],
) -> None:
    queries = sample_benchmark[0].queries
    assert set(queries["resource"]) == {"notes", "articles"}
    assert queries[["relation", "subject_id", "fact_id"]].drop_duplicates().shape[0] > 40
    by_name = queries["added"].str.len() > 0
    spelled = [
        row.added in row.prompt
        for row in queries[by_name & (queries["kind"] != "real")].itertuples()
    ]
    assert 0.5 < sum(spelled) / len(spelled) < 0.95  # the rest by synonym


def test_every_centre_has_its_pair_and_every_prompt_its_slot(
    sample_benchmark: tuple[BenchmarkTables, Path],
) -> None:
    queries = sample_benchmark[0].queries
    assert (queries.groupby("pair_id")["centre"].nunique() == 2).all()
    assert queries["query_id"].is_unique
    check_prompts(queries)
    assert set(queries["kind"]) == {
        "real",
        "knowledge-only",
        "knowledge-sorted",
        "knowledge-random",
    }


def test_what_is_written_can_be_read(sample_benchmark: tuple[BenchmarkTables, Path]) -> None:
    read = BenchmarkTables.read(sample_benchmark[1])
    assert read.queries["query_id"].tolist() == sample_benchmark[0].queries["query_id"].tolist()
    documents = pd.read_parquet(sample_benchmark[1] / "documents.parquet")
    texts = documents.set_index(["resource", "document"])["text"]
    real = read.queries.query("kind == 'real' and step > 0")
    for row in real.sample(100, random_state=1).itertuples():
        passage = row.prompt.removesuffix(f" {row.subject} has symptoms such as {SLOT}.")
        assert passage in texts[row.resource, row.document]
