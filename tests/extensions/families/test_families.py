"""Families of queries from each kind of source: built, checked, probed and scored."""

import csv
import json
from contextlib import chdir
from pathlib import Path

import pandas as pd
import pytest

from helpers import ROOT, FolderOf
from medprobe.core import places
from medprobe.core.params import Params
from medprobe.pipeline.sample import sample
from medprobe.pipeline.stages.build import build
from medprobe.pipeline.stages.probe import probe
from medprobe.pipeline.stages.score import score
from medprobe.pipeline.stages.validate import validate

RELATION = "may_treat"
PAIRS = [("brenavir", "flu"), ("corvinol", "fever"), ("almatine", "cough"), ("dorunab", "palsy")]
FAMILIES = {"at_most": 2}
BENCHMARKS = {
    "medlama": {
        "rrf": {
            "families": {**FAMILIES, "names": {"subjects": ["brand"], "at_most": 1}},
            "relations": [RELATION],
        }
    },
    "medlama_released": {"released": {"families": FAMILIES, "relations": [RELATION]}},
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
SCORED = "rrf"  # whose families have names, too


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
def folder(tiny_model: FolderOf, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which each benchmark is built, and one checked, probed and scored."""
    params = Params.model_validate(
        {
            "models": {"masked": {"given": {}}},
            "benchmarks": BENCHMARKS,
            "methods": {"masked": {"mask_average": {SCORED: {}}}},
            "score": {"bootstrap": 50},
        }
    )
    folder = tmp_path_factory.mktemp("project")
    with chdir(folder):
        sample(places.DATA, {"queries": 20, "reserve": 8}, params.seed)
        write_released(places.DATA / "medlama")
        write_bear(places.DATA / "tables")
        write_csv(places.DATA / "tables/drugs.csv")
        Path("expectations").symlink_to(ROOT / "expectations")
        places.MODELS.mkdir(parents=True)
        (places.MODELS / "given").symlink_to(tiny_model("bert"))
        for name in MEMBERS:
            build(name, params)
        validate(SCORED, params)
        probe("given", "mask_average", SCORED, params)
        medlama = {SCORED: BENCHMARKS["medlama"][SCORED]}
        score(params.model_copy(update={"benchmarks": {"medlama": medlama}}))
    return folder


@pytest.mark.parametrize("name", MEMBERS)
def test_each_source_gives_families(folder: Path, name: str) -> None:
    queries = pd.read_parquet(folder / f"outputs/benchmarks/{name}/queries.parquet")
    sizes = queries[queries["family_id"] != ""].groupby("family_id").size()
    assert sizes.tolist() == [MEMBERS[name]] * 2


def test_families_are_scored(folder: Path) -> None:
    path = folder / "metrics/scores/given/mask_average.json"
    scores = json.loads(path.read_text())[SCORED]["default"]
    assert scores["families"]["macro"]["consistency"]["n"] == 2
    for part in (part for part in scores if part.startswith("families/wording:")):
        tested = {"acc_at_1_change_p", "acc_at_1_change_p_holm"} & scores[part]["micro"].keys()
        assert len(tested) == (0 if part.endswith(":original") else 2)
    changes = {part for part in scores if part.startswith("families/change:")}
    assert changes == {f"families/change:{what}" for what in ("wording", "name", "both")}
