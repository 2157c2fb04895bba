// search finds pages of a staff handbook: state that a reload replaces, several calls at once, what to call next.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"plugd"
)

type config struct {
	Folder string `json:"folder" desc:"Where the pages lie, relative to the plugin's folder." default:"handbook"`
}

// page is one file of the folder: its name, its heading, and its text.
type page struct{ name, title, text string }

// library is what all calls share; a reload puts other pages there while calls go on with those that they have.
type library struct{ pages atomic.Pointer[[]page] }

func (l *library) open(cx *plugd.InitContext, config config) error {
	files, err := filepath.Glob(filepath.Join(config.Folder, "*.md"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there are no pages in %s", config.Folder)
	}
	if err != nil {
		return err
	}
	pages := make([]page, 0, len(files))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
		pages = append(pages, page{strings.TrimSuffix(filepath.Base(file), ".md"), title, string(text)})
	}
	l.pages.Store(&pages)
	cx.Infof("opened %d pages", len(pages))
	return nil
}

type findArgs struct {
	Query string `json:"query" desc:"Words that the page has to have, all of them." example:"travel approval|报销" min:"1"`
	Limit int    `json:"limit" desc:"How many pages to give at most." min:"1" max:"20" default:"5"`
}

// Hit is a page that was found.
type Hit struct {
	Page  string `json:"page" desc:"Its name, for read_page."`
	Title string `json:"title" desc:"Its heading."`
	Line  string `json:"line" desc:"The first line with one of the words."`
	Score int    `json:"score" desc:"How often the words occur."`
}

func (l *library) find(_ *plugd.Context, args findArgs) (plugd.Reply[[]Hit], error) {
	words := strings.Fields(strings.ToLower(args.Query))
	hits := []Hit{}
	for _, page := range *l.pages.Load() {
		if score := scoreOf(strings.ToLower(page.text), words); score > 0 {
			hits = append(hits, Hit{page.name, page.title, lineOf(page.text, words), score})
		}
	}
	sort.SliceStable(hits, func(i, j int) bool { return hits[i].Score > hits[j].Score })
	found := len(hits)
	if found > args.Limit {
		hits = hits[:args.Limit]
	}
	reply := plugd.Reply[[]Hit]{Data: hits, Summary: fmt.Sprintf("pages with “%s”: %d", args.Query, found)}
	for _, hit := range hits {
		reply.NextActions = append(reply.NextActions, plugd.NextAction{
			Operation:   "search.read_page",
			Description: "Read the page " + hit.Title + ".",
			Arguments:   map[string]any{"page": hit.Page},
		})
	}
	return reply, nil
}

// scoreOf counts the words in a text; 0 where one of them is missing.
func scoreOf(text string, words []string) (score int) {
	for _, word := range words {
		count := strings.Count(text, word)
		if count == 0 {
			return 0
		}
		score += count
	}
	return score
}

func lineOf(text string, words []string) string {
	for _, line := range strings.Split(text, "\n") {
		for _, word := range words {
			if strings.Contains(strings.ToLower(line), word) {
				return line
			}
		}
	}
	return ""
}

type readArgs struct {
	Page string `json:"page" desc:"The page's name, as find_pages gives it." example:"travel" min:"1"`
}

func (l *library) read(_ *plugd.Context, args readArgs) (string, error) {
	for _, page := range *l.pages.Load() {
		if page.name == args.Page {
			return page.text, nil
		}
	}
	return "", plugd.Errorf("page_not_found", "there is no page %s", args.Page).WithHint("search.find_pages finds pages")
}

func newPlugin() *plugd.Plugin {
	l := new(library)
	return plugd.New("search", "1.0.0").
		Description("Searches the handbook for the staff.").
		Concurrency(4).
		Init(plugd.WithConfig(l.open)).
		Reload(plugd.WithConfig(l.open)).
		Operation(
			plugd.Op("find_pages", l.find,
				plugd.Title("Search the handbook"),
				plugd.Description("Finds pages of the staff handbook by words in their text. Gives the best first, each with a line of it."),
				plugd.WhenToUse("Somebody asks what the rules of the house are: travel, expenses, holidays, security."),
				plugd.WhenNotToUse("The page is known already: use search.read_page."),
				plugd.Examples("how many days of holiday do I have", "what does the handbook say about lost laptops", "报销有什么规定"),
				plugd.Category("handbook"), plugd.ReadOnly(), plugd.Idempotent(), plugd.Timeout(5*time.Second)),
			plugd.Op("read_page", l.read,
				plugd.Title("A page of the handbook"),
				plugd.Description("Gives the whole text of one page of the staff handbook, as Markdown. Pages go by their names."),
				plugd.WhenToUse("A page was found, and its line does not say enough."),
				plugd.Examples("show me the page about travel", "打开关于出差的那一页"),
				plugd.Category("handbook"), plugd.ReadOnly(), plugd.Idempotent(), plugd.Timeout(5*time.Second)),
		)
}

func main() {
	newPlugin().Serve()
}
