"""What `medprobe doctor` says of where a served model is."""

from medprobe.core import places
from medprobe.core.errors import BadInput
from medprobe.core.params import Params
from medprobe.extensions.servers.backends.served import open_server
from medprobe.extensions.servers.client import Client
from medprobe.extensions.servers.fingerprint import check
from medprobe.extensions.servers.records import RECORD, read_record


def describe(name: str, params: Params) -> str:
    """Name the server, and say whether it answers now, as the model that has proved itself."""
    server, folder = params.servers[name], places.MODELS / name
    client = Client(name, server, tries=1)
    try:
        if (folder / RECORD).is_file():
            open_server(folder)  # refuses the record of another URL
            check(client, read_record(folder))
        else:
            client.models()
    except BadInput as error:
        state = str(error).partition(": ")[2]
    else:
        state = "answers"
    return f"server {server.host}, {state}"
