"""The section `artifacts` of dvc.yaml: the models that a project trains, for DVC's model registry.

DVC has no `foreach` there, so that the section names the models of params.yaml one by one.
"""

from typing import Any

import yaml

from medprobe.core import places
from medprobe.core.params import Params
from medprobe.sample.settings import find_recipe


def artifacts(params: Params) -> str:
    """Format the section: an entry per model of `train` and `continued`, none of other models.

    Raises:
        BadInput: a recipe is wrong.
    """
    entries: dict[str, dict[str, Any]] = {}
    for name in (*params.train, *params.continued):
        recipe, base = find_recipe(name, params)
        start = f"{base}, trained further" if base else f"{recipe.kind} model, trained"
        entries[name] = {
            "path": (places.MODELS / name).as_posix(),
            "type": "model",
            "desc": f"{start} on the corpus {recipe.corpus}",
        }
    text = yaml.safe_dump({"artifacts": entries}, sort_keys=False, allow_unicode=True, width=1000)
    return f"# The models that the project trains (docs/how-to/dvc.md).\n{text}"
