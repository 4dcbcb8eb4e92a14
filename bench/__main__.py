"""`make bench`: the measurements of this folder, one after another, each in a fresh process."""

import subprocess
import sys
from pathlib import Path

HELPERS = {
    "__init__",
    "__main__",
    "disks",
    "learnt",
    "made",
    "cluster_models",
    "words",
    "worlds",
    "calibration_document",
    "calibration_table",
}
NAMED = {"calibration", "cluster", "faults", "pictures"}  # long, or no measurement: only if named


def main() -> None:
    """Run `python -m bench.<name>` for each file, or for those named on the command line."""
    files = {path.stem for path in Path(__file__).parent.glob("*.py")}
    tests = {name for name in files if name.startswith("test_")}
    names = sys.argv[1:] or sorted(files - HELPERS - NAMED - tests)
    failed = [
        name
        for name in names
        if subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False).returncode
    ]
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


main()
