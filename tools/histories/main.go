// Checks histories of concurrent clients for linearizability with Porcupine. Each line of stdin is a history as JSON, and
// each line of stdout the verdict on it.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// history has the operations of all clients on all objects of a run.
type history struct {
	ID         string      `json:"id"`
	Operations []operation `json:"operations"`
}

// operation is a request of a client on one object. Call and Return are microseconds of one monotonic clock.
type operation struct {
	Client int    `json:"client"`
	Object string `json:"object"`
	Key    string `json:"key"`
	Input  input  `json:"input"`
	// Output is missing if the answer was lost: the operation may have taken effect, at any later time, or not.
	Output *output `json:"output"`
	Call   int64   `json:"call"`
	// Return is the time of the answer, or the time at which the client learned that it was lost.
	Return int64 `json:"return"`
}

// input says what an operation asks for. A mark identifies the effect of an operation; the clients choose it.
type input struct {
	Do   string `json:"do,omitempty"`
	Mark string `json:"mark,omitempty"`
	// Expected is the mark of the version that the client requires.
	Expected string `json:"expected,omitempty"`
	// Nonce is the mark of the lease whose nonce the client sends.
	Nonce string `json:"nonce,omitempty"`
	// TTL is in seconds.
	TTL   int64 `json:"ttl,omitempty"`
	Limit int   `json:"limit,omitempty"`
	// Values has null for what is removed.
	Values map[string]*string `json:"values,omitempty"`
}

// output is an answer.
type output struct {
	Result  string            `json:"result"`
	Mark    string            `json:"mark,omitempty"`
	Marks   []string          `json:"marks,omitempty"`
	Version int64             `json:"version,omitempty"`
	Values  map[string]string `json:"values,omitempty"`
}

// verdict says whether a history is ok, illegal or unknown, and which answers no order of the operations explains.
type verdict struct {
	ID       string   `json:"id"`
	Result   string   `json:"result"`
	Problems []string `json:"problems"`
}

// Partitions are small, so that only a mistake in a model takes this long.
const patience = time.Minute

func main() {
	if err := checkAll(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func checkAll(in *os.File, out *os.File) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	verdicts := json.NewEncoder(out)
	verdicts.SetEscapeHTML(false)
	for number := 1; lines.Scan(); number++ {
		var one history
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return fmt.Errorf("line %d is no history: %w", number, err)
		}
		found, err := check(one)
		if err != nil {
			return fmt.Errorf("history %s: %w", one.ID, err)
		}
		if err := verdicts.Encode(found); err != nil {
			return err
		}
	}
	return lines.Err()
}
