#!/usr/bin/env bash
# The data gate of a change: build the benchmarks from the data that data.dvc names and check them,
# without any model. Where the repository has a DVC remote, these are its data, and not to get them
# is a failure; where it has none, the sample world stands in. Run in the project's folder.
set -euo pipefail

pinned=$(cat data.dvc)
remote=$(dvc remote list)
if [ -n "$remote" ]; then
  echo "data gate: the data of data.dvc, from the DVC remote"
  if ! dvc pull --force data.dvc; then
    echo "::error file=data.dvc::the DVC remote does not give the data that data.dvc names: dvc push"
    exit 1
  fi
else
  echo "::notice::no DVC remote: the data of data.dvc cannot be fetched, the sample world is checked"
  test -d data || medprobe sample
fi

dvc repro --glob 'validate-*'

if [ "$pinned" != "$(cat data.dvc)" ]; then
  if [ -n "$remote" ]; then
    echo "::error file=data.dvc::what was checked is not what data.dvc names"
    exit 1
  fi
  echo "::warning file=data.dvc::names other data than the sample world, which nothing has checked"
fi
