# Prints the parts of one JSON object that `want` names, a line each, as the JSON text they are; an empty
# line for what is not there: awk -v want='id params.operation' -f json.awk

{
    rest = $0
    value("")
    names = split(want, name, " ")
    for (i = 1; i <= names; i++) print found[name[i]]
}

# Takes a value off the text; what it consists of is found under its path.
function value(path,    whole) {
    blank()
    whole = substr(rest, 1, 1)
    if (whole == "{") { object(path); return }
    if (whole == "[") { array(path); return }
    whole = (whole == "\"") ? text() : plain()
    found[path] = whole
}

function object(path,    key) {
    cut(1)
    blank()
    while (rest != "" && substr(rest, 1, 1) != "}") {
        key = text()
        key = substr(key, 2, length(key) - 2)
        blank()
        cut(1)
        value(path == "" ? key : path "." key)
        comma()
    }
    cut(1)
}

function array(path,    index_) {
    cut(1)
    blank()
    while (rest != "" && substr(rest, 1, 1) != "]") {
        value(path "." index_++)
        comma()
    }
    cut(1)
}

# A string with its quotes.
function text(    taken) {
    match(rest, /^"([^"\\]|\\.)*"?/)
    taken = substr(rest, 1, RLENGTH)
    cut(RLENGTH > 0 ? RLENGTH : 1)
    return taken
}

# A number, true, false or null.
function plain(    taken) {
    match(rest, /^[^][{},: \t\r]*/)
    taken = substr(rest, 1, RLENGTH)
    cut(RLENGTH > 0 ? RLENGTH : 1)
    return taken
}

function comma() {
    blank()
    if (substr(rest, 1, 1) == ",") cut(1)
    blank()
}

function blank() { if (match(rest, /^[ \t\r]+/)) cut(RLENGTH) }

function cut(count) { rest = substr(rest, count + 1) }
