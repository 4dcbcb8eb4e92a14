"""What every params.yaml has: the kernel's sections, and those that papers and extensions need."""

from typing import Any, Final

import yaml

NEEDED: Final[dict[str, Any]] = {
    "seed": 1,
    "engine": {"precision": "float32"},
    "rewire": {},
    "sentence_sets": {},
    "score": {},
    "track": {},
}
SECTIONS: Final = yaml.safe_dump(NEEDED, sort_keys=False)  # as text, before more sections
