"""Stage `rewire`: Contrastive-Probe's self-supervised step, one model on one sentence set."""

import csv
import hashlib
import json
import shutil
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from medprobe import places
from medprobe.engine.load import load
from medprobe.engine.rewiring import STATE, RewireSettings, make_pairs, train
from medprobe.errors import BadInput, nearest
from medprobe.files import replacing
from medprobe.keep import fingerprint
from medprobe.params import EngineParams, Params, section


def rewire(model: str, sentence_set: str, params: Params) -> None:
    """Rewire a model and write `outputs/rewired/<model>/<set>/`: a checkpoint `step-<n>` every so
    many steps, and losses.csv.
    """
    settings = section(RewireSettings, params.rewire, "params.yaml: rewire")
    params.models.find(model)
    rewire_folder(
        places.MODELS / model,
        places.DATA / "sentences" / f"{sentence_set}.txt",
        places.REWIRED / model / sentence_set,
        settings,
        engine=params.engine,
        seed=params.seed,
    )


def rewire_folder(
    folder: Path,
    sentences: Path,
    target: Path,
    settings: RewireSettings,
    *,
    engine: EngineParams,
    seed: int,
) -> None:
    """Rewire the checkpoint in `folder` on a file of sentences, one a line, into `target`.

    Steps done before a stop are kept under outputs/parts and not done again. Raises BadInput for a
    sentence set that is not there or too small, or a model without a mask token or an encoder.
    """
    lines = read_sentences(sentences)
    model = load(folder, "encoder", engine.model_copy(update={"precision": "float32"}))
    if model.tokenizer.mask_token is None:
        raise BadInput(folder, "the tokenizer has no mask token", "rewire masked models only")
    drawn = f"{seed} {sentences.stem}"
    pairs = make_pairs(lines, model.tokenizer.mask_token, settings, drawn)
    if len(pairs) < 2:
        raise BadInput(sentences, f"{len(pairs)} sentences long enough to cut, expected 2 or more")
    key = [settings.model_dump(exclude={"sets"}), drawn, fingerprint([folder, sentences])]
    digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()
    parts = places.PARTS / f"rewire-{digest[:32]}"
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task(f"rewire {model.name}", total=settings.steps)

        def done(step: int, loss: float) -> None:
            about = f"rewire {model.name} on {sentences.stem}, loss {loss:.3f}"
            progress.update(task, completed=step, description=about)

        losses = train(model, pairs, settings, seed=drawn, folder=parts, done=done)
    finish(parts, target, losses)


def finish(parts: Path, target: Path, losses: list[float]) -> None:
    """Move the finished checkpoints to `target`, all at once, with the losses of all steps."""
    for state in parts.glob(f"*/{STATE}"):
        state.unlink()
    with (parts / "losses.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["step", "loss"])
        writer.writerows((step, f"{loss:.6f}") for step, loss in enumerate(losses, start=1))
    with replacing(target) as path:
        shutil.move(parts, path)


def read_sentences(path: Path) -> list[str]:
    """The lines of a sentence set, blanks at their ends kept. Raises BadInput where it is amiss."""
    if not path.is_file():
        names = sorted(file.stem for file in path.parent.glob("*.txt"))
        known = f"there are: {', '.join(names)}" if names else "put one sentence a line there"
        raise BadInput(path, f"no such sentence set{nearest(path.stem, names)}", known)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(path, f"not UTF-8 at byte {error.start}") from None
    return [line for line in text.split("\n") if line.strip()]
