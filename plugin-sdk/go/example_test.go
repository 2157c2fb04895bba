package plugd_test

import (
	"fmt"
	"net/http"
	"time"

	"plugd"
)

type helloArgs struct {
	Name  string `json:"name" desc:"Who is greeted, a first name." example:"Ada" min:"1"`
	Times int    `json:"times" desc:"How often." min:"1" max:"10" default:"1"`
}

func hello(cx *plugd.Context, args helloArgs) (string, error) {
	cx.Infof("greeting %s", args.Name)
	return fmt.Sprintf("Hello, %s!", args.Name), nil
}

func Example() {
	plugin := plugd.New("greet", "1.0.0").
		Operation(plugd.Op("hello", hello,
			plugd.Description("Greets somebody by name. Gives one friendly line back."),
			plugd.WhenToUse("Someone should be greeted."),
			plugd.ReadOnly()))

	// plugin.Serve() is all that main still has to do.
	manifest, err := plugin.Manifest()
	fmt.Println(manifest.Name, string(manifest.Operations[0].OutputSchema), err)
	// Output: greet {"type":"string"} <nil>
}

// A handler is a function, and needs no host in a test.
func ExampleContextForTest() {
	line, err := hello(plugd.ContextForTest(), helloArgs{Name: "Ada", Times: 1})
	fmt.Println(line, err)
	// Output: Hello, Ada! <nil>
}

// A failure that callers should tell from others has a name, and a hint where they can do something about it.
func ExampleErrorf() {
	err := plugd.Errorf("ticket_not_found", "there is no ticket %s", "TK-9").
		WithHint("tickets.list_open shows the tickets there are")
	fmt.Println(err.Name, "-", err)
	// Output: ticket_not_found - there is no ticket TK-9
}

// What many lines work for is told that the call is over by the context itself.
func ExampleContext_Done() {
	fetch := func(cx *plugd.Context, args struct {
		URL string `json:"url" desc:"What to fetch." format:"uri"`
	}) (int, error) {
		request, err := http.NewRequestWithContext(cx, http.MethodGet, args.URL, nil)
		if err != nil {
			return 0, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	_ = plugd.Op("fetch", fetch, plugd.OpenWorld(), plugd.Timeout(10*time.Second))
}

// A call of another plugin fails with that plugin's own words: hand the error on.
func ExampleCall() {
	type weather struct {
		Temp int `json:"temp"`
	}
	pack := func(cx *plugd.Context, args struct {
		City string `json:"city" desc:"Where you go."`
	}) ([]string, error) {
		found, err := plugd.Call[weather](cx, "weather.get_weather", args)
		if err != nil {
			return nil, fmt.Errorf("nothing to go by: %w", err)
		}
		if found.Data.Temp < 10 {
			return []string{"a coat"}, nil
		}
		return nil, nil
	}
	_ = plugd.New("trip", "1.0.0").Requires("weather", ">=1.0").Operation(plugd.Op("pack", pack))
}

// A struct is a form: its fields are the questions.
func ExampleAskMany() {
	type form struct {
		Days     int    `json:"days" desc:"For how many days?" min:"1" default:"3"`
		Password string `json:"password" desc:"Your password?" sensitive:"true"`
	}
	book := func(cx *plugd.Context, _ struct{}) (string, error) {
		answers, err := plugd.AskMany[form](cx)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("booked for %d days", answers.Days), nil
	}
	_ = plugd.Op("book", book)
}

// Longer work says how far it is, and looks now and then whether anybody still waits.
func ExampleContext_Err() {
	index := func(cx *plugd.Context, _ struct{}) (int, error) {
		const files = 1000
		for done := 0; done < files; done++ {
			if err := cx.Err(); err != nil {
				return 0, err
			}
			if done%100 == 0 {
				cx.Progress(float64(done), files, "indexing")
			}
		}
		return files, nil
	}
	counted, err := index(plugd.ContextForTest(), struct{}{})
	fmt.Println(counted, err)
	// Output: 1000 <nil>
}

type opener struct{ path string }

func (o *opener) open(cx *plugd.InitContext, config struct {
	Path string `json:"path" desc:"Where the notes are." default:"notes"`
}) error {
	o.path = cx.DataDir() + "/" + config.Path
	return nil
}

// What calls share is a type of yours; its methods are hooks and handlers.
func ExampleWithConfig() {
	o := new(opener)
	plugin := plugd.New("notes", "1.0.0").Init(plugd.WithConfig(o.open))
	manifest, err := plugin.Manifest()
	fmt.Println(string(manifest.ConfigSchema), err)
	// Output: {"type":"object","properties":{"path":{"type":"string","description":"Where the notes are.","default":"notes"}}} <nil>
}
