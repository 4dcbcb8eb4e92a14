"""Warm starts: commands run in forks of a process that has imported the libraries already.

Most of a small stage's time goes into importing PyTorch, transformers and MLflow. `medprobe repro`
starts a server which imports them once, and nothing of this package; the scripts `medprobe` and
`dvc` ask it for a fork that takes over their arguments, folder, environment and standard streams.
They start the ordinary way where no server listens, and where the environment is another than the
server's, for libraries read it as they are imported.
"""

import atexit
import gc
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from io import StringIO
from pathlib import Path
from typing import Any, Final, NoReturn, TextIO

SOCKET: Final = "MEDPROBE_WARM"  # the variable that says where the server listens
# Variables of a stage's own, beside DVC's, and PS1, which shells drop.
OWN: Final = {SOCKET, "OLDPWD", "PS1", "PWD", "SHLVL", "_"}
SCRIPTS: Final = ("dvc", "medprobe")
LIBRARIES: Final = (
    "alembic.config",
    "dvc.cli",
    "dvc.commands.repro",
    "dvc.repo.reproduce",
    "dvc.stage.run",
    "faiss",
    "great_expectations",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "mlflow.artifacts",
    "mlflow.store.tracking.sqlalchemy_workspace_store",
    "polars",
    "pyarrow.dataset",
    "rich.progress",
    "rouge_score.rouge_scorer",
    "safetensors.torch",
    "scipy.stats",
    "sklearn.linear_model",
    "torch",
    "transformers.models.auto.modeling_auto",
    "transformers.models.auto.tokenization_auto",
    "transformers.models.bart.modeling_bart",
    "transformers.models.bert.modeling_bert",
    "transformers.models.gpt2.modeling_gpt2",
)
QUIET: Final = {  # as this package sets them before it imports these libraries
    "DO_NOT_TRACK": "true",
    "GX_ANALYTICS_ENABLED": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TOKENIZERS_PARALLELISM": "true",
}
STARTED: Final = b"+"
_status = [0]  # what a process of the server's leaves with; longer where it runs a script


@contextmanager
def server(environment: Mapping[str, str], group: int | None = None) -> Iterator[dict[str, str]]:
    """The environment in which scripts start warm while the block lasts, in a process `group` if
    need be. It is as given where a server is there already, and on systems other than Linux, whose
    own libraries may not bear a fork."""
    if environment.get(SOCKET) or sys.platform != "linux":
        yield {**environment}
        return
    with tempfile.TemporaryDirectory(prefix="medprobe-") as folder:
        path = str(Path(folder) / "socket")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(64)
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", f"import {__name__} as warm; warm.serve()"],
                stdin=subprocess.PIPE,  # it ends with this process, however this process ends
                pass_fds=[listener.fileno()],
                env={**environment, SOCKET: str(listener.fileno())},
                process_group=group,
            )
        try:
            yield {**environment, SOCKET: path}
        finally:
            process.kill()
            process.communicate()


def run(script: str, arguments: Sequence[str], environment: Mapping[str, str]) -> int | None:
    """The exit status of a script that ran warm, or None where it did not run at all."""
    if len(_status) > 1 or not environment.get(SOCKET):
        return None
    request = json.dumps([script, [*arguments], os.getcwd(), {**environment}]).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(environment[SOCKET])
            socket.send_fds(connection, [len(request).to_bytes(8, "big")], [0, 1, 2])
            connection.sendall(request)
            if connection.recv(1) != STARTED:
                return None
        except OSError:
            return None
        status = _last(connection)
    return status[0] if status else 128 + signal.SIGKILL


def _last(connection: socket.socket) -> bytes:
    """What is sent last: Ctrl-C interrupts the fork, too, which then ends as it likes."""
    while True:
        with suppress(KeyboardInterrupt):
            return connection.recv(1)


def serve() -> None:
    """Fork for each who asks, until standard input ends. The thread pools of the libraries do not
    yet run: each fork starts its own."""
    atexit.register(_leave)
    listener = socket.socket(fileno=int(os.environ[SOCKET]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies
    known = _common(os.environ)
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    for name in LIBRARIES:
        with suppress(ImportError):
            import_module(name)
    quicken_lock()
    shorten_waits()
    scripts = {one.name: one for one in entry_points(group="console_scripts")}
    gc.collect()
    gc.freeze()
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        connection, _ = listener.accept()
        if not os.fork():
            listener.close()
            _attend(connection, known, scripts)
        connection.close()


def quicken_lock() -> None:
    """Have DVC read its lock, before it writes it anew after each stage, as it reads it else: not
    as a file whose comments must be kept, which takes seconds. A lock has none. And write only the
    records that changed; the others, as they stand in the file."""
    from dvc.utils.serialize import _yaml

    parse_as_dvc, dump_as_dvc = _yaml.parse_yaml_for_update, _yaml._dump
    read: dict[str, Any] = {}  # the lock's content
    records: dict[str, tuple[str, str]] = {}  # by stage: what it was, and as it was written

    def parse(text: str, path: str) -> Any:
        if os.path.basename(path) != "dvc.lock":
            return parse_as_dvc(text, path)
        content: dict[str, Any] = _yaml.parse_yaml(text, path)
        _, *written = re.split(r"^(?=  \S)", text, flags=re.MULTILINE)
        read.clear()
        records.clear()
        if [*content] == ["schema", "stages"] and len(written) == len(content["stages"]):
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

    _yaml.parse_yaml_for_update, _yaml._dump = parse, dump


def shorten_waits() -> None:
    """Have DVC try fifty times a second, not twice, for the lock of its files that another process
    holds: with several stages at a time it is often held, and never for long."""
    from dvc import lock

    lock.DEFAULT_TIMEOUT = 0.12  # seconds of six tries


def _attend(
    connection: socket.socket, known: dict[str, str], scripts: Mapping[str, EntryPoint]
) -> NoReturn:
    """Have a fork run what a client asks for, and tell the client its exit status. A client that
    is gone takes the fork with it."""
    size, streams, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as sent:
        request = sent.read(int.from_bytes(size, "big"))
    script, arguments, folder, environment = json.loads(request)
    if script not in SCRIPTS or _common(environment) != known:
        sys.exit()
    connection.sendall(STARTED)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    worker = os.fork()
    if not worker:
        connection.close()
        for standard, stream in enumerate(streams):
            os.dup2(stream, standard)
            os.close(stream)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = [script, *arguments]
        _work(scripts[script])

    def watch() -> None:
        connection.recv(1)  # which returns where the client is gone: it sends nothing more
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
    status = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
    with suppress(OSError):
        connection.sendall(bytes([status if status >= 0 else 128 - status]))
    sys.exit()


def _work(script: EntryPoint) -> NoReturn:
    """Run a script as a process of its own would."""
    sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _status.append(1)  # of an error that nothing catches
    try:
        _status.append(script.load()() or 0)
    except SystemExit as end:
        _status.append(end.code if isinstance(end.code, int) else int(end.code is not None))
        raise
    sys.exit()


def _leave() -> None:
    """The last of what is done at exit: all that Python would still do is take the libraries
    apart, which costs as much as many a stage."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_status[-1])


def _common(environment: Mapping[str, str]) -> dict[str, str]:
    names = (name for name in environment if name not in OWN and not name.startswith("DVC_"))
    return {name: environment[name] for name in names}
