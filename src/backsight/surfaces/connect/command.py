"""The command `backsight connect`."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from backsight.settings import PREFIX, variables_of_process
from backsight.surfaces.connect import screen
from backsight.surfaces.connect.clients import Machine
from backsight.surfaces.connect.connecting import ConnectRequest, connect, disconnect, found_clients, plan
from backsight.surfaces.extras import require_mcp


def this_machine(of_store: Mapping[str, str | None]) -> Machine:
    """This machine and the settings of this process; `of_store` are options of the command, which go before."""
    variables = variables_of_process()
    variables |= {f"{PREFIX}{name.upper()}": value for name, value in of_store.items() if value is not None}
    return Machine(platform=sys.platform, home_folder=Path.home(), variables=variables, folder=Path.cwd())


def list_clients(machine: Machine, *, as_json: bool) -> None:
    """Print the clients of a machine."""
    clients = list(found_clients(machine))
    if not as_json:
        click.echo("\n".join(screen.client_lines(clients)))
        return
    rows = [
        {
            "client": row.client.name,
            "scope": row.scope,
            "configuration": str(row.configuration),
            "state": row.state,
        }
        for row in clients
    ]
    click.echo(json.dumps(rows, ensure_ascii=False, indent=2))


def run_connect(request: ConnectRequest, *, dry_run: bool, undo: bool, as_json: bool) -> None:
    """Connect a client, show what that would change, or undo it; and print what was done."""
    if undo:
        disconnection = disconnect(request, dry_run=dry_run)
        lines = list(screen.disconnection_lines(disconnection, request, dry_run=dry_run))
        content = {
            "client": request.client.name,
            "changed": disconnection.configuration.is_needed,
            "message": "\n".join(lines),
        }
        click.echo(json.dumps(content, ensure_ascii=False, indent=2) if as_json else "\n".join(lines))
        return
    require_mcp()
    if dry_run:
        connection = plan(request)
        lines = list(screen.plan_lines(connection))
    else:
        from backsight.surfaces.connect.server_check import ask_server

        connection = connect(request, ask_server)
        lines = list(screen.connection_lines(connection, request))
    click.echo(screen.connection_json(connection, dry_run=dry_run) if as_json else "\n".join(lines))
