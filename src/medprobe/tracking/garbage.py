"""Runs that were deleted in MLflow, which keeps them with their artefacts until it is asked.

Superseded runs are not deleted: they can be compared.
"""

import os
import subprocess
import sys
from typing import Final

from medprobe.core.errors import BadInput
from medprobe.tracking import store

MOST: Final = 50_000  # runs that MLflow lists at once


def count_deleted() -> int:
    """Return how many runs of the store in `mlruns/` are deleted; 0 where there is no store.

    Raises:
        NotLogged: The store cannot be used.
    """
    if os.environ.get(store.URI) or not (store.folder() / "mlflow.db").is_file():
        return 0
    client = store.connect()
    from mlflow.entities import ViewType  # after `connect`, which turns telemetry off

    with store.usable():
        ids = [item.experiment_id for item in client.search_experiments(view_type=ViewType.ALL)]
        return len(client.search_runs(ids, "", ViewType.DELETED_ONLY, max_results=MOST))


def remove_deleted() -> None:
    """Remove these runs and experiments with their artefacts, by MLflow's own command.

    Raises:
        BadInput: MLflow's command fails.
    """
    uri = f"sqlite:///{store.folder() / 'mlflow.db'}"
    command = [sys.executable, "-m", "mlflow", "gc", "--backend-store-uri", uri]
    command += ["--tracking-uri", uri]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        lines = result.stderr.strip().splitlines() or ["no message"]
        raise BadInput("mlruns", f"mlflow gc: {lines[-1]}")
