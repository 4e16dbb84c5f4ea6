"""Windows too: no module imports what only POSIX has, and names that only POSIX has are used behind a question."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "backsight"
MODULES = frozenset(
    {"resource", "fcntl", "termios", "grp", "pwd", "pty", "tty", "readline", "curses", "syslog", "posix"}
)
NAMES = frozenset(
    [
        *("os.fork", "os.forkpty", "os.killpg", "os.getpgid", "os.setpgid", "os.setsid", "os.getuid", "os.geteuid"),
        *("os.getgid", "os.chown", "os.lchown", "os.fchown", "os.mkfifo", "os.nice", "os.uname", "os.statvfs"),
        *("os.sched_getaffinity", "os.posix_fadvise", "os.WNOHANG", "os.wait", "os.wait4", "os.pread", "os.pwrite"),
        *("os.O_NOFOLLOW", "os.O_DIRECTORY", "os.O_NONBLOCK", "os.O_CLOEXEC", "os.O_SYNC", "os.O_DSYNC"),
        *("signal.SIGKILL", "signal.SIGHUP", "signal.SIGALRM", "signal.SIGUSR1", "signal.SIGUSR2", "signal.SIGPIPE"),
        *("signal.alarm", "signal.setitimer", "signal.pause", "signal.pthread_kill", "signal.siginterrupt"),
        *("socket.AF_UNIX", "socket.SO_REUSEPORT", "time.tzset", "errno.EDQUOT"),
    ]
)
BEHIND_A_QUESTION = {
    "adapters/runners/claude.py": {"os.killpg": "asks hasattr"},
    "importers/workspace.py": {
        "os.O_DIRECTORY": "below a return where folders have no descriptors",
        "os.O_NOFOLLOW": "below a return where folders have no descriptors",
    },
}
"""Uses of such names that Windows does not reach, and why."""


def imports(tree: ast.Module) -> Iterator[str]:
    """Modules that a module imports without a way round: not within `try`."""
    tried = {id(inner) for node in ast.walk(tree) if isinstance(node, ast.Try) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and id(node) not in tried:
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and id(node) not in tried:
            yield (node.module or "").partition(".")[0]


def test_no_module_needs_what_windows_does_not_have() -> None:
    wrong = {}
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        uses = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & NAMES
        name = path.relative_to(SOURCE).as_posix()
        found = MODULES.intersection(imports(tree)) | (uses - set(BEHIND_A_QUESTION.get(name, {})))
        if found:
            wrong[name] = found
    assert wrong == {}


def test_every_text_file_is_opened_with_an_encoding() -> None:
    """The default encoding of Windows is that of its terminal."""
    wrong = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr not in ("read_text", "write_text"):
                continue
            arguments = {keyword.arg for keyword in node.keywords}
            positional = len(node.args) > (1 if node.func.attr == "write_text" else 0)
            if "encoding" not in arguments and not positional:
                wrong.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert wrong == []
