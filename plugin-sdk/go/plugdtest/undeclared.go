// Keys that nobody declared, which no host hands on.

package plugdtest

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"plugd"
)

// invalidArguments is what a host says of arguments that do not fit, with the name invalid_arguments.
const invalidArguments = 2001

// takesMore are the keywords by which a schema may take keys that stand elsewhere than under its properties.
var takesMore = []string{"patternProperties", "$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"}

// undeclared is a host's failure of a call with keys that its operation does not declare; nil where there is none.
func (h *Host) undeclared(operation string, arguments any) *plugd.Error {
	var given map[string]json.RawMessage
	raw, err := json.Marshal(arguments)
	if err != nil || json.Unmarshal(raw, &given) != nil {
		return nil
	}
	for _, declared := range h.operations {
		if declared.Name != operation {
			continue
		}
		known, isClosed := onlyKeys(declared.InputSchema)
		for key := range given {
			if !isClosed || contains(known, key) {
				continue
			}
			expected := "expected no arguments"
			if len(known) > 0 {
				expected = "expected only the keys " + strings.Join(known, ", ")
			}
			return failure(fmt.Sprintf("the arguments do not fit %s: %s: %s", operation, key, expected))
		}
	}
	return nil
}

// refuse is a call that ends before the plugin hears of it.
func (h *Host) refuse(failure *plugd.Error) *Running {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	h.requests[h.last] = &request{reply: Reply{Err: failure}, over: true}
	return &Running{host: h, id: h.last}
}

// onlyKeys are the keys that a host takes, and whether it takes no others, as far as that is easily read off.
func onlyKeys(schema json.RawMessage) (keys []string, isClosed bool) {
	var members map[string]json.RawMessage
	var properties map[string]json.RawMessage
	if json.Unmarshal(schema, &members) != nil {
		return nil, false
	}
	for _, keyword := range takesMore {
		if _, isThere := members[keyword]; isThere {
			return nil, false
		}
	}
	if raw, lists := members["properties"]; lists && json.Unmarshal(raw, &properties) != nil {
		return nil, false
	}
	for key := range properties {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	others, saysMore := members["additionalProperties"]
	return keys, string(others) == "false" || len(keys) > 0 && !saysMore
}

func contains(keys []string, wanted string) bool {
	for _, key := range keys {
		if key == wanted {
			return true
		}
	}
	return false
}

func failure(message string) *plugd.Error {
	made := new(plugd.Error)
	object, err := json.Marshal(map[string]any{
		"code": invalidArguments, "message": message, "data": map[string]string{"name": "invalid_arguments"},
	})
	if err == nil {
		err = made.UnmarshalJSON(object)
	}
	if err != nil {
		panic(err) // it was written just now
	}
	return made
}
