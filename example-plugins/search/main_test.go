package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"plugd"
	"plugd/plugdtest"
)

// opened is the library with these pages.
func opened(t *testing.T, pages map[string]string) *library {
	t.Helper()
	folder := t.TempDir()
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(folder, name+".md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := new(library)
	if err := l.open(plugd.InitContextForTest(t.TempDir()), config{Folder: folder}); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestThePageWithMostOfTheWordsComesFirst(t *testing.T) {
	l := opened(t, map[string]string{
		"a": "# One\n\nTea once.\n",
		"b": "# Two\n\ntea and TEA again\n",
		"c": "# Three\n\n茶\n",
	})
	reply, err := l.find(plugd.ContextForTest(), findArgs{Query: "tea", Limit: 5})
	if err != nil || len(reply.Data) != 2 {
		t.Fatalf("%+v, %v", reply.Data, err)
	}
	if best := reply.Data[0]; best != (Hit{Page: "b", Title: "Two", Line: "tea and TEA again", Score: 2}) {
		t.Errorf("the best is %+v", best)
	}
	if next := reply.NextActions[0]; next.Operation != "search.read_page" || next.Arguments["page"] != "b" {
		t.Errorf("next would be %+v", next)
	}
	none, _ := l.find(plugd.ContextForTest(), findArgs{Query: "tea 茶", Limit: 5})
	if len(none.Data) != 0 {
		t.Errorf("no page has both, but %+v", none.Data)
	}
}

func TestAPageThatIsNotThereIsNamed(t *testing.T) {
	_, err := opened(t, map[string]string{"a": "# One\n"}).read(plugd.ContextForTest(), readArgs{Page: "z"})
	var failure *plugd.Error
	if !errors.As(err, &failure) || failure.Name != "page_not_found" {
		t.Errorf("%v", err)
	}
}

func TestOtherPagesComeWithoutANewProcess(t *testing.T) {
	host := plugdtest.New(t, newPlugin())
	hits := plugdtest.Data[[]Hit](host.Call("find_pages", map[string]any{"query": "报销"}))
	if len(hits) != 1 || hits[0].Page != "expenses" {
		t.Fatalf("%+v", hits)
	}
	if err := host.Reload(map[string]any{"folder": t.TempDir()}); err == nil {
		t.Error("a folder without pages was taken")
	}
	if hits := plugdtest.Data[[]Hit](host.Call("find_pages", map[string]any{"query": "报销"})); len(hits) != 1 {
		t.Errorf("after a reload that failed there are %+v", hits)
	}
}
