"""The executor `ray`: the workers of a Ray cluster compute."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from medprobe.core.executor import Executor
from medprobe.core.params import EngineParams
from medprobe.extensions.cluster.executor import Cluster


@contextmanager
def open_executor(engine: EngineParams) -> Iterator[Executor]:
    """Provide the cluster. At the end its workers stop, and their costs are printed."""
    with Cluster(engine) as cluster:
        yield cluster
    for line in cluster.staff.costs():
        click.echo(line, err=True)


def describe(executor: Executor) -> dict[str, object]:
    """List the devices that computed a result, and the tokens they read."""
    assert isinstance(executor, Cluster)
    workers = "; ".join(executor.staff.costs())
    devices, tokens = executor.staff.devices(), executor.staff.tokens
    return {"executor": "ray", "device": devices, "workers": workers, "tokens": tokens}
