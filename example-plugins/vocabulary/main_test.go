package main

import (
	"os"
	"testing"

	"plugd"
	"plugd/plugdtest"
)

// few is a vocabulary of three words.
func few(t *testing.T) *vocabulary {
	return &vocabulary{words: []string{"babe", "bado", "tixo"}, folder: t.TempDir()}
}

func TestAFileHasTheWordsThatBeginSo(t *testing.T) {
	reply, err := few(t).export(plugd.ContextForTest(), exportArgs{Prefix: "ba", Format: "csv"})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(reply.Data.File)
	if string(text) != "1,babe\n2,bado\n" || reply.Data.Words != 2 || reply.Data.Bytes != int64(len(text)) {
		t.Errorf("%+v: %q", reply.Data, text)
	}
}

func TestNoWordsAreNoFile(t *testing.T) {
	v := few(t)
	if _, err := v.export(plugd.ContextForTest(), exportArgs{Prefix: "q", Format: "txt"}); err == nil {
		t.Error("an empty file was exported")
	}
	if files, _ := os.ReadDir(v.folder); len(files) != 0 {
		t.Errorf("there is %v", files)
	}
}

func TestTheWholeVocabularyIsLoadedAndExported(t *testing.T) {
	host := plugdtest.New(t, newPlugin(), plugdtest.Config(map[string]any{"pause_ms": 0}))
	reply := host.Call("export_words", map[string]any{})
	if export := plugdtest.Data[Export](reply); export.Words != 1_000_000 || export.Bytes != 7_000_000 {
		t.Errorf("%+v", export)
	}
	if last := reply.Progress[len(reply.Progress)-1]; len(reply.Progress) != 20 || last.Done != 950_000 {
		t.Errorf("%+v", reply.Progress)
	}
	if logs := host.Logs(); len(logs) == 0 || logs[0].Message != "loaded 1000000 words" {
		t.Errorf("%+v", logs)
	}
}
