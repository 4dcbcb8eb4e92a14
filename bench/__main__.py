"""`make bench`: the measurements of this folder, one after another, each in a fresh process."""

import subprocess
import sys
from pathlib import Path

# Long, or no measurement of speed or rates: only if named.
NAMED = {"peers", "pictures", "taken_out"}


def main() -> None:
    """Run `python -m bench.<name>` for each file that can be run, or for those that are named."""
    paths = sorted(Path(__file__).parent.glob("[!_]*.py"))
    programs = {path.stem for path in paths if "\nif __name__ == " in path.read_text("utf-8")}
    failed = [
        name
        for name in sys.argv[1:] or sorted(programs - NAMED)
        if subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False).returncode
    ]
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


main()
