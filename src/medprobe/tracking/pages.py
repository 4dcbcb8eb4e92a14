"""MLflow's own pages: served, and opened where the runs are, with the metrics as columns."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from medprobe.core.errors import BadInput
from medprobe.metrics import catalog
from medprobe.tracking.headlines import legal
from medprobe.tracking.store import CURRENT

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

METRIC: Final = "metric"  # the tag of a run's main metric
VIEW: Final = "medprobe"  # the name of the view that an experiment shares


def addresses(client: "MlflowClient", server: str) -> dict[str, str]:
    """Where a server shows each experiment's current runs, the best first by the main metric.

    A server's first page is another one, of traces, which a project like this has none of.
    Each experiment gets a view as MLflow shares them: a tag that holds what its table shows.
    """
    pages = {}
    for experiment in sorted(client.search_experiments(), key=lambda experiment: experiment.name):
        runs = client.search_runs([experiment.experiment_id], CURRENT)
        if not runs:  # MLflow's own experiment, or params.yaml no longer names its results
            continue
        client.set_experiment_tag(
            experiment.experiment_id, f"mlflow.sharedViewState.{VIEW}", json.dumps(view(runs))
        )
        place = f"{server}/#/experiments/{experiment.experiment_id}/runs"
        pages[experiment.name] = f"{place}?workflowType=machine_learning&viewStateShareKey={VIEW}"
    return pages


def view(runs: "list[Run]") -> dict[str, object]:
    """Return what the table of these runs shows, in MLflow's words.

    It has which runs and columns, and their order: by the main metric that most of them have, of
    what the models know if there is one. More runs of LAMA may have a perplexity.
    """
    counts = Counter(name for run in runs for name in run.data.metrics)
    # A result's run says in a tag which metric is its main one; a run over all benchmarks in
    # parameters.
    metrics = {
        run.data.tags[METRIC]: run.data.tags[METRIC] for run in runs if METRIC in run.data.tags
    }
    metrics |= {
        legal(f"{key.removesuffix(f'.{METRIC}')}/{metric}"): metric
        for run in runs
        for key, metric in run.data.params.items()
        if key.endswith(f".{METRIC}")
    }
    hidden = {f"{name}{edge}" for name in counts for edge in ("_low", "_high")}
    names = sorted(name for name in counts if not name.startswith(("series/", "tests/")))
    columns = [f"metrics.`{name}`" for name in names if name not in hidden]
    state: dict[str, object] = {"searchFilter": CURRENT, "selectedColumns": columns}
    better = {
        name: catalog()[metric].better
        for name, metric in metrics.items()
        if name in counts and metric in catalog()
    }
    if better:
        first = max(sorted(better), key=lambda name: (better[name] == "higher", counts[name]))
        state |= {"orderByKey": f"metrics.`{first}`", "orderByAsc": better[first] == "lower"}
    return state


@contextmanager
def serve(client: "MlflowClient", port: int) -> "Iterator[subprocess.Popen[bytes]]":
    """Run MLflow's server of this store's pages while the block lasts.

    The block begins when the server accepts connections. A signal that ends the process interrupts
    the block, so that the server ends too.
    """
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        raise BadInput(f"port {port}", str(error.strerror), "choose another by --port") from None
    command = [sys.executable, "-m", "mlflow", "ui", "--workers", "1", "--port", str(port)]
    command += ["--backend-store-uri", client.tracking_uri]
    # No page of runs needs the server's jobs, for which it would start further processes.
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    server = subprocess.Popen(command, env=environment)
    handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _wait_until_open(server, port)
        yield server
    finally:
        server.terminate()
        server.wait()
        signal.signal(signal.SIGTERM, handler)


def _wait_until_open(server: "subprocess.Popen[bytes]", port: int) -> None:
    """Return when the server accepts connections, or has ended."""
    while server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()  # no request: a proxy gets those
            return
        except OSError:
            time.sleep(0.2)
