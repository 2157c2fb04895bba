package plugd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The plugin of the README is a module of its own that needs nothing but this folder: no network, no sums.
func TestTheReadmesPluginIsBuiltAndTestedAsItStands(t *testing.T) {
	if testing.Short() {
		t.Skip("it is built anew")
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", strings.Replace(after(t, string(text), "`go.mod`:"), "./plugd-sdk", here, 1))
	write("main.go", after(t, string(text), "`main.go`:"))
	write("main_test.go", after(t, string(text), "the whole plugin in memory:"))
	write("doc/main.go", documented(t))
	for words, flags := range map[string]string{"vet ./...": "", "test ./...": "", "build -o memo .": "-mod=mod"} {
		program := exec.Command("go", strings.Fields(words)...)
		program.Dir = folder
		program.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS="+flags, "GOWORK=off")
		if out, err := program.CombinedOutput(); err != nil {
			t.Errorf("go %s with GOFLAGS=%s: %v\n%s", words, flags, err, out)
		}
	}
	said, err := exec.Command(filepath.Join(folder, "memo"), "--version").Output()
	if err != nil || string(said) != "memo 1.0.0\n" {
		t.Errorf("%q, %v", said, err)
	}
}

// after gives the first fenced block behind some words.
func after(t *testing.T, text, words string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, words)
	_, rest, opened := strings.Cut(rest, "\n```")
	_, rest, _ = strings.Cut(rest, "\n")
	block, _, closed := strings.Cut(rest, "\n```")
	if !found || !opened || !closed {
		t.Fatal(fmt.Errorf("no block behind %q", words))
	}
	return block + "\n"
}

// documented is the plugin that stands in the package's documentation.
func documented(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, begins := strings.Cut(string(text), "//\tpackage main\n")
	block, _, ends := strings.Cut(rest, "\n//\n// ")
	if !begins || !ends {
		t.Fatal("the documentation begins with no plugin")
	}
	lines := strings.Split("//\tpackage main\n"+block, "\n")
	for at, line := range lines {
		lines[at] = strings.TrimPrefix(strings.TrimPrefix(line, "//"), "\t")
	}
	return strings.Join(lines, "\n")
}
