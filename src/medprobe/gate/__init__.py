"""The data gate: expectation suites (JSON), run by Great Expectations on tables.

A plugin of the kind `expectations` defines custom ones: functions under `@value_check` or
`@row_check` (see `checks`), which suites call by name. Great Expectations is imported only
where the gate runs.
"""

import logging
import os

os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
logging.getLogger("great_expectations").setLevel(logging.CRITICAL)  # its tracebacks quote data
