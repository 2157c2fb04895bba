package main

import (
	"errors"
	"testing"

	"plugd"
	"plugd/plugdtest"
)

// An operation is a function: call it.
func TestNobodyIsNotGreeted(t *testing.T) {
	_, err := hello(plugd.ContextForTest(), helloArgs{Name: " "})
	var failure *plugd.Error
	if !errors.As(err, &failure) || failure.Name != "nobody_to_greet" {
		t.Errorf("greeted nobody: %v", err)
	}
}

// The whole plugin, in memory, as plugd would use it.
func TestSomebodyIsGreetedByName(t *testing.T) {
	reply := plugdtest.New(t, newPlugin()).Call("hello", map[string]any{"name": " Ada "})
	if got := plugdtest.Data[string](reply); got != "Hello, Ada!" {
		t.Errorf("greeted with %q", got)
	}
}
