"""The group of all commands, and what it says of errors."""

import errno
import gc
import os
import sys
import time
from typing import Any, Final

import click

from medprobe import fork_server
from medprobe.commands import timings
from medprobe.core.errors import BadInput, without_quotes
from medprobe.core.files import disk_full_error

HEADINGS: Final = {
    ".project": "Set up a project and run it",
    ".results": "Ask a model, read and share results",
    ".stages": "Stages of the pipeline, in their order",
}


class OneLine(click.ClickException):
    """An error as one line on standard error, with exit status 2."""

    exit_code = 2


class Commands(click.Group):
    """The group of all commands; what a person can mend is said in one line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands of each module below a heading, with their whole first sentences."""
        for module, heading in HEADINGS.items():
            with formatter.section(heading):
                of_module = [
                    (name, command.get_short_help_str(limit=200))
                    for name, command in self.commands.items()
                    if command.callback and command.callback.__module__.endswith(module)
                ]
                formatter.write_dl(of_module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The script `medprobe`: in a fork where `medprobe repro` runs it."""
        gc.set_threshold(1_000_000)  # libraries make as many objects that stay; it looks for others
        status = fork_server.run("medprobe", sys.argv[1:], os.environ)
        return super().__call__(*args, **kwargs) if status is None else sys.exit(status)

    def invoke(self, ctx: click.Context) -> Any:
        begin = time.monotonic()
        try:
            with without_quotes():
                result = super().invoke(ctx)
            timings.write(str(ctx.invoked_subcommand), time.monotonic() - begin)
            return result
        except BadInput as error:
            if ctx.params["verbose"]:
                raise
            raise OneLine(str(error)) from error
        except Exception as error:
            if ctx.params["verbose"] or not (isinstance(error, OSError) or _is_full(error)):
                raise
            where = getattr(error, "filename", None) or "the file system"
            if _is_full(error):
                said = f"{os.strerror(errno.ENOSPC)}; make room and run the command again"
            else:
                said = f"{getattr(error, 'strerror', None) or error}; see -v for the traceback"
            raise OneLine(f"{where}: {said}") from error


def _is_full(error: Exception) -> bool:
    """Does an error say that a disk is full? Libraries say it in many ways."""
    return disk_full_error(error) is not None or any(
        words in str(error) for words in ("No space left", "disk is full")
    )


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-v", "--verbose", is_flag=True, help="Show the traceback of an error.")
@click.version_option(package_name="medprobe")
def main(verbose: bool) -> None:
    """Measure what biomedical knowledge a pre-trained language model holds.

    `medprobe repro`, or `dvc repro`, runs the stages; each command can be run alone, in the folder
    of the project.
    """
