// The tags of a field that mean nothing: written wrongly, or misspelt.

package plugd

import (
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tagNames are the tags that say more of a field.
var tagNames = []string{"desc", "default", "min", "max", "enum", "example", "pattern", "format", "sensitive"}

// otherTagNames are other words for them, which stand for themselves where another package reads the field, too.
var otherTagNames = map[string]string{
	"description": "desc", "doc": "desc", "minimum": "min", "maximum": "max", "regex": "pattern", "regexp": "pattern",
	"deflt": "default", "emun": "enum",
}

// foreignTags are those of other packages that look like ours.
var foreignTags = map[string]bool{"form": true, "env": true, "bson": true}

// jsonOptions are what may stand behind the name in a json tag.
var jsonOptions = []string{"omitempty", "omitzero", "string"}

// checkTags faults tags that would be passed over in silence.
func (b *schemaBuilder) checkTags(f field) {
	keys, rest := tagKeys(string(f.tag))
	if rest != "" {
		b.fault("the tag ends in %s, which is not of the form key:\"value\"", rest)
	}
	given := make(map[string]bool, len(keys))
	for _, key := range keys {
		given[key] = true
	}
	for _, key := range keys {
		if meant := meantTag(key); meant != "" && !given[meant] {
			b.fault("there is no tag %s: did you mean %s?", key, meant)
		}
	}
	if given["required"] && !given["env"] && !given["envconfig"] {
		b.fault("there is no tag required: every field is, but for a pointer and one with a default or omitempty")
	}
	_, options, _ := strings.Cut(f.tag.Get("json"), ",")
	for _, option := range strings.Split(options, ",") {
		if meant := nearest(option, jsonOptions); meant != "" && meant != option {
			b.fault("json has no option %s: did you mean %s?", option, meant)
		}
	}
}

// checkExported faults fields with tags that encoding/json passes over.
func (b *schemaBuilder) checkExported(t reflect.Type) {
	for i := 0; i < t.NumField(); i++ {
		member := t.Field(i)
		if member.IsExported() || member.Anonymous || member.Tag.Get("json") == "-" {
			continue
		}
		keys, _ := tagKeys(string(member.Tag))
		for _, key := range keys {
			if key == "json" || isTag(key) {
				first, size := utf8.DecodeRuneInString(member.Name)
				b.fault("%s is not exported, and would be passed over: call it %s",
					member.Name, string(unicode.ToUpper(first))+member.Name[size:])
				break
			}
		}
	}
}

// tagKeys lists the keys of a tag, and what is left where it goes wrong: reflect reads no further there.
func tagKeys(tag string) (keys []string, rest string) {
	for tag = strings.TrimLeft(tag, " "); tag != ""; tag = strings.TrimLeft(tag, " ") {
		key, behind, found := strings.Cut(tag, ":")
		if !found || key == "" || strings.ContainsAny(key, " \"\t") {
			return keys, tag
		}
		value, err := strconv.QuotedPrefix(behind)
		if err != nil || value[0] != '"' {
			return keys, tag
		}
		keys = append(keys, key)
		tag = behind[len(value):]
	}
	return keys, ""
}

// meantTag is the tag that a misspelt one may have meant; empty where it is one, or another package's.
func meantTag(key string) string {
	if meant, isOther := otherTagNames[key]; isOther {
		return meant
	}
	if foreignTags[key] || key == "json" || isTag(key) {
		return ""
	}
	return nearest(key, append([]string{"json"}, tagNames...))
}

func isTag(key string) bool {
	for _, name := range tagNames {
		if name == key {
			return true
		}
	}
	return false
}

// nearest is the one of some names that a misspelt one may have meant; empty where it is like none.
func nearest(given string, names []string) string {
	slips := 1
	if len(given) > 5 {
		slips = 2
	}
	for _, name := range names {
		if distance(strings.ToLower(given), name) <= slips {
			return name
		}
	}
	return ""
}

// distance is how many letters were left out, put in, changed or swapped.
func distance(one, other string) int {
	rows := make([][]int, len(one)+1)
	for i := range rows {
		rows[i] = make([]int, len(other)+1)
		rows[i][0] = i
		for j := 1; j <= len(other); j++ {
			if i == 0 {
				rows[i][j] = j
				continue
			}
			change := 1
			if one[i-1] == other[j-1] {
				change = 0
			}
			least := rows[i-1][j-1] + change
			for _, way := range []int{rows[i-1][j] + 1, rows[i][j-1] + 1} {
				if way < least {
					least = way
				}
			}
			if i > 1 && j > 1 && one[i-1] == other[j-2] && one[i-2] == other[j-1] && rows[i-2][j-2]+1 < least {
				least = rows[i-2][j-2] + 1
			}
			rows[i][j] = least
		}
	}
	return rows[len(one)][len(other)]
}
