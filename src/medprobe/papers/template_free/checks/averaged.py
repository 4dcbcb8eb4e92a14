"""The subsets in which `params.yaml` says whether a model counts in means over models."""

from medprobe.core.params import Params
from medprobe.papers.template_free.analyses.data_sets import PAPER
from medprobe.pipeline.check import check_name


def check(params: Params) -> None:
    """Refuse a subset that no data set has."""
    subsets = [data.subset for data in PAPER]
    for kind, models in params.models.by_kind().items():
        for name, model in models.items():
            for subset in model.averaged if isinstance(model.averaged, dict) else ():
                check_name(subset, subsets, f"models.{kind}.{name}.averaged")
