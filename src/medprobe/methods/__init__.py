"""The probing methods. The registry is the folder: `<name>.py` holds one method, a class named
after it (`mask_average` → `MaskAverage`) with `KINDS`, the kinds of model it can probe, `Settings`,
its section of `params.yaml`, and `rank`. It may have `inputs()`, the files and folders that ranks
depend on, where that is more than the model's, and `passes()`, the units of its outer work, where
there is more than one.
"""

import importlib
import pkgutil
from typing import Any

from medprobe.errors import BadInput, nearest


def names() -> list[str]:
    """The names of all methods, in order.

    >>> "contrastive" in names()
    True
    """
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def passes(prober: Any) -> list[str]:
    """The units of a method's outer work, such as checkpoints; one unnamed where it names none."""
    found: list[str] = prober.passes() if hasattr(prober, "passes") else [""]
    return found


def find(name: str) -> Any:
    """The class of a method. Raises BadInput where there is none of that name.

    >>> find("contrastive").KINDS
    ('masked', 'encoder')
    """
    if name not in names():
        raise BadInput("methods", f"no method '{name}'{nearest(name, names())}")
    module = importlib.import_module(f"{__name__}.{name}")
    return getattr(module, "".join(part.capitalize() for part in name.split("_")))
