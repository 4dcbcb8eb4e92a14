"""What is left to do, as far as DVC can tell beforehand."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from medprobe.core.errors import BadInput


@dataclass(frozen=True)
class Stage:
    """A stage that DVC would run."""

    when: str  # now, or after a stage that may change what it reads
    cmd: Any  # a command or several, as dvc.yaml has it
    needs: tuple[str, ...]  # the others to run that it depends on directly

    @property
    def options(self) -> dict[str, str]:
        """The options of its first command, and under "" that command's name; that is empty where
        there is no command, as of data.dvc.

        >>> Stage("now", ['medprobe probe --model "a"', "medprobe track"], ()).options
        {'': 'probe', 'model': 'a'}
        """
        if not self.cmd:
            return {"": ""}
        first = self.cmd if isinstance(self.cmd, str) else self.cmd[0]
        words = shlex.split(first, comments=True)[1:]
        named = zip(words[1::2], words[2::2], strict=False)
        return {"": words[0], **{name.removeprefix("--"): value for name, value in named}}


def early(stages: Mapping[str, Stage]) -> list[str]:
    """The stages in an order that brings first results early: before each that probes a model comes
    what it needs and no more; then all others."""
    probes = [name for name, stage in stages.items() if stage.options[""] == "probe"]
    placed: dict[str, None] = {}

    def place(name: str) -> None:
        if name not in placed:
            for need in stages[name].needs:
                place(need)
            placed[name] = None

    for name in [*probes, *stages]:
        place(name)
    return [*placed]


def todo() -> dict[str, Stage]:
    """The stages that DVC would run, by name: those with something changed, and those behind them.
    Waits where another process of DVC's looks at its files. Raises BadInput where DVC cannot."""
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    try:
        with Repo(_wait_for_lock=True) as repo:
            return _todo(repo)
    except DvcException as error:
        raise BadInput("dvc", " ".join(str(error).split()), "`dvc status` says more") from None


def _todo(repo: Any) -> dict[str, Stage]:
    from networkx import ancestors

    graph = repo.index.graph  # from each stage to those it depends on
    stages = {stage.addressing: stage for stage in repo.index.stages}
    changed = sorted(set(repo.status()) & set(stages))
    when = dict.fromkeys(changed, "now")
    for name in changed:
        for behind in ancestors(graph, stages[name]):
            when.setdefault(behind.addressing, f"after {name}")
    needs = {name: [one.addressing for one in graph[stages[name]]] for name in when}
    return {
        name: Stage(when[name], stage.cmd, tuple(one for one in needs[name] if one in when))
        for name, stage in stages.items()
        if name in when
    }
