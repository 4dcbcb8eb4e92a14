"""What every params.yaml has: the kernel's sections, and those that papers and extensions need."""

from typing import Any, Final

import yaml

from medprobe import methods

NEEDED: Final[dict[str, Any]] = {
    "seed": 1,
    "engine": {"precision": "float32"},
    **{name: {} for method in methods.list_names() for name in methods.find(method).PARAMS},
    "score": {},
    "track": {},
}
SECTIONS: Final = yaml.safe_dump(NEEDED, sort_keys=False)  # as text, before more sections
