"""The command line: `backsight NOUN VERB --option value`, made from the operations."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from backsight.core.errors import BacksightError
from backsight.ops import NOUNS
from backsight.settings import settings_from_environment

if TYPE_CHECKING:
    from backsight.memory import Memory
    from backsight.operation import Operation
    from backsight.services.context import Progress

Schema = dict[str, Any]
DIRECT = {"doctor": "Derive every memory again from the episodes and compare it with what is kept."}
"""Operations that have a command without a noun, too."""
SAID_TOO = {"documents": ("memory",)}
"""Words of operations that their noun says in other words."""


class Nouns(click.Group):
    """One sub-command a noun; a noun's operations are looked up only when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*NOUNS, *DIRECT, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in DIRECT:
            from backsight.memory import OPERATIONS

            return operation_command(OPERATIONS[cmd_name])
        if cmd_name not in NOUNS:
            return super().get_command(ctx, cmd_name)
        return noun_group(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Ask of memory"):
            formatter.write_dl(list(NOUNS.items()))
        with formatter.section("Run"):
            run = [(name, command.get_short_help_str(90)) for name, command in self.commands.items()]
            formatter.write_dl([*DIRECT.items(), *run])


def noun_group(noun: str) -> click.Group:
    """The commands of one noun."""
    from backsight.memory import OPERATIONS

    group = click.Group(noun, help=NOUNS[noun])
    for operation in OPERATIONS.values():
        if operation.noun == noun:
            group.add_command(operation_command(operation))
    return group


def command_name(operation: "Operation") -> str:
    """What an operation is called under its noun: the words that the noun does not say already.

    >>> from backsight.memory import OPERATIONS
    >>> [command_name(OPERATIONS[name]) for name in ("remember_trade", "list_trades", "remember_inaction", "deploy")]
    ['remember', 'list', 'remember-inaction', 'deploy']
    """
    singular = operation.noun[:-3] + "y" if operation.noun.endswith("ies") else operation.noun.removesuffix("s")
    said = (operation.noun, singular, *SAID_TOO.get(operation.noun, ()))
    words = [word for word in operation.name.split("_") if word not in said]
    return "-".join(words) or operation.name.replace("_", "-")


def operation_command(operation: "Operation") -> click.Command:
    """The command of one operation: an option an argument, and `--json`."""
    schema = operation.input_schema()
    properties: dict[str, Schema] = schema["properties"]
    required = schema.get("required", [])
    parameters: list[click.Parameter] = [
        click.Option(
            [f"--{name.replace('_', '-')}", name],
            multiple="array" in _types(each, schema),
            help=_help(each, schema, required=name in required),
            metavar=_metavar(each, schema),
        )
        for name, each in properties.items()
    ]
    bare = required[0] if len(required) == 1 else None
    parameters.append(click.Option(["--json", "as_json"], is_flag=True, help="Print the whole answer as JSON."))

    @click.pass_context
    def run(ctx: click.Context, /, as_json: bool, **options: Any) -> None:
        given = {name: value for name, value in options.items() if value not in (None, ())}
        given |= dict(_left_over(ctx.args, bare=None if bare in given else bare))
        arguments = {name: _value(value, properties.get(name, {}), schema) for name, value in given.items()}
        carry_out(ctx, operation, arguments, as_json=as_json)

    return click.Command(
        command_name(operation),
        params=parameters,
        callback=run,
        help=operation.description,
        short_help=operation.summary,
        options_metavar=f"[{bare.upper()}] [OPTIONS]" if bare else "[OPTIONS]",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )


def carry_out(ctx: click.Context, operation: "Operation", arguments: dict[str, Any], *, as_json: bool) -> None:
    """Run an operation and print what it answers."""
    try:
        with memory_of(ctx, actor="cli") as memory, ExitStack() as bars:
            memory.progress = _told_late(bars)
            answer = memory.run(operation, arguments)
    except BacksightError as error:
        if not as_json:
            raise
        click.echo(json.dumps(error.as_json(), ensure_ascii=False), err=True)
        sys.exit(1)
    if as_json:
        click.echo(json.dumps(operation.as_json(answer), ensure_ascii=False, indent=2))
    else:
        from backsight.surfaces.layouts import show
        from backsight.surfaces.tables import console

        show(console(), operation.name, answer)


def _told_late(bars: ExitStack) -> "Progress":
    """Progress on a terminal; what shows it is loaded when there is something to show, which is rare."""
    shown: list[Progress] = []

    def tell(part: str, done: int, total: int) -> None:
        if not shown:
            from backsight.surfaces.progress import progress_bar

            shown.append(bars.enter_context(progress_bar()))
        shown[0](part, done, total)

    return tell


def memory_of(ctx: click.Context, *, actor: str) -> "Memory":
    """The memory that the environment names, or the command line instead; `ctx.obj` may open it in another way."""
    from backsight.memory import open_memory

    said = ctx.find_root().params
    settings = settings_from_environment().with_values(url=said.get("url"), owner=said.get("owner"), actor=actor)
    opening: Callable[..., Memory] = ctx.obj or open_memory
    return opening(settings=settings)


def _left_over(words: list[str], *, bare: str | None) -> Iterator[tuple[str, str | None]]:
    """A bare word for the one required argument; anything else is an argument to be refused as on every surface."""
    rest = iter(words)
    for word in rest:
        if bare is not None and not word.startswith("--"):
            yield bare, word
            bare = None
            continue
        name, equals, value = word.removeprefix("--").partition("=")
        yield name.replace("-", "_"), value if equals else next(rest, None)


def _resolved(each: Schema, schema: Schema) -> Iterator[Schema]:
    """The alternatives of a property, references followed."""
    if "$ref" in each:
        yield from _resolved(schema["$defs"][each["$ref"].rpartition("/")[2]], schema)
    elif "anyOf" in each:
        for one in each["anyOf"]:
            yield from _resolved(one, schema)
    else:
        yield each


def _types(each: Schema, schema: Schema) -> set[str]:
    return {str(one["type"]) for one in _resolved(each, schema) if "type" in one}


def _choices(each: Schema, schema: Schema) -> list[str]:
    inner = [one["items"] if one.get("type") == "array" else one for one in _resolved(each, schema)]
    return [str(label) for one in inner for label in one.get("enum", [])]


def _help(each: Schema, schema: Schema, *, required: bool) -> str:
    choices = _choices(each, schema)
    told = [each.get("description", "")]
    if choices:
        told.append(f"One of: {', '.join(choices)}.")
    if "array" in _types(each, schema):
        told.append("May be repeated.")
    if required:
        told.append("[required]")
    elif each.get("default") not in (None, []):
        told.append(f"[default: {each['default']}]")
    return " ".join(told)


def _metavar(each: Schema, schema: Schema) -> str:
    types = _types(each, schema) - {"null"}
    if any(one.get("format") == "date-time" for one in _resolved(each, schema)):
        return "INSTANT"
    return {"number": "NUMBER", "integer": "N", "object": "JSON"}.get(next(iter(types), ""), "TEXT")


def _item(each: Schema, schema: Schema) -> Schema:
    """What a list holds."""
    return next((one["items"] for one in _resolved(each, schema) if one.get("type") == "array"), {})


def _value(given: Any, each: Schema, schema: Schema) -> Any:
    """What was typed, as JSON would have it; what cannot be read stays text and is refused by name."""
    if isinstance(given, tuple):
        return [_value(one, _item(each, schema), schema) for one in given]
    types = _types(each, schema)
    try:
        if "integer" in types:
            return int(given)
        if "number" in types:
            return float(given)
        if "object" in types or "boolean" in types:
            return json.loads(given)
    except (ValueError, RecursionError):
        return given
    return given
