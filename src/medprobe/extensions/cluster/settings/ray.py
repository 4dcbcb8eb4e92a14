"""The executor `ray` of `params.yaml`: the workers of a Ray cluster compute."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from medprobe.core.executor import Executor
from medprobe.core.params import EngineParams, Settings


@contextmanager
def open_cluster(engine: EngineParams) -> Iterator[Executor]:
    """Provide the cluster. At the end its workers stop, and what they did is printed."""
    import click

    from medprobe.extensions.cluster.executor import Cluster

    cluster = Cluster(engine)
    try:
        yield cluster
    finally:
        cluster.dismiss()
    if cluster.devices:
        click.echo(cluster.summary(), err=True)


SETTINGS: Final = Settings[None]("ray", executor=open_cluster)
