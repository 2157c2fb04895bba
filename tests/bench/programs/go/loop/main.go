// The loop that one would write without an SDK: reads a line, parses it, builds the answer, writes it.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"
)

type request struct {
	ID     json.RawMessage `json:"id"`
	Params struct {
		Arguments struct {
			Payload string `json:"payload"`
		} `json:"arguments"`
	} `json:"params"`
}

type answer struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  result          `json:"result"`
}

type result struct {
	Data string `json:"data"`
}

func main() {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked request
		if err := json.Unmarshal(line, &asked); err != nil {
			log.Fatal(err)
		}
		answered, err := json.Marshal(answer{"2.0", asked.ID, result{asked.Params.Arguments.Payload}})
		if err != nil {
			log.Fatal(err)
		}
		if _, err := os.Stdout.Write(append(answered, '\n')); err != nil {
			log.Fatal(err)
		}
	}
}
