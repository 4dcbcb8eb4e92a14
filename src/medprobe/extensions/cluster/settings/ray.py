"""The executor `ray` of `params.yaml`: the workers of a Ray cluster compute."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from medprobe.core.params import EngineParams, Settings

if TYPE_CHECKING:
    from medprobe.core.executor import Executor


@contextmanager
def open_cluster(engine: EngineParams) -> Iterator["Executor"]:
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
