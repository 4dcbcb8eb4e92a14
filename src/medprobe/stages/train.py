"""Stage `train`: a sample model, which has read known parts of the sample world."""

import hashlib
import json
import shutil
from pathlib import Path

from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.files import replacing
from medprobe.core.params import Params
from medprobe.core.parts import code_fingerprint, fingerprint
from medprobe.core.progress import show_progress
from medprobe.engine.load import use_threads
from medprobe.sample import training
from medprobe.sample.settings import recipe

FACTS = "facts.csv"  # how often a taught model has read which fact


def train(name: str, params: Params, out: Path) -> None:
    """Train the sample model `name` by its recipe into the folder `out`, whole or not at all, from
    nothing or from the model that it continues; what taught models have read stands beside its
    weights, as facts.csv.

    A training that was stopped goes on where it was. Raises BadInput where there is no such recipe,
    corpus or model to continue.
    """
    settings, base = recipe(name, params)
    begun = places.MODELS / base if base else None
    texts = places.DATA / "sample"
    for form in ("corpus", "cases") if settings.kind == "masked" else ("corpus",):
        corpus = texts / f"{form}-{settings.corpus}.txt"
        if not corpus.is_file():
            raise BadInput(corpus, "no such corpus", "run `medprobe sample`")
    if begun and not begun.is_dir():
        raise BadInput(begun, "no such model", f"run `medprobe train --model {base}`")
    read = fingerprint([texts, *([begun] if begun else [])])
    about = [settings.model_dump(mode="json"), params.seed, use_threads(), read]
    key = json.dumps([*about, code_fingerprint(__name__)], sort_keys=True)
    state = places.PARTS / f"train-{hashlib.sha256(key.encode()).hexdigest()[:32]}.pt"
    with show_progress(f"train {name}", settings.steps, "steps") as now:
        model, tokenizer = training.train(
            settings, texts, state, base=begun, seed=params.seed, done=now.advance_to
        )
    with replacing(out) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        if (texts / FACTS).is_file():
            shutil.copyfile(texts / FACTS, folder / FACTS)
    state.unlink(missing_ok=True)
