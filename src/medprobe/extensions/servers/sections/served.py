"""What is known of models behind servers, at the start of each benchmark's chapter."""

from medprobe.core import places
from medprobe.core.params import Params
from medprobe.extensions.servers.fingerprint import OPENINGS, Fingerprint
from medprobe.extensions.servers.records import read_record
from medprobe.extensions.servers.settings.servers import SERVERS
from medprobe.report.results import Results
from medprobe.report.sections import Section


def notes(results: Results, benchmark: str) -> list[str]:
    """Return sentences on each served model that was probed on a benchmark."""
    probed = {path.parent.parent.name for path in results.paths[benchmark]}
    served = sorted(probed & {*SERVERS.of(results.params)})
    return [text for model in served for text in _describe_server(model, results.params)]


def _describe_server(model: str, params: Params) -> list[str]:
    server = read_record(places.MODELS / model)
    text = f"{model} is {server['model']} behind the server {server['host']}."
    text += " Its weights could not be hashed: the server does not show them."
    day = Fingerprint.read(server["fingerprint"]).day
    sentences = [f"{text} Its answers of {day} to {len(OPENINGS)} fixed openings stand for them."]
    if SERVERS.of(params)[model].zero_retention:
        sentences.append(f"params.yaml states that the server of {model} keeps no prompt.")
    return sentences


SECTION = Section(150, notes=notes)
