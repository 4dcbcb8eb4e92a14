"""The data gate: expectation suites (JSON) run by Great Expectations on tables.

Every module of this package may define expectations of our own: a function under `@value_check` or
`@row_check` (see `checks`), known to the suites by the function's name. Great Expectations is
imported where the gate runs, and not before.
"""

import importlib
import logging
import os
import pkgutil

os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
logging.getLogger("great_expectations").setLevel(logging.CRITICAL)  # its tracebacks quote data


def register() -> None:
    """Make all expectations of our own known to Great Expectations."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
