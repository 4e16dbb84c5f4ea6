"""The `backsight` program: the commands of the operations, and those that serve, watch, import and backtest."""

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from backsight import __version__
from backsight.audience import AUDIENCES, Audience
from backsight.core.errors import BacksightError, Refused, Unavailable
from backsight.settings import settings_from_environment
from backsight.surfaces.cli import Nouns, memory_of, operation_command

if TYPE_CHECKING:
    import socket

    from fastapi import FastAPI

    from backsight.memory import Memory

PORT = 8765
LOOPBACK = ("127.0.0.1", "::1", "localhost")
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


@click.group(cls=Nouns, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="backsight")
@click.option("--url", help="Database URL. Default: BACKSIGHT_URL, else a file in your data folder.")
@click.option("--owner", help="Owner of the memory. Default: BACKSIGHT_OWNER, else 'me'.")
def program(url: str | None, owner: str | None) -> None:
    """The memory of AI trading agents: their trades and decisions, and what was known at each of them."""


@program.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=PORT, show_default=True, help="Port; 0 chooses a free port.")
@click.pass_context
def serve(ctx: click.Context, host: str, port: int) -> None:
    """Serve the REST API and MCP over HTTP, on this machine only."""
    from backsight.ops.documents import start_embedding

    listener = listen(host, port)
    with memory_of(ctx, actor="http") as memory:
        start_embedding(memory)
        click.echo("\n".join(addresses(listener)))
        run_http(http_application(memory, host), listener)


@program.command()
@click.option(
    "--audience",
    type=click.Choice(AUDIENCES),
    default="trader",
    show_default=True,
    help="Whose tools to offer: a trader's, a coach's (read only), or the owner's (all).",
)
@click.option(
    "--tools",
    metavar="NAME,NAME",
    help="Offer these tools instead: any operations that the audience may call.",
)
@click.option("--http", is_flag=True, help="Serve over streamable HTTP.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on, with --http.")
@click.option("--port", default=PORT, show_default=True, help="Port, with --http; 0 chooses a free port.")
@click.pass_context
def mcp(ctx: click.Context, audience: Audience, tools: str | None, http: bool, host: str, port: int) -> None:
    """Serve MCP to one agent over standard input and output, or over HTTP."""
    chosen = None if tools is None else [name.strip() for name in tools.split(",")]
    gc.disable()  # imports create many permanent objects, and collecting among them slows the start down
    from backsight.ops.documents import start_embedding
    from backsight.surfaces import mcp as surface

    with memory_of(ctx, actor=f"mcp:{audience}") as memory:
        gc.freeze()
        gc.enable()
        start_embedding(memory)
        if not http:
            surface.serve_stdio(memory, audience, tools=chosen)
            return
        server = surface.server(memory, audience, tools=chosen)
        listener = listen(host, port)
        click.echo(f"MCP  {base_url(listener)}/mcp")
        run_http(server.streamable_http_app(host=host), listener)


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
    import threading

    from backsight.ops.documents import ReindexResult
    from backsight.runtime.watcher import watch_documents

    def report(result: ReindexResult | BacksightError) -> None:
        if isinstance(result, BacksightError):
            click.echo(result.message, err=True)
        elif result.read or result.removed:
            index = f"{result.documents} documents, {result.chunks} chunks"
            click.echo(f"{index}; read {result.read}, removed {result.removed}, to be embedded {result.waiting}")

    with memory_of(ctx, actor="watcher") as memory:
        watch_documents(memory, report, threading.Event(), every_seconds=every)


@program.command()
@click.option("--seed", default=7, show_default=True, help="Seed of the simulated market.")
@click.option("--days", default=364, show_default=True, help="Days to simulate.")
@click.option("--port", default=PORT, show_default=True, help="Port; if it is in use, a free port is chosen.")
@click.option("--store", type=click.Path(path_type=Path), help="Save the store to this new file.")
@click.option("--serve/--no-serve", "serving", default=True, help="Whether to serve the result over REST and MCP.")
def demo(seed: int, days: int, port: int, store: Path | None, serving: bool) -> None:
    """Trade a simulated year, recall from it, and serve the result."""
    from backsight.surfaces.demo import show_demo

    with show_demo(seed=seed, days=days, store=store) as memory:
        if not serving:
            return
        try:
            listener = listen("127.0.0.1", port)
        except Unavailable:
            listener = listen("127.0.0.1", 0)
        click.echo("\n".join([*addresses(listener), "Stop with Ctrl-C."]))
        run_http(http_application(memory, "127.0.0.1"), listener)


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
def backtest(store: Path | None, report: Path | None, every: int, fills: bool, **options: Any) -> None:
    """Run a strategy over recorded bars; STRATEGY is file.py:Class or module:Class."""
    from datetime import timedelta

    from backsight.memory import PaperTerms
    from backsight.runtime.backtest_setup import BacktestRequest
    from backsight.surfaces.backtest import show_backtest

    rates = {name: options.pop(name) for name in ("fee_rate", "slippage", "funding_rate", "max_leverage")}
    terms = PaperTerms(reports_fills=fills, **rates)
    request = BacktestRequest(every=timedelta(minutes=every), terms=terms, **options)
    show_backtest(request, store=store, report=report, workspace=settings_from_environment().workspace)


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


def http_application(memory: "Memory", host: str) -> "FastAPI":
    """REST and MCP in one application. Only loopback host names are accepted, which stops DNS rebinding."""
    from collections.abc import AsyncIterator
    from contextlib import asynccontextmanager

    from starlette.middleware.trustedhost import TrustedHostMiddleware

    from backsight.surfaces import mcp as mcp_surface
    from backsight.surfaces import rest

    server = mcp_surface.server(memory, "owner")
    routes = server.streamable_http_app(host=host).routes

    @asynccontextmanager
    async def lifespan(_app: "FastAPI") -> AsyncIterator[None]:
        async with server.session_manager.run():
            yield

    app = rest.application(memory, lifespan=lifespan)
    app.router.routes.extend(routes)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK, "[::1]"])
    return app


def listen(host: str, port: int) -> "socket.socket":
    """A listening socket, on loopback only, since callers are not authenticated yet."""
    import socket

    if host not in LOOPBACK:
        raise Refused(f"{host!r} is not this machine, and callers are not authenticated; use 127.0.0.1", field="host")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio turns TCP_NODELAY on: small answers are sent at once.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        raise Unavailable(f"cannot listen on {host} port {port}: {error}; try --port 0", field="port") from None
    return listener


def base_url(listener: "socket.socket") -> str:
    """The URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def addresses(listener: "socket.socket") -> list[str]:
    """The URLs of REST and MCP, one a line."""
    url = base_url(listener)
    return [f"REST  {url}/api/v1/docs", f"MCP   {url}/mcp"]


def run_http(app: object, listener: "socket.socket") -> None:
    """Serve until the process is interrupted."""
    import uvicorn

    config = uvicorn.Config(app, log_level="warning", lifespan="on")  # type: ignore[arg-type]
    uvicorn.Server(config).run(sockets=[listener])


def main() -> None:
    """Run the program. An error is printed as one line without a traceback."""
    try:
        program(prog_name="backsight", standalone_mode=False)
    except BacksightError as error:
        click.echo(f"{error.kind}: {error.message}", err=True)
        sys.exit(1)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
