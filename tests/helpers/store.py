"""MLflow's stores for tests: the tables of a new one are made once, no write waits for the disk."""

import os
import sqlite3
from contextlib import chdir, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from sqlalchemy import event
from sqlalchemy.engine import Engine

from medprobe.tracking.store import URI, connect


@event.listens_for(Engine, "connect")
def _leave_writes_to_the_system(connection: sqlite3.Connection, _: object) -> None:
    with suppress(sqlite3.DatabaseError):  # a damaged file is MLflow's to find
        connection.execute("PRAGMA synchronous = OFF")


@cache
def _new_database() -> bytes:
    with TemporaryDirectory() as folder, chdir(folder), patch.dict(os.environ):
        os.environ.pop(URI, None)
        connect()
        return Path("mlruns/mlflow.db").read_bytes()


def make_store(folder: Path) -> None:
    """Put a store without runs into a project's folder, as `connect` makes it in seconds."""
    (folder / "mlruns").mkdir()
    (folder / "mlruns/mlflow.db").write_bytes(_new_database())
