"""The stages that `dvc repro` would run, as far as DVC knows beforehand."""

import hashlib
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from medprobe.core import dvc_records, places
from medprobe.core.errors import BadInput
from medprobe.core.files import read_any
from medprobe.pipeline import clean, dvc_yaml

REMEDY: Final = f"`dvc add {places.DATA}` records them"


@dataclass(frozen=True)
class Stage:
    """A stage that DVC would run."""

    reason: str  # "now", or "after …", a stage that may change its inputs
    cmd: Any  # a command or several, as in dvc.yaml
    needs: tuple[str, ...]  # the stages to run on which it depends directly
    changes: tuple[str, ...] = ()  # the files, parameters and outputs that have changed, if "now"

    @property
    def options(self) -> dict[str, str]:
        """Return the options of the stage's first command.

        The key "" has the command's name, which is empty for stages without a command, such as
        data.dvc.

        >>> Stage("now", ['medprobe probe --model "a"', "medprobe track"], ()).options
        {'': 'probe', 'model': 'a'}
        """
        if not self.cmd:
            return {"": ""}
        command = self.cmd if isinstance(self.cmd, str) else self.cmd[0]
        words = shlex.split(command, comments=True)[1:]
        pairs = zip(words[1::2], words[2::2], strict=False)
        return {"": words[0], **{name.removeprefix("--"): value for name, value in pairs}}


def order_by_first_result(stages: Mapping[str, Stage]) -> list[str]:
    """Order stages so that first results come early.

    Each stage that probes a model comes directly after the stages that it needs, and all other
    stages come last.
    """
    probes = [name for name, stage in stages.items() if stage.options[""] == "probe"]
    order: dict[str, None] = {}

    def append(name: str) -> None:
        if name not in order:
            for need in stages[name].needs:
                append(need)
            order[name] = None

    for name in [*probes, *stages]:
        append(name)
    return [*order]


def find_stale_stages(*, tidy: bool = False) -> dict[str, Stage]:
    """Find the stages that DVC would run: changed stages, and the stages that depend on them.

    A stage is up to date without DVC's cache if its dependencies and its outputs are as dvc.lock
    has them. The call waits while another DVC process holds its lock.

    Args:
        tidy: Remove what is left of other names than those in params.yaml, and put outputs that
            the cache lacks into it. DVC would run stages because of them.

    Returns:
        The stages by name.

    Raises:
        BadInput: if DVC fails, or dvc.yaml has no stages.
    """
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    try:
        with Repo(_wait_for_lock=True) as repo:
            if tidy:
                clean.remove_cached(repo)
            stages = {stage.addressing: stage for stage in repo.index.stages}
            if not any(stage.cmd for stage in stages.values()):
                raise BadInput(places.PIPELINE, "no stages", "`medprobe pipeline` writes them")
            status = repo.status()
            if tidy and (note := _describe_data(status)):
                print(f"{note}; {REMEDY}")
            changed = [stage for name, stage in stages.items() if name in status]
            uncached = [stage for stage in changed if _is_uncached(stage, status[stage.addressing])]
            if tidy and uncached:
                _store(repo, uncached)
            stored = {stage.addressing for stage in uncached}
            return _stale_stages(
                repo, {name: entries for name, entries in status.items() if name not in stored}
            )
    except DvcException as error:
        raise dvc_error(error) from None


def describe_data() -> str:
    """Say if data.dvc does not pin the data, or pins other data; empty otherwise.

    Raises:
        BadInput: if DVC fails.
    """
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    files = [str(file) for file in (dvc_records.DATA, *places.DATA.glob("*.dvc")) if file.is_file()]
    if not files:
        return _describe_data({})
    try:
        with Repo(_wait_for_lock=True) as repo:
            return _describe_data(repo.status(targets=files))
    except DvcException as error:
        raise dvc_error(error) from None


def _describe_data(status: Mapping[str, Any]) -> str:
    if not places.DATA.is_dir() or not any(places.DATA.iterdir()):
        return ""
    pinned = dvc_records.pinned()
    if not pinned:
        return f"the files in {places.DATA}/ are {dvc_records.NOT_PINNED}"
    sources = [path for path in sorted(places.DATA.iterdir()) if path.suffix != ".dvc"]
    loose = [str(path) for path in sources if not {str(path), str(places.DATA)} & {*pinned}]
    changed = [
        name
        for name in status
        if name.endswith(".dvc")
        for entry in status[name]
        if "modified" in entry.get("changed outs", {}).values()
    ]
    notes = [f"the files in {places.DATA}/ are not those in {', '.join(changed)}"] * bool(changed)
    notes += [f"no file of DVC's pins {', '.join(loose)}"] * bool(loose)
    return "; ".join(notes)


def dvc_error(error: Exception) -> BadInput:
    """Return DVC's error as one line."""
    return BadInput("dvc", " ".join(str(error).split()), "run `dvc status` for details")


def _is_uncached(stage: Any, status: list[Any]) -> bool:
    """Whether a stage differs from dvc.lock only in that DVC's cache lacks outputs."""
    outs = [entry.get("changed outs") for entry in status if isinstance(entry, dict)]
    return (
        len(outs) == len(status)
        and all(out and {*out.values()} == {"not in cache"} for out in outs)
        and not any(out.workspace_status() for out in stage.outs)
    )


def _store(repo: Any, stages: list[Any]) -> None:
    # `dvc repro` would run them again, although what they made is here.
    with repo.lock:
        for stage in stages:
            stage.commit()
    count = f"{len(stages)} {'stage' if len(stages) == 1 else 'stages'}"
    print(f"DVC's cache had no outputs of {count}, and has them again: they are as in dvc.lock")


def _stale_stages(repo: Any, status: Mapping[str, Any]) -> dict[str, Stage]:
    """Return the stages that DVC's status names, and the stages that depend on them."""
    from networkx import ancestors

    graph = repo.index.graph  # edges: stage -> stage that it depends on
    stages = {stage.addressing: stage for stage in repo.index.stages}
    code = _changed_code(repo, made_again=dvc_yaml.CODE_STAGE in status)
    changes = {
        name: _changes(stages[name], status.get(name, ()), code.get(name, ()))
        for name in sorted(status.keys() | code.keys())
        if name in stages
    }
    reasons = dict.fromkeys(changes, "now")
    for name in changes:
        if name != dvc_yaml.CODE_STAGE:  # its lists are compared
            for dependent in ancestors(graph, stages[name]):  # "ancestors": their edges lead to it
                reasons.setdefault(dependent.addressing, f"after {name}")
    stale = {}
    for name, stage in stages.items():
        if name in reasons:
            needs = (need.addressing for need in graph[stage])
            stale_needs = tuple(need for need in needs if need in reasons)
            stale[name] = Stage(reasons[name], stage.cmd, stale_needs, changes.get(name, ()))
    return stale


def _changes(stage: Any, status: Sequence[Any], code: Collection[str]) -> tuple[str, ...]:
    """What has changed since a stage ran: files of code, parameters, data, outputs."""
    if stage.deps and not any(dependency.hash_info for dependency in stage.deps):
        return ("it has not run yet",)
    names = [*code]
    for entry in status:
        if not isinstance(entry, dict):
            names.append(str(entry).removeprefix("changed "))  # such as its command
            continue
        for path, state in entry.get("changed deps", {}).items():
            if isinstance(state, dict):
                names += _changed_params(stage, state)
            elif Path(path).parent != places.CODE:
                names.append(path)
        names += [f"{path} ({state})" for path, state in entry.get("changed outs", {}).items()]
    return tuple(names)


def _changed_params(stage: Any, names: Collection[str]) -> list[str]:
    """The parameters below these names whose values have changed, such as `methods.masked.x.y`."""
    from dvc.dependency.param import ParamsDependency

    changed: list[str] = []
    for dependency in stage.deps:
        if isinstance(dependency, ParamsDependency):
            old, new = dependency.hash_info.value or {}, dependency.read_params()
            for name in new.keys() & {*names}:
                before = dvc_records.flat(old.get(name), name)
                after = dvc_records.flat(new[name], name)
                keys = before.keys() | after.keys()
                changed += sorted(key for key in keys if before.get(key) != after.get(key))
    return changed or [*names]


def _changed_code(repo: Any, *, made_again: bool) -> dict[str, list[str]]:
    """Return the stages whose lists of code differ from what they ran with, and the files.

    Args:
        repo: DVC's.
        made_again: whether the stage `code` will write the lists again.
    """
    if made_again:
        lists = {str(path.resolve()): text for path, text in dvc_yaml.code_lists().items()}
    else:
        lists = {str(path.resolve()): read_any(path) for path in places.CODE.glob("*.txt")}
    changed: dict[str, list[str]] = {}
    for stage in repo.index.stages:
        for dependency in stage.deps:
            if (new := lists.get(dependency.fs_path)) is None:
                continue
            md5 = dependency.hash_info.value if dependency.hash_info else ""
            if md5 == hashlib.md5(new.encode(), usedforsecurity=False).hexdigest():
                continue
            stored = Path(repo.cache.local.oid_to_path(md5)) if md5 else Path(dependency.fs_path)
            old = read_any(stored if stored.is_file() else Path(dependency.fs_path))
            lines = {*old.splitlines()} ^ {*new.splitlines()}
            changed[stage.addressing] = sorted({line.split()[-1] for line in lines})
    return changed
