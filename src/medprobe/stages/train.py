"""Stage `train`: a sample model, which has read known parts of the sample world."""

import hashlib
import json
import shutil
from pathlib import Path

from medprobe.core import places
from medprobe.core.errors import BadInput, nearest
from medprobe.core.files import replacing
from medprobe.core.params import Params, section
from medprobe.core.parts import code_fingerprint, fingerprint, progress
from medprobe.engine.load import use_threads
from medprobe.sample import training
from medprobe.sample.settings import Recipe

FACTS = "facts.csv"  # how often a taught model has read which fact


def train(name: str, params: Params, out: Path) -> None:
    """Train the sample model `name` by its recipe into the folder `out`, whole or not at all; what
    taught models have read stands beside its weights, as facts.csv.

    A training that was stopped goes on where it was. Raises BadInput where there is no such recipe
    or corpus.
    """
    if name not in params.train:
        problem = f"train: no recipe '{name}'{nearest(name, [*params.train])}"
        raise BadInput("params.yaml", problem)
    recipe = section(Recipe, params.train[name], f"params.yaml: train.{name}")
    texts = places.DATA / "sample"
    for form in ("corpus", "cases") if recipe.kind == "masked" else ("corpus",):
        corpus = texts / f"{form}-{recipe.corpus}.txt"
        if not corpus.is_file():
            raise BadInput(corpus, "no such corpus", "run `medprobe sample`")
    about = [recipe.model_dump(mode="json"), params.seed, use_threads(), fingerprint([texts])]
    key = json.dumps([*about, code_fingerprint(__name__)], sort_keys=True)
    state = places.PARTS / f"train-{hashlib.sha256(key.encode()).hexdigest()[:32]}.pt"
    with progress(f"train {name}", recipe.steps, "steps") as now:
        model, tokenizer = training.train(recipe, texts, state, seed=params.seed, done=now.at)
    with replacing(out) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        if (texts / FACTS).is_file():
            shutil.copyfile(texts / FACTS, folder / FACTS)
    state.unlink(missing_ok=True)
