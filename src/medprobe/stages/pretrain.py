"""Stage `pretrain`: a model's checkpoint in its folder, trained, copied or fetched from the hub."""

import hashlib
import shutil
from pathlib import Path
from typing import Any

from medprobe import places
from medprobe.errors import BadInput, nearest
from medprobe.files import replacing
from medprobe.params import ModelKind, ModelParams, Params, section
from medprobe.sample.settings import Recipe

WEIGHTS = ("model*.safetensors", "model.safetensors.index.json")
OLD_WEIGHTS = ("pytorch_model*.bin", "pytorch_model.bin.index.json")
DESCRIPTION = (  # configuration and tokenizer, and nothing else: no code, no other framework
    *("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"),
    *("special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json", "merges.txt"),
    *("spiece.model", "sentencepiece.bpe.model", "tokenizer.model"),
)
HUB_WAIT = 5  # seconds for the hub's first answer


def pretrain(name: str, params: Params, out: Path) -> None:
    """Put the checkpoint of model `name` into the folder `out`, whole or not at all.

    A model of a recipe is trained (and goes on where a stopped training was), one of a folder or of
    the hub is copied: configuration, tokenizer and weights. Raises BadInput where there is no such
    model or recipe, no checkpoint of that kind, or no way to the hub.
    """
    kind, model = params.models.find(name)
    where = f"params.yaml: models.{kind}.{name}"
    told = [key for key in ("pretrain", "folder", "hub") if getattr(model, key) is not None]
    if len(told) != 1:
        raise BadInput(
            where, f"has {' and '.join(told) or 'none'} of pretrain, folder, hub: give one"
        )
    if model.pretrain is not None:
        _train(model.pretrain, kind, params, out)
        return
    source = model.folder if model.folder is not None else _fetched(model, params.engine.offline)
    _copy(source, kind, out)


def _train(name: str, kind: ModelKind, params: Params, out: Path) -> None:
    if name not in params.pretrain:
        raise BadInput(
            "params.yaml: pretrain", f"no recipe '{name}'{nearest(name, [*params.pretrain])}"
        )
    recipe = section(Recipe, params.pretrain[name], f"params.yaml: pretrain.{name}")
    texts = places.DATA / "sample"
    for form in ("corpus", "cases") if kind == "masked" else ("corpus",):
        corpus = texts / f"{form}-{recipe.corpus}.txt"
        if not corpus.is_file():
            raise BadInput(corpus, "no such corpus", "run `medprobe sample`")
    if kind == "encoder":
        raise BadInput(f"params.yaml: models.encoder.{name}", "no encoder is trained", "use masked")
    from rich.progress import Progress

    from medprobe.engine.load import use_threads
    from medprobe.keep import fingerprint
    from medprobe.sample import architectures, train

    threads = use_threads()
    made_by = [texts, Path(train.__file__), Path(architectures.__file__)]
    key = f"{kind} {recipe} {params.seed} {threads} {fingerprint(made_by)}"
    state = places.PARTS / f"pretrain-{hashlib.sha256(key.encode()).hexdigest()[:32]}.pt"
    with Progress() as progress:
        task = progress.add_task(f"train {out.name}", total=recipe.steps)
        model, tokenizer = train.train(
            kind, recipe, texts, state, seed=params.seed, done=lambda: progress.advance(task)
        )
    with replacing(out) as folder:
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    state.unlink(missing_ok=True)


def _copy(source: Path, kind: ModelKind, out: Path) -> None:
    """Copy a checkpoint's files, and make sure that they are one of that kind."""
    from medprobe.engine.load import inspect

    if not source.is_dir():
        raise BadInput(source, "no such model folder", "correct the model's folder in params.yaml")
    weights = _matching(source, WEIGHTS) or _matching(source, OLD_WEIGHTS)
    with replacing(out) as folder:
        folder.mkdir()
        for file in [*_matching(source, DESCRIPTION), *weights]:
            shutil.copyfile(file, folder / file.name)
        try:
            kinds = inspect(folder).kinds
        except BadInput as error:
            raise BadInput(source, str(error).removeprefix(f"{folder}: ")) from None
        if kind not in kinds:
            problem = f"the checkpoint serves as {' or '.join(kinds) or 'nothing'}, not as {kind}"
            raise BadInput(source, problem, "list it under its kind in params.yaml: models")


def _matching(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted(file for pattern in patterns for file in folder.glob(pattern))


def _fetched(model: ModelParams, offline: bool) -> Path:
    """The folder of a hub model in the hub's local cache, downloaded if need be.

    The cache is looked at first, and the hub is asked once before anything is downloaded, so that
    a machine without a network is told so at once.
    """
    from huggingface_hub import HfApi, constants, snapshot_download

    name = str(model.hub)
    cached = _cached(name, model.revision)
    if cached is not None:
        return cached
    if offline or constants.HF_HUB_OFFLINE:
        raise BadInput(
            name, "not in the hub's local cache, and working offline", "fetch it while online"
        )
    try:
        info: Any = HfApi().model_info(name, revision=model.revision, timeout=HUB_WAIT)
        files = [file.rfilename for file in info.siblings or []]
        safe = any(file.endswith(".safetensors") and "/" not in file for file in files)
        wanted = [*DESCRIPTION, *(WEIGHTS if safe else OLD_WEIGHTS)]
        return Path(snapshot_download(name, revision=info.sha, allow_patterns=wanted))
    except Exception as error:  # of the hub's client and of several libraries below it
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        remedy = "check its name and the network, or give a folder instead"
        raise BadInput(name, f"cannot be fetched from the hub: {reason}", remedy) from error


def _cached(name: str, revision: str | None) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, revision=revision, local_files_only=True))
    except (LocalEntryNotFoundError, ValueError):
        return None
    whole = (folder / "config.json").is_file() and _matching(folder, WEIGHTS + OLD_WEIGHTS)
    return folder if whole else None
