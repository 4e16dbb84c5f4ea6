"""`backsight import FILE`: the format is recognised from the content, and chooses the operation."""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from backsight.core.errors import Invalid
from backsight.core.portfolio import Mode
from backsight.surfaces.cli import JSON_HELP, carry_out, completed_from, detail_option

if TYPE_CHECKING:
    from backsight.importers.formats import FileFormat

STANDARD_INPUT = "-"
OPERATIONS_BY_ROWS = {"fills": "import_fills", "trades": "import_trades"}
MODES = get_args(Mode)
OTHER_FILES = "`backsight import bars` reads bars, and `backsight import positions` logs of positions"


def file_command() -> click.Command:
    """The command that imports a file of any format."""
    from backsight.importers.registry import FORMATS

    names = [each.name for each in FORMATS]
    return click.Command(
        "import",
        params=[
            click.Argument(["path"], metavar="FILE"),
            click.Option(
                ["--format", "format_name"],
                metavar="NAME",
                help=f"One of {', '.join(names)}. Default: recognised from the content.",
                shell_complete=completed_from(names),
            ),
            click.Option(
                ["--mode"],
                metavar="|".join(MODES),
                help="Asked for if the format does not say.",
                shell_complete=completed_from(MODES),
            ),
            click.Option(["--account"], metavar="NAME", help="Of a file of fills. Default: the name of the file."),
            click.Option(["--deployment"], metavar="NAME", help="An existing deployment, by name or id."),
            click.Option(["--strategy-name"], metavar="NAME", help="Of a file of trades, where rows name none."),
            click.Option(
                ["--currency"], metavar="CODE", help="Of the account. Default: that of the format, mostly USD."
            ),
            click.Option(
                ["--timezone"], metavar="ZONE", help="Of times without an offset. Default: that of the format."
            ),
            click.Option(
                ["--map", "mapped"],
                metavar="COLUMN=FIELD",
                multiple=True,
                help="What a column of a table holds, like Menge=quantity or Datum=time:dmy. May be repeated.",
            ),
            click.Option(["--skip-broken"], is_flag=True, help="Leave out rows that cannot be read."),
            click.Option(["--dry-run"], is_flag=True, help="Show what would be imported and left out; write nothing."),
            detail_option(),
            click.Option(["--json", "as_json"], is_flag=True, help=JSON_HELP),
        ],
        callback=_import_file,
        help="Import a file of fills or closed trades; the format is recognised from the content. "
        "Every row is imported or named, and a second import of a file changes nothing.",
    )


@click.pass_context
def _import_file(
    ctx: click.Context,
    /,
    path: str,
    format_name: str | None,
    mode: str | None,
    mapped: Sequence[str],
    as_json: bool,
    **options: Any,
) -> None:
    from backsight.memory import OPERATIONS

    columns = columns_of_options(mapped)
    with _readable(path) as file:
        chosen = _chosen(file, format_name, columns)
        operation = OPERATIONS[OPERATIONS_BY_ROWS[chosen.rows]]
        if mode is None and chosen.mode is None and options["deployment"] is None and _is_terminal():
            mode = click.prompt(
                "Are these trades of real money, a paper account or a simulation?", type=click.Choice(MODES)
            )
        given = {"path": str(file), "format": chosen.name, "mode": mode, "columns": columns, **options}
        arguments = {name: value for name, value in given.items() if value not in (None, False, {})}
        carry_out(ctx, operation, arguments, as_json=as_json)


def columns_of_options(mapped: Sequence[str]) -> dict[str, str]:
    """The fields by column that `--map COLUMN=FIELD` gives."""
    columns: dict[str, str] = {}
    for pair in mapped:
        column, equals, field = pair.rpartition("=")
        if not equals or not column or not field:
            raise Invalid(f"{pair!r} is not COLUMN=FIELD; write it like Menge=quantity", field="map")
        columns[column] = field
    return columns


def _chosen(file: Path, name: str | None, columns: Mapping[str, str]) -> "FileFormat":
    """The format of a file; asked for if several fit and somebody can answer."""
    from backsight.importers.registry import chosen_format, fitting_formats

    if name is None and not columns and _is_terminal():
        fitting = [each.name for each in fitting_formats(file)]
        if len(fitting) > 1:
            name = click.prompt("The file fits several formats. Which is it?", type=click.Choice(fitting))
    try:
        return chosen_format(file, name, columns=columns)
    except Invalid as error:
        if error.field not in ("format", "columns") or name is not None or columns:
            raise
        raise Invalid(f"{error.message.removeprefix(f'{error.field}: ')}; {OTHER_FILES}", field=error.field) from None


def _is_terminal() -> bool:
    return sys.stdin.isatty()


@contextmanager
def _readable(path: str) -> Iterator[Path]:
    """The file; standard input is copied, because a format is recognised before the file is read."""
    if path != STANDARD_INPUT:
        yield Path(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "stdin"
        with file.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield file
