// The program in the image of this example: it says which Machine answers, and counts its visits in /data.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
)

func main() {
	http.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	http.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "%s from Machine %s in %s, visit %d\n",
			greeting(), os.Getenv("FLY_MACHINE_ID"), os.Getenv("FLY_REGION"), visit("/data/visits"))
	})
	log.Println("listening on 8080")
	log.Fatal(http.ListenAndServe(":8080", nil))
}

func greeting() string {
	if text := os.Getenv("GREETING"); text != "" {
		return text
	}
	return "hello"
}

var (
	counting sync.Mutex
	visits   int
)

// visit counts one more. With a volume at /data, the number outlives the Machine.
func visit(file string) int {
	counting.Lock()
	defer counting.Unlock()
	if text, err := os.ReadFile(file); err == nil {
		visits, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	visits++
	_ = os.WriteFile(file, []byte(strconv.Itoa(visits)), 0o644) // without a volume there is no such folder
	return visits
}
