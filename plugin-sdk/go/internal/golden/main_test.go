package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"plugd/internal/wiretest"
)

// golds is where what every SDK makes alike is written down.
const golds = "../../../../protocol/wire/sdk"

// asPlugin makes this test program the plugin itself.
const asPlugin = "PLUGD_TEST_GOLDEN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestTheManifestIsThatOfEverySDK(t *testing.T) {
	manifest, err := newGolden().Manifest()
	if err != nil {
		t.Fatal(err)
	}
	written, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	expected, err := os.ReadFile(filepath.Join(golds, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	if got, wanted := withoutDefaults(tree(t, written)), withoutDefaults(tree(t, expected)); !reflect.DeepEqual(got, wanted) {
		t.Errorf("expected %v\n     got %v", wanted, got)
	}
}

// withoutDefaults drops what may be written or left out.
func withoutDefaults(manifest map[string]any) map[string]any {
	for _, operation := range manifest["operations"].([]any) {
		operation := operation.(map[string]any)
		if effects, isMap := operation["effects"].(map[string]any); isMap && len(effects) == 0 {
			delete(operation, "effects")
		}
	}
	return manifest
}

func TestEverySessionInMemory(t *testing.T) {
	eachSession(t, func(t *testing.T) *wiretest.Peer {
		return wiretest.Memory(t, newGolden().ServeOn)
	})
}

func TestEverySessionAsAProcess(t *testing.T) {
	eachSession(t, func(t *testing.T) *wiretest.Peer {
		command := exec.Command(os.Args[0])
		command.Env = append(os.Environ(), asPlugin+"=1")
		return wiretest.Process(t, command)
	})
}

func eachSession(t *testing.T, start func(t *testing.T) *wiretest.Peer) {
	files, err := filepath.Glob(filepath.Join(golds, "sessions", "*.jsonl"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d sessions: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			play(t, file, start(t))
		})
	}
}

// step is one line of a session.
type step struct {
	Send      json.RawMessage   `json:"send"`
	Expect    json.RawMessage   `json:"expect"`
	ExpectAll []json.RawMessage `json:"expect_all"`
	Close     bool              `json:"close"`
	Exit      *int              `json:"exit"`
}

// play plays a session with a plugin.
func play(t *testing.T, path string, peer *wiretest.Peer) {
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	named := make(map[string]any)
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		var s step
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("line %d: %v", number, err)
		}
		switch {
		case s.Send != nil:
			written, err := json.Marshal(said(tree(t, s.Send), named))
			if err != nil {
				t.Fatal(err)
			}
			peer.Send(string(written))
		case s.Expect != nil:
			expectAll(t, number, peer, []json.RawMessage{s.Expect}, named)
		case s.ExpectAll != nil:
			expectAll(t, number, peer, s.ExpectAll, named)
		case s.Close:
			peer.HangUp()
		case s.Exit != nil:
			if status := peer.Status(); status != *s.Exit {
				t.Errorf("line %d: expected the status %d, got %d", number, *s.Exit, status)
			}
		}
	}
	if line := peer.Line(); line != "" {
		t.Errorf("more than expected: %s", line)
	}
}

// expectAll reads as many lines as are expected, in any order.
func expectAll(t *testing.T, number int, peer *wiretest.Peer, all []json.RawMessage, named map[string]any) {
	t.Helper()
	for range all {
		line := peer.Line()
		got, found := tree(t, []byte(line)), -1
		for at, wanted := range all {
			if wanted != nil && fits(any(tree(t, wanted)), any(got), named) {
				found = at
				break
			}
		}
		if found < 0 {
			t.Fatalf("line %d: expected %s\n     got %s%s", number, all, line, peer.Stderr())
		}
		all[found] = nil
	}
}

// fits compares what is expected with what came, and notes what the names stand for.
func fits(wanted, got any, named map[string]any) bool {
	switch wanted := wanted.(type) {
	case string:
		if strings.HasPrefix(wanted, "$") {
			named[wanted] = got
			return true
		}
		return wanted == "*" || wanted == got
	case map[string]any:
		got, isMap := got.(map[string]any)
		if !isMap || len(got) != len(wanted) {
			return false
		}
		for name, value := range wanted {
			member, isThere := got[name]
			if !isThere || !fits(value, member, named) {
				return false
			}
		}
		return true
	case []any:
		got, isList := got.([]any)
		if !isList || len(got) != len(wanted) {
			return false
		}
		for at, value := range wanted {
			if !fits(value, got[at], named) {
				return false
			}
		}
		return true
	default:
		return wanted == got
	}
}

// said puts in what the names stand for.
func said(value any, named map[string]any) any {
	switch value := value.(type) {
	case string:
		if meant, isNamed := named[value]; isNamed {
			return meant
		}
	case map[string]any:
		for name, member := range value {
			value[name] = said(member, named)
		}
	}
	return value
}

func tree(t *testing.T, written []byte) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(written)))
	decoder.UseNumber()
	var tree map[string]any
	if err := decoder.Decode(&tree); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", written, err))
	}
	return tree
}
