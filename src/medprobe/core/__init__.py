"""What every room builds on: parameters, the tables that cross stages, files, errors."""

import time
from typing import Final

# When this process began to import the package, in nanoseconds since 1970 (`core.stage_checks`).
IMPORT_TIME: Final = time.time_ns()
