"""LAMA's files and what becomes of their facts."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from helpers import FolderOf, gate_helpers
from medprobe.core.errors import BadInput
from medprobe.core.tables import BenchmarkTables
from medprobe.papers.template_free.benchmarks import lama

BIRTH: dict[str, Any] = {
    "pred": "/people/person/place_of_birth",
    "sub": "/m/1",
    "obj": "/m/2",
    "evidences": [],
    "judgments": [{"rater": "1", "judgment": "yes"}, {"rater": "2", "judgment": "no"}],
    "sub_label": "Ada Berg",
    "sub_aliases": [],
    "obj_label": "Tulmford",
    "obj_aliases": [],
    "uuid": "g1",
    "masked_sentences": ["Ada Berg was a doctor.", "She came from [MASK]."],
}
CAPITAL: dict[str, Any] = {
    "uuid": "t1",
    "obj_uri": "Q2",
    "obj_label": "Paris",
    "sub_uri": "Q1",
    "sub_label": "France",
    "predicate_id": "P36",
    "evidences": [
        {"sub_surface": "France", "obj_surface": "Paris", "masked_sentence": "[MASK], Paris ."},
        {"sub_surface": "It", "obj_surface": "Paris", "masked_sentence": "Its [MASK]  is\nbig ."},
    ],
}  # fmt: skip
CAN: dict[str, Any] = {
    "uuid": "c1",
    "pred": "CapableOf",
    "obj_label": "fly",
    "masked_sentences": ["Birds can [MASK]."],
}
SQUAD_QUESTION: dict[str, Any] = {
    "id": "s1",
    "sub_label": "Squad",
    "obj_label": "iron",
    "masked_sentences": ["Rust is made of [MASK]."],
}
RELATION = {"relation": "P36", "template": "The capital of [X] is [Y] .", "type": "1-1"}


def write(
    data: Path,
    births: list[dict[str, Any]] | None = None,
    capitals: list[dict[str, Any]] | None = None,
    cans: list[dict[str, Any]] | None = None,
) -> Path:
    tables = {
        "Google_RE/place_of_birth_test.jsonl": births or [BIRTH],
        "TREx/P36.jsonl": capitals or [CAPITAL],
        "ConceptNet/test.jsonl": cans or [CAN],
        "Squad/test.jsonl": [SQUAD_QUESTION],
        "relations.jsonl": [RELATION],
    }
    for name, rows in tables.items():
        path = data / "lama" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return data


def build(data: Path, **settings: Any) -> BenchmarkTables:
    return lama.build(data, lama.Settings(**settings), 0)


def prompts(benchmark: BenchmarkTables) -> dict[str, list[str]]:
    return benchmark.queries.groupby("subset", sort=False)["prompt"].agg(list).to_dict()


OURS: dict[str, Any] = {
    "evidences": "one",
    "drop": [rule for rule in lama.RULES if rule != "subject_absent"],
    "sentences": "joined",
}


def dropped(benchmark: BenchmarkTables) -> dict[tuple[str, str], int]:
    counted = benchmark.notes["dropped"].set_index(["set", "rule"])["dropped"]
    return counted[counted > 0].to_dict()


def count_kept(benchmark: BenchmarkTables) -> dict[tuple[str, str], int]:
    counted = benchmark.notes["dropped"].set_index(["set", "rule"])["kept"]
    return counted[counted > 0].to_dict()


def test_facts_without_a_subject_of_their_own_are_clusters_of_their_own(tmp_path: Path) -> None:
    """SQuAD names itself as every fact's subject, and ConceptNet can lack it."""
    queries = build(write(tmp_path, cans=[CAN, {**CAN, "uuid": "c2"}])).queries
    by_subset = queries.groupby("subset")["subject_id"].agg(list)
    assert by_subset["conceptnet"] == ["c1", "c2"]
    assert by_subset["squad"] == ["s1"]


def test_every_sentence_and_evidence_is_asked_as_the_paper_has_it(tmp_path: Path) -> None:
    denied = {**BIRTH, "uuid": "g2", "judgments": [{"rater": "1", "judgment": "no"}]}
    benchmark = build(write(tmp_path, [BIRTH, denied]))
    assert prompts(benchmark) == {
        "google-re-template": ["Ada Berg was born in [Y] ."] * 2,
        "google-re-free": ["She came from [Y]."] * 2,
        "t-rex-template": ["The capital of France is [Y] ."] * 2,
        "t-rex-free": ["[Y], Paris .", "Its [Y] is big ."],
        "conceptnet": ["Birds can [Y]."],
        "squad": ["Rust is made of [Y]."],
    }
    assert dropped(benchmark) == {("google-re", "no mask"): 2}
    assert count_kept(benchmark) == {
        ("google-re", "denied"): 1,
        ("google-re", "fact_twice"): 1,
        ("google-re", "prompt_twice"): 1,
        ("google-re", "subject_absent"): 2,
        ("t-rex", "object_twice"): 1,
        ("t-rex", "subject_absent"): 2,
    }
    read = benchmark.others["sources"].set_index(["what", "name"])["rows"]
    assert read["sentences", "google-re"] == 4
    assert read["facts", "google-re"] == 2
    tables = {"queries": benchmark.queries, "candidates": benchmark.candidates}
    assert gate_helpers.critical("lama", tables, data=tmp_path) == []


@pytest.mark.parametrize("rule", lama.RULES)
def test_each_rule_of_ours_can_be_chosen_alone(tmp_path: Path, rule: lama.DropRule) -> None:
    denied = {**BIRTH, "uuid": "g2", "judgments": [{"rater": "1", "judgment": "no"}]}
    benchmark = build(write(tmp_path, [BIRTH, denied]), drop=[rule])
    counts = {"object_twice": {"t-rex": 1}, "subject_absent": {"google-re": 2, "t-rex": 2}}
    expected = {(name, rule): n for name, n in counts.get(rule, {"google-re": 1}).items()}
    assert dropped(benchmark) == {("google-re", "no mask"): 2, **expected}


def test_only_sentences_of_parallel_sets_are_dropped_for_their_subject(tmp_path: Path) -> None:
    named = {**BIRTH, "masked_sentences": ["Ada Berg came from [MASK]."]}
    prompts_by_subset = prompts(build(write(tmp_path, [BIRTH, named]), drop=["subject_absent"]))
    assert prompts_by_subset == {
        "google-re-template": ["Ada Berg was born in [Y] ."],
        "google-re-free": ["Ada Berg came from [Y]."],
        "conceptnet": ["Birds can [Y]."],  # whose subjects, if any, are no part of a pair
        "squad": ["Rust is made of [Y]."],
    }


def test_a_sentence_too_long_for_models_is_left_out_with_its_twin_and_counted(
    tmp_path: Path,
) -> None:
    long = {**BIRTH, "uuid": "g2", "masked_sentences": ["was " * 300 + "in [MASK]."]}
    benchmark = build(write(tmp_path, [BIRTH, long]), max_words=300)
    assert dropped(benchmark)["google-re", "too_long"] == 1
    prompts_by_subset = prompts(benchmark)
    assert (
        len(prompts_by_subset["google-re-template"])
        == len(prompts_by_subset["google-re-free"])
        == 1
    )
    assert len(prompts(build(tmp_path))["google-re-free"]) == 2
    short = build(tmp_path, max_words=3)
    assert dropped(short)["squad", "too_long"] == 1 and "squad" not in prompts(short)
    assert set(benchmark.candidates["name"]) == set(short.candidates["name"])


def test_a_fact_that_is_dropped_leaves_its_object_among_the_candidates(tmp_path: Path) -> None:
    other = {**BIRTH, "uuid": "g2", "obj_label": "Norwick", "masked_sentences": ["Of Norwick."]}
    table = build(write(tmp_path, [BIRTH, other])).candidates
    for kind in ("template", "free"):
        names = table[table["subset"] == f"google-re-{kind}"]["name"].tolist()
        assert names == ["Tulmford", "Norwick"]


def test_all_six_sets_with_one_text_a_fact(tmp_path: Path) -> None:
    benchmark = build(write(tmp_path), **OURS)
    assert prompts(benchmark) == {
        "google-re-template": ["Ada Berg was born in [Y] ."],
        "google-re-free": ["Ada Berg was a doctor. She came from [Y]."],
        "t-rex-template": ["The capital of France is [Y] ."],
        "t-rex-free": ["Its [Y] is big ."],
        "conceptnet": ["Birds can [Y]."],
        "squad": ["Rust is made of [Y]."],
    }
    benchmark.write(tmp_path / "out")
    again = BenchmarkTables.read(tmp_path / "out")
    assert (tmp_path / "out" / "dropped.csv").is_file()
    assert again.queries["query_id"].is_unique


def test_pairs_share_subject_object_and_id(tmp_path: Path) -> None:
    second = {**BIRTH, "uuid": "g2", "sub_label": "Bo Ek", "masked_sentences": ["Bo of [MASK]."]}
    queries = build(write(tmp_path, [BIRTH, second])).queries
    for name in ("google-re", "t-rex"):
        twins = [
            queries[queries["subset"] == f"{name}-{kind}"].set_index("pair_id")
            for kind in ("template", "free")
        ]
        for column in ("subject_id", "answer_ids", "relation"):
            assert twins[0][column].to_dict() == twins[1][column].to_dict()


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"masked_sentences": ["[MASK] and [MASK]."]}, "several masks"),
        ({"masked_sentences": ["Born there."]}, "no mask"),
        ({"masked_sentences": ["[MASK], TULMFORD."]}, "object_twice"),
        ({"masked_sentences": []}, "no sentence"),
        ({"judgments": [{"rater": "1", "judgment": "no"}]}, "denied"),
        ({"sub_label": "Ada Berg"}, "fact_twice"),
        ({"masked_sentences": BIRTH["masked_sentences"]}, "prompt_twice"),
    ],
)
def test_what_is_dropped_is_counted_and_takes_its_twin_along(
    tmp_path: Path, change: dict[str, Any], rule: str
) -> None:
    other = {**BIRTH, "sub_label": "Bo", "masked_sentences": ["Bo of [MASK]."], "uuid": "g2"}
    benchmark = build(write(tmp_path, [BIRTH, {**other, **change}]), **OURS)
    assert dropped(benchmark) == {("google-re", rule): 1, ("t-rex", "object_twice"): 1}
    kept_prompts = prompts(benchmark)
    assert len(kept_prompts["google-re-template"]) == len(kept_prompts["google-re-free"]) == 1


def test_an_object_inside_a_longer_word_is_no_second_one(tmp_path: Path) -> None:
    row = {**BIRTH, "masked_sentences": ["A Tulmforder of [MASK]."]}
    assert ("google-re", "object_twice") not in dropped(build(write(tmp_path, [row]), **OURS))


def test_candidates_are_the_objects_of_a_set(tmp_path: Path) -> None:
    other = {**CAN, "uuid": "c2", "obj_label": "swim", "masked_sentences": ["Fish [MASK]."]}
    again = {**CAN, "uuid": "c3", "masked_sentences": ["Bees can [MASK]."]}
    table = build(write(tmp_path, cans=[CAN, other, again])).candidates
    assert table[table["subset"] == "conceptnet"]["name"].tolist() == ["fly", "swim"]


def test_distractors_add_candidates_not_queries(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "more.txt").write_text("copper\niron\n")
    benchmark = build(tmp_path, distractors={"squad": Path("more.txt")})
    plain = build(tmp_path)
    assert benchmark.queries["prompt"].tolist() == plain.queries["prompt"].tolist()
    table = benchmark.candidates[benchmark.candidates["subset"] == "squad"]
    assert list(zip(table["name"], table["type"], strict=True)) == [
        ("iron", ""),
        ("copper", "distractor"),
    ]


def test_a_template_needs_both_slots(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "lama/relations.jsonl").write_text('{"relation": "P36", "template": "[X] ."}\n')
    with pytest.raises(BadInput, match=r"relations\.jsonl, line 1: template has no \[Y\]"):
        build(tmp_path)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="Google_RE: no file of this data set"):
        build(tmp_path)


def test_the_released_files_have_the_counts_of_the_paper(
    released_data: FolderOf, tmp_path: Path
) -> None:
    """6.11 K sentences of Google-RE, 305 lines and 303 entities of SQuAD. ConceptNet is not among
    the files; one line stands for it."""
    shutil.copytree(released_data("lama"), tmp_path / "lama", copy_function=shutil.copyfile)
    (tmp_path / "lama").chmod(0o755)
    (tmp_path / "lama/ConceptNet").mkdir()
    (tmp_path / "lama/ConceptNet/test.jsonl").write_text(json.dumps(CAN) + "\n")
    benchmark = build(tmp_path)
    read = benchmark.others["sources"].set_index(["what", "name"])["rows"]
    assert read["facts", "google-re"] == 5528
    assert read["sentences", "google-re"] == 6106
    assert read["sentences", "t-rex"] == 11876
    assert read["queries", "t-rex-free"] == read["queries", "t-rex-template"] == 11876
    assert read["sentences", "squad"] == 305
    assert dropped(benchmark) == {
        ("google-re", "no mask"): 534,
        ("google-re", "several masks"): 287,
        ("squad", "several masks"): 3,
    }
    absent = {
        name: count_kept(benchmark)[name, "subject_absent"] for name in ("google-re", "t-rex")
    }
    assert absent == {"google-re": 2188, "t-rex": 2733}
    sizes = benchmark.candidates.groupby("subset").size()
    assert sizes["squad"] == 303
    assert sizes["google-re-free"] == sizes["google-re-template"] == 870
    ours = build(tmp_path, **OURS).queries["subset"].value_counts()
    assert (ours["google-re-free"], ours["t-rex-free"]) == (5198, 2688)


def test_families_ask_each_fact_once_under_all_its_templates(tmp_path: Path) -> None:
    aliases = ["Ada Berg", "A. Berg", " "]
    data = write(tmp_path, births=[{**BIRTH, "sub_aliases": aliases}])
    rows = [
        RELATION,
        {"relation": "P36", "template": "[Y] is the seat of [X] ."},
        {"relation": "place_of_birth", "template": "[X] comes from [Y] .", "wording": "origin"},
        {"relation": "place_of_birth", "template": "[X] was born in [Y] ."},
        {"relation": "place_of_birth", "template": "[X] stems from [Y] ."},
    ]
    (data / "lama/relations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    alone, with_families = build(data), build(data, families={})
    own_queries = with_families.queries[with_families.queries["family_id"] == ""]
    assert own_queries[alone.queries.columns].equals(alone.queries)
    family_prompts = prompts(with_families)
    assert family_prompts["google-re-template-families"] == [
        "Ada Berg was born in [Y] .",
        "A. Berg was born in [Y] .",
        "Ada Berg comes from [Y] .",
        "A. Berg comes from [Y] .",
        "Ada Berg stems from [Y] .",
        "A. Berg stems from [Y] .",
    ]
    births = with_families.queries.query("subset == 'google-re-template-families'")
    assert births["wording"].unique().tolist() == ["original", "origin", "3"]
    assert family_prompts["t-rex-template-families"] == [
        "The capital of France is [Y] .",
        "[Y] is the seat of France .",
    ]
    last = with_families.queries.iloc[-1]
    assert (last["sentence"], last["pair_id"]) == ("Paris is the seat of France .", "")
    tables = [{"queries": x.queries, "candidates": x.candidates} for x in (alone, with_families)]
    failing = [
        [check["type"] for check in gate_helpers.failing("lama", table, data=data)]
        for table in tables
    ]
    assert failing[0] == failing[1]
