"""MedLAMA and sentence sets in the gate: good ones pass, each kind of bad row is named."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from helpers import ROOT
from helpers.gate_helpers import critical, failing
from medprobe.core.errors import BadInput
from medprobe.core.params import Params
from medprobe.papers.medlama.benchmarks import medlama
from medprobe.papers.medlama.expectations.medlama import ENDS, expect_relations_to_point_forward
from medprobe.papers.medlama.stages.validate_sentences import validate_sentences

EXPECTATIONS = ROOT / "expectations"


def query(name: str, subset: str = "full", **changes: Any) -> dict[str, Any]:
    row = {
        "query_id": f"{name}-{subset}",
        "benchmark": "medlama",
        "relation": "may_treat",
        "subject": f"drug {name}",
        "subject_id": "C9900001",
        "prompt": f"drug {name} might treat [Y] .",
        "answers": ["fever", "pain"],
        "answer_ids": ["C9900002", "C9900003"],
        "subset": subset,
        "avg_match": 0.0,
        "avg_rouge_l": 0.0,
    }
    return {**row, **changes}


def umls(folder: Path, answers: int) -> None:
    """The facts of drug a, of which a second file line is another vocabulary's."""
    ids = [f"C99{number:05}" for number in range(10, 10 + answers)]
    facts = [f"{cui}|A{cui}||RO|C9900001|A1||may_treat|||MED-RT|" for cui in ids]
    facts.append("C9999999|AC9999999||RO|C9900001|A1||may_treat|||RXNORM|")
    atoms = [f"{cui}|ENG|||||Y|A{cui}|||||||ailment {cui}||N||" for cui in [*ids, "C9999999"]]
    atoms.append("C9900001|ENG|||||Y|A1|||||||drug a||N||")
    (folder / "umls").mkdir(parents=True)
    (folder / "umls/MRSTY.RRF").touch()
    (folder / "umls/MRREL.RRF").write_text("\n".join([*facts, ""]))
    (folder / "umls/MRCONSO.RRF").write_text("\n".join([*atoms, ""]))


@pytest.mark.parametrize(
    ("in_umls", "in_query", "cap", "checks"),
    [
        (3, 3, 10, []),
        (12, 12, 20, []),  # a cap of one's own
        (3, 2, 10, ["expect_answers_to_be_complete"]),
        (12, 10, 10, ["expect_answers_to_be_complete"]),  # cut to the cap, not dropped
        (12, 12, 10, ["expect_list_lengths_to_be_between"]),
        (3, 3, 2, ["expect_list_lengths_to_be_between"]),
    ],
)
def test_answers_are_all_of_the_source_and_no_more_than_the_setting_allows(
    tmp_path: Path, in_umls: int, in_query: int, cap: int, checks: list[str]
) -> None:
    umls(tmp_path / "data", in_umls)
    ids = [f"C99{number:05}" for number in range(10, 10 + in_query)]
    row = query("a", answers=[f"ailment {cui}" for cui in ids], answer_ids=ids)
    failures = critical(
        "medlama",
        {"queries": pd.DataFrame([row])},
        medlama.Settings(max_answers=cap),
        tmp_path / "data",
        ["expect_answers_to_be_complete", "expect_list_lengths_to_be_between"],
    )
    assert failures == checks


@pytest.mark.parametrize(("drawn", "setting", "stops"), [(30, 20, True), (1200, 1500, False)])
def test_a_relation_has_no_more_queries_than_the_setting_draws(
    tmp_path: Path, drawn: int, setting: int, stops: bool
) -> None:
    umls(tmp_path / "data", 1)
    rows = pd.DataFrame([query(str(number)) for number in range(drawn)])
    chosen = medlama.Settings(per_relation=setting)
    check = "expect_group_sizes_to_be_between"
    failures = critical("medlama", {"queries": rows}, chosen, tmp_path / "data", [check])
    assert (check in failures) is stops


def test_one_relation_can_be_much_larger_than_the_others(tmp_path: Path) -> None:
    umls(tmp_path / "data", 1)

    def found(rows: list[dict[str, Any]]) -> bool:
        tables = {"queries": pd.DataFrame(rows)}
        asked = ["expect_groups_to_be_of_like_size"]
        return bool(failing("medlama", tables, None, tmp_path / "data", asked))

    for others in (["may_prevent"], ["may_prevent", "occurs_after"]):
        rows = [query(str(number)) for number in range(500)]
        rows += [query(f"{name} {n}", relation=name) for name in others for n in range(20)]
        assert not found(rows)
    few = [
        query(f"{name} {n}", relation=name) for name in ["may_treat", *others] for n in range(200)
    ]
    rows = [*few, *(query(f"few {n}", relation="has_physiologic_effect") for n in range(5))]
    assert found(rows)


def sentences(tmp_path: Path, text: bytes) -> Path:
    path = tmp_path / "data/sentences/mine.txt"
    path.parent.mkdir(parents=True)
    path.write_bytes(text)
    (tmp_path / "expectations").symlink_to(EXPECTATIONS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        validate_sentences("mine", Params())
    return tmp_path / "outputs/sentences/mine.txt"


def test_a_sentence_set_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "The drug is given against the disease.\n"
    text = f"{line}\n{line}Another one is not given at all.\n"
    assert sentences(tmp_path, text.encode()).read_text() == text
    printed = capsys.readouterr().out
    assert printed.startswith("mine: sentences: unsigned\n")
    first = "data/sentences/mine.txt, line 1 (row 1, 1)"
    assert f"warning: text occurs twice: 2 rows, the first is {first}\n" in printed
    assert "    data/sentences/mine.txt, line 3 (row 2, 3): text occurs twice\n" in printed
    assert "disease" not in printed


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"one sentence only\n", "expect_table_row_count_to_be_between"),
        (b"", "expect_table_row_count_to_be_between"),
        ("a sentence\nanother one\n".encode("utf-16-le"), ": 3 rows, .*not_match_regex"),
        (b"caf\xe9 au lait\n", "not UTF-8 at byte 3"),
        (b"word\n" * 4, ": 4 rows, .*expect_column_values_to_match_regex"),
    ],
)
def test_a_sentence_set_that_cannot_be_used_is_stopped(
    tmp_path: Path, text: bytes, problem: str
) -> None:
    with pytest.raises(BadInput, match=problem):
        sentences(tmp_path, text)
    assert not (tmp_path / "outputs/sentences/mine.txt").exists()


def ends(folder: Path, relation: str, forward: int, turned: int) -> tuple[list[bool], list[bool]]:
    """The verdicts on facts of a relation that are as they should be, and that are turned round.

    The semantic types of their ends are all that the relation's ends can be.
    """
    first, second = ENDS[relation]
    count = max(forward, turned)
    subjects = [f"C1{number:06}" for number in range(count)]
    answers = [f"C2{number:06}" for number in range(count)]
    types = [(cui, first[n % len(first)]) for n, cui in enumerate(subjects)]
    types += [(cui, second[n % len(second)]) for n, cui in enumerate(answers)]
    (folder / "data/umls").mkdir(parents=True)
    lines = [f"{cui}|T|{number}.9|type|AT||\n" for cui, number in types]
    (folder / "data/umls/MRSTY.RRF").write_text("".join(lines))
    pairs = list(zip(subjects, answers, strict=True))
    facts = [(relation, one, [other]) for one, other in pairs[:forward]]
    facts += [(relation, other, [one]) for one, other in pairs[:turned]]
    rows = pd.DataFrame(facts, columns=["relation", "subject_id", "answer_ids"])
    passes = expect_relations_to_point_forward(rows, share=0.05)
    return passes[:forward], passes[forward:]


@pytest.mark.parametrize("relation", ENDS)
def test_semantic_types_show_a_relation_that_is_turned_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relation: str
) -> None:
    for number, (forward, turned) in enumerate([(40, 0), (0, 40), (40, 40), (40, 3), (40, 2)]):
        (folder := tmp_path / str(number)).mkdir()
        monkeypatch.chdir(folder)
        right, wrong = ends(folder, relation, forward, turned)
        assert all(right)
        assert not any(wrong) if turned > 2 else all(wrong)  # a few odd facts pass


def test_a_concept_without_a_type_and_a_relation_without_ends_are_not_judged(
    working_folder: Path,
) -> None:
    ends(working_folder, "may_treat", 3, 3)
    facts = [("may_treat", "C9", ["C8"]), ("occurs_after", "C2000000", ["C1000000"])]
    rows = pd.DataFrame(facts, columns=["relation", "subject_id", "answer_ids"])
    assert expect_relations_to_point_forward(rows, share=0.0) == [True, True]
