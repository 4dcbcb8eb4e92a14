"""What every params.yaml has: the kernel's sections, and those that papers and extensions need."""

from typing import Any, Final

import yaml

from medprobe.core.params import find_settings

NEEDED: Final[dict[str, Any]] = {
    "seed": 1,
    "engine": {"precision": "float32"},
    **{name: {} for name, settings in find_settings().items() if settings.required},
    "score": {},
    "track": {},
}
SECTIONS: Final = yaml.safe_dump(NEEDED, sort_keys=False)  # as text, before more sections
