"""The kinds of the models behind servers in `params.yaml`."""

from medprobe.core.errors import BadInput
from medprobe.core.params import Params


def check(params: Params) -> None:
    """Refuse a served model of a kind that no server can have."""
    for name in params.servers:
        if (kind := params.models.kind(name)) not in ("chat", "causal"):
            where = f"params.yaml: models.{kind}.{name}"
            raise BadInput(where, "a model behind a server is of kind chat or causal")
