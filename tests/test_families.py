"""Families of queries from each kind of source, by DVC over the sample world."""

import csv
import json
from pathlib import Path

import pandas as pd
import pytest

from medprobe.testing import tiny
from medprobe.testing.project import SMALL, Project

RELATION = "may_treat"
PAIRS = [("brenavir", "flu"), ("corvinol", "fever"), ("almatine", "cough"), ("dorunab", "palsy")]
FAMILIES = {"at_most": 2}
BENCHMARKS = {
    "medlama": {"rrf": {"families": {**FAMILIES, "names": {"subjects": ["brand"], "at_most": 1}}}},
    "medlama_released": {"released": {"families": FAMILIES}},
    "table": {
        "bear": {
            "facts": "tables/BEAR",
            "prompts": "tables/BEAR/metadata_relations.json",
            "families": FAMILIES,
        },
        "csv": {"facts": "tables/drugs.csv", "families": FAMILIES},
    },
}
MEMBERS = {"rrf": 10, "released": 5, "bear": 2, "csv": 3}  # of each family


def write_released(folder: Path) -> None:
    folder.mkdir(parents=True)
    columns = ["head_cui", "head_name", "rel", "tail_cuis_list", "tail_names_list", "tail_names"]
    columns += ["tail_cuis", "tail_cuis_len", "tail_names_len", "avg_match", "avg_rouge_l"]
    for name in (f"{RELATION}_4.csv", f"{RELATION}_4_hard.csv"):
        with (folder / name).open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(columns)
            for at, (subject, answer) in enumerate(PAIRS):
                code = f"C990000{at}"
                lists = (f"['{code}']", f"['{answer}']")
                row = (f"C990001{at}", subject, RELATION, *lists, answer, code, 1, 1, 0.0, 0.0)
                writer.writerow(row)


def write_bear(folder: Path) -> None:
    (folder / "BEAR").mkdir(parents=True)
    rows = [
        {
            **{"sub_id": f"Q1{at}", "sub_label": subject, "sub_aliases": []},
            **{"obj_id": f"Q2{at}", "obj_label": answer, "answer_idx": at},
        }
        for at, (subject, answer) in enumerate(PAIRS)
    ]
    (folder / "BEAR/P1.jsonl").write_text("\n".join(map(json.dumps, rows)))
    about = {
        "templates": ["[X] treats [Y] .", "[Y] is treated by [X] ."],
        "answer_space_labels": [*(answer for _, answer in PAIRS), "gout"],
        "answer_space_ids": [*(f"Q2{at}" for at in range(len(PAIRS))), "Q30"],
    }
    (folder / "BEAR/metadata_relations.json").write_text(json.dumps({"P1": about}))


def write_csv(path: Path) -> None:
    rows = [
        (s, "treats", o, f"{s} treats [Y] .", f"[Y] : {s}", f"{s} is for [Y] .") for s, o in PAIRS
    ]
    columns = ["subject", "relation", "object", "prompt", "prompt_short", "prompt_long"]
    pd.DataFrame(rows, columns=columns).to_csv(path, index=False)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    new_project = Project(tmp_path_factory.mktemp("project"))
    new_project.replace(
        sample=SMALL["sample"],
        train={},
        continued={},
        sentence_sets={},
        folders={"given": "given"},
        models={"masked": {"given": {}}},
        benchmarks={
            builder: {
                name: {**chosen, **({"relations": [RELATION]} if "medlama" in builder else {})}
                for name, chosen in named.items()
            }
            for builder, named in BENCHMARKS.items()
        },
        methods={"masked": {"mask_average": {name: {} for name in MEMBERS}}},
        score=SMALL["score"],
    )
    tiny.model("bert", new_project.folder / "given")
    new_project.works("medprobe", "sample")
    write_released(new_project.folder / "data/medlama")
    write_bear(new_project.folder / "data/tables")
    write_csv(new_project.folder / "data/tables/drugs.csv")
    new_project.works("dvc", "add", "data", "--quiet")
    new_project.works("dvc", "repro", "--quiet", "score")
    return new_project


@pytest.mark.parametrize("name", MEMBERS)
def test_each_source_gives_families_that_are_scored(project: Project, name: str) -> None:
    queries = pd.read_parquet(project.folder / f"outputs/benchmarks/{name}/queries.parquet")
    sizes = queries[queries["family_id"] != ""].groupby("family_id").size()
    assert sizes.tolist() == [MEMBERS[name]] * 2
    path = project.folder / "metrics/scores/given/mask_average.json"
    scores = json.loads(path.read_text())[name]["default"]
    assert scores["families"]["macro"]["consistency"]["n"] == 2
    for part in (part for part in scores if part.startswith("families/wording:")):
        tested = {"acc_at_1_change_p", "acc_at_1_change_p_holm"} & scores[part]["micro"].keys()
        assert len(tested) == (0 if part.endswith(":original") else 2)
    changes = {part for part in scores if part.startswith("families/change:")}
    named = {"families/change:name", "families/change:both"} if name == "rrf" else set()
    assert changes == {"families/change:wording", *named}
