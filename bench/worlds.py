"""Sample worlds to calibrate methods by, each in a project of its own below outputs/calibration.

A world has answers as skewed as MedLAMA's: `medlama_structure.csv` has how many queries each answer
of a relation has. Its models come in threes of one size and training length: `taught` has read half
of the facts, `untaught` none of them, `shuffled` the same names and sentences with the objects of
other subjects. The stages are the project's own, but for the gate, whose expectations are of a
sample with even answers. What is finished is not done again.
"""

import json
import time
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any, Final

import pandas as pd
import yaml

from medprobe.core import params as settings
from medprobe.core import places
from medprobe.core.lineage import followed
from medprobe.core.params import Params
from medprobe.papers.medlama.checkpoints import REWIRED
from medprobe.papers.medlama.stages.rewire import rewire
from medprobe.pipeline.sample import sample
from medprobe.pipeline.stages.build import build
from medprobe.pipeline.stages.probe import probe
from medprobe.pipeline.stages.train import train

FOLDER: Final = Path("outputs/calibration")
RECORD: Final = Path("steps.jsonl")  # of a world: the CPU seconds and the code of each step
STRUCTURE: Final = Path(__file__).with_name("medlama_structure.csv")
LIKE: Final = {  # relation of the sample world: the one of MedLAMA whose answers it takes after
    "may_treat": "may_treat",
    "may_prevent": "may_prevent",
    "has_physiologic_effect": "has_physiologic_effect",
    "disease_mapped_to_gene": "disease_mapped_to_gene",
    "disease_may_have_finding": "disease_may_have_finding",
    "disease_diagnosed_by": "occurs_after",
    "disease_treated_by": "disease_has_associated_anatomic_site",
    "place_of_birth": "disease_has_normal_tissue_origin",
}
MOST: Final = 80  # answers of a relation: there are no more objects of a type
LEFT_OUT: Final = ("classifier", "rank_change")  # methods whose examples are no facts
FAMILIES: Final = "wordings"  # the benchmark that asks facts of another benchmark again
SETS: Final = ("set-0",)  # of rewiring sentences

Step = tuple[tuple[str, ...], Path]  # a stage with its names, and what it makes


def make(seed: int) -> Path:
    """Do what is left to do of a world, its models and their predictions; returns its folder."""
    folder = FOLDER / str(seed)
    folder.mkdir(parents=True, exist_ok=True)
    project = yaml.safe_load(Path("params.yaml").read_text("utf-8"))
    content = yaml.safe_dump(of_world(project, seed), sort_keys=False)
    (folder / "params.yaml").write_text(content, "utf-8")
    code = followed()
    with chdir(folder):
        params = settings.load_params()
        for step, output in steps(params):
            if not output.exists():
                begun = time.process_time()
                _do(step, params)
                spent = {"step": " ".join(step), "seconds": time.process_time() - begun}
                with RECORD.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps({**spent, "code": code}) + "\n")
                print(f"world {seed}: {spent['step']}, {spent['seconds']:.0f} s", flush=True)
    return folder


def is_finished(folder: Path) -> bool:
    """Is there all that a world's steps make?"""
    if not (folder / "params.yaml").is_file():
        return False
    params = settings.load_params(folder / "params.yaml")
    return all((folder / output).exists() for _, output in steps(params))


def record(folder: Path) -> pd.DataFrame:
    """The steps of a `world`: `step`, its CPU `seconds`, and by which `code` it was done."""
    return pd.read_json(folder / RECORD, lines=True).assign(world=folder.name)


def of_world(project: dict[str, Any], seed: int) -> dict[str, Any]:
    """A world's params.yaml, from that of the project."""
    content = {key: project[key] for key in ("engine", "rewire", "score", "track")}
    names = {
        name: f"shuffled{name.removeprefix('taught')}"
        for part in ("train", "continued")
        for name, recipe in project[part].items()
        if recipe["corpus"] == "taught"
    }
    for part in ("train", "continued"):
        recipes = project[part]
        content[part] = recipes | {
            names[name]: recipe | {"corpus": "shuffled"}
            for name, recipe in recipes.items()
            if name in names
        }
    models = {
        kind: of_kind
        | {names[name]: {"untaught_twin_of": name} for name in of_kind if name in names}
        for kind, of_kind in project["models"].items()
    }
    methods = {
        kind: {name: _of_method(name, choices) for name, choices in of_kind.items()}
        for kind, of_kind in project["methods"].items()
    }
    for of_kind in methods.values():
        for name in LEFT_OUT:
            of_kind.pop(name, None)
    probed = {name for of_kind in methods.values() for on in of_kind.values() for name in on}
    benchmarks = {
        builder: {name: choice for name, choice in named.items() if name in probed}
        for builder, named in project["benchmarks"].items()
    }
    return {
        **content,
        "seed": seed,
        "sample": {**project["sample"], "answers": answers(), "shuffled": True},
        "models": models,
        "sentence_sets": {name: {} for name in SETS},
        "benchmarks": {builder: named for builder, named in benchmarks.items() if named},
        "methods": methods,
    }


def _of_method(name: str, choices: dict[str, Any]) -> dict[str, Any]:
    """A method's choices by benchmark, without prompts that hold no subject."""
    sets = {"sets": [*SETS]} if name == "contrastive" else {}
    return {
        benchmark: {key: value for key, value in chosen.items() if key != "neutral"} | sets
        for benchmark, chosen in choices.items()
        if benchmark != FAMILIES
    }


def answers() -> dict[str, list[int]]:
    """How often each answer of a relation is right in MedLAMA, the commonest first."""
    table = pd.read_csv(STRUCTURE)
    table = table[table["unit"] == "answers"].sort_values("queries", ascending=False)
    return {
        relation: table[table["relation"] == like]
        .apply(lambda row: [row["queries"]] * row["units"], axis=1)
        .sum()[:MOST]
        for relation, like in LIKE.items()
    }


def steps(params: Params) -> Iterator[Step]:
    """Each stage with its names, and what it makes, in order."""
    jobs = [
        (kind, method, benchmark)
        for kind, methods in params.methods.items()
        for method, named in methods.items()
        for benchmark in named
    ]
    yield ("sample",), places.DATA
    for benchmark in sorted({benchmark for _, _, benchmark in jobs}):
        yield ("build", benchmark), places.ABOUT / f"{benchmark}.json"
    for kind, models in params.models.by_kind().items():
        of_kind = [job for job in jobs if job[0] == kind]
        for model in [*params.train, *params.continued]:  # which begin with models of the others
            if of_kind and model in models:
                yield ("train", model), places.MODELS / model
        for model in models:
            if any(method == "contrastive" for _, method, _ in of_kind):
                for chosen in params.sentence_sets:
                    yield ("rewire", model, chosen), REWIRED / model / chosen
            for _, method, benchmark in of_kind:
                out = places.PREDICTIONS / model / method / f"{benchmark}.parquet"
                yield ("probe", model, method, benchmark), out


def _do(step: tuple[str, ...], params: Params) -> None:
    stage, *names = step
    if stage == "sample":
        sample(places.DATA, params.sample, params.seed)
    elif stage == "train":
        train(names[0], params, places.MODELS / names[0])
    else:
        {"build": build, "rewire": rewire, "probe": probe}[stage](*names, params)
