"""Which backend a model's folder has."""

from pathlib import Path

from medprobe.backends import is_served, read_record
from medprobe.backends.base import Backend
from medprobe.backends.served import open_server
from medprobe.backends.transformers import Transformers
from medprobe.core.params import EngineParams, ModelKind
from medprobe.engine.inspection import Head, inspect


def find_kinds(folder: Path) -> tuple[ModelKind, ...]:
    """Return the kinds that the model of a folder can serve as."""
    if is_served(folder):
        return ("chat", "causal") if read_record(folder)["kind"] == "chat" else ("causal",)
    return inspect(folder).kinds


def find(folder: Path, head: Head, engine: EngineParams) -> Backend:
    """Return the backend of a model that writes.

    Args:
        folder: The model's, with a checkpoint or with RECORD.
        head: Of the checkpoint, `causal` or `seq2seq`.
        engine: Device, precision and token budget of a checkpoint.
    """
    if is_served(folder):
        return open_server(folder)
    return Transformers.load(folder, head, engine)
