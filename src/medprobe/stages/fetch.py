"""Stage `fetch`: a model's checkpoint in its folder, from the hub or from another folder."""

import shutil
from pathlib import Path
from typing import Any, Final

from medprobe.core.errors import BadInput, nearest
from medprobe.core.files import replacing
from medprobe.core.params import HubModel, ModelKind, Params
from medprobe.engine.inspection import inspect

WEIGHTS: Final = ("model*.safetensors", "model.safetensors.index.json")
OLD_WEIGHTS: Final = ("pytorch_model*.bin", "pytorch_model.bin.index.json")
DESCRIPTION: Final = (  # configuration and tokenizer, and nothing else: no code, no other framework
    *("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"),
    *("special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json", "merges.txt"),
    *("spiece.model", "sentencepiece.bpe.model", "tokenizer.model"),
)
HUB_WAIT: Final = 5  # seconds for the hub's first answer


def fetch(name: str, params: Params, out: Path) -> None:
    """Put the checkpoint of model `name` into the folder `out`, whole or not at all: configuration,
    tokenizer and weights.

    Raises BadInput where neither `fetch` nor `folders` says where it is, where it is no checkpoint
    of the model's kind, and where there is no way to the hub.
    """
    kind = params.models.kind(name)
    if name in params.folders:
        _copy(params.folders[name], kind, out)
    elif name in params.fetch:
        _copy(_fetched(params.fetch[name], params.engine.offline), kind, out)
    else:
        known = [*params.fetch, *params.folders]
        problem = f"neither fetch nor folders has a model '{name}'{nearest(name, known)}"
        raise BadInput("params.yaml", problem)


def _copy(source: Path, kind: ModelKind, out: Path) -> None:
    """Copy a checkpoint's files, and make sure that they are one of that kind."""
    if not source.is_dir():
        raise BadInput(source, "no such model folder", "correct it in params.yaml: folders")
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


def _fetched(model: HubModel, offline: bool) -> Path:
    """The folder of a hub model in the hub's local cache, downloaded if need be.

    The cache is looked at first, and the hub is asked once before anything is downloaded, so that
    a machine without a network is told so at once.
    """
    from huggingface_hub import HfApi, constants, snapshot_download

    name = model.hub
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
