#!/usr/bin/env bash
# Install a wheel as users do, in environments of their own, and use it: alone, then as a project.
# Usage: .github/wheel.sh dist/medprobe-*.whl [python]
set -euo pipefail
wheel=$(realpath "$1")
tests=$(realpath "$(dirname "$0")/../tests")
python=${2:-python3}
folder=$(mktemp --directory)
trap 'rm -rf "$folder"' EXIT
unset PYTHONPATH
cd "$folder"

# Bare: a model's folder, a table of facts, and the example of docs/how-to/library.md.
"$python" -m venv bare
bare/bin/pip install --quiet "$wheel"
bare/bin/pip list --format=freeze | wc --lines | sed 's/$/ packages without extras/'
PYTHONPATH=$tests bare/bin/python - <<'PYTHON'
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

import medprobe
from helpers import tiny

absent = [name for name in ("dvc", "mlflow", "great_expectations", "polars") if find_spec(name)]
assert not absent, absent
model = medprobe.load(tiny.model("bert", Path("model")))
print(model.rank("stovumol might treat [Y] .", ["nemonopathy", "varinditis"], "mask_average"))
print(model.ask("stovumol might treat [Y] .", "xfactr", k=3))
rows = [("aspirin", "treats", "fever"), ("adrenaline", "treats", "shock")]
facts = pd.DataFrame(rows, columns=["subject", "relation", "object"])
facts.to_csv("facts.csv", index=False)
result = medprobe.probe(model, facts, "mask_average", prompts={"treats": "[X] treats [Y] ."})
print(result.scores[["metric", "value"]].head())
medprobe.figure(result.scores, "acc_at_1")
PYTHON
if bare/bin/medprobe init mine; then exit 1; else test $? = 2; fi # names the extra

# A project: a table and a model, through the gate and all stages.
bare/bin/pip install --quiet "$wheel[project]"
export PATH="$folder/bare/bin:$PATH"
medprobe init mine
mkdir mine/data/tables
mv facts.csv mine/data/tables
printf 'relation,template\ntreats,[X] treats [Y] .\n' > mine/data/tables/prompts.csv
cd mine
sed --in-place \
  -e 's|^folders: .*|folders: {tiny: ../model}|' \
  -e 's|^models: .*|models: {masked: {tiny: {}}}|' \
  -e 's|^benchmarks: .*|benchmarks: {table: {drugs: {facts: tables/facts.csv, prompts: tables/prompts.csv}}}|' \
  -e 's|^methods: .*|methods: {masked: {mask_average: {drugs: {}}}}|' params.yaml
medprobe repro
test -f reports/index.html
