"""A server that imports the libraries once and forks a process for each command.

Most of a small stage's time goes into importing PyTorch, transformers and MLflow. `medprobe repro`
starts the server where stages are left to run, and asks it for each `dvc`; the script `medprobe`
asks it too. A fork takes over its client's arguments, folder, environment and standard streams.
A command runs in a process of its own if no server listens, if its environment differs, or if a
library was installed after the server started.

The server listens at a name that is no file (an abstract socket of Linux). It ends with the process
that started it, so a kill leaves nothing behind.
"""

import fcntl
import gc
import json
import logging
import os
import re
import secrets
import selectors
import signal
import socket
import struct
import subprocess
import sys
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module, metadata
from typing import Any, Final

SOCKET: Final = "MEDPROBE_FORK_SERVER"  # the variable that says where the server listens
LIBRARIES: Final = (
    *("dvc.api", "faiss", "great_expectations", "matplotlib.figure", "mlflow", "networkx"),
    *("polars", "pyarrow.dataset", "rich.progress", "rouge_score", "safetensors.torch"),
    *("scipy.stats", "sklearn.linear_model", "sqlalchemy.orm", "torch", "transformers"),
)
MODELS: Final = (  # of transformers, which imports a model's code when its class is asked for
    *("AutoModel", "AutoTokenizer", "BartForConditionalGeneration", "BertForMaskedLM"),
    *("GPT2LMHeadModel", "LlamaForCausalLM"),
)
SETTINGS: Final = {  # as this package sets them before it imports these libraries
    **dict.fromkeys(["DO_NOT_TRACK", "MLFLOW_DISABLE_TELEMETRY", "TOKENIZERS_PARALLELISM"], "true"),
    "GX_ANALYTICS_ENABLED": "false",
}
PER_COMMAND: Final = re.compile(rf"DVC_.*|OLDPWD|PS1|PWD|SHLVL|_|{SOCKET}")  # variables
ADVICE: Final = "dvc.repo.scm_context"  # the logger of what to add to git, after each stage
DVC: Final = (  # `dvc` without this advice, where no server runs it
    *(sys.executable, "-c"),
    f"import dvc.cli, logging; logging.getLogger({ADVICE!r}).setLevel(30); exit(dvc.cli.main())",
)
ACCEPTED: Final = b"+"
PEER: Final = struct.Struct("3i")  # of a socket: process, user and group at its other end


@contextmanager
def start(environment: Mapping[str, str], group: int | None = None) -> Iterator[dict[str, str]]:
    """Run a server, in the process group `group` if given, while the block lasts.

    Yields the environment in which commands use it, with this Python's programs first on the PATH,
    since its environment need not be activated. No server is started where one runs already, and on
    systems other than Linux, whose own libraries may not bear a fork.
    """
    environment = SETTINGS | {**environment} | {"PATH": _path(environment)}
    if environment.get(SOCKET) or sys.platform != "linux":
        yield environment
        return
    name = f"medprobe-{secrets.token_hex(16)}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0{name}")
        listener.listen(64)
        server = subprocess.Popen(
            [sys.executable, "-P", "-c", f"import {__name__} as server; server.serve({group})"],
            stdin=subprocess.PIPE,  # which the server sees closed when this process ends
            pass_fds=[listener.fileno()],
            env={**environment, SOCKET: str(listener.fileno())},
            process_group=group,
        )
    try:
        yield {**environment, SOCKET: name}
    finally:
        server.kill()
        server.communicate()


def _path(environment: Mapping[str, str]) -> str:
    """PATH with the folder of this Python's programs first."""
    own, folders = os.path.dirname(sys.executable), environment.get("PATH", os.defpath)
    return folders if folders.split(os.pathsep)[0] == own else f"{own}{os.pathsep}{folders}"


def run(script: str, arguments: Sequence[str], environment: Mapping[str, str]) -> int | None:
    """The exit status of a script that ran in a fork, or None where no server would run it."""
    if not (name := environment.get(SOCKET)):
        return None
    request = json.dumps([script, [*arguments], os.getcwd(), {**environment}]).encode()
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(f"\0{name}")
            if not _is_own(connection):
                return None
            socket.send_fds(connection, [len(request).to_bytes(8, "big")], [0, 1, 2])
            connection.sendall(request)
            if connection.recv(1) != ACCEPTED:
                return None
        except OSError:
            return None
        while True:
            with suppress(KeyboardInterrupt):  # which the fork gets as well, and ends
                status = connection.recv(1)
                return status[0] if status else 128 + signal.SIGKILL


def _is_own(connection: socket.socket) -> bool:
    """Whether the process at the other end is of this user: a name that is no file has no mode."""
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size)
    return bool(PEER.unpack(peer)[1] == os.getuid())


def serve(group: int | None) -> None:
    """Fork for each client, until the process that started this one ends.

    Whatever still runs in the process group `group` then ends too.
    """
    listener = socket.socket(fileno=int(os.environ[SOCKET]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no zombies
    variables, installed = _shared(os.environ), _installed()
    libraries = {name: import_module(name) for name in LIBRARIES}
    for name in MODELS:
        getattr(libraries["transformers"], name)
    gc.collect()
    gc.freeze()
    ready = selectors.DefaultSelector()
    ready.register(listener, selectors.EVENT_READ)
    ready.register(sys.stdin, selectors.EVENT_READ)
    while True:
        if any(key.fileobj is sys.stdin for key, _ in ready.select()):
            if group:
                os.killpg(group, signal.SIGKILL)
            return
        connection, _ = listener.accept()
        if not os.fork():
            listener.close()
            ready.close()
            _answer(connection, variables, installed)
        connection.close()


def _installed() -> set[str]:
    """The names and versions of installed packages, as their folders have them."""
    folders = [folder for folder in sys.path if os.path.isdir(folder)]
    return {name for folder in folders for name in os.listdir(folder) if name.endswith("-info")}


def _answer(
    connection: socket.socket, variables: Mapping[str, str], installed: Collection[str]
) -> None:
    """Run a client's script in this process, send its exit status, and end."""
    if not _is_own(connection):
        os._exit(0)
    size, streams, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as received:
        request = received.read(int.from_bytes(size, "big"))
    script, arguments, folder, environment = json.loads(request)
    scripts = metadata.entry_points(group="console_scripts", name=script)
    if not scripts or _shared(environment) != variables or _installed() != installed:
        os._exit(0)
    connection.sendall(ACCEPTED)
    # The kernel ends this process by SIGIO where the client's end of the connection closes.
    fcntl.fcntl(connection, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(connection, fcntl.F_SETFL, os.O_ASYNC)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for standard, stream in enumerate(streams):
        os.dup2(stream, standard)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [script, *arguments]
    sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]
    if script == "dvc":
        logging.getLogger(ADVICE).setLevel(logging.WARNING)
    status: Any = 1
    try:
        command = next(iter(scripts)).load()  # `medprobe`, called, would ask the server again
        status = (command.main if script == "medprobe" else command)() or 0
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    connection.sendall(bytes([status if isinstance(status, int) else 1]))
    os._exit(0)  # to take the libraries apart would cost as much as many a stage


def _shared(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that all commands have in common: none of a single stage's."""
    return {key: value for key, value in environment.items() if not PER_COMMAND.fullmatch(key)}
