"""A project without the sample world: released files, and a model from a folder; and the first hour
with the files as they were really released, where these are there."""

import csv
import random
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from medprobe.benchmarks.medlama.hardness import hardness
from project import NEEDED_SECTIONS, Project

SHARED = Path(__file__).parent.parent.parent / "shared/data"
SUBJECTS = ["velotrine", "karsivan", "ombrelix", "tasmorine", "fedulac", "prandovir"]
OBJECTS = ["fever", "chronic pain", "acute renal failure", "hepatitis", "influenza", "trauma"]
SENTENCE = "patients with {} were given {} and were followed for about {} weeks without relapse"


def released(folder: Path) -> Path:
    """Invented facts in the files that MedLAMA was released as."""
    (folder / "2021AA").mkdir(parents=True)
    prompts = "pid,default_prompt,human_prompt\n"
    for relation, verb in {"may_treat": "might treat", "may_prevent": "might prevent"}.items():
        prompts += f"{relation},[X] {verb} [Y] .,[X] {verb} [Y] .\n"
        rows = [row(relation, *pair) for pair in zip(SUBJECTS, OBJECTS, strict=True)]
        hard = [
            one for one in rows if max(float(one["avg_match"]), float(one["avg_rouge_l"])) < 0.1
        ]
        for name, chosen in [
            (f"{relation}_{len(rows)}", rows),
            (f"{relation}_{len(hard)}_hard", hard),
        ]:
            with (folder / "2021AA" / f"{name}.csv").open("w", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
                writer.writerows(chosen)
    (folder / "prompts.csv").write_text(prompts)
    return folder


def row(relation: str, subject: str, answer: str) -> dict[str, str]:
    cui = f"C{OBJECTS.index(answer):07}"
    match, rouge = hardness(subject, [answer])
    return {
        "head_cui": f"C{100 + SUBJECTS.index(subject):07}",
        "head_name": subject,
        "rel": relation,
        "tail_cuis_list": str([cui]),
        "tail_names_list": str([answer]),
        "tail_names": answer,
        "tail_cuis": cui,
        "tail_cuis_len": "1",
        "tail_names_len": "1",
        "avg_match": str(match),
        "avg_rouge_l": str(rouge),
    }


def sentences(path: Path) -> None:
    draw = random.Random(7)
    texts = {
        SENTENCE.format(draw.choice(OBJECTS), draw.choice(SUBJECTS), draw.randint(2, 99))
        for _ in range(80)
    }
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(sorted(texts)) + "\n")


def test_released_files_and_a_model_from_a_folder(
    tmp_path: Path, tiny_model: Callable[[str], Path]
) -> None:
    project = Project(tmp_path / "project")
    source = released(tmp_path / "released")
    project.works("medprobe", "import", "medlama", str(source))
    sentences(project.folder / "data/sentences/pubmed.txt")
    params = project.params()
    kept = {name: params[name] for name in ("seed", "engine", "score", "track")}
    project.write_params(
        kept
        | {
            "folders": {"mine": str(tiny_model("bert"))},
            "models": {"masked": {"mine": {}}},
            "sentence_sets": {"pubmed": {}},
            "rewire": {"steps": 2, "checkpoint_every": 1, "batch": 16},
            "benchmarks": {
                "medlama_released": {"real": {"relations": ["may_treat", "may_prevent"]}}
            },
            "methods": {
                "masked": {
                    "mask_average": {"real": {}},
                    "contrastive": {"real": {"sets": ["pubmed"]}},
                }
            },
        }
    )
    project.works("dvc", "add", "--quiet", "data")
    project.works("medprobe", "doctor")
    project.works("medprobe", "repro")
    assert not (project.folder / "data/sample").exists()
    numbers = pd.read_csv(project.folder / "reports/comparison.csv")
    assert set(numbers["benchmark"]) == {"real"}
    assert set(numbers["model"]) == {"mine"}
    assert {"mask_average", "contrastive", "contrastive:original"} <= set(numbers["method"])
    assert "up to date" in project.works("dvc", "repro")


def begun(folder: Path, **sections: object) -> Project:
    """A project with these benchmarks or sentence sets, and nothing else."""
    project = Project(folder)
    params = project.params()
    kept = {name: params[name] for name in NEEDED_SECTIONS}
    project.write_params(kept | sections)
    return project


@pytest.mark.skipif(
    not (SHARED / "medlama-released").is_dir(), reason="MedLAMA's released files are not here"
)
def test_medlama_as_released_comes_to_the_page_in_six_commands(
    tmp_path: Path, tiny_model: Callable[[str], Path]
) -> None:
    """Relations in a folder below the prompts', sentence sets without an ending, an encoder in a
    folder: all 19 relations are built and gated, two of them probed."""
    sentence_set = "pubmed_sents_no_punkt_10k_0"
    project = begun(
        tmp_path,
        folders={"mine": str(tiny_model("bert"))},
        models={"encoder": {"mine": {}}},
        benchmarks={
            "medlama_released": {"real": {}, "few": {"relations": ["may_treat", "may_prevent"]}}
        },
        sentence_sets={sentence_set: {}},
        rewire={"steps": 1, "checkpoint_every": 1, "batch": 8},
        methods={"encoder": {"contrastive": {"few": {"sets": [sentence_set]}}}},
    )
    said = project.works("medprobe", "import", "medlama", str(SHARED / "medlama-released"))
    assert said.count("True") == 2 * 19
    assert "missing" not in said
    assert "20 prompts, as the package has them" in said
    project.works("medprobe", "import", "sentences", str(SHARED / "sentences"))
    project.works("dvc", "add", "--quiet", "data")
    said = project.works("medprobe", "doctor", COLUMNS="200")
    assert "rewiring on pubmed_sents_no_punkt_10k_1" in said
    project.works("medprobe", "repro")
    outputs = project.folder / "outputs"
    built = outputs / "benchmarks/real"
    queries = pd.read_parquet(built / "queries.parquet")
    assert queries["subset"].value_counts().to_dict() == {"full": 19_000, "hard": 15_329}
    names = pd.read_parquet(built / "candidates.parquet")["subset"].value_counts().to_dict()
    assert names == {"full": 22_923, "hard": 17_532}
    for name in ("real", "few", f"sentences/{sentence_set}"):
        assert (outputs / f"validation/{name}/passed").is_file()
    numbers = pd.read_csv(project.folder / "reports/comparison.csv")
    asked = numbers[(numbers["relation"] == "macro") & (numbers["metric"] == "acc_at_1")]
    assert set(asked["method"]) == {"contrastive", "contrastive:original"}
    assert asked.loc[asked["subset"] == "full", "n"].tolist() == [2000, 2000]
    assert "may_prevent" in (project.folder / "reports/index.html").read_text()
    assert "tokens per second" in (project.folder / "reports/made.js").read_text()


@pytest.mark.skipif(not (SHARED / "lama").is_dir(), reason="LAMA's released files are not here")
def test_lama_as_released_is_built_and_gated_in_three_commands(tmp_path: Path) -> None:
    """What is there of it: without ConceptNet, and with three relations of T-REx."""
    sets = ["google-re", "t-rex", "squad"]
    project = begun(tmp_path, benchmarks={"lama": {"lama": {"sets": sets}}})
    said = project.works("medprobe", "import", "lama", str(SHARED / "lama"))
    assert "sets: [google-re, t-rex, squad]" in said
    project.works("medprobe", "build", "--benchmark", "lama")
    project.works("medprobe", "validate", "--benchmark", "lama")
    assert (project.folder / "outputs/validation/lama/passed").is_file()
    counts = pd.read_parquet(project.folder / "outputs/benchmarks/lama/sources.parquet")
    read = counts.set_index(["what", "name"])["rows"]
    assert (read["sentences", "google-re"], read["queries", "squad"]) == (6106, 302)
