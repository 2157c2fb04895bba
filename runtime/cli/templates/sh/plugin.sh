#!/bin/sh
# The plugin PLUGIN_NAME: greets people, with nothing but sh and awk.

# Somebody who starts it by hand is told what it is.
if [ -t 0 ]; then
    echo "PLUGIN_NAME is a plugd plugin; try: plugd call . hello name=World" >&2
    exit 2
fi

here=$(dirname "$0")

manifest='{"protocol": 1, "name": "PLUGIN_NAME", "version": "0.1.0", "description": "Greets people.",
  "operations": [{
    "name": "hello",
    "description": "Greets somebody by name. Gives one friendly line back.",
    "when_to_use": "Somebody is to be greeted, or it is to be seen that the plugin works.",
    "examples": ["say hello to Ada"],
    "input_schema": {
      "type": "object", "required": ["name"], "additionalProperties": false,
      "properties": {"name": {"type": "string", "description": "Who is greeted.", "examples": ["Ada"]}}
    },
    "output_schema": {"type": "string"},
    "effects": {"read_only": true, "idempotent": true}
  }]}'

# result JSON, and failure CODE JSON: the answer to the request at hand, on one line.
result() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
failure() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":%s,%s}}\n' "$id" "$1" "$2"; }

# $name is a JSON string with its quotes: what stands between them is put into another as it is.
hello() {
    who=${name#\"} who=${who%\"}
    case $who in
    *[![:space:]]*)
        printf 'greeting %s\n' "$who" >&2
        result "{\"data\":\"Hello, $who!\"}"
        ;;
    *) failure 1 '"message":"the name is empty","data":{"name":"nobody_to_greet","hint":"give a name, such as name=Ada"}' ;;
    esac
}

# The loop ends when stdin does: that is how a plugin knows that plugd is gone.
while IFS= read -r line; do
    {
        IFS= read -r id
        IFS= read -r method
        IFS= read -r operation
        IFS= read -r name
    } <<END
$(printf '%s\n' "$line" | LC_ALL=C awk -v want='id method params.operation params.arguments.name' -f "$here/json.awk")
END
    [ -n "$id" ] || continue # what has no id wants no answer

    case $method in
    '"describe"') result "$(printf '%s' "$manifest" | tr -d '\n')" ;;
    '"init"') result '{}' ;;
    '"shutdown"') result '{}' && exit 0 ;;
    '"call"')
        case $operation in
        '"hello"') hello ;;
        *) failure -32601 '"message":"there is no such operation"' ;;
        esac
        ;;
    *) failure -32601 '"message":"there is no such method"' ;;
    esac
done
