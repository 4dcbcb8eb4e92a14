"""The data gate: expectation suites (JSON), run by Great Expectations on tables.

Every module of this package can define custom expectations: a function under `@value_check` or
`@row_check` (see `checks`), which suites call by its name. Great Expectations is imported only
where the gate runs.
"""

import importlib
import logging
import os
import pkgutil

os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
logging.getLogger("great_expectations").setLevel(logging.CRITICAL)  # its tracebacks quote data


def register() -> None:
    """Register all custom expectations with Great Expectations."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
