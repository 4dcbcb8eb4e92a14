"""The command line: quick help, one line for a mistake, exit status 2, nothing written."""

import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from helpers import nightly
from helpers.needed import SECTIONS
from medprobe.cli import main
from medprobe.cli.group import CI, HEADINGS
from medprobe.core.errors import BadInput
from medprobe.core.places import PARTS

CONTEXT = click.Context(main)
NAMES = main.list_commands(CONTEXT)


def find(name: str) -> click.Command:
    command = main.get_command(CONTEXT, name)
    assert command
    return command


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from medprobe.cli import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "heavy = {'torch', 'pandas', 'mlflow', 'transformers', 'pydantic', 'great_expectations'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help_with_an_example_that_it_takes(
    name: str, working_folder: Path
) -> None:
    output = CliRunner().invoke(main, [name, "--help"]).output
    examples = output.partition("Example")[2].replace("\\\n", "").splitlines()[1:]
    typed = [shlex.split(line) for line in examples if line.strip()]
    assert typed
    for program, command, *words in typed:
        assert program == "medprobe"
        assert name in (command, "adopt")
        find(command).make_context(command, words)  # raises UsageError


@pytest.mark.parametrize("name", NAMES)
def test_help_describes_every_argument_and_option(name: str) -> None:
    command = find(name)
    for param in command.params:
        if isinstance(param, click.Option):
            assert param.help, param.name
        else:
            assert str(param.name).upper() in (command.help or "") or hasattr(param.type, "choices")


def test_help_describes_what_people_type_and_names_every_other_command_once() -> None:
    lines = CliRunner().invoke(main, ["--help"]).output
    described = re.findall(r"^  ([a-z][a-z-]*)  +[A-Z]", lines, re.MULTILINE)
    typed = [name for names in HEADINGS.values() for name in names]
    assert [name for name in described if name in main.commands] == typed
    named = lines.partition("Run by dvc.yaml")[2].partition("Examples")[0]
    others = re.findall(r"[a-z][a-z-]*(?=,|$)", named, re.MULTILINE)
    assert sorted([*described, *others]) == sorted(NAMES)
    assert "..." not in lines.partition("\n")[2]


def run(folder: Path, *arguments: str, params: str = "") -> tuple[int, str]:
    runner = CliRunner()
    with runner.isolated_filesystem(folder):
        Path("params.yaml").write_text(SECTIONS + params)
        result = runner.invoke(main, arguments)
        written = [path for path in Path().rglob("*") if path.is_file()]
        assert [path for path in written if path.parent != PARTS] == [Path("params.yaml")]
    return result.exit_code, result.output


PROBE_OPTIONS = ["--model", "bert", "--method", "fill_mask", "--benchmark", "drugs"]
DRUGS = "benchmarks: {table: {drugs: {facts: tables/facts.csv}}}"


@pytest.mark.parametrize(
    ("arguments", "params", "says"),
    [
        (["probe", *PROBE_OPTIONS], "", "models: no model 'bert'"),
        (["build", "--benchmark", "druggs"], DRUGS, "did you mean 'drugs'?"),
        (["check"], "methods: {masked: {fil_mask: {drugs: {}}}}", "did you mean 'fill_mask'?"),
        (["score"], "scores: {}", "unknown key scores (did you mean 'score'?)"),
        (["build", "--benchmark", "drugs"], DRUGS, "data/tables/facts.csv"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    tmp_path: Path, arguments: list[str], params: str, says: str
) -> None:
    status, output = run(tmp_path, *arguments, params=params)
    assert status == 2
    assert says in output
    assert output.count("\n") == 1


TYPED = {
    *CI,
    *(name for names in HEADINGS.values() for name in names),
    "annotate",
    "export-lm-eval",
}


@pytest.mark.parametrize("name", sorted({*NAMES} - TYPED))
def test_a_stage_that_is_typed_like_a_command_says_what_it_is(name: str) -> None:
    result = CliRunner().invoke(main, [name, "some", "words"])
    assert result.exit_code == 2
    assert f"`medprobe {name}` is a stage of dvc.yaml; `medprobe run MODELS" in result.output


@pytest.mark.parametrize(
    ("name", "option"),
    [(n, p.name) for n in NAMES for p in find(n).params if isinstance(p, click.Argument)],
)
def test_an_argument_that_is_typed_as_an_option_is_named(name: str, option: str) -> None:
    for typed in (option, option.removesuffix("s")):
        output = CliRunner().invoke(main, [name, f"--{typed}", "x"]).output
        assert f"{option.upper()} is an argument, write it without --{typed}" in output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("evaluate", "No command 'evaluate': `medprobe run` probes and compares models"),
        ("help run", "No command 'help' (did you mean '--help'?)"),
        ("ask bert aspirin treats [Y]", "(treats [Y]): put the prompt in quotes"),
        ("run bert --benchmark d --method", "requires an argument"),
        ("expor", "No command 'expor' (did you mean 'export'?)"),
        ("ask bert [Y] --names a --benchmark b", "Error: give either --benchmark or --names\n"),
        ("repro mine", "argument (mine): `dvc repro STAGE` runs some stages"),
        ("repro --force", "option '--force': `dvc repro STAGE` runs some stages, with DVC's own"),
        ("repro --jobs 0", "'--jobs': 0 is not in the range x>=1.\n"),
        ("show drugs", "--differ with two systems; reports/queries/drugs.html lists the queries"),
    ],
)
def test_a_word_that_is_no_command_or_argument(words: str, says: str) -> None:
    result = CliRunner().invoke(main, words.split())
    assert result.exit_code == 2 and says in result.output


@pytest.mark.parametrize("command", ["list methods", *nightly("list nonsense")])
def test_closed_output_changes_no_status(tmp_path: Path, command: str) -> None:
    """Python has no object for a stream that the shell closed."""
    program = f"{sys.executable} -c 'from medprobe.cli import main; main()' {command}"
    (tmp_path / "params.yaml").write_text(SECTIONS)
    runs = [
        subprocess.run(
            ["sh", "-c", f"{program} {end}"],
            cwd=tmp_path, check=False, capture_output=True, text=True,
        )
        for end in ("", ">&-", "2>&-", ">&- 2>&-")
    ]  # fmt: skip
    assert {run.returncode for run in runs} == {2 if "nonsense" in command else 0}
    assert not any("Traceback" in run.stderr for run in runs)


def test_a_locale_without_a_letter_changes_no_status(tmp_path: Path) -> None:
    said = "click.Command('say', callback=lambda: print('7 \u2013 9'))"
    program = f"import click; from medprobe.cli import main; main.add_command({said}); main()"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-c", program, "say"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"7 ? 9\n", b"")


def test_a_stream_of_a_notebook_is_printed_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    main(["--version"], standalone_mode=False)
    assert ", version " in sys.stdout.getvalue()


def test_verbose_shows_the_traceback(tmp_path: Path) -> None:
    runner = CliRunner()
    with runner.isolated_filesystem(tmp_path):
        result = runner.invoke(main, ["-v", "score"])
    assert isinstance(result.exception, BadInput)


def test_sample_data_never_replaces_data_that_is_there(working_folder: Path) -> None:
    Path("params.yaml").write_text(SECTIONS)
    Path("data").mkdir()
    Path("data/notes.txt").write_text("mine", encoding="utf-8")
    result = CliRunner().invoke(main, ["sample"])
    assert result.exit_code == 2
    assert "already has files" in result.output
    assert [path.name for path in Path("data").iterdir()] == ["notes.txt"]


def test_sample_data_fill_an_empty_folder(working_folder: Path) -> None:
    """As `medprobe init` leaves one."""
    Path("params.yaml").write_text(SECTIONS)
    Path("data").mkdir()
    assert CliRunner().invoke(main, ["sample"]).exit_code == 0
    assert Path("data/sample/facts.csv").is_file()
