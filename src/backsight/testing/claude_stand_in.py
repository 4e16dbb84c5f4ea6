"""A stand-in for the `claude` program: it speaks the same protocol, and behaves as its prompt says.

`stand_in(folder)` writes the executable. A prompt that contains `behave: NAME` selects a behaviour; any other prompt is
answered with the number of turns that the session has, and with the prompt.
"""

import sys
from pathlib import Path

PROGRAM = """\
#!{python}
import json, os, sys, time

folder = {folder!r}
arguments = sys.argv[1:]
session = arguments[arguments.index("--resume") + 1] if "--resume" in arguments else None
prompt = sys.stdin.read()
with open(os.path.join(folder, "calls.jsonl"), "a") as calls:
    calls.write(json.dumps({{"session": session, "prompt": prompt}}) + "\\n")


def says(name):
    return "behave: " + name in prompt


def result(text, **more):
    number = len(open(os.path.join(folder, "calls.jsonl")).readlines())
    answer = {{"type": "result", "subtype": "success", "is_error": False, "result": text, "session_id": "s%d" % number,
              "total_cost_usd": 0.01, "usage": {{"input_tokens": 10, "output_tokens": 5}},
              "modelUsage": {{"stand-in": {{}}}}}}
    print(json.dumps({{**answer, **more}}))


path = os.path.join(folder, "turns-" + (session or "none"))
turns = open(path).read().splitlines() if session and os.path.exists(path) else []
if session and not os.path.exists(path):
    if says("gone as text"):
        print("No conversation found with session ID: " + session, file=sys.stderr)
        sys.exit(1)
    result("No conversation found with session ID: " + session, is_error=True, subtype="error_during_execution")
    sys.exit(1)
if says("empty"):
    sys.exit(0)
if says("slow"):
    time.sleep(60)
if says("killed"):
    os.kill(os.getpid(), 9)
if says("garbage"):
    print("Segmentation fault\\x00 {{not json")
    sys.exit(0)
if says("error"):
    result("the credit balance is too low", is_error=True)
    sys.exit(1)
if says("pause"):
    time.sleep(0.5)
if says("long pause"):
    time.sleep(2)
turns.append(prompt.replace("\\n", " "))
number = len(open(os.path.join(folder, "calls.jsonl")).readlines())
with open(os.path.join(folder, "turns-s%d" % number), "w") as file:
    file.write("\\n".join(turns))
reply = os.path.join(folder, "re-examination")
if prompt.startswith("# Re-examination") and os.path.exists(reply):
    text = open(reply).read()
elif says("large"):
    text = "x" * 1_000_000
elif "reply: " in prompt:
    text = prompt.partition("reply: ")[2].partition("\\n\\n")[0]
else:
    text = "turn %d: %s" % (len(turns), " / ".join(turns))
print(json.dumps({{"type": "assistant", "message": {{"content": [{{"type": "text", "text": text[:100]}}]}}}}))
result(text)
"""


def stand_in(folder: Path) -> str:
    """Write the executable into a folder; its path."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "claude"
    program.write_text(PROGRAM.format(python=sys.executable, folder=str(folder)), encoding="utf-8")
    program.chmod(0o755)
    return str(program)
