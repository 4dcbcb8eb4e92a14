"""What `medprobe doctor` says of where a served model is."""

from medprobe.core.errors import BadInput
from medprobe.core.params import Params
from medprobe.extensions.servers.client import Client


def describe(name: str, params: Params) -> str:
    """Name the server, and say whether it answers now."""
    server = params.servers[name]
    try:
        Client(name, server, tries=1).models()
    except BadInput as error:
        state = f"has no /models now: {str(error).partition(': ')[2]}"
    else:
        state = "answers"
    return f"server {server.host}, {state}"
