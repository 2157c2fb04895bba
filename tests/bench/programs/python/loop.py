"""The loop that one would write without an SDK: reads a line, parses it, builds the answer, writes it."""

import json
import sys

out = sys.stdout.buffer
for line in sys.stdin.buffer:
    request = json.loads(line)
    result = {"data": request["params"]["arguments"]["payload"]}
    answer = {"jsonrpc": "2.0", "id": request["id"], "result": result}
    out.write(json.dumps(answer).encode() + b"\n")
    out.flush()
