"""The group of all commands, and how it reports errors."""

import atexit
import contextlib
import copy
import errno
import gc
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from io import TextIOWrapper
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from medprobe.core import places
from medprobe.core.environment import name_user
from medprobe.core.errors import (
    BadInput,
    is_out_of_memory,
    nearest,
    quoting,
    without_quotes,
)
from medprobe.core.files import disk_full_error
from medprobe.core.plugins import Plugin, find_plugins, load, load_module
from medprobe.pipeline import timings
from medprobe.pipeline.unchanged import unchanged

if TYPE_CHECKING:
    from medprobe.core.params import Params


HEADINGS: Final = {
    "Start": ("init", "sample", "adopt", "list"),
    "Bring data": ("import",),
    "Run": ("plan", "repro", "run", "ask"),
    "Look at results": ("show", "export", "ui"),
    "Keep in order": ("doctor", "clean"),
}
CI: Final = ("gate",)
OUT_OF_MEMORY: Final = (
    "out of memory; lower --jobs or engine.token_budget, or raise the limit (`ulimit -v`), "
    "and run it again, finished parts are kept"
)


class OneLine(click.ClickException):
    """An error as one line on standard error, with exit status 2."""

    exit_code = 2


def example(*lines: str) -> str:
    """Format the epilog of a command's help: command lines that can be pasted."""
    head = "Examples:" if len(lines) > 1 else "Example:"
    return "\n".join(["\b", head, *(f"  {line}" for line in lines)])


def load_params(*, required: bool = True) -> "Params":
    """Read params.yaml; outside a project, where it is not required, take the defaults.

    A command checks the settings that it uses. All others are left to the stage `check`, which runs
    before all others, since it takes seconds to import the methods. From here on errors quote text
    of the data where `track.text` allows it.
    """
    from medprobe.core import params

    if not required and not places.PARAMS.is_file():
        return params.Params()
    read = params.load_params()
    if read.track.text:
        quoting.set(True)
    return read


def json_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option `--json` to a command."""
    text = "Print one JSON object (docs/reference/scripts.md)."
    return click.option("--json", "as_json", is_flag=True, help=text)(command)


def confirm(question: str) -> bool:
    """Ask on the terminal."""
    try:
        return click.confirm(question)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise BadInput("no terminal to ask on", "nothing was changed", "add --yes") from None


def _plugins(*kinds: str) -> dict[str, Plugin]:
    """The plugins of the kinds `commands` and `stages`, by the names of their commands.

    Their files define `COMMAND`. That of a stage also takes `params`. The other files name by
    `HEADING` the one of HEADINGS below which the help lists the command.
    """
    plugins = {name: found for kind in kinds for name, found in find_plugins(kind).items()}
    return {name.replace("_", "-"): found for name, found in plugins.items()}


def _stage_command(plugin: Plugin) -> click.Command:
    """The command of a plugin's stage."""
    command: click.Command = copy.copy(load(plugin, "COMMAND", click.Command))
    run = command.callback
    assert run

    def stage(**options: Any) -> None:
        with unchanged():
            run(params=load_params(), **options)

    command.callback = stage
    return command


class Commands(click.Group):
    """The group of all commands. An error that the user can fix is one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the kernel's commands, and those of plugins."""
        if ctx.resilient_parsing:  # completion imports what it lists, and nobody types a stage
            return [*self.commands, *_plugins("commands")]
        return list(dict.fromkeys([*self.commands, *_plugins("commands", "stages")]))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; that of a plugin is imported here."""
        if own := self.commands.get(cmd_name):
            return own
        if plugin := _plugins("stages").get(cmd_name):
            return _stage_command(plugin)
        plugin = _plugins("commands").get(cmd_name)
        return load(plugin, "COMMAND", click.Command) if plugin else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command, its name and its words."""
        name = args[0]
        if self.get_command(ctx, name) is None and name[:1] != "-" and not ctx.resilient_parsing:
            similar = (
                nearest(name, [*_typed(), "--help", "--version"])
                or ": `medprobe run` probes and compares models"
            )
            ctx.fail(f"No command '{name}'{similar}; `medprobe --help` lists all.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List what people type, with its whole first sentences, and name all other commands."""
        plugins = _plugins("commands").items()
        headings = {
            **{name: heading for heading, names in HEADINGS.items() for name in names},
            **{name: load_module(plugin).HEADING for name, plugin in plugins},
        }
        for heading in HEADINGS:
            rows = [
                (name, command.get_short_help_str(limit=200))
                for name, of_name in headings.items()
                if of_name == heading and (command := self.get_command(ctx, name))
            ]
            with formatter.section(heading):
                formatter.write_dl(rows)
        stages = (name for name in self.list_commands(ctx) if name not in _typed())
        with formatter.section("Run by dvc.yaml, a stage each"):
            for line in wrap(", ".join(stages), width=72, break_on_hyphens=False):
                formatter.write_text(line)
        with formatter.section("Run by CI"):
            formatter.write_text(", ".join(CI))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the script `medprobe`."""
        for name in ("stdout", "stderr"):  # None where the shell closed it
            if (stream := getattr(sys, name)) is None:
                setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
            elif isinstance(stream, TextIOWrapper):  # a notebook has others
                stream.reconfigure(errors="replace")  # where the locale has no letter for a text
        name_user()
        gc.set_threshold(1_000_000)  # imports create about as many objects, and none is garbage
        atexit.register(gc.freeze)  # the interpreter's end would search them: seconds after a stop
        return super().__call__(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; turn bad input, a full disk and a stop into one line."""
        begin = time.monotonic()
        try:
            with without_quotes():
                result = super().invoke(ctx)
            timings.write(str(ctx.invoked_subcommand), time.monotonic() - begin)
            return result
        except KeyboardInterrupt:
            click.echo("stopped; stages keep what they have finished", err=True)
            ctx.exit(128 + signal.SIGINT)
        except BrokenPipeError:  # `| head` has read enough: click ends without a line
            raise
        except click.UsageError as error:
            if hint := _hint(error, ctx.invoked_subcommand):
                message = f"{error.format_message().rstrip('.')}: {hint}"
                raise click.UsageError(message, error.ctx) from error
            raise
        except Exception as error:
            errors = error.exceptions if isinstance(error, ExceptionGroup) else [error]
            messages = [_explain(each, f"medprobe {ctx.invoked_subcommand}") for each in errors]
            if ctx.params["verbose"] or not all(messages):
                raise
            raise OneLine("\nError: ".join(dict.fromkeys(messages))) from error


def _typed() -> set[str]:
    """The commands that people type, or CI: all but the stages."""
    return {name for names in (CI, *HEADINGS.values()) for name in names} | {*_plugins("commands")}


def _hint(error: click.UsageError, command: str | None) -> str:
    """Say what was likely meant by words that a command does not take; empty if unknown."""
    option = error.option_name.lstrip("-") if isinstance(error, click.NoSuchOption) else ""
    for param in error.ctx.command.params if option and error.ctx else ():
        if isinstance(param, click.Argument) and param.name in (option, f"{option}s"):
            return f"{param.name.upper()} is an argument, write it without --{option}"
    is_extra = "unexpected extra" in error.format_message()
    if command == "ask" and is_extra:
        return "put the prompt in quotes, and write --names a,b,c without blanks, or in quotes"
    if command == "repro" and (is_extra or (option and not getattr(error, "possibilities", None))):
        return "`dvc repro STAGE` runs some stages, with DVC's own options"
    if command and command not in _typed():
        other = "`medprobe run MODELS --benchmark NAME` probes and compares models"
        return f"`medprobe {command}` is a stage of dvc.yaml; {other}, `medprobe repro` runs stages"
    return ""


def _explain(error: Exception, command: str) -> str:
    """Word an error that the user can fix; empty for any other."""
    if isinstance(error, BadInput):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        extra = _extra_with(error.name or "")
        return f"{command}: needs {error.name}; pip install 'medprobe[{extra}]'" if extra else ""
    if is_out_of_memory(error):
        return f"{command}: {OUT_OF_MEMORY}"
    path = getattr(error, "filename", None) or "the file system"
    if _is_full(error):
        return f"{path}: {os.strerror(errno.ENOSPC)}; make room and run the command again"
    if isinstance(error, OSError):
        is_file = isinstance(error, FileExistsError | NotADirectoryError)
        problem = "a file is where a folder is expected" if is_file else error.strerror or error
        return f"{path}: {problem}; -v shows the traceback"
    return ""


def _extra_with(module: str) -> str:
    """Return the extra of this package that installs a missing module; empty if there is none."""
    package = module.partition(".")[0].replace("_", "-")
    for line in metadata.requires("medprobe") or ():
        requirement = re.match(r"([\w.-]+).*extra == [\"'](\w+)", line)
        if requirement and requirement[1] == package:
            return requirement[2]
    return ""


def _is_full(error: Exception) -> bool:
    """Whether an error reports a full disk; libraries word it differently."""
    return disk_full_error(error) is not None or any(
        words in str(error) for words in ("No space left", "disk is full")
    )


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=example("medprobe sample && medprobe repro", "medprobe list methods"),
)
@click.option("-v", "--verbose", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="medprobe")
def main(verbose: bool) -> None:
    """Measure the biomedical knowledge of a pre-trained language model.

    Run the commands in the folder of the project. `medprobe repro` runs all stages of the pipeline;
    `medprobe COMMAND --help` describes one command, with an example.
    """


Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _complete(list_names: Callable[[], Iterable[str]], *, or_path: bool = False) -> Complete:
    """Complete a name; with `or_path`, a path where no name begins like it."""

    def complete(_: click.Context, __: click.Parameter, text: str) -> list[CompletionItem]:
        names: list[CompletionItem] = []
        with contextlib.suppress(BadInput):  # a broken params.yaml is no matter of a Tab
            names += [CompletionItem(n) for n in sorted(list_names()) if n.startswith(text)]
        return names or [CompletionItem(text, type="file")] * or_path

    return complete


def _list_systems() -> Iterator[str]:
    """The systems of this project: MODEL/METHOD."""
    paths = places.PREDICTIONS.glob("*/*")
    return (f"{path.parent.name}/{path.name}" for path in paths if path.is_dir())


def _list_papers() -> Iterable[str]:
    from medprobe.core.papers import papers

    return papers()


def _list_views() -> list[str]:
    return ["leaderboard", *load_params(required=False).benchmark_names]


models = _complete(lambda: [*load_params(required=False).models.all()], or_path=True)
benchmarks = _complete(lambda: load_params(required=False).benchmark_names, or_path=True)
papers = _complete(_list_papers)
views = _complete(_list_views)
methods = _complete(lambda: find_plugins("methods"))
systems = _complete(_list_systems)
