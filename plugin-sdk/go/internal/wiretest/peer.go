// Package wiretest plays the host line by line, for this SDK's own tests of the wire.
package wiretest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a line or an end may take: beyond it the test has found a plugin that is stuck.
const patience = 20 * time.Second

// Peer is the host's end of a conversation.
type Peer struct {
	t      testing.TB
	in     io.WriteCloser
	lines  chan string
	ended  chan struct{}
	status int
	stderr lockedBuffer
	kill   func()
}

// Process starts a program and talks to it over its pipes. It is killed with the test, if it still runs.
func Process(t testing.TB, command *exec.Cmd) *Peer {
	t.Helper()
	p := newPeer(t)
	in, err := command.StdinPipe()
	must(t, err)
	reading, out, err := os.Pipe()
	must(t, err)
	command.Stdout = out
	command.Stderr = &p.stderr
	must(t, command.Start())
	must(t, out.Close())
	p.in = in
	p.kill = func() { _ = command.Process.Kill() }
	go p.read(reading)
	go func() {
		_ = command.Wait()
		p.status = command.ProcessState.ExitCode()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		p.Status()
		_ = reading.Close()
	})
	return p
}

// Memory talks to a plugin within the test's process.
func Memory(t testing.TB, serve func(in io.Reader, out io.Writer) error) *Peer {
	t.Helper()
	p := newPeer(t)
	in, toPlugin, err := os.Pipe()
	must(t, err)
	fromPlugin, out, err := os.Pipe()
	must(t, err)
	p.in = toPlugin
	go p.read(fromPlugin)
	go func() {
		if err := serve(in, out); err != nil {
			t.Errorf("serving: %v", err)
		}
		_ = out.Close()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.HangUp()
		p.Status()
		_ = fromPlugin.Close()
		_ = in.Close()
	})
	return p
}

func newPeer(t testing.TB) *Peer {
	return &Peer{t: t, lines: make(chan string, 1024), ended: make(chan struct{})}
}

func (p *Peer) read(from io.Reader) {
	defer close(p.lines)
	in := bufio.NewReaderSize(from, 1<<20)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			p.lines <- line
		}
		if err != nil {
			return
		}
	}
}

// Send writes a line.
func (p *Peer) Send(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatalf("the plugin does not read: %v\n%s", err, p.Stderr())
	}
}

// SendCall writes a call whose call id is c-ID.
func (p *Peer) SendCall(id int, operation, arguments string) {
	p.t.Helper()
	p.Send(Call(id, operation, arguments))
}

// Call is the line of a call whose call id is c-ID.
func Call(id int, operation, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"call","params":{"operation":%q,"arguments":%s,`+
		`"context":{"call_id":"c-%d","deadline_ms":30000}}}`, id, operation, arguments, id)
}

// Line gives the next line from the plugin, with its end; empty once there are none.
func (p *Peer) Line() string {
	p.t.Helper()
	select {
	case line := <-p.lines:
		return line
	case <-time.After(patience):
		p.t.Fatalf("no line within %v\n%s", patience, p.Stderr())
		return ""
	}
}

// Expect compares the next line with JSON, members in any order.
func (p *Peer) Expect(wanted string) {
	p.t.Helper()
	line := p.Line()
	if !Same(line, wanted) {
		p.t.Errorf("expected %s\n     got %s%s", wanted, line, p.Stderr())
	}
}

// HangUp closes the plugin's input.
func (p *Peer) HangUp() {
	_ = p.in.Close()
}

// Status waits for the end and gives the exit status; that of a plugin in memory is 0.
func (p *Peer) Status() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.status
	case <-time.After(patience):
		if p.kill != nil {
			p.kill()
		}
		p.t.Fatalf("the plugin has not ended within %v\n%s", patience, p.Stderr())
		return -1
	}
}

// Stderr gives what the process has written to its standard error so far.
func (p *Peer) Stderr() string {
	return p.stderr.String()
}

// Same compares JSON, members in any order.
func Same(one, other string) bool {
	a, errA := canonical(one)
	b, errB := canonical(other)
	return errA == nil && errB == nil && a == b
}

func canonical(text string) (string, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return "", err
	}
	written, err := json.Marshal(tree)
	return string(written), err
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lockedBuffer takes what several goroutines write.
type lockedBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(text)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}
