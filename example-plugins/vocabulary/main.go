// vocabulary exports words of a large vocabulary: a start that takes long and says how far it is, work that can be
// cancelled, and files in the plugin's own folder.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"plugd"
)

const consonants, vowels = "bcdfghjklmnpqrstvwxz", "aeiou"

// exportEach is after how many words an export says how far it is, and looks whether anybody still waits.
const exportEach = 50_000

type config struct {
	PauseMS int `json:"pause_ms" desc:"Milliseconds that each of the 20 parts takes to load, besides making it." min:"0" max:"10000" default:"50"`
}

// vocabulary is what all calls share.
type vocabulary struct {
	words  []string // sorted
	folder string
}

// load makes the words, a million of them, letter by letter. A real vocabulary would be read from a file; what counts
// here is that it takes long, and that each progress gives it another 30 seconds.
func (v *vocabulary) load(cx *plugd.InitContext, config config) error {
	var syllables []string
	for _, consonant := range consonants {
		for _, vowel := range vowels {
			syllables = append(syllables, string(consonant)+string(vowel))
		}
	}
	v.folder = cx.DataDir()
	for part, letter := range consonants {
		select {
		case <-cx.Done():
			return cx.Err()
		case <-time.After(time.Duration(config.PauseMS) * time.Millisecond):
		}
		for _, first := range syllables[part*len(vowels) : (part+1)*len(vowels)] {
			for _, second := range syllables {
				for _, third := range syllables {
					v.words = append(v.words, first+second+third)
				}
			}
		}
		cx.Progress(float64(part+1), float64(len(consonants)), "words with "+string(letter))
	}
	cx.Infof("loaded %d words", len(v.words))
	return nil
}

type exportArgs struct {
	Prefix string `json:"prefix" desc:"Takes only words that begin so; all of them where it is empty." pattern:"^[a-z]*$" example:"ba|tixo" default:""`
	Format string `json:"format" desc:"How the file is written: txt has one word a line, csv has a number before each." enum:"txt|csv" default:"txt"`
}

// Export is a file that was written.
type Export struct {
	File  string `json:"file" desc:"Where it is."`
	Words int    `json:"words" desc:"How many words it has."`
	Bytes int64  `json:"bytes" desc:"How large it is."`
}

func (v *vocabulary) export(cx *plugd.Context, args exportArgs) (plugd.Reply[Export], error) {
	none := plugd.Reply[Export]{}
	words := v.beginningWith(args.Prefix)
	if len(words) == 0 {
		return none, plugd.Errorf("no_words", "no word begins with %s", args.Prefix).WithHint("use a shorter prefix")
	}
	// Whoever opens the file finds all of it: it gets its name when it is whole.
	draft, err := os.CreateTemp(v.folder, "draft-*")
	if err != nil {
		return none, err
	}
	defer os.Remove(draft.Name())
	defer draft.Close()
	out := bufio.NewWriter(draft)
	for done, word := range words {
		if done%exportEach == 0 {
			if err := cx.Err(); err != nil {
				return none, err
			}
			cx.Progress(float64(done), float64(len(words)), "writing")
		}
		if args.Format == "csv" {
			fmt.Fprintf(out, "%d,", done+1)
		}
		fmt.Fprintln(out, word)
	}
	// Of a writer that failed once, Flush tells it.
	if err := out.Flush(); err != nil {
		return none, err
	}
	size, err := draft.Seek(0, io.SeekCurrent)
	if err != nil {
		return none, err
	}
	file := filepath.Join(v.folder, strings.Trim("words-"+args.Prefix, "-")+"."+args.Format)
	if err := os.Rename(draft.Name(), file); err != nil {
		return none, err
	}
	export := Export{File: file, Words: len(words), Bytes: size}
	return plugd.Reply[Export]{Data: export, Summary: fmt.Sprintf("%d words, %d bytes", len(words), size)}, nil
}

// beginningWith gives the words that begin so: they stand beside each other.
func (v *vocabulary) beginningWith(prefix string) []string {
	from := sort.SearchStrings(v.words, prefix)
	count := sort.Search(len(v.words)-from, func(i int) bool { return !strings.HasPrefix(v.words[from+i], prefix) })
	return v.words[from : from+count]
}

func newPlugin() *plugd.Plugin {
	v := new(vocabulary)
	return plugd.New("vocabulary", "1.0.0").
		Description("Exports words of a large vocabulary.").
		StopsWhenCancelled().
		Init(plugd.WithConfig(v.load)).
		Operation(plugd.Op("export_words", v.export,
			plugd.Title("Export words"),
			plugd.Description("Writes the words of the vocabulary into a file, in the order of the alphabet. Gives the file's path, and how many words it has."),
			plugd.WhenToUse("Somebody wants a list of words as a file, for another program."),
			plugd.WhenNotToUse("Only whether a word exists is asked: this writes up to a million of them."),
			plugd.Examples("export all words that begin with ba", "把 ba 开头的词导出成 csv"),
			plugd.Category("words"),
			plugd.Not(plugd.ReadOnly()), plugd.Not(plugd.Destructive()), plugd.Idempotent(),
			plugd.Timeout(60*time.Second)))
}

func main() {
	newPlugin().Serve()
}
