"""The `backsight` program: the operations, and the commands that serve them."""

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from backsight import __version__
from backsight.core.errors import BacksightError, Refused, Unavailable
from backsight.operation import AUDIENCES, Audience
from backsight.settings import settings_from_environment
from backsight.surfaces.cli import Nouns, memory_of, operation_command

if TYPE_CHECKING:
    import socket

    from fastapi import FastAPI

    from backsight.memory import Memory

PORT = 8765
LOOPBACK = ("127.0.0.1", "::1", "localhost")
IMPORTS = {"bars": "import_bars", "positions": "import_positions", "trades": "import_trades"}
"""What can be imported from a file, and the operation that does it."""


class Imports(click.Group):
    """The operations that read a file, each with the file as a bare word."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(IMPORTS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return import_command(cmd_name) if cmd_name in IMPORTS else None


@click.group(cls=Nouns, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="backsight")
@click.option("--url", help="Where the store is; BACKSIGHT_URL if left out, else a file in your data folder.")
@click.option("--owner", help="Whose memory it is; BACKSIGHT_OWNER if left out, else 'me'.")
def program(url: str | None, owner: str | None) -> None:
    """The memory of AI trading agents: what they did, how it ended, and what they knew when."""


@program.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", default=PORT, show_default=True, help="Which port; 0 takes a free one.")
@click.pass_context
def serve(ctx: click.Context, host: str, port: int) -> None:
    """Serve REST and MCP over HTTP."""
    from backsight.ops.documents import start_embedding

    listening = listen(host, port)
    with memory_of(ctx, actor="http") as memory:
        start_embedding(memory)
        click.echo("\n".join(addresses(listening)))
        run_http(both(memory, host), listening)


@program.command()
@click.option("--audience", type=click.Choice(AUDIENCES), default="trader", show_default=True, help="Whose tools.")
@click.option("--http", is_flag=True, help="Over streamable HTTP instead of standard input and output.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen, with --http.")
@click.option("--port", default=PORT, show_default=True, help="Which port, with --http; 0 takes a free one.")
@click.pass_context
def mcp(ctx: click.Context, audience: Audience, http: bool, host: str, port: int) -> None:
    """Serve MCP to one agent, over standard input and output."""
    gc.disable()  # importing makes many lasting objects; looking for garbage among them only takes time
    from backsight.ops.documents import start_embedding
    from backsight.surfaces import mcp as surface

    with memory_of(ctx, actor=f"mcp:{audience}") as memory:
        gc.freeze()
        gc.enable()
        start_embedding(memory)
        if not http:
            surface.serve_stdio(memory, audience)
            return
        listening = listen(host, port)
        click.echo(f"MCP  {base(listening)}/mcp")
        run_http(surface.server(memory, audience).streamable_http_app(host=host), listening)


@program.command()
@click.option("--every", default=300.0, show_default=True, help="Seconds after which to look, whatever was noticed.")
@click.pass_context
def watch(ctx: click.Context, every: float) -> None:
    """Keep the index of documents up to date while files change."""
    import threading

    from backsight.ops.documents import ReindexResult
    from backsight.runtime.watcher import watch_documents

    def tell(result: ReindexResult | BacksightError) -> None:
        if isinstance(result, BacksightError):
            click.echo(result.message, err=True)
        elif result.read or result.removed:
            stands = f"{result.documents} documents, {result.chunks} chunks"
            click.echo(f"{stands}; read {result.read}, removed {result.removed}, to be embedded {result.waiting}")

    with memory_of(ctx, actor="watcher") as memory:
        watch_documents(memory, tell, threading.Event(), every_seconds=every)


@program.command()
@click.option("--seed", default=7, show_default=True, help="Which simulated year.")
@click.option("--days", default=364, show_default=True, help="How many days of it.")
@click.option("--port", default=PORT, show_default=True, help="Which port; another one is taken if it is in use.")
@click.option("--store", type=click.Path(path_type=Path), help="Keep the store in this new file.")
@click.option("--serve/--no-serve", "serving", default=True, help="Serve it, or only show it.")
def demo(seed: int, days: int, port: int, store: Path | None, serving: bool) -> None:
    """Trade a simulated year, recall from it, and serve it."""
    from backsight.surfaces.demo import show_demo

    with show_demo(seed=seed, days=days, store=store) as memory:
        if not serving:
            return
        try:
            listening = listen("127.0.0.1", port)
        except Unavailable:
            listening = listen("127.0.0.1", 0)
        click.echo("\n".join([*addresses(listening), "Stop with Ctrl-C."]))
        run_http(both(memory, "127.0.0.1"), listening)


@program.command()
@click.argument("strategy")
@click.option("--bars", "files", type=click.Path(path_type=Path), multiple=True, required=True, help="CSV or Parquet.")
@click.option("--store", type=click.Path(path_type=Path), help="Keep the store in this new file.")
@click.option("--symbol", help="The instrument, where a file has no column for it; else only this one.")
@click.option("--timezone", default="UTC", show_default=True, help="The zone of times that name none.")
@click.option("--every", default=60, show_default=True, help="Minutes between decisions.")
@click.option("--cash", default=10_000.0, show_default=True, help="What the account starts with.")
@click.option("--currency", default="USD", show_default=True, help="What its money is counted in.")
@click.option("--fee-rate", default=0.0005, show_default=True, help="Share of notional, for every execution.")
@click.option("--slippage", default=0.0002, show_default=True, help="Share of price by which orders fill worse.")
@click.option("--funding-rate", default=0.0, show_default=True, help="Share of notional that longs pay every 8 hours.")
@click.option("--max-leverage", default=5.0, show_default=True, help="The most notional over equity.")
@click.option("--fills/--no-fills", default=True, help="Whether the broker reports fills, or only positions.")
@click.option("--reflect", default="off", show_default=True, help="When lessons are written: daily, per_n_trades:10.")
@click.option("--report", type=click.Path(path_type=Path), help="Keep the report here; else in the workspace, if set.")
def backtest(
    strategy: str,
    files: tuple[Path, ...],
    store: Path | None,
    symbol: str | None,
    timezone: str,
    every: int,
    cash: float,
    currency: str,
    fee_rate: float,
    slippage: float,
    funding_rate: float,
    max_leverage: float,
    fills: bool,
    reflect: str,
    report: Path | None,
) -> None:
    """Run a strategy over bars: STRATEGY is file.py:Class or module:Class."""
    from datetime import timedelta

    from backsight.memory import PaperTerms
    from backsight.runtime.backtest_setup import BacktestRequest
    from backsight.surfaces.backtest import show_backtest

    terms = PaperTerms(
        fee_rate=fee_rate,
        slippage=slippage,
        funding_rate=funding_rate,
        max_leverage=max_leverage,
        reports_fills=fills,
    )
    request = BacktestRequest(
        strategy=strategy,
        files=files,
        symbol=symbol,
        timezone=timezone,
        every=timedelta(minutes=every),
        cash=cash,
        currency=currency,
        terms=terms,
        reflect=reflect,
    )
    show_backtest(request, store=store, report=report, workspace=settings_from_environment().workspace)


@program.group("import", cls=Imports)
def import_files() -> None:
    """Bring in bars, or what agents held elsewhere, from a file."""


def import_command(what: str) -> click.Command:
    """The command of an operation that reads a file: `--path` is the bare word."""
    from backsight.memory import OPERATIONS

    command = operation_command(OPERATIONS[IMPORTS[what]])
    file = click.Argument(["path"], metavar="FILE", required=False)  # what is missing is told as on every surface
    command.params = [file, *(each for each in command.params if each.name != "path")]
    command.name, command.options_metavar, command.context_settings = what, "[OPTIONS]", {}
    return command


def both(memory: "Memory", host: str) -> "FastAPI":
    """REST and MCP in one application; a page of another site cannot reach it through a borrowed name."""
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
    """A socket that listens, on loopback only: there are no keys yet to tell callers apart."""
    import socket

    if host not in LOOPBACK:
        raise Refused(f"{host!r} is not this machine; anyone could write there. Use 127.0.0.1", field="host")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named, so that answers are sent at once
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(128)
    except (OSError, OverflowError) as error:
        made.close()
        raise Unavailable(f"cannot listen on {host} port {port}: {error}; try --port 0", field="port") from None
    return made


def base(listening: "socket.socket") -> str:
    """The address of a listening socket."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def addresses(listening: "socket.socket") -> list[str]:
    """What is served where."""
    at = base(listening)
    return [f"REST  {at}/api/v1/docs", f"MCP   {at}/mcp"]


def run_http(app: object, listening: "socket.socket") -> None:
    """Serve until told to stop."""
    import uvicorn

    config = uvicorn.Config(app, log_level="warning", lifespan="on")  # type: ignore[arg-type]
    uvicorn.Server(config).run(sockets=[listening])


def main() -> None:
    """Run the program; errors are one line, never a traceback."""
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
