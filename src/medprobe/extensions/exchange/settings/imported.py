"""The kind of model `imported`: other programs asked it, and it has no checkpoint here."""

from typing import Final

from medprobe.core.settings import Settings

SETTINGS: Final = Settings(kind=True)
