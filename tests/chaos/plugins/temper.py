"""A plugin of a chosen temper: `temper.py calm`, `temper.py deaf` and so on, written without any SDK.

Every temper answers the operation `work`. Its arguments say what it does: `ms` to take so long,
`crash` to end with that signal, `token` to be written to the ledger, `through` to call on elsewhere.
"""
import json
import os
import signal
import sys
import threading
import time

TEMPER = sys.argv[1]
# What else a temper declares: its lanes, and whom it requires.
FEATURES = {
    "calm": {"concurrency": 64, "ping": True},
    "lanes": {"concurrency": 16, "cancel": True},
    "counter": {"concurrency": 4},
    "base": {"concurrency": 8},
    "stays": {"concurrency": 8},
    "restarts": {"concurrency": 8},
    "stops": {"concurrency": 8},
    "changes": {"concurrency": 4, "reload": True},
}
REQUIRES = {
    "stays": {"base": {"version": "*", "on_loss": "stay"}},
    "restarts": {"stays": {"version": "*", "on_loss": "restart"}},
    "stops": {"base": {"version": "*", "on_loss": "stop"}},
}
MANIFEST = {
    "protocol": 1,
    "name": TEMPER,
    "version": "1.0.0",
    "features": FEATURES.get(TEMPER, {}),
    "requires": REQUIRES.get(TEMPER, {}),
    "operations": [{"name": "work", "description": "Works.", "input_schema": {"type": "object"}}],
}
LOCK = threading.Lock()
CANCELLED = {}
WAITING = {}


def write(*messages):
    text = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages)
    with LOCK:
        sys.stdout.write(text)
        sys.stdout.flush()


def note(token):
    """One write at the end of the file: whatever kills this process, the line is there or not."""
    ledger = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(ledger, (token + "\n").encode())
    os.close(ledger)


def flood(call_id):
    for number in range(300):
        sys.stderr.write("line %d of a flood that nobody asked for\n" % number)
    sys.stderr.flush()
    logs = [{"method": "log", "params": {"message": "flood %d" % n}} for n in range(50)]
    progress = [{"method": "progress", "params": {"call_id": call_id, "done": n, "total": 50}} for n in range(50)]
    write(*logs, *progress)
    with LOCK:
        sys.stdout.write("no message\n" * 20)


def leak(own_session, hold):
    import subprocess

    # It outlives this process if it can, and may hold stdout open.
    stdout = None if hold else subprocess.DEVNULL
    subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL, stdout=stdout, start_new_session=own_session)


def host_call(call_id, operation, arguments):
    ident = "h-" + call_id
    WAITING[ident] = [threading.Event(), None]
    params = {"call_id": call_id, "operation": operation, "arguments": arguments}
    write({"id": ident, "method": "host/call", "params": params})
    WAITING[ident][0].wait(30)
    return WAITING.pop(ident)[1]


def work(arguments, call_id):
    """The result or the error of one call."""
    if "crash" in arguments:
        os.kill(os.getpid(), arguments["crash"]) if arguments["crash"] else os._exit(3)
    if "token" in arguments:
        note(arguments["token"])
    if TEMPER == "flood":
        flood(call_id)
    if TEMPER == "leaky":
        leak(arguments["session"], arguments["hold"])
    if "through" in arguments:
        answer = host_call(call_id, arguments["through"], arguments.get("with", {}))
        if answer is None or "error" in answer:
            return {"error": {"code": 1, "message": "the call elsewhere failed", "data": {"name": "elsewhere"}}}
    if CANCELLED.get(call_id, threading.Event()).wait(arguments["ms"] / 1000) if "ms" in arguments else False:
        return {"error": {"code": -32800, "message": "cancelled"}}
    return {"result": {"data": arguments}}


def answer(message):
    call_id = message["params"]["context"]["call_id"]
    write({"id": message["id"], **work(message["params"]["arguments"], call_id)})
    CANCELLED.pop(call_id, None)


def init():
    if TEMPER == "late":
        for _ in range(3):
            write({"method": "progress", "params": {"done": 0}})
            time.sleep(0.1)
    if TEMPER == "hopeless" and time.time_ns() // 1000 % 3:
        os._exit(1)
    return {"result": {}}


def serve(message):
    """Handles one message; true when it was the last."""
    method, ident = message.get("method"), message.get("id")
    if method == "call" and TEMPER in FEATURES and TEMPER != "calm":
        CANCELLED[message["params"]["context"]["call_id"]] = threading.Event()
        threading.Thread(target=answer, args=(message,), daemon=True).start()
    elif method == "call":
        answer(message)
    elif method == "cancel":
        CANCELLED.get(message["params"]["call_id"], threading.Event()).set()
    elif method == "describe":
        write({"id": ident, "result": MANIFEST})
    elif method == "init":
        write({"id": ident, **init()})
    elif method in ("ping", "reload"):
        write({"id": ident, "result": {}})
    elif method == "shutdown" and TEMPER != "deaf":
        write({"id": ident, "result": {}})
        return True
    elif method is None and ident in WAITING:
        WAITING[ident][1] = message
        WAITING[ident][0].set()
    elif method is not None and ident is not None and TEMPER != "deaf":
        write({"id": ident, "error": {"code": -32601, "message": "unknown method"}})
    return False


def main():
    if TEMPER == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        if serve(json.loads(line)):
            return
    while TEMPER == "deaf":
        time.sleep(60)


main()
