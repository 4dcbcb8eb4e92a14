"""git's filter of dvc.lock and metrics/: where these differ from HEAD's in nothing but a machine's
last bits, git takes them for HEAD's, and `git status` is clean.

gitattributes(5), "Long Running Filter Process". The files themselves stay as this machine made
them, so that DVC's hashes are true of them.
"""

import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import md5
from pathlib import Path
from typing import Any, BinaryIO, Final

import yaml

from medprobe.commands.moved import git, moved
from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.tracking.lineage import LOCK

ATTRIBUTES: Final = Path(".gitattributes")  # which names the files
PROCESS: Final = "filter.medprobe.process"
TOLERANCE: Final = 0.01  # what two numbers may differ by, as a share of the larger one
ALLOWED: Final = 0.005  # of all numbers: two kinds of processor may turn a near tie
MODELS: Final = (places.MODELS, places.REWIRED)
PACKET: Final = 65_516  # bytes of a file in one line of git's protocol

Record = Mapping[str, Any]  # of a stage, as dvc.lock has it


def install() -> None:
    """Have git ask this filter, in a clone whose .gitattributes names it."""
    if not ATTRIBUTES.is_file():
        return
    with suppress(BadInput):  # a checkout that git takes for another user's
        script = Path(sys.executable).with_name("medprobe")
        below = git("rev-parse", "--show-prefix").strip() or "."  # git asks at its root
        options = ["--tolerance", str(TOLERANCE), "--allow", str(ALLOWED), "--filter"]
        command = shlex.join([str(script), "moved", *options])
        git("config", "--local", PROCESS, f"cd {shlex.quote(below)} && {command}")


def settle() -> None:
    """Have git look at what a run left. It takes a file of another size for changed, and asks no
    filter, until it is added; what is added here, if last bits are all that is new, is HEAD's."""
    files = [path for path in (f"{LOCK}", f"{places.METRICS}") if Path(path).exists()]
    with suppress(BadInput):  # no repository, or something is staged, which stays as it is
        if git("config", "--get", PROCESS):
            git("diff", "--cached", "--quiet", "--", *files)
            if only_last_bits("HEAD", TOLERANCE, ALLOWED):
                git("add", "--update", "--", *files)


def serve(given: BinaryIO, said: BinaryIO, since: str, tolerance: float, allow: float) -> None:
    """Answer git for one file after the other, until it asks no more: with what a commit has where
    last bits are all that differs, else with the content it sent."""
    from dulwich.errors import HangupException
    from dulwich.protocol import Protocol

    asked = Protocol(given.read, said.write)

    def say(*lines: bytes) -> None:
        for line in (*lines, None):  # None ends a list
            asked.write_pkt_line(line)
        said.flush()

    with suppress(HangupException):
        [*asked.read_pkt_seq()]  # the versions it speaks
        say(b"git-filter-server", b"version=2")
        [*asked.read_pkt_seq()]  # what it can do
        say(b"capability=clean")
        same = only_last_bits(since, tolerance, allow)
        while True:
            request = dict(line.rstrip(b"\n").split(b"=", 1) for line in asked.read_pkt_seq())
            content = b"".join(asked.read_pkt_seq())
            if same:
                with suppress(BadInput):  # a file that the commit lacks
                    content = git("show", f"{since}:{request[b'pathname'].decode()}").encode()
            say(b"status=success")
            say(*(content[at : at + PACKET] for at in range(0, len(content), PACKET)))
            say()


def only_last_bits(since: str, tolerance: float, allow: float) -> bool:
    """Do dvc.lock and metrics/ differ from a commit's in last bits alone? They do where DVC's lock
    tells of the `same_work`, metrics/ is what the lock says it is, and no more than a share `allow`
    of its numbers is off by more than `tolerance`."""
    with suppress(BadInput, OSError, ValueError, KeyError, TypeError, yaml.YAMLError):
        before, now = _stages(git("show", f"{since}:./{LOCK}")), _stages(LOCK.read_text("utf-8"))
        if same_work(before, now) and all(_hash(Path(at)) == told for at, told in _metrics(now)):
            found = moved(since, tolerance)
            return len(found.moved) <= allow * found.numbers
    return False


def same_work(before: Mapping[str, Record], now: Mapping[str, Record]) -> bool:
    """Do two locks tell of the same commands, run on the same code, data and parameters? What a
    stage made may differ where it reads or trains a model, or reads what differs for that reason.

    >>> def train(md5, seed=1):
    ...     out = {"path": "outputs/models/a", "md5": md5}
    ...     return {"train": {"cmd": "medprobe train", "params": {"seed": seed}, "outs": [out]}}
    >>> same_work(train("0"), train("f")), same_work(train("0"), train("f", seed=2))
    (True, False)
    """
    made = [path for stage in now.values() for path in _files(stage, "outs")]
    return before.keys() == now.keys() and all(_same(before[at], now[at], made) for at in now)


def _same(before: Record, now: Record, made: list[str]) -> bool:
    if any(before.get(part) != now.get(part) for part in ("cmd", "params")):
        return False
    read, wrote = _files(now, "deps"), _files(now, "outs")
    was_read, had_written = _files(before, "deps"), _files(before, "outs")
    if [*read] != [*was_read] or [*wrote] != [*had_written]:
        return False
    others = [path for path in read if read[path] != was_read[path]]
    may_differ = others or any(_below(path, MODELS) for path in (*read, *wrote))
    return all(_holds(path, made) for path in others) and bool(may_differ or wrote == had_written)


def _files(stage: Record, part: str) -> dict[str, str]:
    """The hashes of what a stage reads (`deps`) or makes (`outs`), by path."""
    return {one["path"]: one["md5"] for one in stage.get(part, [])}


def _holds(path: str, made: Iterable[str]) -> bool:
    """Is a file or folder something that was made, part of it, or around it?"""
    return _below(path, made) or any(_below(out, [path]) for out in made)


def _below(path: str, folders: Iterable[str | Path]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)


def _stages(text: str) -> dict[str, Record]:
    stages: dict[str, Record] = yaml.load(text, yaml.CSafeLoader)["stages"]
    return stages


def _metrics(stages: Mapping[str, Record]) -> Iterator[tuple[str, str]]:
    """What dvc.lock says of metrics/: paths and hashes."""
    for stage in stages.values():
        for path, told in _files(stage, "outs").items():
            if _below(path, [places.METRICS]):
                yield path, told


def _hash(path: Path) -> str:
    """DVC's hash of a file, or of a folder: of the list of what is in it."""
    if path.is_file():
        return md5(path.read_bytes()).hexdigest()
    files = {one.relative_to(path).as_posix(): one for one in path.rglob("*") if one.is_file()}
    listed = [{"md5": _hash(one), "relpath": name} for name, one in sorted(files.items())]
    return md5(json.dumps(listed, sort_keys=True).encode()).hexdigest() + ".dir"
