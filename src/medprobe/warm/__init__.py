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
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final, NoReturn

SOCKET: Final = "MEDPROBE_WARM"  # the variable that says where the server listens
# Variables of a stage's own, beside DVC's, and PS1, which shells drop.
OWN: Final = {SOCKET, "OLDPWD", "PS1", "PWD", "SHLVL", "_"}
OURS: Final = "medprobe"
SCRIPTS: Final = ("dvc", OURS)
LIBRARIES: Final = (
    "alembic.config",
    "configobj",
    "dulwich.ignore",
    "dulwich.worktree",
    "dvc._debug",
    "dvc.analytics",
    "dvc.cachemgr",
    "dvc.cli.parser",
    "dvc.commands.repro",
    "dvc.data_cloud",
    "dvc.dirs",
    "dvc.lock",
    "dvc.repo.reproduce",
    "dvc.rwlock",
    "dvc.scm",
    "dvc.stage.run",
    "faiss",
    "great_expectations",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "mlflow.artifacts",
    "mlflow.store.tracking.sqlalchemy_workspace_store",
    "polars",
    "pyarrow.dataset",
    "pyarrow.parquet",
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
    "transformers.models.llama.modeling_llama",
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
    from medprobe.warm import dvc

    atexit.register(leave)
    listener = socket.socket(fileno=int(os.environ[SOCKET]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies
    known = common(os.environ)
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    for name in LIBRARIES:
        with suppress(ImportError):
            import_module(name)
    scripts = {one.name: one for one in entry_points(group="console_scripts")}
    commands = partial(dvc.fork_commands, known, scripts[OURS])
    hasten(dvc.keep_parsed, dvc.write_changes, dvc.shorten_waits, commands)
    hasten(know_conversions, know_revision, forget_exits)
    gc.collect()
    gc.freeze()
    while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
        connection, _ = listener.accept()
        if not os.fork():
            listener.close()
            _attend(connection, known, scripts)
        connection.close()


def hasten(*ways: Callable[[], None]) -> None:
    """Do what makes forks quick. Each holds on to names of a library's own, of the versions in
    requirements.lock: where one is gone, forks are slower by it, and do the same."""
    for way in ways:
        with suppress(ImportError, AttributeError):
            way()


def know_conversions() -> None:
    """Have transformers make the table that it needs for its first model: a tenth of a second."""
    import_module("transformers.conversion_mapping").get_checkpoint_conversion_mapping("bert")


def know_revision() -> None:
    """Have MLflow look once which revision of its tables is the latest, not at each connection:
    it imports all its migrations for that."""
    tables: Any = import_module("mlflow.store.db.utils")
    latest = tables._get_latest_schema_revision()
    tables._get_latest_schema_revision = lambda: latest


def forget_exits() -> None:
    """What PyTorch would do at the exit takes a third of a second in each fork, and is about this
    process: no fork does it."""
    for one in [*weakref.finalize._registry]:  # type: ignore[attr-defined]
        one.atexit = False
    with suppress(ImportError, AttributeError):
        atexit.unregister(import_module("torch._dynamo.utils").dump_compile_times)


def _attend(
    connection: socket.socket, known: dict[str, str], scripts: Mapping[str, EntryPoint]
) -> NoReturn:
    """Have a fork run what a client asks for, and tell the client its exit status. A client that
    is gone takes the fork with it."""
    size, streams, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as sent:
        request = sent.read(int.from_bytes(size, "big"))
    script, arguments, folder, environment = json.loads(request)
    if script not in SCRIPTS or common(environment) != known:
        sys.exit()
    connection.sendall(STARTED)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    worker = os.fork()
    if not worker:
        connection.close()
        for standard, stream in enumerate(streams):
            os.dup2(stream, standard)
            os.close(stream)
        become([script, *arguments], folder, environment)
        work(scripts[script])

    def watch() -> None:
        connection.recv(1)  # which returns where the client is gone: it sends nothing more
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
    status = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
    with suppress(OSError):
        connection.sendall(bytes([status if status >= 0 else 128 - status]))
    sys.exit()


def become(command: Sequence[str], folder: str, environment: Mapping[str, str]) -> None:
    """Take over a command, its folder and environment."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [*command]


def work(script: EntryPoint) -> NoReturn:
    """Run a script as a process of its own would."""
    sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _status.append(1)  # of an error that nothing catches
    try:
        _status.append(script.load()() or 0)
    except SystemExit as end:
        _status.append(end.code if isinstance(end.code, int) else int(end.code is not None))
        raise
    except BaseException:
        sys.excepthook(*sys.exc_info())
    sys.exit()


def leave() -> None:
    """The last of what is done at exit: all that Python would still do is take the libraries
    apart, which costs as much as many a stage."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_status[-1])


def common(environment: Mapping[str, str]) -> dict[str, str]:
    names = (name for name in environment if name not in OWN and not name.startswith("DVC_"))
    return {name: environment[name] for name in names}
