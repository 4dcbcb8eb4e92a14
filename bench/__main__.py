"""`make bench`: the measurements of this folder, one after another, each in a fresh process."""

import subprocess
import sys
from pathlib import Path

HELPERS = {"__init__", "__main__", "browser", "damage", "machine", "made"}
LONG = {"calibration", "faults", "cluster", "large"}  # half an hour, or extras: only if named
TAKEN = {"pictures"}  # no measurement, and of the page as it is: only where it is named


def main() -> None:
    """Run `python -m bench.<name>` for each file, or for those named on the command line."""
    there = [path.stem for path in sorted(Path(__file__).parent.glob("*.py"))]
    names = sys.argv[1:] or [name for name in there if name not in HELPERS | LONG | TAKEN]
    failed = [
        name
        for name in names
        if subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False).returncode
    ]
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


main()
