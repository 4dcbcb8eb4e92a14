"""LAMA's files and what becomes of their facts."""

import json
from pathlib import Path
from typing import Any

import pytest

import gated
from medprobe.benchmarks import lama
from medprobe.core.errors import BadInput
from medprobe.core.tables import BenchmarkTables

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
ASKED: dict[str, Any] = {
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
        "Squad/test.jsonl": [ASKED],
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


def dropped(benchmark: BenchmarkTables) -> dict[tuple[str, str], int]:
    return benchmark.notes["dropped"].set_index(["set", "rule"])["count"].to_dict()


def test_all_six_sets(tmp_path: Path) -> None:
    benchmark = build(write(tmp_path))
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
        ({"masked_sentences": ["[MASK] and [MASK]."]}, "not one mask"),
        ({"masked_sentences": ["Born there."]}, "not one mask"),
        ({"masked_sentences": ["[MASK], TULMFORD."]}, "object twice"),
        ({"masked_sentences": []}, "no sentence"),
        ({"judgments": [{"rater": "1", "judgment": "no"}]}, "denied by most raters"),
        ({"sub_label": "Ada Berg"}, "fact twice"),
        ({"masked_sentences": BIRTH["masked_sentences"]}, "prompt twice"),
    ],
)
def test_what_is_dropped_is_counted_and_takes_its_twin_along(
    tmp_path: Path, change: dict[str, Any], rule: str
) -> None:
    other = {**BIRTH, "sub_label": "Bo", "masked_sentences": ["Bo of [MASK]."], "uuid": "g2"}
    benchmark = build(write(tmp_path, [BIRTH, {**other, **change}]))
    assert dropped(benchmark) == {("google-re", rule): 1}
    found = prompts(benchmark)
    assert len(found["google-re-template"]) == len(found["google-re-free"]) == 1


def test_an_object_inside_a_longer_word_is_no_second_one(tmp_path: Path) -> None:
    row = {**BIRTH, "masked_sentences": ["A Tulmforder of [MASK]."]}
    assert dropped(build(write(tmp_path, [row]))) == {}


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


@pytest.mark.parametrize(
    ("field", "kind"), [("masked_sentences", "births"), ("masked_sentences", "cans")]
)
def test_a_line_without_its_field_is_named(tmp_path: Path, field: str, kind: str) -> None:
    row = BIRTH if kind == "births" else CAN
    broken = {key: value for key, value in row.items() if key != field}
    data = write(tmp_path, **{kind: [row, broken]})
    with pytest.raises(BadInput, match=rf"test\.jsonl, line 2: no field '{field}'"):
        build(data)


@pytest.mark.parametrize(
    ("line", "message"),
    [("{", "not JSON"), ("[]", "not a JSON object"), ('{"id": "\\ud8"}', "not JSON")],
)
def test_a_line_that_is_no_json_is_named(tmp_path: Path, line: str, message: str) -> None:
    write(tmp_path)
    (tmp_path / "lama/Squad/test.jsonl").write_text(line + "\n")
    with pytest.raises(BadInput, match=rf"Squad/test\.jsonl, line 1: {message}"):
        build(tmp_path)


def test_a_template_needs_both_slots(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "lama/relations.jsonl").write_text('{"relation": "P36", "template": "[X] ."}\n')
    with pytest.raises(BadInput, match=r"relations\.jsonl, line 1: template '\[X\] \.'"):
        build(tmp_path)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="Google_RE: no file of this data set"):
        build(tmp_path)


def test_the_gate_wants_pairs_that_match(tmp_path: Path) -> None:
    benchmark = build(write(tmp_path))

    def failing(queries: Any) -> list[tuple[str, list[str]]]:
        tables = {"queries": queries, "candidates": benchmark.candidates}
        return [
            (check["type"], [example["row"] for example in check["examples"]])
            for check in gated.failing("lama", tables)
            if check["severity"] != "warning"
        ]

    assert failing(benchmark.queries) == []
    queries = benchmark.queries.copy()
    queries.loc[queries["subset"] == "t-rex-free", "subject_id"] = "Q9"
    twins = queries.loc[queries["subset"].str.startswith("t-rex"), "query_id"].tolist()
    assert failing(queries) == [("expect_pairs_to_match", twins)]
    queries = benchmark.queries.copy()
    queries.loc[0, "sentence"] = "Bo Ek was born in Tulmford ."
    assert failing(queries) == [("expect_filled_prompts", queries["query_id"].tolist()[:1])]
