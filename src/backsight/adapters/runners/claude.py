"""The `claude` command line as a runner: the prompt on standard input, the answer as lines of JSON.

The program keeps its sessions itself. A session that it does not know any more comes back as JSON with `is_error`, or
as plain text; an exit of 0 with nothing written is a failure, too.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from typing import IO, Any

from backsight.core.agents.request import AgentAnswer, AgentFailed, AgentRequest, RunCancelled, SessionGone
from backsight.core.errors import Unavailable
from backsight.core.text.untrusted_text import shorten

PROGRAM = "claude"
MOST_OUTPUT = 10_000_000
"""Bytes that are read of an answer."""
MOST_AT_ONCE = 1_000_000
LONGEST_SESSION = 250
"""Characters of the id of a session."""
PAUSE = 0.05
"""Seconds between looks at the program."""
GRACE = 2.0
"""Seconds that the program has to end after it was asked to."""
GONE = ("no conversation found", "session not found", "no such session", "session id does not exist")
"""How the program says that it does not know a session."""
TOOLS = {"mcpServers": {"backsight": {"command": sys.executable, "args": ["-m", "backsight", "mcp"]}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaudeRunner:
    """Runs agents with the `claude` command line."""

    program: str = PROGRAM
    model: str | None = None

    @property
    def name(self) -> str:
        return "claude"

    @property
    def keeps_sessions(self) -> bool:
        return True

    def check(self) -> None:
        """Raise `Unavailable` if the program is not installed."""
        if shutil.which(self.program) is None:
            message = f"the program {self.program!r} is not installed; install it, or choose the runner 'model'"
            raise Unavailable(message, field="runner")

    def invoke(self, request: AgentRequest) -> AgentAnswer:
        """Ask the agent; `SessionGone` if the session cannot be resumed, `AgentFailed` if there is no answer."""
        self.check()
        command = [shutil.which(self.program) or self.program, *self._options(request)]
        code, out, err = _communicate(command, request)
        return _read(code, out, err, session=request.session)

    def _options(self, request: AgentRequest) -> list[str]:
        options = ["-p", "--output-format", "stream-json", "--verbose", "--append-system-prompt", request.system]
        if request.tools and "BACKSIGHT_URL" in request.environment:
            names = ",".join(f"mcp__backsight__{tool.name}" for tool in request.tools)
            options += ["--mcp-config", json.dumps(TOOLS), "--allowedTools", names]
        if self.model is not None:
            options += ["--model", self.model.rpartition(":")[2]]
        return options if request.session is None else [*options, "--resume", request.session]


class _Reader(Thread):
    """Reads a stream of a process to its end, or to a limit; each line is handed on."""

    def __init__(self, stream: IO[bytes], on_line: Callable[[bytes], None]) -> None:
        super().__init__(name="backsight-claude", daemon=True)
        self.stream, self.on_line = stream, on_line
        self.lines: list[bytes] = []
        self.size = 0
        self.start()

    def run(self) -> None:
        with suppress(ValueError, OSError):  # the stream was closed because the process was killed
            while line := self.stream.readline(MOST_AT_ONCE):  # a line may have no end
                self.size += len(line)
                if self.size <= MOST_OUTPUT:
                    self.lines.append(line)
                    self.on_line(line)

    def close(self) -> None:
        if not self.is_alive():  # else a process that the program left behind still writes
            self.stream.close()

    @property
    def text(self) -> str:
        return b"".join(self.lines).decode("utf-8", errors="replace")


def _communicate(command: list[str], request: AgentRequest) -> tuple[int, str, str]:
    """The exit code, the output and the errors of the program; it is killed when its time is over."""
    process = subprocess.Popen(  # noqa: S603 (the program that the owner configured)
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **request.environment},
        start_new_session=True,
    )
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise AssertionError("the process was started with pipes")
    readers = [
        _Reader(process.stdout, lambda line: _show(line, request.on_text)),
        _Reader(process.stderr, lambda _line: None),
    ]
    writer = Thread(target=_write, args=(process.stdin, request.prompt), name="backsight-claude", daemon=True)
    writer.start()
    deadline = time.monotonic() + request.timeout
    try:
        while process.poll() is None:
            if request.is_cancelled():
                raise RunCancelled("the run was cancelled")
            if time.monotonic() > deadline:
                raise AgentFailed(f"the agent did not answer within {request.timeout:g} s; allow more time")
            if readers[0].size > MOST_OUTPUT:
                raise AgentFailed(f"the agent wrote more than {MOST_OUTPUT:,} bytes")
            time.sleep(PAUSE)
    finally:
        _end(process)
        for reader in readers:
            reader.join(GRACE)
            reader.close()
        writer.join(GRACE)
    return process.returncode, readers[0].text, readers[1].text


def _write(stream: IO[bytes], prompt: str) -> None:
    with suppress(OSError), stream:  # the program may end without reading its prompt
        stream.write(prompt.encode())


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the program and what it started: ask first, then kill."""
    for name in ("SIGTERM", "SIGKILL"):
        if process.poll() is not None:
            return
        with suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, getattr(signal, name))
            else:  # Windows has no process groups that a signal reaches
                process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)


def _show(line: bytes, on_text: Callable[[str], None]) -> None:
    """Hand on the text of a message of the assistant."""
    message = _parsed(line.decode("utf-8", errors="replace"))
    if message is not None and message.get("type") == "assistant":
        content = message.get("message", {})
        for part in content.get("content", []) if isinstance(content, dict) else []:
            if isinstance(part, dict) and part.get("type") == "text":
                on_text(str(part.get("text", "")))


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _read(code: int, out: str, err: str, *, session: str | None) -> AgentAnswer:
    """The answer in the output of the program."""
    if session is not None and _says_gone(out, err):
        raise SessionGone(f"the session {session} cannot be resumed")
    result = _result(out)
    if result is None:
        if not out.strip():
            why = f": {shorten(err, most=200, tokens=100)}" if err.strip() else ""
            raise AgentFailed(f"the agent answered nothing (exit {code}){why}")
        if any(_parsed(line) for line in out.splitlines()):
            raise AgentFailed(f"the agent ended before its result (exit {code}); run it again")
        raise AgentFailed(f"the agent did not answer with JSON (exit {code}): {shorten(out, most=200, tokens=100)}")
    text = result.get("result")
    if result.get("is_error") or code != 0:
        errors = result.get("errors")
        why = text if isinstance(text, str) and text.strip() else err
        why = why or (json.dumps(errors) if errors else str(result.get("subtype", "no reason given")))
        raise AgentFailed(f"the agent failed (exit {code}): {shorten(why, most=300, tokens=150)}")
    if not isinstance(text, str) or not text.strip():
        raise AgentFailed("the agent answered with an empty result")
    usage = result.get("usage")
    return AgentAnswer(
        text=text,
        session=_session(result.get("session_id")),
        model=_model_of(result),
        input_tokens=_count(usage, "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
        output_tokens=_count(usage, "output_tokens"),
        cost=_cost(result.get("total_cost_usd")),
    )


def _says_gone(out: str, err: str) -> bool:
    """Whether the program says that it does not know the session: in an error of JSON, or in plain text."""
    result = _result(out)
    if result is not None and not result.get("is_error"):
        return False
    texts = [err, out if result is None else json.dumps(result)]
    return any(phrase in text.lower() for text in texts for phrase in GONE)


def _result(out: str) -> dict[str, Any] | None:
    """The last object of type `result`: the whole output, or one of its lines."""
    whole = _parsed(out)
    objects = [whole] if whole is not None else [_parsed(line) for line in out.splitlines() if line.startswith("{")]
    results = [each for each in objects if each is not None and (each.get("type") == "result" or "result" in each)]
    return results[-1] if results else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _session(value: object) -> str | None:
    """The id of a session; None for one that could be neither stored nor passed on."""
    text = _text(value)
    return text if text is not None and len(text) <= LONGEST_SESSION and text.isprintable() else None


def _model_of(result: Mapping[str, Any]) -> str | None:
    usage = result.get("modelUsage")
    return next(iter(usage), None) if isinstance(usage, dict) else _text(result.get("model"))


def _count(usage: object, *names: str) -> int | None:
    if not isinstance(usage, dict):
        return None
    counts = [count for name in names if isinstance(count := usage.get(name), int) and count >= 0]
    return sum(counts) if counts else None


def _cost(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and value >= 0 else None
