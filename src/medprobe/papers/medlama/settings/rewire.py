"""Section `rewire` of `params.yaml`: how models are rewired (Contrastive-Probe).

Its keys are the settings of `papers/medlama/rewiring.py`.
"""

from typing import Any, Final

from medprobe.core.settings import Settings

SETTINGS: Final = Settings(dict[str, Any], required=True, papers=True)
