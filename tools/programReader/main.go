// Command programReader reads generated programs with the parsers of their languages, for the tests. It reads a list of texts
// from standard input as JSON, and prints what each declares.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

// A Resource is what a program declares.
type Resource struct {
	Type          string   `json:"type"`
	Name          string   `json:"name"`
	Properties    any      `json:"properties"`
	IgnoreChanges []string `json:"ignoreChanges"`
}

// An Answer is what one program declares, or why it cannot be read.
type Answer struct {
	Resources []Resource `json:"resources"`
	Error     string     `json:"error,omitempty"`
}

func main() {
	readers := map[string]func(string) ([]Resource, error){"go": readGo, "yaml": readYAML}
	var texts []string
	if err := json.NewDecoder(os.Stdin).Decode(&texts); err != nil {
		panic(err)
	}
	answers := make([]Answer, len(texts))
	for i, text := range texts {
		resources, err := readers[os.Args[1]](text)
		if err != nil {
			answers[i].Error = err.Error()
		}
		answers[i].Resources = resources
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	if err := out.Encode(answers); err != nil {
		panic(fmt.Errorf("printing the answers: %w", err))
	}
}
