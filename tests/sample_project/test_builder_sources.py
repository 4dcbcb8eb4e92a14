"""What all builders read of the sample world is what they say they read."""

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from helpers.package_names import own_names
from helpers.reading import check_reading
from medprobe.core import params
from medprobe.papers.medlama import annotation as annotate
from medprobe.pipeline.sample import sample
from medprobe.pipeline.stages.build import build
from medprobe.sample.settings import SampleSettings

CONTEXT = {
    "relations": {
        "disease_may_have_finding": {
            "prompt": "[X] may have [Y] .",
            "subjects": ["Disease or Syndrome"],
            "objects": ["Sign or Symptom"],
        }
    },
    "triples": 10,
}
NOTES = {"form": "notes", "path": "notes/NOTEEVENTS.csv"}
ARTICLES = {"form": "articles", "path": "articles"}
RELATIONS = {"relations": ["may_treat"]}
SETTINGS: dict[str, dict[str, Any]] = {
    "medlama": RELATIONS,
    "medlama_released": RELATIONS,
    "lama": {"distractors": {"squad": "lama/Squad/other-entities.txt"}},
    "ratings": {"sheets": "annotations/facts"},
    "table": {"facts": "tables/facts.csv", "train": "tables/told.csv"},
    "diskne": {"negatives": 2},
    "context": {**CONTEXT, "resources": {"notes": NOTES, "articles": ARTICLES}},
    "context_notes": {**CONTEXT, "resources": {"notes": NOTES}},
    "context_articles": {**CONTEXT, "resources": {"articles": ARTICLES}},
    # Its facts are those of biolama's sample.
    "context_biolama": {"resources": {"notes": NOTES, "articles": ARTICLES}, "triples": 10},
}
BUILDERS = {name: SETTINGS.get(name, {}) for name in own_names("benchmarks")}


@pytest.fixture(scope="module", autouse=True)
def project(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The sample world, and beside it what its released forms would be."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("project"))
        sample(Path("data"), SampleSettings(queries=20, reserve=20).model_dump(), 1)
        header = "head_cui,head_name,rel,tail_cuis_list,tail_names_list,tail_names,tail_cuis,"
        header += "tail_cuis_len,tail_names_len,avg_match,avg_rouge_l\n"
        row = "C1,ibuprofen,may_treat,['C2'],['fever'],fever,C2,1,1,0.0,0.0\n"
        Path("data/medlama").mkdir()
        Path("data/medlama/may_treat_1.csv").write_text(header + row)
        released()
        build("lipid", params.Params(benchmarks={"lipid": {"lipid": {}}}))
        folder = Path("outputs/benchmarks/lipid")
        drawn = annotate.draw("prompts", folder, [], 20, 1)
        folder = annotate.write(drawn, "facts", ["anna"], Path("data"))
        sheet = pd.read_csv(folder / "anna.csv", keep_default_na=False)
        sheet.assign(rating="yes").to_csv(folder / "anna.csv", index=False)
        Path("data/tables").mkdir()
        facts = "subject,relation,object,prompt\nX,treats,pain,X is given for [Y] .\n"
        Path("data/tables/facts.csv").write_text(facts)
        told = "subject,relation,object,prompt\nZ,treats,fever,Z is given for [Y] .\n"
        Path("data/tables/told.csv").write_text(told)
        Path("data/lipid").mkdir()
        prompt = {"type": "gene", "prompt": "[MASK] acts.", "answer": "BRX2"}
        Path("data/lipid/LIPID.json").write_text(json.dumps([prompt]))
        yield


def released() -> None:
    """The sheet's first two diseases as DisKnE's authors would write them, each the other's
    negative."""
    with Path("data/diskne/annotation.csv").open(encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["keep"] == "yes"]
    first_row = rows[0]
    other = next(row for row in rows if row["cui"] != first_row["cui"])
    lines = ["pair_id,CUI,label,original_cui,start_index,end_index"]
    for row, negative in ((first_row, other), (other, first_row)):
        end = int(row["end"]) - 1
        lines.append(f"{row['pair_id']},{row['cui']},entailment,{row['cui']},{row['start']},{end}")
        cuis = f"{negative['cui']},non-entailment,{row['cui']}"
        lines.append(f'"{row["pair_id"]},ng",{cuis},,')
    path = Path("data/diskne/DisknE_terminological_similar_annotation.csv")
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("builder", BUILDERS)
def test_a_builder_reads_its_sources_all_of_them_and_nothing_else(
    builder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_reading(builder, BUILDERS[builder], monkeypatch)
