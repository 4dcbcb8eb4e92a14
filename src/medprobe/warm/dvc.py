"""What makes DVC quick in the forks of a warm server: for a stage it would take a second."""

import atexit
import hashlib
import json
import os
import re
import shlex
import signal
import threading
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import EntryPoint
from io import StringIO
from pathlib import Path
from typing import Any, Final, TextIO

from medprobe import warm

LOCK: Final = "dvc.lock"
PARSED: Final = ("dvc.yaml", LOCK)  # files that are parsed once for each content
KEPT: Final = Path(".dvc/tmp")  # beside them: where DVC keeps what it can make anew
PLAIN: Final = re.compile(r"[\w\s./@+:,=-]+(#.*)?")  # a command that a shell would not change


def keep_parsed() -> None:
    """Have DVC find what it has parsed before: it reads all of its large files for each stage."""
    from dvc.utils import strictyaml

    parse_as_dvc = strictyaml.parse_yaml

    def parse(text: str, path: str, typ: str = "safe") -> Any:
        if typ != "safe" or os.path.basename(path) not in PARSED:
            return parse_as_dvc(text, path, typ)
        return _parsed(text, path, parse_as_dvc)

    strictyaml.parse_yaml = parse


def _parsed(text: str, path: str, parse: Any) -> Any:
    """A file's content: as it was kept, or else parsed, and kept."""
    with suppress(OSError, ValueError):
        sealed, _, body = _place(path).read_text(encoding="utf-8").partition("\n")
        if sealed == _seal(text, body):
            return json.loads(body)
    content = parse(text, path)
    _keep(text, path, content)
    return content


def _keep(text: str, path: str, content: Any) -> None:
    """Keep a file's content for its text, if JSON can say it."""
    with suppress(OSError, ValueError, TypeError):
        body = json.dumps(content)
        if json.loads(body) == content:
            scratch = _place(path).with_suffix(f".{os.getpid()}")
            scratch.write_text(f"{_seal(text, body)}\n{body}", encoding="utf-8")
            scratch.replace(_place(path))


def _place(path: str) -> Path:
    return Path(path).parent / KEPT / f"medprobe-{os.path.basename(path)}.json"


def _seal(text: str, body: str) -> str:
    """Of a text and what was parsed of it: neither is another one's, nor damaged."""
    return hashlib.sha256(json.dumps([text, body]).encode()).hexdigest()


def write_changes() -> None:
    """Have DVC read its lock, before it writes it anew after each stage, as it reads it else: not
    as a file whose comments must be kept, which takes seconds. A lock has none. And write only the
    records that changed; the others, as they stand in the file."""
    from dvc.utils.serialize import _yaml

    parse_as_dvc, dump_as_dvc = _yaml.parse_yaml_for_update, _yaml._dump
    place = ""
    read: dict[str, Any] = {}  # the lock's content
    records: dict[str, tuple[str, str]] = {}  # by stage: what it was, and as it was written

    def parse(text: str, path: str) -> Any:
        nonlocal place
        if os.path.basename(path) != LOCK:
            return parse_as_dvc(text, path)
        content: dict[str, Any] = _parsed(text, path, _yaml.parse_yaml)
        _, *written = re.split(r"^(?=  \S)", text, flags=re.MULTILINE)
        read.clear()
        records.clear()
        if [*content] == ["schema", "stages"] and len(written) == len(content["stages"]):
            place = path
            read.update(content)
            for (name, stage), record in zip(content["stages"].items(), written, strict=True):
                records[name] = (repr(stage), record)
        return content

    def dump(content: dict[str, Any], stream: TextIO) -> None:
        stages = content.get("stages")
        if not records or stages is not read["stages"] or [*content] != [*read]:
            dump_as_dvc(content, stream)
            return
        text = StringIO()
        dump_as_dvc({"schema": content["schema"]}, text)
        text.write("stages:\n")
        for name, stage in stages.items():
            was, record = records.get(name, ("", ""))
            if repr(stage) != was:
                dump_as_dvc({"stages": {name: stage}}, own := StringIO())
                record = own.getvalue().removeprefix("stages:\n")
            text.write(record)
        stream.write(text.getvalue())
        _keep(text.getvalue(), place, content)

    _yaml.parse_yaml_for_update, _yaml._dump = parse, dump


def shorten_waits() -> None:
    """Have DVC try fifty times a second, not twice, for the lock of its files that another process
    holds: with several stages at a time it is often held, and never for long."""
    from dvc import lock

    lock.DEFAULT_TIMEOUT = 0.12  # seconds of six tries


def fork_commands(known: Mapping[str, str], script: EntryPoint) -> None:
    """Have DVC run a stage's commands of this package in forks of its own process, which has the
    libraries already: no shell starts, and no client of the server. Whatever else stands there, or
    is to run in another environment than the one `known`, a shell runs as before; and it runs all
    while DVC has threads, which a fork would lack."""
    from dvc.stage import run
    from dvc.stage.exceptions import StageCmdFailedError

    in_shell = run._run

    def _run(executable: str | None, command: str, **how: Any) -> None:
        first, *arguments = shlex.split(command, comments=True)
        same = first == script.name and warm.common(how["env"]) == known
        if not same or not PLAIN.fullmatch(command) or threading.active_count() > 1:
            in_shell(executable, command, **how)
            return
        worker = os.fork()
        if not worker:
            try:
                warm.become([first, *arguments], how["cwd"], how["env"])
                warm.work(script)
            finally:  # nothing of DVC's, whose frames this is in, runs on
                atexit._run_exitfuncs()
                warm.leave()
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        status = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
        signal.signal(signal.SIGINT, handler)
        if status:
            raise StageCmdFailedError(command, status)

    run._run = _run
