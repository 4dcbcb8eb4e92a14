"""The data gate: expectation suites (JSON) run by Great Expectations on a benchmark's tables.

Every module of this package may define expectations of our own: a function under `@value_check` or
`@row_check` (see `checks`), known to the suites by the function's name.
"""

import logging
import os

os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
logging.getLogger("great_expectations").setLevel(logging.ERROR)
