"""The command line: `backsight NOUN VERB --option value`, built from the operations."""

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
DIRECT = {"doctor": "Derive every memory again from the episodes and compare it with the stored rows."}
"""Operations that also have a command without a noun."""
SYNONYMS = {"documents": ("memory",)}
"""Words that command names leave out because they mean the same as the noun."""

FAILED_CHECK = 3
"""The exit status of a check that found something wrong; an error has 1, a mistyped command 2."""
DETAIL_HELP = "How much of the answer to show. [default: brief; with --json: full]"
JSON_HELP = "Print the answer as JSON: every field, or with --detail brief the brief rows."


class Nouns(click.Group):
    """One sub-command for each noun; the operations of a noun are imported only when it is used."""

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
        with formatter.section("Memory"):
            formatter.write_dl(list(NOUNS.items()))
        with formatter.section("Programs"):
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
    """The command name of an operation: its name without the words of its noun.

    >>> from backsight.memory import OPERATIONS
    >>> [command_name(OPERATIONS[name]) for name in ("remember_trade", "list_trades", "remember_inaction", "deploy")]
    ['remember', 'list', 'remember-inaction', 'deploy']
    """
    singular = operation.noun[:-3] + "y" if operation.noun.endswith("ies") else operation.noun.removesuffix("s")
    repeated = (operation.noun, singular, *SYNONYMS.get(operation.noun, ()))
    words = [word for word in operation.name.split("_") if word not in repeated]
    return "-".join(words) or operation.name.replace("_", "-")


def operation_command(operation: "Operation") -> click.Command:
    """The command of one operation: an option for each argument, and `--json`."""
    schema = operation.input_schema
    properties: dict[str, Schema] = schema["properties"]
    required = schema.get("required", [])
    parameters: list[click.Parameter] = [
        click.Option(
            [f"--{name.replace('_', '-')}", name],
            multiple="array" in _types(argument, schema),
            help=_help(argument, schema, required=name in required),
            metavar=_metavar(argument, schema),
        )
        for name, argument in properties.items()
    ]
    bare = required[0] if len(required) == 1 else None
    if not required and "deployment" in properties:
        bare = "deployment"
    if "detail" not in properties:
        parameters.append(click.Option(["--detail"], metavar="brief|full", help=DETAIL_HELP))
    parameters.append(click.Option(["--json", "as_json"], is_flag=True, help=JSON_HELP))

    @click.pass_context
    def run(ctx: click.Context, /, as_json: bool, **options: Any) -> None:
        texts = {name: value for name, value in options.items() if value not in (None, ())}
        texts |= dict(_extra_arguments(ctx.args, bare=None if bare in texts else bare))
        arguments = {name: _value(text, properties.get(name, {}), schema) for name, text in texts.items()}
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
    """Run an operation and print its answer: brief as tables, in full as JSON, unless `detail` says otherwise."""
    from backsight.surfaces.detail import split_detail

    try:
        detail, own_arguments = split_detail(operation, arguments, default="full" if as_json else "brief")
        with memory_of(ctx, actor="cli") as memory, ExitStack() as bars:
            memory.progress = _lazy_progress(bars)
            answer = memory.run(operation, own_arguments)
    except BacksightError as error:
        if not as_json:
            raise
        click.echo(json.dumps(error.as_json(), ensure_ascii=False), err=True)
        sys.exit(1)
    if as_json:
        from backsight.surfaces.layouts import brief_of

        content = operation.as_json(answer) if detail == "full" else brief_of(answer).as_json()
        click.echo(json.dumps(content, ensure_ascii=False, indent=2))
    else:
        from backsight.surfaces.tables import console, show, show_record

        (show_record if detail == "full" else show)(console(), answer)
    if not getattr(answer, "passed", True):
        sys.exit(FAILED_CHECK)


def _lazy_progress(bars: ExitStack) -> "Progress":
    """A progress bar that is imported at the first report, since few operations report progress."""
    opened: list[Progress] = []

    def report(part: str, done: int, total: int) -> None:
        if not opened:
            from backsight.surfaces.progress import progress_bar

            opened.append(bars.enter_context(progress_bar()))
        opened[0](part, done, total)

    return report


def memory_of(ctx: click.Context, *, actor: str) -> "Memory":
    """Open the memory that the options or the environment name; `ctx.obj` may hold another opener, as in tests."""
    from backsight.memory import open_memory

    options = ctx.find_root().params
    settings = settings_from_environment().with_values(url=options.get("url"), owner=options.get("owner"), actor=actor)
    opening: Callable[..., Memory] = ctx.obj or open_memory
    return opening(settings=settings)


def _extra_arguments(words: list[str], *, bare: str | None) -> Iterator[tuple[str, str | None]]:
    """Arguments that click does not know: one bare word for the required argument, else unknown options.

    Unknown options are passed on, so that the operation refuses them with the same error as on every surface.
    """
    rest = iter(words)
    for word in rest:
        if bare is not None and not word.startswith("--"):
            yield bare, word
            bare = None
            continue
        name, equals, value = word.removeprefix("--").partition("=")
        yield name.replace("-", "_"), value if equals else next(rest, None)


def _alternatives(argument: Schema, schema: Schema) -> Iterator[Schema]:
    """The types that an argument may have, with references resolved."""
    if "$ref" in argument:
        yield from _alternatives(schema["$defs"][argument["$ref"].rpartition("/")[2]], schema)
    elif "anyOf" in argument:
        for alternative in argument["anyOf"]:
            yield from _alternatives(alternative, schema)
    else:
        yield argument


def _types(argument: Schema, schema: Schema) -> set[str]:
    return {str(kind["type"]) for kind in _alternatives(argument, schema) if "type" in kind}


def _choices(argument: Schema, schema: Schema) -> list[str]:
    kinds = [kind["items"] if kind.get("type") == "array" else kind for kind in _alternatives(argument, schema)]
    return [str(label) for kind in kinds for label in kind.get("enum", [])]


def _help(argument: Schema, schema: Schema, *, required: bool) -> str:
    sentences = [argument.get("description", "")]
    if choices := _choices(argument, schema):
        sentences.append(f"One of: {', '.join(choices)}.")
    if "array" in _types(argument, schema):
        sentences.append("May be repeated.")
    if required:
        sentences.append("[required]")
    elif argument.get("default") not in (None, []):
        sentences.append(f"[default: {argument['default']}]")
    return " ".join(sentences)


def _metavar(argument: Schema, schema: Schema) -> str:
    types = _types(argument, schema) - {"null"}
    if any(kind.get("format") == "date-time" for kind in _alternatives(argument, schema)):
        return "TIME"
    names = {"number": "NUMBER", "integer": "N", "object": "JSON", "boolean": "true|false"}
    return names.get(next(iter(types), ""), "TEXT")


def _item(argument: Schema, schema: Schema) -> Schema:
    """The schema of the items of a list."""
    return next((kind["items"] for kind in _alternatives(argument, schema) if kind.get("type") == "array"), {})


def _value(text: Any, argument: Schema, schema: Schema) -> Any:
    """Typed text as a JSON value; text that cannot be converted is passed on, and the operation refuses it."""
    if isinstance(text, tuple):
        return [_value(item, _item(argument, schema), schema) for item in text]
    types = _types(argument, schema)
    try:
        if "integer" in types:
            return int(text)
        if "number" in types:
            return float(text)
        if "object" in types or "boolean" in types:
            return json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text
