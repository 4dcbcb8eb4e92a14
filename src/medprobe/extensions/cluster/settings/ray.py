"""The executor `ray` of `params.yaml`: the workers of a Ray cluster compute."""

from contextlib import AbstractContextManager
from typing import Any, Final

from medprobe.core.params import EngineParams, Settings


def _open(engine: EngineParams) -> AbstractContextManager[Any]:
    from medprobe.extensions.cluster.executor import Cluster

    return Cluster(engine)


SETTINGS: Final = Settings[None]("ray", executor=_open)
