"""docs/tutorial.md: what a reader types works, in its order, with a tiny model."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from helpers import ROOT, FolderOf
from medprobe.cli import main

PAGE = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")


def block(language: str, start: str) -> str:
    """The code block of a language that begins with a text."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    [content] = [content for content in blocks if content.startswith(start)]
    return content


def command(start: str) -> list[str]:
    """The words of the page's command that begins with a text."""
    [line] = re.findall(rf"^{re.escape(start)}.*$", PAGE, re.MULTILINE)
    return [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', line)][1:]


def replace(params: str, section: str, content: str) -> str:
    """`params.yaml` with the line of a section replaced, as the page says."""
    assert len(re.findall(rf"^{section}: .*$", params, re.MULTILINE)) == 1
    return re.sub(rf"^{section}: .*$", content.strip(), params, flags=re.MULTILINE)


@pytest.mark.slow
def test_the_tutorial(
    working_folder: Path, tiny_model: FolderOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = CliRunner().invoke
    assert run(main, [*command("medprobe init")[:1], "drugs"]).exit_code == 0
    monkeypatch.chdir(working_folder / "drugs")
    assert run(main, command("medprobe sample")).exit_code == 0

    printed = subprocess.run(
        [sys.executable, "-c", block("python", "from pathlib")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ},
    )
    assert f"It prints `{printed.stdout.strip()}`" in PAGE
    table = Path("data/tables/drugs.csv").read_text()
    assert table.startswith(block("text", "subject,relation,object"))
    Path("data/tables/prompts.csv").write_text(block("csv", "relation,template"))

    path = Path("params.yaml")
    params = replace(path.read_text(), "models", block("yaml", "train:"))
    path.write_text(params)
    assert [*yaml.safe_load(params)["models"]["masked"]] == ["taught", "untaught"]
    benchmark, methods = block("yaml", "benchmarks:").split("methods:")
    params = replace(params, "benchmarks", benchmark)
    path.write_text(replace(params, "methods", f"methods:{methods}"))
    assert run(main, ["check"]).exit_code == 0
    assert run(main, ["build", "--benchmark", "drugs"]).exit_code == 0
    assert run(main, ["validate", "--benchmark", "drugs"]).exit_code == 0

    shutil.copytree(tiny_model("bert"), "outputs/models/taught")  # in place of `medprobe repro`
    result = run(main, command("medprobe run"))
    assert result.exit_code == 0, result.output
    assert "128" in result.output  # the queries that the page speaks of
    answer = run(main, command("medprobe ask"))
    assert answer.exit_code == 0, answer.output
    assert "rinanopathy" in Path("data/tables/drugs.csv").read_text()
