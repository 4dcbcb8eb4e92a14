"""The stages that `dvc repro` would run, as far as DVC knows beforehand."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from medprobe.core import dvc_records, places
from medprobe.core.errors import BadInput
from medprobe.pipeline import clean

REMEDY: Final = f"`dvc add {places.DATA}` records them"
REMEDY_STAGES: Final = "`medprobe init` of a new folder writes all of them"


@dataclass(frozen=True)
class Stage:
    """A stage that DVC would run."""

    reason: str  # "now", or "after …", a stage that may change its inputs
    cmd: Any  # a command or several, as in dvc.yaml
    needs: tuple[str, ...]  # the stages to run on which it depends directly
    lacks_sources: bool = False  # files that no stage makes; DVC's --allow-missing lets it be

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


def find_stale_stages(*, tidy: bool = False, allow_missing: bool = True) -> dict[str, Stage]:
    """Find the stages that DVC would run: changed stages, and the stages that depend on them.

    A stage is up to date without DVC's cache if its dependencies and its outputs are as dvc.lock
    has them. With `allow_missing` it is up to date without its sources, too, if all else is, as
    where a colleague has the outputs alone. The call waits while another DVC process holds its
    lock.
    """
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    try:
        with Repo(_wait_for_lock=True) as repo:
            if tidy:
                clean.remove_cached(repo)
            stages = {stage.addressing: stage for stage in repo.index.stages}
            if not any(stage.cmd for stage in stages.values()):
                raise BadInput(places.PIPELINE, "no stages", REMEDY_STAGES)
            status = repo.status()
            if tidy and (note := _describe_data(status)):
                print(f"{note}; {REMEDY}")
            changed = [stage for name, stage in stages.items() if name in status]
            uncached = [stage for stage in changed if _is_uncached(stage, status[stage.addressing])]
            if tidy and uncached:
                _store(repo, uncached)
            lacking = _lacking_sources(repo) if allow_missing else {}
            with repo.lock:
                kept = {stage.addressing for stage in lacking if _is_otherwise_unchanged(stage)}
            if tidy:
                _check_lost(lacking, status, kept)
            stored = {stage.addressing for stage in uncached}
            status = {name: found for name, found in status.items() if name not in stored | kept}
            return _stale_stages(repo, status, kept)
    except DvcException as error:
        raise dvc_error(error) from None


def describe_data() -> str:
    """Say if data.dvc does not pin the data, or pins other data; empty otherwise."""
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
    notes += [f"DVC does not track {', '.join(loose)}"] * bool(loose)
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


def _lacking_sources(repo: Any) -> dict[Any, str]:
    """Return the stages that read files which are not here and which no command makes: the first.

    A file of DVC's that pins what is not here is such a stage, too.
    """
    made = {Path(out.fs_path) for stage in repo.index.stages if stage.cmd for out in stage.outs}
    above = {parent for path in made for parent in path.parents}
    lacking: dict[Any, str] = {}
    for stage in repo.index.stages:
        for item in stage.deps if stage.cmd else stage.outs:
            path = Path(item.fs_path)
            if not item.exists and path not in above and made.isdisjoint([path, *path.parents]):
                lacking.setdefault(stage, str(item))
    return lacking


def _is_otherwise_unchanged(stage: Any) -> bool:
    is_there = not stage.cmd or all(out.exists for out in stage.outs)
    return is_there and not stage.changed(allow_missing=True)


def _check_lost(lacking: Mapping[Any, str], status: Mapping[str, Any], kept: set[str]) -> None:
    """Refuse to begin where a stage cannot run: others would work for hours until DVC says so.

    DVC would first delete the outputs that the stage has.
    """
    for stage, source in lacking.items():
        name = stage.addressing
        if stage.cmd and name in status and name not in kept:
            remedy = (
                "bring it (`dvc pull` where DVC pins it); `medprobe doctor` lists what is missing"
            )
            if any(out.exists for out in stage.outs):
                remedy = "bring it, by `dvc pull` where DVC pins it, or take back what changed"
            raise BadInput(source, f"is not here, and {name} has to read it", remedy)
    if any(name in status for name in kept):
        sources = ", ".join(
            dict.fromkeys(lacking[stage] for stage in lacking if stage.addressing in kept)
        )
        print(f"not here: {sources}; what was made of this stays as dvc.lock has it")


def _stale_stages(repo: Any, status: Mapping[str, Any], kept: set[str]) -> dict[str, Stage]:
    """Return the stages that DVC's status names, and the stages that depend on them."""
    from networkx import ancestors

    graph = repo.index.graph  # edges: stage -> stage that it depends on
    stages = {stage.addressing: stage for stage in repo.index.stages}
    reasons = {name: "now" for name in sorted(status) if name in stages}
    for name in [*reasons]:
        for dependent in ancestors(graph, stages[name]):  # "ancestors": their edges lead to it
            reasons.setdefault(dependent.addressing, f"after {name}")
    stale = {}
    for name, stage in stages.items():
        if name in reasons:
            needs = (need.addressing for need in graph[stage])
            stale_needs = tuple(need for need in needs if need in reasons)
            stale[name] = Stage(reasons[name], stage.cmd, stale_needs, name in kept)
    return stale
