"""Stage `fetch`: a model's checkpoint in its folder, from the hub or from another folder."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from medprobe.backends import read_plugin_model
from medprobe.core.checkpoints import ADAPTER, files_of, needed_of
from medprobe.core.errors import BadInput, nearest
from medprobe.core.files import replacing
from medprobe.core.params import ModelKind, Params
from medprobe.core.progress import print_above, show_progress
from medprobe.engine import formats
from medprobe.engine.formats import find_other_base, merge
from medprobe.engine.inspection import inspect
from medprobe.engine.tokenizer import write_lower_case
from medprobe.sources import hub


def fetch(name: str, params: Params, out: Path) -> None:
    """Put a model's checkpoint into a folder, completely or not at all.

    A checkpoint is configuration, tokenizer and weights. An adapter that params.yaml names, or that
    is in the same folder, is merged into the weights. With `lower_case`, the tokenizer of the copy
    lower-cases. The folder of a plugin's model is copied whole, and a GGUF file becomes a
    checkpoint.
    """
    lower_case = name in params.lower_case
    kind = params.models.kind(name) if name in params.models.all() else None  # only in folders
    if name in params.folders:
        _copy(params.folders[name], kind, out, lower_case=lower_case)
    elif name in params.fetch:
        hub_model, offline = params.fetch[name], params.engine.offline
        with show_progress(f"fetch {name}"):
            folder = hub.fetch_snapshot(hub_model, offline)
            adapter = hub.fetch_snapshot(hub_model.adapter, offline) if hub_model.adapter else None
        if adapter and (other := find_other_base(adapter, hub_model.hub)):
            problem = f"its adapter names {other} as its base, not {hub_model.hub}"
            print_above(f"warning: {name}: {problem}, into which it is merged")
        _copy(folder, kind, out, adapter, lower_case=lower_case)
    else:
        names = [*params.fetch, *params.folders]
        problem = f"neither fetch nor folders has a model '{name}'{nearest(name, names)}"
        raise BadInput("params.yaml", problem)


def _copy(
    source: Path,
    kind: ModelKind | None,
    out: Path,
    adapter: Path | None = None,
    *,
    lower_case: bool,
) -> None:
    """Copy a checkpoint's files and check its kind; an adapter is merged into the copy."""
    if formats.is_gguf(source):
        with TemporaryDirectory(prefix="medprobe-gguf-") as scratch:
            formats.convert(source, Path(scratch))
            _copy(Path(scratch), kind, out, adapter, lower_case=lower_case)
        return
    if not source.is_dir():
        is_other = ", but a file that is not a .gguf file" if source.is_file() else ""
        problem = f"no such model folder{is_other}"
        raise BadInput(source, problem, "correct it in params.yaml: folders")
    if model := read_plugin_model(source):
        check_kind(source, kind, model.kinds)
        if lower_case:
            raise BadInput(source, "lower_case is for checkpoints, this is a plugin's model")
        with replacing(out) as folder:
            shutil.copytree(source, folder)
        return
    with replacing(out) as folder:
        folder.mkdir()
        for name in {*needed_of(source)} & {*files_of(source)} - {*ADAPTER}:
            (folder / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(source / name, folder / name)
        try:
            if adapter or (source / ADAPTER[0]).is_file():
                merge(folder, adapter or source)
            kinds = inspect(folder).kinds
            if lower_case:
                write_lower_case(folder)
        except BadInput as error:
            if not str(error).startswith(str(folder)):
                raise
            raise BadInput(source, str(error).removeprefix(f"{folder}: ")) from None
        check_kind(source, kind, kinds)


def check_kind(source: Path, kind: ModelKind | None, kinds: Sequence[ModelKind]) -> None:
    """Refuse a checkpoint that cannot serve as the kind under which params.yaml lists it."""
    if kind and kind not in kinds:
        problem = f"the checkpoint serves as {' or '.join(kinds) or 'nothing'}, not as {kind}"
        raise BadInput(source, problem, "list it under its kind in params.yaml: models")
