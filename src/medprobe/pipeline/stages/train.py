"""Stage `train`: a sample model, trained on known parts of the sample world."""

import hashlib
import json
import shutil
from pathlib import Path

from medprobe.core import places
from medprobe.core.code import code_key
from medprobe.core.errors import BadInput
from medprobe.core.files import replacing
from medprobe.core.params import Params
from medprobe.core.parts import fingerprint
from medprobe.core.progress import show_progress
from medprobe.engine.load import use_threads
from medprobe.sample import training
from medprobe.sample.settings import find_recipe

FACTS = "facts.csv"  # how often a taught model has read each fact


def train(name: str, params: Params, out: Path) -> None:
    """Train a sample model by its recipe into a folder, completely or not at all.

    It starts from random weights or from the model that it continues. The folder also gets
    facts.csv: how often taught models have read each fact. A stopped training continues where it
    stopped.
    """
    settings, base = find_recipe(name, params)
    base_folder = places.MODELS / base if base else None
    texts = places.DATA / "sample"
    for form in ("corpus", "cases") if settings.kind == "masked" else ("corpus",):
        corpus = texts / f"{form}-{settings.corpus}.txt"
        if not corpus.is_file():
            raise BadInput(corpus, "no such corpus", "run `medprobe sample`")
    if base_folder and not base_folder.is_dir():
        raise BadInput(base_folder, "no such model", f"run `medprobe train --model {base}`")
    input_hash = fingerprint([texts, *([base_folder] if base_folder else [])])
    key_fields = [settings.model_dump(mode="json"), params.seed, use_threads(), input_hash]
    key = json.dumps([*key_fields, code_key("core", "engine", "sample")], sort_keys=True)
    state = places.PARTS / f"train-{hashlib.sha256(key.encode()).hexdigest()[:32]}.pt"
    with show_progress(f"train {name}", settings.steps, "steps") as bar:
        model, tokenizer = training.train(
            settings, texts, state, base=base_folder, seed=params.seed, on_step=bar.advance_to
        )
    with replacing(out) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        if (texts / FACTS).is_file():
            shutil.copyfile(texts / FACTS, folder / FACTS)
    state.unlink(missing_ok=True)
