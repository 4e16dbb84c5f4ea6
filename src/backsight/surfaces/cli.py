"""The command line: `backsight NOUN VERB --option value`, built from the operations."""

import gc
import logging
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import click

from backsight.core.errors import BacksightError, did_you_mean
from backsight.json_schemas import Schema
from backsight.ops import NOUNS
from backsight.settings import settings_from_environment, without_driver
from backsight.surfaces.terminal import echo_json
from backsight.surfaces.typed_text import alternatives, is_time, typed, types_of

if TYPE_CHECKING:
    from backsight.answers.detail import Detail
    from backsight.memory import Memory
    from backsight.operation import Operation
    from backsight.services.context import Progress

DIRECT = {
    "status": ("status", "See which store is open and what it holds: trades, decisions, documents, the audit head."),
    "deployments": ("get_my_deployments", "List the deployments with their results."),
    "doctor": ("doctor", "Derive every memory again from the episodes and compare it with the stored rows."),
}
"""Operations that also have a command without a noun, by the name of the command, with its help."""
DEFAULTS = {"state": "get_agent_state", "recall": "recall_memories"}
"""The operation of a noun that runs if no verb is given, as in `backsight state` and `backsight recall XAUUSD`."""
SYNONYMS = {"documents": ("memory",), "plans": ("trading",)}
"""Words that command names leave out because they mean the same as the noun."""

LOG = logging.getLogger("backsight")
HELP_OPTIONS = ("-h", "--help")
HELP_WIDTH = 200
"""Characters of the first sentence of a command's help; it is wrapped, not cut."""
FAILED_CHECK = 3
"""The exit status of a check that found something wrong; an error has 1, a mistyped command 2."""
DETAIL_HELP = "How much of the answer to show. [default: brief; with --json: full]"
JSON_HELP = "Print the answer as JSON: every field, or with --detail brief the brief rows."


class KnownCommands(click.Group):
    """A group that answers a mistyped command with the nearest one, or with all."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"no command {args[0]!r}; {did_you_mean(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


class Nouns(KnownCommands):
    """One sub-command for each noun; the operations of a noun are imported only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*NOUNS, *DIRECT, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in DIRECT:
            from backsight.memory import OPERATIONS

            return operation_command(OPERATIONS[DIRECT[cmd_name][0]], name=cmd_name)
        if cmd_name not in NOUNS:
            return super().get_command(ctx, cmd_name)
        return Verbs(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Memory"):
            formatter.write_dl(list(NOUNS.items()))
        with formatter.section("Programs"):
            run = [(name, command.get_short_help_str(limit=HELP_WIDTH)) for name, command in self.commands.items()]
            formatter.write_dl([*((name, text) for name, (_, text) in DIRECT.items()), *run])


class Verbs(KnownCommands):
    """The commands of one noun; the arguments of an operation are read only for the command that is used."""

    def __init__(self, noun: str) -> None:
        super().__init__(noun, help=NOUNS[noun])
        self.noun = noun
        if noun in DEFAULTS:
            self.subcommand_metavar = f"[COMMAND] [ARGS]...   (without COMMAND: {command_name(noun, DEFAULTS[noun])})"

    @cached_property
    def operation_names(self) -> dict[str, str]:
        """The names of the operations, by the name of their command."""
        from backsight.memory import OPERATIONS

        return {command_name(self.noun, name): name for name in OPERATIONS.of_noun(self.noun)}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*self.operation_names, *PROGRAMS.get(self.noun, {})])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from backsight.memory import OPERATIONS

        name = self.operation_names.get(cmd_name)
        return PROGRAMS.get(self.noun, {}).get(cmd_name) if name is None else operation_command(OPERATIONS[name])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default verb of the noun before arguments that name none."""
        if self.noun in DEFAULTS and not (args and (args[0] in self.list_commands(ctx) or args[0] in HELP_OPTIONS)):
            args = [command_name(self.noun, DEFAULTS[self.noun]), *args]
        return super().parse_args(ctx, args)


@click.command()
@click.option("--role", default="backsight", show_default=True, help="The role that the application connects as.")
@click.pass_context
def prepare_database(ctx: click.Context, role: str) -> None:
    """Prepare a PostgreSQL database: tables, policies, and a role for which row-level security holds.

    Run it as the role that is to own the tables, first and after every upgrade of Backsight. The application then
    connects as the other role, which can change no table and sees the rows of one owner at a time.
    """
    from backsight.store.database import open_database

    settings = settings_from_environment().with_values(url=ctx.find_root().params.get("url"))
    database = open_database(settings.url)
    try:
        database.prepare(role)
    finally:
        database.close()
    click.echo(f"The role {role} may use the store. Give it a password in psql: \\password {role}")


PROGRAMS: dict[str, dict[str, click.Command]] = {"admin": {"prepare-database": prepare_database}}
"""Commands of a noun that are not operations."""


def command_name(noun: str, operation: str) -> str:
    """The command name of an operation: its name without the words of its noun.

    >>> command_name("trades", "remember_trade"), command_name("trades", "list_trades")
    ('remember', 'list')
    >>> command_name("trades", "remember_inaction"), command_name("strategies", "deploy")
    ('remember-inaction', 'deploy')
    """
    singular = noun[:-3] + "y" if noun.endswith("ies") else noun.removesuffix("s")
    repeated = (noun, singular, *SYNONYMS.get(noun, ()))
    words = [word for word in operation.split("_") if word not in repeated]
    return "-".join(words) or operation.replace("_", "-")


def operation_command(operation: "Operation", *, name: str | None = None) -> click.Command:
    """The command of one operation: an option for each argument, and `--json`."""
    schema = operation.input_schema
    properties: dict[str, Schema] = schema["properties"]
    required = schema.get("required", [])
    parameters: list[click.Parameter] = [
        _option(name, argument, schema, required=name in required) for name, argument in properties.items()
    ]
    bare = required[0] if len(required) == 1 else None
    if not required and "deployment" in properties:
        bare = "deployment"
    if "detail" not in properties:
        parameters.append(detail_option())
    parameters.append(click.Option(["--json", "as_json"], is_flag=True, help=JSON_HELP))

    @click.pass_context
    def run(ctx: click.Context, /, as_json: bool, **options: Any) -> None:
        texts = {name: value for name, value in options.items() if value not in (None, ())}
        texts |= dict(_extra_arguments(ctx.args, bare=None if bare in texts else bare))
        arguments = {name: typed(text, properties.get(name, {}), schema) for name, text in texts.items()}
        carry_out(ctx, operation, arguments, as_json=as_json)

    return click.Command(
        name or command_name(operation.noun, operation.name),
        params=parameters,
        callback=run,
        help=operation.description,
        short_help=operation.summary,
        options_metavar=f"[{bare.upper()}] [OPTIONS]" if bare else "[OPTIONS]",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )


def detail_option() -> click.Option:
    """The option for how much of an answer is shown."""
    names = ("brief", "full")
    return click.Option(["--detail"], metavar="|".join(names), help=DETAIL_HELP, shell_complete=completed_from(names))


def _option(name: str, argument: Schema, schema: Schema, *, required: bool) -> click.Option:
    """The option of an argument; a boolean has a flag for each of its values."""
    words, text = name.replace("_", "-"), _help(argument, schema, required=required)
    if "boolean" in types_of(argument, schema):
        return click.Option([f"--{words}/--no-{words}", name], default=None, help=text)
    return click.Option(
        [f"--{words}", name],
        multiple="array" in types_of(argument, schema),
        help=text,
        metavar=_metavar(argument, schema),
        shell_complete=completed_from(_choices(argument, schema)),
    )


def completed_from(choices: Sequence[str]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """A completion by choices for the shell; the operation refuses other values, so that it names the remedy."""
    return lambda _ctx, _parameter, typed_text: [each for each in choices if each.startswith(typed_text)]


def carry_out(ctx: click.Context, operation: "Operation", arguments: dict[str, Any], *, as_json: bool) -> None:
    """Run an operation and print its answer: brief as tables, in full as JSON, unless `detail` says otherwise."""
    from backsight.answers.detail import split_detail

    try:
        detail, own_arguments = split_detail(operation, arguments, default="full" if as_json else "brief")
        reading = operation.kind == "query"
        shown = ShownText()
        with memory_of(ctx, actor="cli", create=not reading) as memory, ExitStack() as bars:
            memory.progress = _lazy_progress(bars)
            LOG.info("%s begins", operation.name)
            if "wait_seconds" in operation.arguments.model_fields and isinstance(own_arguments, dict):
                own_arguments = {"wait_seconds": LONGEST_WAIT, **own_arguments}
                memory.progress = lambda _part, _done, _total: None
                memory.on_text = None if as_json else shown
                bars.enter_context(ended_by_signals())
            answer = memory.run(operation, own_arguments)
            shown.end()
            LOG.info("%s ends", operation.name)
            note = _note_on_owners(memory) if reading else ""
    except BacksightError as error:
        if not as_json:
            raise
        echo_json(error.as_json(), indent=None, err=True)
        sys.exit(1)
    if note:
        click.echo(note, err=True)
    if operation.name == "status" and not as_json:
        click.echo(f"Store {without_driver(memory.database.name)}")
    if as_json:
        echo_json(_content(operation, answer, detail))
    else:
        from backsight.surfaces.tables import console, show, show_record

        (show_record if detail == "full" else show)(console(), answer)
    if getattr(answer, "imported_nothing", False):
        sys.exit(1)
    if not getattr(answer, "passed", True):
        sys.exit(FAILED_CHECK)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """End on SIGTERM and SIGHUP as on Ctrl-C: the run of an agent in progress is cancelled, and its program ended."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    numbers = (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))
    former = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


LONGEST_WAIT = 7_200.0
"""Seconds that the program waits for a run that it started."""


class ShownText:
    """Shows a text piece by piece, as an agent writes it, and ends its last line."""

    def __init__(self) -> None:
        self.is_empty = True

    def __call__(self, text: str) -> None:
        click.echo(text, nl=False)
        sys.stdout.flush()
        self.is_empty = False

    def end(self) -> None:
        if not self.is_empty:
            click.echo()
        self.is_empty = True


@click.command()
@click.argument("name")
@click.pass_context
def chat(ctx: click.Context, name: str) -> None:
    """Talk to the agent of a deployment in the terminal; its answers are shown as they are written.

    An empty line, Ctrl-D or Ctrl-C ends the conversation.
    """
    with memory_of(ctx, actor="cli") as memory, ended_by_signals():
        status = memory.session_status(deployment=name)
        click.echo(f"{status.deployment}: {status.message}", err=True)
        memory.on_text = shown = ShownText()
        while text := _next_message():
            try:
                answer = memory.chat_with_agent(
                    deployment=name, text=text, patience_seconds=60.0, wait_seconds=LONGEST_WAIT
                )
            except BacksightError as error:  # the next message may do better
                click.echo(str(error), err=True)
                continue
            shown.end()
            if answer.run.status != "succeeded" or answer.run.note:
                click.echo(answer.message, err=True)


def _next_message() -> str:
    """The next line that is typed; empty at the end of the input."""
    if sys.stdin.isatty():
        click.echo("> ", nl=False, err=True)
    return sys.stdin.readline().strip()


PROGRAMS["agents"] = {"chat": chat}


def _note_on_owners(memory: "Memory") -> str:
    """A sentence that names the owners who have rows in the store, where this owner has none; else empty."""
    from backsight.core.audit import EMPTY
    from backsight.store import audit

    with memory.reading() as connection:
        if audit.head(connection, memory.owner) != EMPTY:
            return ""
        others = ", ".join(audit.owners(connection))
    return f"The owner {memory.owner!r} has nothing in this store; there is something of: {others}." if others else ""


def _content(operation: "Operation", answer: object, detail: "Detail") -> Any:
    """The JSON of an answer: every field, or its brief form."""
    if detail == "full":
        return operation.as_json(answer)
    from backsight.answers.layouts import brief_of

    return brief_of(answer).as_json()


BARS_AFTER = 0.5
"""Seconds of an operation after which its progress is shown; the bars of short work would only flicker."""


def _lazy_progress(bars: ExitStack) -> "Progress":
    """Progress bars that are imported and shown once an operation has taken a while."""
    opened: list[Progress] = []
    start = time.monotonic()

    def report(part: str, done: int, total: int) -> None:
        if not opened:
            if time.monotonic() - start < BARS_AFTER:
                return
            from backsight.surfaces.progress import progress_bar

            opened.append(bars.enter_context(progress_bar()))
        opened[0](part, done, total)

    return report


def memory_of(ctx: click.Context, *, actor: str, create: bool = True) -> "Memory":
    """Open the memory that the options or the environment name; `ctx.obj` may hold another opener, as in tests.

    A store is created only for a command that may write.
    """
    from backsight.memory import open_memory

    options = ctx.find_root().params
    settings = settings_from_environment().with_values(url=options.get("url"), owner=options.get("owner"), actor=actor)
    if not create:
        from backsight.store.database import require_store

        require_store(settings.url, hint=hint_at_demo())
    LOG.info("store %s, owner %s, actor %s", without_password(settings.url), settings.owner, actor)
    opening: Callable[..., Memory] = ctx.obj or open_memory
    memory = opening(settings=settings)
    collect_garbage_from_now_on()
    return memory


DEMO_STORE = Path("backsight-demo", "store.db")
"""Where `backsight demo` keeps its store, from the folder in which it was started."""


def hint_at_demo() -> str:
    """Where the store of a demonstration of the current folder is; empty if there is none."""
    return f"the demo of this folder is at sqlite:///{DEMO_STORE}" if DEMO_STORE.exists() else ""


def program_name(program: str | None = None) -> str:
    """What to type for this program: its name if the shell finds it, else its path from the current folder."""
    path = Path(program or sys.argv[0])
    if path.name == "__main__.py":
        return f"{sys.executable} -m backsight"
    on_path = shutil.which(path.name)
    is_found = on_path is not None and Path(on_path).resolve() == path.resolve()
    return path.name if is_found else os.path.relpath(path)


def without_password(url: str) -> str:
    """A database URL for a log.

    >>> without_password("postgresql://ana:secret@host/name"), without_password("sqlite:///agent.db")
    ('postgresql://ana:…@host/name', 'sqlite:///agent.db')
    """
    scheme, mark, rest = url.partition("://")
    credentials, at, place = rest.rpartition("@")
    user, colon, _ = credentials.partition(":")
    return f"{scheme}{mark}{user}:…{at}{place}" if colon else url


def collect_garbage_from_now_on() -> None:
    """Let the garbage collector run again after the imports of a start, and ignore what they made."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


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


def _choices(argument: Schema, schema: Schema) -> list[str]:
    kinds = [kind["items"] if kind.get("type") == "array" else kind for kind in alternatives(argument, schema)]
    return [str(label) for kind in kinds for label in kind.get("enum", [])]


def _help(argument: Schema, schema: Schema, *, required: bool) -> str:
    sentences = [argument.get("description", "")]
    if choices := _choices(argument, schema):
        sentences.append(f"One of: {', '.join(choices)}.")
    if "array" in types_of(argument, schema):
        sentences.append("May be repeated.")
    if required:
        sentences.append("[required]")
    elif argument.get("default") not in (None, [], False):
        sentences.append(f"[default: {argument['default']}]")
    return " ".join(sentences)


def _metavar(argument: Schema, schema: Schema) -> str:
    types = types_of(argument, schema) - {"null"}
    if is_time(argument, schema):
        return "TIME"
    names = {"number": "NUMBER", "integer": "N", "object": "JSON"}
    return names.get(next(iter(types), ""), "TEXT")
