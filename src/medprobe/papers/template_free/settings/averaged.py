"""The key `averaged` of models: the subsets in which a model counts in means over models."""

from typing import Final

from medprobe.core.params import Params, Settings
from medprobe.core.settings import check_name


def _check(params: Params) -> None:
    from medprobe.papers.template_free.analyses.data_sets import PAPER

    subsets = [data.subset for data in PAPER]
    for kind, models in params.models.by_kind().items():
        for name, model in models.items():
            for subset in model.averaged if isinstance(model.averaged, dict) else ():
                check_name(subset, subsets, f"models.{kind}.{name}.averaged")


SETTINGS: Final = Settings[None]("averaged", check=_check)
