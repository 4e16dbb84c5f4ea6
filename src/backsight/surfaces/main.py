"""The `backsight` program: the commands of the operations, and those that serve, watch, import and backtest."""

import errno
import gc
import os
import signal
import sys
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import click

from backsight import __version__
from backsight.audience import AUDIENCES, Audience
from backsight.core.errors import BacksightError, Invalid, Unavailable
from backsight.core.text.counts import count_of
from backsight.settings import absolute_url, settings_from_environment
from backsight.surfaces.cli import (
    HELP_OPTIONS,
    KnownCommands,
    Nouns,
    collect_garbage_from_now_on,
    memory_of,
    operation_command,
)
from backsight.surfaces.extras import require_mcp
from backsight.surfaces.terminal import echo_json, prepare_output

if TYPE_CHECKING:
    import threading

    from backsight.memory import Memory

PORT = 8765
OUTPUT_ERRORS = (errno.ENOSPC, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC))
IMPORTS = {"bars": "import_bars", "fills": "import_fills", "positions": "import_positions", "trades": "import_trades"}
"""The names under `backsight import` and their operations."""


class Imports(click.Group):
    """`backsight import FILE`, and the operations that read a file of one kind, with the file as an argument."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(IMPORTS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return import_command(cmd_name) if cmd_name in IMPORTS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in IMPORTS:
            from backsight.surfaces.import_file import file_command

            return args[0], file_command(), args
        return super().resolve_command(ctx, args)


@click.group(cls=Nouns, context_settings={"help_option_names": list(HELP_OPTIONS)})
@click.version_option(__version__, prog_name="backsight")
@click.option("--url", help="Database URL. Default: BACKSIGHT_URL, else a file in your data folder.")
@click.option("--owner", help="Owner of the memory. Default: BACKSIGHT_OWNER, else 'me'.")
@click.option("-v", "--verbose", is_flag=True, help="Write a log of the program to standard error.")
def program(url: str | None, owner: str | None, verbose: bool) -> None:
    """The memory of AI trading agents: their trades and decisions, and what was known at each of them."""
    if verbose:
        import logging

        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
        logging.getLogger("backsight").setLevel(logging.DEBUG)


ON_TERMINAL = (
    "This is an MCP server that talks JSON-RPC over standard input and output. An MCP client starts it; see"
    " docs/guides/mcp.md. `backsight mcp --http` listens on a port. Stop with Ctrl-C."
)
LOG_HELP = "Whether to write a JSON line for each request to standard error."
HOST_HELP = "Address to listen on; other addresses than this machine's need a key."
KEYS_HELP = "Refuse every call without a key, also on this machine."


@program.command()
@click.option("--host", default="127.0.0.1", show_default=True, help=HOST_HELP)
@click.option("--port", default=PORT, show_default=True, help="Port; 0 chooses a free port.")
@click.option(
    "--audience",
    type=click.Choice(AUDIENCES),
    default="trader",
    show_default=True,
    help="Whose tools /mcp offers; those of a coach or of the owner need a key.",
)
@click.option("--require-keys", is_flag=True, help=KEYS_HELP)
@click.option("--log/--no-log", default=True, help=LOG_HELP)
@click.pass_context
def serve(ctx: click.Context, host: str, port: int, audience: Audience, require_keys: bool, log: bool) -> None:
    """Serve the pages, the REST API and MCP over HTTP, on this machine unless told otherwise.

    A caller without a key is the trader. The owner's commands need the owner's key: `backsight keys create`.
    """
    from backsight.surfaces.http_server import (
        LOOPBACK,
        HttpOptions,
        addresses,
        end_on_signals,
        http_application,
        listen,
        new_pages_token,
        run_http,
    )
    from backsight.surfaces.request_log import no_log, write_to_stderr

    end_on_signals()
    write_log = write_to_stderr if log else no_log
    with memory_of(ctx, actor="http") as memory, documents_kept_indexed(memory):
        token = new_pages_token(memory) if not require_keys and host in LOOPBACK else None
        options = HttpOptions(
            host=host, mcp_audience=audience, keys_required=require_keys, write_log=write_log, pages_token=token
        )
        listener = listen(host, port, memory=memory)
        click.echo("\n".join(addresses(listener, token)))
        run_http(http_application(memory, options), listener)


@program.command()
@click.option(
    "--audience",
    type=click.Choice(AUDIENCES),
    default="trader",
    show_default=True,
    help="Whose tools to offer: a trader's, a coach's (reads, and writes facts about the owner), or all.",
)
@click.option(
    "--tools",
    metavar="NAME,NAME",
    help="Offer these tools instead: any operations that the audience may call.",
)
@click.option("--http", is_flag=True, help="Serve over streamable HTTP.")
@click.option("--host", default="127.0.0.1", show_default=True, help=HOST_HELP)
@click.option("--port", default=PORT, show_default=True, help="Port, with --http; 0 chooses a free port.")
@click.option("--require-keys", is_flag=True, help=KEYS_HELP)
@click.pass_context
def mcp(
    ctx: click.Context, audience: Audience, tools: str | None, http: bool, host: str, port: int, require_keys: bool
) -> None:
    """Serve MCP to one agent over standard input and output, or over HTTP.

    The owner's tools need the owner's key: over HTTP in each call, else in the variable BACKSIGHT_KEY.
    """
    chosen = None if tools is None else tuple(name.strip() for name in tools.split(","))
    require_mcp()
    from backsight.surfaces import mcp as surface

    if not http:
        _name_folders(ctx)
    with memory_of(ctx, actor=f"mcp:{audience}") as memory, documents_kept_indexed(memory):
        if not http:
            if sys.stdin.isatty():
                click.echo(ON_TERMINAL, err=True)
            caller = surface.caller_over_stdio(memory, audience, key=settings_from_environment().key)
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, partial(_end_at_once, memory))
            surface.serve_stdio(caller, audience, tools=chosen)
            return
        from backsight.surfaces.http_server import (
            HttpOptions,
            base_url,
            end_on_signals,
            listen,
            mcp_application,
            run_http,
        )

        end_on_signals()
        options = HttpOptions(host=host, mcp_audience=audience, tools=chosen, keys_required=require_keys)
        app = mcp_application(memory, options)
        listener = listen(host, port, memory=memory)
        click.echo(f"MCP  {base_url(listener)}/mcp")
        run_http(app, listener)


def _name_folders(ctx: click.Context) -> None:
    """Make the URL of a store that depends on the folder absolute, and say so; name a workspace that is not there.

    A client starts a server in a folder of its own choice and shows its standard error in a log.
    """
    settings, options = settings_from_environment(), ctx.find_root().params
    url = options.get("url") or settings.url
    with suppress(Invalid):  # a store in memory
        options["url"] = absolute_url(url, folder=Path.cwd())
    if options["url"] not in (None, url):
        message = f"The store is {options['url']}: {url} depends on the folder, which the client chose."
        click.echo(f"{message} `backsight connect` writes the whole path.", err=True)
    if settings.workspace and not Path(settings.workspace).is_dir():
        click.echo(f"There is no folder {Path(settings.workspace).absolute()} for documents.", err=True)


def _end_at_once(memory: "Memory", number: int, _frame: FrameType | None) -> NoReturn:
    """End without waiting for the thread that reads standard input; a command in progress is whole or rolled back.

    The runs of agents are cancelled first, because their programs would go on.
    """
    memory.in_progress.stop()
    os._exit(130 if number == signal.SIGINT else 0)


@program.command("connect")
@click.argument("client", required=False)
@click.option("--list", "listing", is_flag=True, help="List the clients of this machine, and which are connected.")
@click.option(
    "--audience", type=click.Choice(AUDIENCES), default="trader", show_default=True, help="Whose tools to offer."
)
@click.option("--tools", metavar="NAME,NAME", help="Offer these tools instead.")
@click.option("--name", default="backsight", show_default=True, help="Name of the server in the client.")
@click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    default="user",
    show_default=True,
    help="The configuration of the user, or that of the project in the current folder.",
)
@click.option(
    "--workspace", type=click.Path(path_type=Path), help="Folder of the documents. Default: BACKSIGHT_WORKSPACE."
)
@click.option(
    "--skill/--no-skill", default=True, help="Whether to install the agent skill, where the client has skills."
)
@click.option("--dry-run", is_flag=True, help="Show the difference; write nothing.")
@click.option("--undo", is_flag=True, help="Take the server and the skill out again.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def connect_client(
    ctx: click.Context, /, client: str | None, listing: bool, dry_run: bool, undo: bool, as_json: bool, **options: Any
) -> None:
    """Connect an MCP client to this store: write the client's own configuration, and try the server once.

    CLIENT is claude-code, claude-desktop, cursor, codex, vscode, windsurf, gemini-cli or zed.
    """
    from backsight.surfaces.connect.clients import client_named
    from backsight.surfaces.connect.command import list_clients, run_connect, this_machine
    from backsight.surfaces.connect.connecting import ConnectRequest

    machine = this_machine({name: ctx.find_root().params.get(name) for name in ("url", "owner")})
    if client is None or listing:
        list_clients(machine, as_json=as_json)
        return
    request = ConnectRequest(client=client_named(client), machine=machine, **options)
    run_connect(request, dry_run=dry_run, undo=undo, as_json=as_json)


@program.command()
@click.option(
    "--every",
    default=300.0,
    show_default=True,
    help="Seconds between scans of the folder, besides the changes that the system reports.",
)
@click.pass_context
def watch(ctx: click.Context, every: float) -> None:
    """Keep the index of the documents up to date while their files change."""
    from backsight.ops.documents import ReindexResult
    from backsight.runtime.watcher import watch_documents

    def report(result: ReindexResult | BacksightError) -> None:
        if isinstance(result, BacksightError):
            click.echo(result.message, err=True)
        elif result.read or result.removed:
            index = f"{count_of(result.documents, 'document')}, {count_of(result.chunks, 'chunk')}"
            click.echo(f"{index}; read {result.read}, removed {result.removed}, to be embedded {result.waiting}")

    stop = _set_by_signals()
    with memory_of(ctx, actor="watcher") as memory:
        click.echo("Reading documents as they change; stop with Ctrl-C.", err=True)
        watch_documents(memory, report, stop, every_seconds=every)


def _set_by_signals() -> "threading.Event":
    """An event that Ctrl-C and SIGTERM set, for loops that then end normally."""
    import threading

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stop.set())
    return stop


@program.command()
@click.pass_context
def schedule(ctx: click.Context) -> None:
    """Run agents by their schedules, and do the periodic work of the store, until Ctrl-C.

    A run by schedule is a heartbeat. The periodic work: see what became of decisions (every 5 minutes), read changed
    documents (every 10 minutes), and reflect on each deployment when its cadence says so (looked at every hour).

    One process at a time does so for a store; a second one is refused. Heartbeats that were missed are not made up for.
    """
    import socket

    from backsight.runtime.scheduler import Scheduler

    stop = _set_by_signals()
    with memory_of(ctx, actor="schedule") as memory:
        holder = f"{socket.gethostname()}:{os.getpid()}"
        click.echo("Firing the heartbeats of agents; stop with Ctrl-C.", err=True)
        Scheduler(memory, holder, click.echo).run(stop)


@program.command()
@click.option("--seed", default=7, show_default=True, help="Seed of the simulated market.")
@click.option("--days", default=364, show_default=True, help="Days to simulate.")
@click.option("--port", default=PORT, show_default=True, help="Port; if it is in use, a free port is chosen.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("backsight-demo"),
    show_default=True,
    help="Folder of the store and the documents; a demo that is in it already is shown as it is.",
)
@click.option("--serve/--no-serve", "serving", default=True, help="Whether to serve it: the pages, REST and MCP.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def demo(seed: int, days: int, port: int, folder: Path, serving: bool, as_json: bool) -> None:
    """Trade a simulated year with memory, keep the store, and serve it."""
    from backsight.surfaces.demo import describe_demo, show_demo

    collect_garbage_from_now_on()
    try:
        if as_json:
            with describe_demo(seed=seed, days=days, folder=folder) as (memory, description):
                echo_json(description)
                if serving:
                    serve_demo(memory, port, folder)
            return
        with show_demo(seed=seed, days=days, folder=folder) as memory:
            if serving:
                serve_demo(memory, port, folder)
    except KeyboardInterrupt:
        click.echo("Stopped before the demo was whole; run it again to begin anew.", err=True)
        sys.exit(130)


def serve_demo(memory: "Memory", port: int, folder: Path) -> None:
    """Serve the demonstration until Ctrl-C, which ends it with one line."""
    from backsight.surfaces.http_server import (
        HttpOptions,
        addresses,
        end_on_signals,
        http_application,
        listen,
        new_pages_token,
        run_http,
    )

    end_on_signals()
    token = new_pages_token(memory)
    try:
        listener = listen("127.0.0.1", port)
    except Unavailable:
        listener = listen("127.0.0.1", 0)
    try:
        click.echo("\n".join([*addresses(listener, token), "Open the pages in a browser. Stop with Ctrl-C."]))
        run_http(http_application(memory, HttpOptions(pages_token=token)), listener)
    except KeyboardInterrupt:
        click.echo(f"\nStopped. The demo is in {folder}.")


@program.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
def samples(folder: Path) -> None:
    """Write sample files of the simulation into FOLDER: bars, fills, and a log of positions."""
    from backsight.runtime.samples import write_samples

    collect_garbage_from_now_on()
    for path in write_samples(folder):
        click.echo(path)


@program.command()
@click.argument("strategy")
@click.option(
    "--bars",
    "files",
    type=click.Path(path_type=Path),
    multiple=True,
    required=True,
    help="A CSV or Parquet file of bars; may be repeated.",
)
@click.option("--store", type=click.Path(path_type=Path), help="Save the store to this new file.")
@click.option("--symbol", help="The symbol of a file without a symbol column; in other files, the only symbol to use.")
@click.option("--timezone", default="UTC", show_default=True, help="Time zone of times without one.")
@click.option("--every", default=60, show_default=True, help="Minutes between decisions.")
@click.option("--cash", default=10_000.0, show_default=True, help="Starting cash.")
@click.option("--currency", default="USD", show_default=True, help="Currency of the account.")
@click.option("--fee-rate", default=0.0005, show_default=True, help="Fee as a fraction of the notional.")
@click.option("--slippage", default=0.0002, show_default=True, help="Slippage as a fraction of the price.")
@click.option(
    "--funding-rate", default=0.0, show_default=True, help="Fraction of the notional that longs pay every 8 hours."
)
@click.option("--max-leverage", default=5.0, show_default=True, help="Largest notional as a multiple of equity.")
@click.option(
    "--fills/--no-fills",
    default=True,
    help="Whether the simulated broker reports fills; else trades are inferred from its positions.",
)
@click.option(
    "--reflect", default="off", show_default=True, help="When to write lessons: off, daily, or per_n_trades:10."
)
@click.option(
    "--report", type=click.Path(path_type=Path), help="File for the report. Default: the workspace, if one is set."
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def backtest(store: Path | None, report: Path | None, every: int, fills: bool, as_json: bool, **options: Any) -> None:
    """Run a strategy over recorded bars; STRATEGY is file.py:Class or module:Class."""
    from datetime import timedelta

    from backsight.memory import PaperTerms
    from backsight.runtime.backtest_setup import BacktestRequest
    from backsight.surfaces.backtest import show_backtest

    collect_garbage_from_now_on()
    rates = {name: options.pop(name) for name in ("fee_rate", "slippage", "funding_rate", "max_leverage")}
    terms = PaperTerms(reports_fills=fills, **rates)
    request = BacktestRequest(every=timedelta(minutes=every), terms=terms, **options)
    workspace = settings_from_environment().workspace
    show_backtest(request, store=store, report=report, workspace=workspace, as_json=as_json)


@program.group(cls=KnownCommands)
def lab() -> None:
    """Find out whether memory helps on recorded trades: replay them, compare arms, write a report."""


@lab.command("run", short_help="Replay trades through a memory in RAM, and compare arms. Nothing is stored.")
@click.option(
    "--trades",
    type=click.Path(path_type=Path),
    multiple=True,
    required=True,
    help="A file of trades, fills or positions in any format that can be imported; several are replayed together.",
)
@click.option("--bars", type=click.Path(path_type=Path), multiple=True, help="Bars, for regimes and for agents.")
@click.option(
    "--arms",
    default="fixed,all_kelly,owm_score,position_size,skip_warned,random_skip",
    show_default=True,
    metavar="NAME,NAME",
    help="Arms to compare: these, `agent`, or your own as file.py:Class.",
)
@click.option("--agent", metavar="file.py:Class", help="The strategy or model of the arm `agent`.")
@click.option(
    "--training", default="0.5", show_default=True, help="Share of the trades, or date, before scoring begins."
)
@click.option("--folds", default=8, show_default=True, help="Walk-forward folds of the scored period.")
@click.option("--embargo", "embargo_days", default=1.0, show_default=True, help="Days left out at the start of a fold.")
@click.option("--seed", default=1, show_default=True, help="Seed of the resamples and draws.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("backsight-lab"),
    show_default=True,
    help="New folder for the report.",
)
@click.option("--format", metavar="NAME", help="Format of the trades; recognised from the content if left out.")
@click.option("--timezone", metavar="ZONE", help="Of times without an offset. Default: that of the format.")
@click.option("--currency", metavar="CODE", help="Of the account of fills or positions. Default: that of the format.")
@click.option("--strategy-name", metavar="NAME", help="Where rows name none. Default: the name of the file.")
@click.option("--map", "mapped", metavar="COLUMN=FIELD", multiple=True, help="What a column of a table holds.")
@click.option("--start-equity", type=float, help="Equity before the first trade, where the file does not say.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def lab_run(
    arms: str,
    agent: str | None,
    training: str,
    folds: int,
    embargo_days: float,
    seed: int,
    out: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """Replay trades through a memory in RAM: every arm decides before each outcome is known. Nothing is stored."""
    from backsight.lab.analysis import AnalysisTerms
    from backsight.lab.load import LabFiles
    from backsight.lab.run import training_of
    from backsight.surfaces.import_file import columns_of_options
    from backsight.surfaces.lab import LabRequest, show_lab

    collect_garbage_from_now_on()
    columns = columns_of_options(options.pop("mapped"))
    terms = AnalysisTerms(training=training_of(training), folds=folds, embargo_days=embargo_days, seed=seed)
    show_lab(
        LabRequest(
            files=LabFiles(columns=columns or None, **options),
            arms=arms,
            agent=agent,
            terms=terms,
            out=out,
            command=sys.argv[3:],
            as_json=as_json,
        )
    )


@lab.command("plant", short_help="Write trades with a planted truth into a file.")
@click.argument("truth", metavar="TRUTH")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--trades", default=500, show_default=True, help="Number of trades, over a year.")
@click.option("--seed", default=1, show_default=True, help="Seed of the trades.")
def lab_plant(truth: str, file: Path, trades: int, seed: int) -> None:
    """Write trades with a planted truth into FILE: edge_by_regime, edge_that_dies, no_edge or revenge_trading."""
    from backsight.surfaces.lab import write_planted

    write_planted(truth, file, trades=trades, seed=seed)


@program.group("import", cls=Imports, subcommand_metavar="FILE|COMMAND [OPTIONS]")
def import_files() -> None:
    """Import a file of fills or closed trades: `backsight import FILE`, or `-` for standard input.

    The format is recognised from the content; `backsight import FILE --help` shows the options. For a file of one kind
    there are the commands below.
    """


def import_command(what: str) -> click.Command:
    """The command of an operation that reads a file; the file is an argument instead of `--path`."""
    from backsight.memory import OPERATIONS

    command = operation_command(OPERATIONS[IMPORTS[what]])
    file = click.Argument(["path"], metavar="FILE", required=False)  # if missing, the operation raises its own error
    command.params = [file, *(parameter for parameter in command.params if parameter.name != "path")]
    command.name, command.options_metavar, command.context_settings = what, "[OPTIONS]", {}
    return command


def documents_kept_indexed(memory: "Memory") -> AbstractContextManager[None]:
    """Keep the index of the documents up to date in the background; without a workspace nothing is imported for it."""
    if memory.library is None or memory.library.folder is None:
        return nullcontext()
    from backsight.runtime.watcher import kept_indexed

    return kept_indexed(memory)


def main() -> None:
    """Run the program in a process of its own."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell, as by `>&-`
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 (open to the end)
    prepare_output()
    gc.disable()  # imports create many permanent objects, and collecting among them slows the start down
    try:
        run()
    finally:
        gc.freeze()  # nor need they be collected at the end


def run() -> None:
    """Run the program. An error is printed as one line without a traceback."""
    try:
        program(prog_name="backsight", standalone_mode=False)
        sys.stdout.flush()
    except BacksightError as error:
        click.echo(f"{error.kind}: {error.message}", err=True)
        sys.exit(1)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:  # the reader of a pipe has read enough
        _discard_output()
        sys.exit(0)
    except OSError as error:
        if error.errno not in OUTPUT_ERRORS:
            raise
        click.echo(f"Unavailable: the answer cannot be written: {error.strerror}", err=True)
        _discard_output()
        sys.exit(1)


def _discard_output() -> None:
    """Send what is still buffered nowhere, so that the interpreter does not fail to write it when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
