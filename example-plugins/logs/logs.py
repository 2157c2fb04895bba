"""logs: counts and searches in a web server's access log. A plugd plugin in Python, with no SDK.

It reads the Common Log Format and says how far it is while it reads. To try it by hand:
  echo '{"jsonrpc":"2.0","id":1,"method":"describe"}' | python3 logs.py
"""
import collections, datetime, json, os, re, sys, traceback

TIME = {"type": "string", "format": "date-time", "examples": ["2024-12-15T09:00:00+08:00"]}
MANIFEST = {
    "protocol": 1, "name": "logs", "version": "1.0.0",
    "description": "Looks into a web server's access log.",
    "config_schema": {"type": "object", "properties": {
        "file": {"type": "string", "default": "access.log", "description": "The log, in the Common Log Format."}}},
    "operations": [
        {"name": "summary", "title": "Summary of the access log", "category": "operations", "timeout_ms": 10000,
         "description": "Counts the requests in the web server's access log by class of status, names the most requested paths and adds up the bytes sent. A time span and the beginning of a path narrow it down.",
         "when_to_use": "Someone wants an overview of the traffic, of the share of errors, or of what is requested most.",
         "when_not_to_use": "Single requests are wanted: use search.",
         "examples": ["how many errors did the web server have between nine and ten", "which pages are requested most", "统计一下访问日志", "昨天有多少5xx错误"],
         "input_schema": {"type": "object", "properties": {
             "from": {**TIME, "description": "Leaves out requests before this time; ISO 8601 with an offset."},
             "to": {**TIME, "description": "Leaves out requests at or after this time; ISO 8601 with an offset."},
             "path_prefix": {"type": "string", "pattern": "^/", "examples": ["/api/"], "description": "Leaves out paths that do not begin with this."}}},
         "output_schema": {"type": "object", "properties": {
             "requests": {"type": "integer"}, "by_status": {"type": "object", "additionalProperties": {"type": "integer"}},
             "top_paths": {"type": "array", "items": {"type": "object"}}, "bytes": {"type": "integer"},
             "first": {"type": ["string", "null"]}, "last": {"type": ["string", "null"]}, "unreadable_lines": {"type": "integer"}},
             "required": ["requests", "by_status", "top_paths", "bytes"]},
         "effects": {"read_only": True, "idempotent": True}},
        {"name": "search", "title": "Search the access log", "category": "operations", "timeout_ms": 10000,
         "description": "Finds the requests in the web server's access log whose line contains a text, upper and lower case alike. Gives the first ones in full and says how many there are.",
         "when_to_use": "Someone looks for single requests: of an address, a path, a user or a status.",
         "when_not_to_use": "Only numbers are wanted: use summary.",
         "examples": ["show me the requests from 192.0.2.12", "find wp-login in the access log", "在访问日志里找一下 /admin", "哪些请求返回了 502"],
         "input_schema": {"type": "object", "properties": {
             "contains": {"type": "string", "minLength": 1, "examples": ["/admin/", "\" 502 "], "description": "The text to look for in a line of the log."},
             "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 20, "description": "How many requests to give at most."}},
             "required": ["contains"]},
         "output_schema": {"type": "object", "properties": {
             "found": {"type": "integer"}, "rows": {"type": "array", "items": {"type": "object"}}}, "required": ["found", "rows"]},
         "effects": {"read_only": True, "idempotent": True}}]}

LINE = re.compile(r'(\S+) \S+ (\S+) \[([^\]]+)\] "(\S+) (\S+)[^"]*" (\d{3}) (\d+|-)')
config = {"file": "access.log"}


class Failure(Exception):
    """What a caller is told, with a name and a hint."""
    def __init__(self, name, message, hint):
        super().__init__(message)
        self.data = {"name": name, "hint": hint}


class Unknown(Exception):
    """A method or an operation that is not known here."""


def send(message):
    sys.stdout.buffer.write(json.dumps(message, ensure_ascii=False).encode(errors="replace") + b"\n")
    sys.stdout.buffer.flush()


def lines(call_id):
    """The log's lines, telling the host how many bytes of it are read at every tenth."""
    try:
        size, done, told = os.path.getsize(config["file"]), 0, 0
        with open(config["file"], "rb") as log:
            for line in log:
                done += len(line)
                if done - told >= size / 10:
                    told = done
                    send({"jsonrpc": "2.0", "method": "progress", "params": {
                        "call_id": call_id, "done": done, "total": size, "message": "reading the log"}})
                yield line.decode(errors="replace").rstrip("\r\n")
    except OSError as error:
        print(error, file=sys.stderr)
        raise Failure("log_unreadable", "the log cannot be read", "see the config key \"file\"") from error


def request_in(line):
    match = LINE.match(line)
    if not match:
        return None
    ip, user, at, method, path, status, size = match.groups()
    at = datetime.datetime.strptime(at, "%d/%b/%Y:%H:%M:%S %z")
    return {"ip": ip, "user": None if user == "-" else user, "at": at.isoformat(), "method": method,
            "path": path, "status": int(status), "bytes": 0 if size == "-" else int(size)}


def moment(text):
    return datetime.datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text)) if text else None


def summary(call_id, **only):
    begin, end, prefix = moment(only.get("from")), moment(only.get("to")), only.get("path_prefix") or "/"
    classes, paths, times, total, unreadable = collections.Counter(), collections.Counter(), [], 0, 0
    for line in lines(call_id):
        request = request_in(line)
        if request is None:
            unreadable += 1
            continue
        at = moment(request["at"])
        if (begin and at < begin) or (end and at >= end) or not request["path"].startswith(prefix):
            continue
        classes[f"{request['status'] // 100}xx"] += 1
        paths[request["path"].split("?")[0]] += 1
        times.append(request["at"])
        total += request["bytes"]
    top = [{"path": path, "requests": count} for path, count in paths.most_common(10)]
    by_status = dict(sorted(classes.items()))
    told = ", ".join(f"{count} {kind}" for kind, count in by_status.items()) or "none that fits"
    return {"requests": len(times), "by_status": by_status, "top_paths": top, "bytes": total,
            "first": times[0] if times else None, "last": times[-1] if times else None,
            "unreadable_lines": unreadable}, f"{len(times)} requests: {told}"


def search(call_id, contains, limit=20):
    rows, found = [], 0
    for number, line in enumerate(lines(call_id), 1):
        if contains.lower() in line.lower():
            found += 1
            if len(rows) < limit:
                rows.append({"line": number, **(request_in(line) or {"text": line})})
    return {"found": found, "rows": rows}, f"{found} lines contain {contains!r}, {len(rows)} shown"


OPERATIONS = {"summary": summary, "search": search}


def respond(method, params):
    if method == "describe":
        return MANIFEST
    if method == "init":
        config.update(params.get("config") or {})
        return {}
    if method == "call" and params.get("operation") in OPERATIONS:
        operation, call_id = OPERATIONS[params["operation"]], (params.get("context") or {}).get("call_id")
        data, line = operation(call_id, **(params.get("arguments") or {}))
        return {"data": data, "summary": line}
    if method == "shutdown":
        return {}
    raise Unknown(method)


def main():
    if sys.stdin.isatty():
        return print(__doc__)
    for line in sys.stdin.buffer:
        try:
            request = json.loads(line)
        except ValueError:
            continue  # blank, or no message
        if not isinstance(request, dict) or "id" not in request or "method" not in request:
            continue  # a notification or an answer: nobody waits for one from here
        answer = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            answer["result"] = respond(request["method"], request.get("params") or {})
        except Unknown:
            answer["error"] = {"code": -32601, "message": "logs does not know that method or operation"}
        except Failure as failure:
            answer["error"] = {"code": 1, "message": str(failure), "data": failure.data}
        except Exception:
            traceback.print_exc()  # for the log; the caller is told no more than that
            answer["error"] = {"code": 2, "message": "logs failed unexpectedly"}
        send(answer)
        if request["method"] == "shutdown":
            return


if __name__ == "__main__":
    main()
