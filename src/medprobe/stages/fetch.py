"""Stage `fetch`: a model's checkpoint in its folder, from the hub or from another folder."""

import shutil
from pathlib import Path

from medprobe.core.errors import BadInput, nearest
from medprobe.core.files import replacing
from medprobe.core.params import ModelKind, Params
from medprobe.core.progress import show_progress
from medprobe.engine.adapters import merge
from medprobe.engine.inspection import ADAPTER, inspect
from medprobe.sources import hub


def fetch(name: str, params: Params, out: Path) -> None:
    """Put the checkpoint of model `name` into the folder `out`, whole or not at all: configuration,
    tokenizer and weights. An adapter that is named, or lies beside it, is merged into them.

    Raises BadInput where neither `fetch` nor `folders` says where it is, where it is no checkpoint
    of the model's kind, and where there is no way to the hub.
    """
    kind = params.models.kind(name)
    if name in params.folders:
        _copy(params.folders[name], kind, out)
    elif name in params.fetch:
        wanted, offline = params.fetch[name], params.engine.offline
        with show_progress(f"fetch {name}"):
            folder = hub.fetched(wanted, offline)
            adapter = hub.fetched(wanted.adapter, offline) if wanted.adapter else None
        _copy(folder, kind, out, adapter)
    else:
        known = [*params.fetch, *params.folders]
        problem = f"neither fetch nor folders has a model '{name}'{nearest(name, known)}"
        raise BadInput("params.yaml", problem)


def _copy(source: Path, kind: ModelKind, out: Path, adapter: Path | None = None) -> None:
    """Copy a checkpoint's files, and make sure that they are one of that kind; an adapter is merged
    into the copy."""
    if not source.is_dir():
        raise BadInput(source, "no such model folder", "correct it in params.yaml: folders")
    files = [*hub.matching(source, hub.DESCRIPTION), *hub.weights(source)]
    with replacing(out) as folder:
        folder.mkdir()
        for file in files:
            shutil.copyfile(file, folder / file.name)
        try:
            kinds = inspect(folder).kinds
        except BadInput as error:
            raise BadInput(source, str(error).removeprefix(f"{folder}: ")) from None
        if kind not in kinds:
            problem = f"the checkpoint serves as {' or '.join(kinds) or 'nothing'}, not as {kind}"
            raise BadInput(source, problem, "list it under its kind in params.yaml: models")
        if adapter or (source / ADAPTER).is_file():
            merge(folder, adapter or source)
