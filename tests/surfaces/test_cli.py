"""The command line: output, errors, help and completion."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from backsight.memory import OPERATIONS, open_memory
from backsight.ops import NOUNS
from backsight.surfaces.cli import command_name
from backsight.surfaces.main import program
from backsight.testing import a_trade_call
from parity.surfaces import as_options
from support import run_here


def run(*words: str, url: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_here(*words, environment=_environment(url, environment))


def run_process(*words: str, url: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a process of its own."""
    env = {**os.environ, **_environment(url, environment)}
    command = [sys.executable, "-m", "backsight", *words]
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False)


def _environment(url: str | None, more: dict[str, str]) -> dict[str, str]:
    return {"COLUMNS": "100", **more} | ({"BACKSIGHT_URL": url} if url else {})


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


def test_a_trade_goes_in_and_comes_out(store: str) -> None:
    remembered = run_process("trades", "remember", *as_options(a_trade_call()), "--json", url=store)
    assert remembered.returncode == 0, remembered.stderr
    trade_id = json.loads(remembered.stdout)["trade"]["id"]
    listed = run_process("trades", "list", url=store)
    assert trade_id[:6] in listed.stdout
    assert "+3.00R" in listed.stdout
    assert "VolBreakout" in run("trades", "get", trade_id, url=store).stdout
    recalled = run("recall", "memories", "XAUUSD", "--context-regime", "trending_up", url=store)
    row = next(line for line in recalled.stdout.splitlines() if trade_id[:6] in line)
    assert "best" in row
    assert "+3.00R" in row
    assert "trending_up" in row
    assert run("admin", "verify-audit", url=store).stdout.startswith("Intact: 4 rows match the 1 link of")


def test_a_person_sees_lines_and_tables(store: str, tmp_path: Path) -> None:
    lines = run("trades", "remember", *as_options(a_trade_call()), url=store).stdout.splitlines()
    assert lines[0] == "Remembered. For 'manual:VolBreakout' (live)."
    assert "+1175.00" in lines[2]
    bars = tmp_path / "bars.csv"
    bars.write_text("time,open,high,low,close\n2026-06-04,1,2,1,2\n2026-06-05,1,2,1,2\n2026-06-08,1,2,1,2\n")
    imported = run("events", "import-bars", str(bars), "--symbol", "XAUUSD", url=store).stdout
    words = [line.split() for line in imported.splitlines()]
    assert ["XAUUSD", "3", "3", "2026-06-04", "00:00", "2026-06-08", "00:00"] in words
    assert ["missing", "bars", "2"] in words
    assert "{" not in imported


def test_missing_options_are_named(store: str) -> None:
    text = run("trades", "remember", "--symbol", "XAUUSD", "--pnl", "x", url=store).stderr
    missing = "entry_price, exit_price, strategy_name"
    assert text == f"Invalid: direction: missing; it is required, and so are {missing} (and 1 more)\n"


def test_a_misspelt_option_is_named_before_the_option_that_is_missing(store: str) -> None:
    text = run("trades", "remember", "--symbl", "XAUUSD", url=store).stderr
    assert text.startswith("Invalid: symbl: unknown argument; did you mean 'symbol'?")


def test_an_error_is_one_line_on_stderr_and_exit_1(store: str) -> None:
    ran = run("trades", "remember", *as_options(a_trade_call(direction="lnog")), url=store)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == "Invalid: direction: 'lnog' is not known; did you mean 'long'? Known: long, short\n"


def test_an_error_as_json_is_json(store: str) -> None:
    ran = run("trades", "get", "nothing", "--json", url=store)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert json.loads(ran.stderr)["error"] == "NotFound"


@pytest.mark.parametrize(
    "words",
    [["nonsense"], ["trades", "nonsense"], ["--nonsense"], ["serve", "--port", "many"], ["mcp", "--audience", "x"]],
)
def test_wrong_usage_is_exit_2(words: list[str]) -> None:
    ran = run(*words)
    assert ran.returncode == 2
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("mysql://x/y", "Invalid: url: 'mysql' is not supported"),
        ("sqlite:////dev/null/x.db", "Unavailable: url: cannot use sqlite"),
        ("postgresql://ana:secret@127.0.0.1:1/x", "Unavailable: url: cannot use postgresql"),
    ],
)
@pytest.mark.parametrize("words", [["documents", "reindex"], ["mcp"], ["serve", "--port", "0"]])
def test_a_store_that_cannot_be_opened_is_an_error_of_one_line(url: str, text: str, words: list[str]) -> None:
    ran = (run if words[0] == "documents" else run_process)(*words, url=url)
    assert ran.returncode == 1
    assert ran.stderr.startswith(text)
    assert ran.stderr.count("\n") == 1
    assert "secret" not in ran.stderr


def test_an_unknown_setting_is_named() -> None:
    ran = run("trades", "list", BACKSIGHT_ONWER="ana")
    assert ran.stderr.startswith("Invalid: BACKSIGHT_ONWER: unknown setting; did you mean 'BACKSIGHT_OWNER'?")


def test_serving_on_a_public_address_is_refused(store: str) -> None:
    ran = run("serve", "--host", "0.0.0.0", url=store)
    assert ran.returncode == 1
    assert ran.stderr.startswith("Refused: host: '0.0.0.0' is not this machine")


def test_the_default_store_is_in_the_users_data_folder(tmp_path: Path) -> None:
    words = ("trades", "remember", *as_options(a_trade_call()))
    ran = run(*words, HOME=str(tmp_path), XDG_DATA_HOME=str(tmp_path / "data"))
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "data" / "backsight" / "backsight.db").exists()


def test_owners_have_separate_trades(store: str) -> None:
    run("--owner", "ana", "trades", "remember", *as_options(a_trade_call()), url=store)
    assert "No closed trades" in run("--owner", "bob", "trades", "list", url=store).stdout
    assert "XAUUSD" in run("trades", "list", url=store, BACKSIGHT_OWNER="ana").stdout


def test_an_export_is_json_lines_with_the_head_last(store: str) -> None:
    with open_memory(store, owner="me") as memory:
        memory.remember_trade(**a_trade_call(reflection="a\nb " + "x" * 300))
    lines = run("admin", "export-audit", url=store).stdout.splitlines()
    assert [set(json.loads(line)) for line in lines][1] == {"head"}
    assert json.loads(lines[0])["operation"] == "remember_trade"
    head = json.loads(lines[1])["head"]
    assert run("admin", "verify-audit", "--head", head, url=store).stdout.startswith("Intact")


def test_a_check_that_finds_something_is_exit_3_until_it_is_repaired(store: str) -> None:
    with open_memory(store) as memory:
        memory.remember_trade(**a_trade_call())
    path = store.removeprefix("sqlite:///")

    def status(*words: str) -> int:
        return CliRunner().invoke(program, ["--url", store, *words]).exit_code

    assert [status("doctor"), status("admin", "verify-audit")] == [0, 0]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("UPDATE semantic_cells SET wins = 99").rowcount
        connection.commit()
    assert run_process("doctor", url=store).returncode == 3
    assert [status("doctor", "--repair"), status("doctor")] == [0, 0]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("UPDATE trade_history SET pnl = 1000000").rowcount
        connection.commit()
    assert [status("admin", "verify-audit"), status("admin", "verify-audit", "--json")] == [3, 3]


def test_help_names_every_noun_command_and_option() -> None:
    top = run("--help").stdout
    for noun in [*NOUNS, "serve", "mcp", "demo"]:
        assert f"  {noun} " in top
    for operation in OPERATIONS.values():
        text = (
            CliRunner().invoke(program, [operation.noun, command_name(operation.noun, operation.name), "--help"]).output
        )
        for name in operation.arguments.model_fields:
            assert f"--{name.replace('_', '-')}" in text


def test_every_noun_has_operations_and_every_operation_a_noun() -> None:
    assert {operation.noun for operation in OPERATIONS.values()} == set(NOUNS)


def test_shell_completion_knows_the_nouns() -> None:
    ran = run_process(_BACKSIGHT_COMPLETE="bash_complete", COMP_WORDS="backsight t", COMP_CWORD="1")
    assert "trades" in ran.stdout


def test_a_database_is_prepared_for_a_role(postgres_url: str) -> None:
    ran = run("admin", "prepare-database", "--role", f"prepared_{os.getpid()}", url=postgres_url)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith(f"The role prepared_{os.getpid()} may use the store.")


def test_a_noun_without_a_verb_runs_its_usual_operation(store: str) -> None:
    run("trades", "remember", *as_options(a_trade_call()), url=store)
    assert run("state", url=store).stdout == run("state", "get-agent", url=store).stdout
    recalled = run("recall", "XAUUSD", "--limit", "3", url=store).stdout
    assert "Q: outcome, Sim: similarity, Rec: recency, Conf: confidence, Aff: mood" in recalled
    assert run("deployments", url=store).stdout.startswith("1 deployment, by name.")
    assert "live: 1 trade, 0 decisions" in run("status", url=store).stdout
    assert "create " in run("plans", "--help", url=store).stdout


def test_a_plain_date_is_midnight_in_utc(store: str) -> None:
    for day in (1, 2):
        call = a_trade_call(closed_at=f"2026-01-0{day}T12:00:00Z", idempotency_key=str(day))
        assert run("trades", "remember", *as_options(call), url=store).returncode == 0
    by_date = run("trades", "list", "--since", "2026-01-02", "--json", url=store)
    assert [trade["closed_at"] for trade in json.loads(by_date.stdout)["trades"]] == ["2026-01-02T12:00:00Z"]


def test_an_answer_into_a_full_disk_is_one_line_of_error(store: str) -> None:
    run("trades", "remember", *as_options(a_trade_call()), url=store)
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "backsight", "--url", store, "trades", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert (ran.returncode, ran.stderr) == (
        1,
        "Unavailable: the answer cannot be written: No space left on device\n",
    )


def test_a_read_of_a_store_that_is_not_there_creates_none(tmp_path: Path) -> None:
    missing = tmp_path / "mistyped.db"
    ran = run("trades", "list", url=f"sqlite:///{missing}")
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith(f"NotFound: url: there is no store at {missing}; ")
    assert not missing.exists()


def test_where_there_is_no_store_the_demo_of_the_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    missing = {"url": "sqlite:///mistyped.db"}
    assert "check the URL; the first command that writes creates a store" in run("status", **missing).stderr
    (tmp_path / "backsight-demo").mkdir()
    (tmp_path / "backsight-demo" / "store.db").touch()
    assert "; the demo of this folder is at sqlite:///backsight-demo/store.db; " in run("status", **missing).stderr


def test_status_names_the_store_without_its_password(store: str) -> None:
    run("trades", "remember", *as_options(a_trade_call()), url=store)
    assert run("status", url=store).stdout.startswith(f"Store {store}\nOwner 'me'. live: 1 trade, 0 decisions.\n")
    assert json.loads(run("status", "--json", url=store).stdout)["owner"] == "me"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["less"], ["lessons"]),
        (["trades", "rem"], ["remember", "remember-inaction"]),
        (["lessons", "does-memory-help", "--mo"], ["--mode"]),
        (["lessons", "does-memory-help", "--mode", ""], ["live", "paper", "sim"]),
        (["trades", "list", "--order", "best"], ["best", "best_r"]),
        (["trades", "list", "--detail", ""], ["brief", "full"]),
        (["import", "fills.csv", "--format", "ibkr"], ["ibkr-flex", "ibkr-flex-csv", "ibkr-statement"]),
    ],
)
def test_the_shell_completes_words_and_choices(words: list[str], expected: list[str]) -> None:
    line = {"COMP_WORDS": " ".join(["backsight", *words]), "COMP_CWORD": str(len(words))}
    completed = run_process(_BACKSIGHT_COMPLETE="bash_complete", **line).stdout
    assert [each.removeprefix("plain,") for each in completed.split()] == expected


def test_a_read_of_an_owner_without_rows_names_the_others(store: str) -> None:
    run("trades", "remember", *as_options(a_trade_call()), url=store)
    ran = run("--owner", "nobody", "trades", "list", url=store)
    assert ran.stderr == "The owner 'nobody' has nothing in this store; there is something of: me.\n"
    assert run("trades", "list", url=store).stderr == ""


def test_a_boolean_is_a_flag_and_takes_no_value(store: str) -> None:
    run("trades", "remember", *as_options(a_trade_call()), url=store)
    assert run("lessons", "reflect", "manual:VolBreakout", "--dry-run", url=store).returncode == 0
    assert run("lessons", "reflect", "--dry-run", "manual:VolBreakout", url=store).returncode == 0
    refused = run("lessons", "reflect", "manual:VolBreakout", "--dry-run", "perhaps", url=store)
    assert refused.stderr.startswith("Invalid: perhaps: unknown argument; known: deployment, dry_run")


def test_a_verbose_run_logs_the_store_without_its_password_and_the_operation(store: str) -> None:
    run("trades", "remember", *as_options(a_trade_call()), url=store)
    log = run_process("-v", "trades", "list", url=store).stderr
    assert f"store {store}, owner me, actor cli" in log
    assert "list_trades ends" in log
    refused = run_process("-v", "--url", "postgresql://ana:secret@127.0.0.1:1/none", "trades", "list")
    assert refused.returncode == 1
    assert "postgresql://ana:…@127.0.0.1:1/none" in refused.stderr
    assert "secret" not in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_mistyped_command_is_answered_with_the_nearest(store: str) -> None:
    for words, nearest in ((("trade", "list"), "'trades'"), (("trades", "lst"), "'list'")):
        ran = run(*words, url=store)
        assert ran.returncode == 2
        assert f"did you mean {nearest}?" in ran.stderr
