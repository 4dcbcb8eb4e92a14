"""`medprobe repro`: like `dvc repro`, but with several stages at the same time.

One `dvc repro` runs one stage after another. Several `dvc repro` can run in parallel if their
stages write different paths. Small models use two cores best if each stage has one core.
"""

import html
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Final, NoReturn

from filelock import FileLock, Timeout

from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.executor import count_cores
from medprobe.core.progress import print_above
from medprobe.pipeline.clean import repair
from medprobe.pipeline.stale_stages import Stage, find_stale_stages, order_by_first_result

LOOKING: Final = "looking for stages that data, settings or code made stale"
KILLED: Final = (
    "; if its status is 137 or -9, the system killed it, as where memory runs out: lower --jobs "
    "or engine.token_budget"
)
DVC: Final = (  # `dvc` without its advice after each stage: what to add to git, and to push
    *(sys.executable, "-c"),
    "import dvc.cli, dvc.ui, logging; dvc.ui.ui.enable = bool; "
    "logging.getLogger('dvc.repo.scm_context').setLevel('WARNING'); exit(dvc.cli.main())",
)
TITLE: Final = re.compile("<title>(?:medprobe: )?(.*?)</title>")
STOPPING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GRACE: Final = 10.0  # seconds in which an interrupted stage ends


def repro(jobs: int, *, share_cards: bool = False) -> None:
    """Bring all stages up to date, in the order of their dependencies.

    Parallel stages share the cores evenly, unless OMP_NUM_THREADS sets the threads of each stage,
    and each has a GPU of its own as long as there are enough.
    """
    with exclusive_lock(), process_group() as group:
        print_above(LOOKING)
        repair()
        stages = find_stale_stages(tidy=True)
        signal.siginterrupt(signal.SIGINT, True)  # polars, imported there, restarts system calls
        if not stages:
            print("Data and pipelines are up to date.")  # as DVC says
            print(*outcome(), sep="", end="")
            return
        print_above(f"stages to run, at most: {len(stages)} (`medprobe plan` lists them)")
        share = {"OMP_NUM_THREADS": str(max(1, count_cores() // jobs))}
        variables = share | environment()
        _run(stages, jobs, variables, group, [] if share_cards or jobs == 1 else find_cards())
        # What has changed meanwhile is for DVC to find.
        _dvc(["--quiet", "--allow-missing"], variables, group)
        print(*outcome(), sep="", end="")


def outcome() -> Iterator[str]:
    """Yield what came out, in the words of the page's title, and where the page is."""
    page = places.REPORTS / "index.html"
    if page.is_file() and (title := TITLE.search(page.read_text(encoding="utf-8"))):
        yield f"{html.unescape(title[1])}\n"
        yield f"open {page}\n"


@contextmanager
def exclusive_lock() -> Iterator[None]:
    """Allow one `medprobe repro` at a time: a second process prints the id of the first and waits.

    The lock ends with its process.
    """
    places.PARTS.mkdir(parents=True, exist_ok=True)
    lock = FileLock(places.REPRO)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        holder = f"another `medprobe repro` is running here, process {places.REPRO.read_text()}"
        print(f"{holder}; waiting until it ends", file=sys.stderr)
        lock.acquire()
    places.REPRO.write_text(str(os.getpid()))
    try:
        yield
    finally:
        lock.release()


@contextmanager
def process_group() -> Iterator[int]:
    """Provide the id of a process group that ends with this process, even after a kill.

    A first stop signal interrupts the processes in the group. A second one, or the end of GRACE,
    kills them: a library that is being imported can lose the interrupt. No process outlives the
    block.
    """
    # The keeper leads the group. It outlives Ctrl-C, and reads a pipe that closes when this process
    # dies, however that happens; then it kills the group, itself included.
    keeper = subprocess.Popen(
        ["sh", "-c", "trap '' INT; cat; kill -s KILL 0"], stdin=subprocess.PIPE, process_group=0
    )

    def stop(number: int, _: object) -> NoReturn:
        print("stopping; finished stages will not run again", file=sys.stderr)
        os.killpg(keeper.pid, signal.SIGINT)
        signal.setitimer(signal.ITIMER_REAL, GRACE)
        sys.exit(128 + number)

    def kill(*_: object) -> None:
        os.killpg(keeper.pid, signal.SIGKILL)

    handlers = {number: signal.signal(number, stop) for number in STOPPING}
    handlers[signal.SIGALRM] = signal.signal(signal.SIGALRM, kill)
    try:
        yield keeper.pid
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        kill()
        keeper.communicate()
        for number, handler in handlers.items():
            signal.signal(number, handler)


def find_cards() -> list[str]:
    """The GPUs that stages may use, by the names that CUDA_VISIBLE_DEVICES has for them."""
    if (named := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [name for name in named.split(",") if name]
    command = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    if not shutil.which(command[0]):
        return []
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()


def _run(
    stages: Mapping[str, Stage],
    jobs: int,
    variables: Mapping[str, str],
    group: int,
    cards: Sequence[str],
) -> None:
    """Run the stages, `jobs` at a time, as soon as the stages that they need have ended."""
    queue, finished = order_by_first_result(stages), set[str]()
    running: dict[Future[None], tuple[str, dict[str, str]]] = {}
    each = [{"CUDA_VISIBLE_DEVICES": card} for card in cards] or [{}]
    free = [each[job % len(each)] for job in range(jobs)]
    pool = ThreadPoolExecutor(jobs)
    try:
        while queue or running:
            runnable = [name for name in queue if finished.issuperset(stages[name].needs)]
            for name in runnable[: jobs - len(running)]:
                queue.remove(name)
                card = free.pop(0)
                options = ["--single-item", *["--allow-missing"] * stages[name].lacks_sources]
                job = pool.submit(_dvc, [*options, name], {**variables, **card}, group)
                running[job] = name, card
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                future.result()
                name, card = running.pop(future)
                finished.add(name)
                free.append(card)
    finally:
        pool.shutdown(cancel_futures=True)


def environment() -> dict[str, str]:
    """The environment of stages: this Python's programs come first on the PATH.

    Its own environment need not be activated.
    """
    folder = os.path.dirname(sys.executable)
    return os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


def _dvc(arguments: list[str], variables: Mapping[str, str], group: int) -> None:
    command = [*DVC, "--wait-for-lock", "repro", *arguments]
    with subprocess.Popen(command, env=variables, process_group=group) as process:
        status = process.wait()
    if status:
        problem = f"a stage failed (see DVC's message above{KILLED})"
        remedy = "fix it, `medprobe doctor` names what is missing, and run the command again"
        raise BadInput("dvc repro", problem, remedy)
