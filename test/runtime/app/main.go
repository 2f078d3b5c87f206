// The program of the tests' image. By its own name it is a web server; by others, a few commands of a shell. As the entrypoint it runs
// the command that its arguments name, as usual images do.
//
// The server listens on 8080 and behaves as MACHINES_SIMULATE asks, in the words of the simulated runtime:
// crash, exit:<code>, oom, deaf, checks:critical.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	_ "github.com/lib/pq"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

func main() {
	words := os.Args
	if filepath.Base(words[0]) == "app" && len(words) > 1 {
		words = words[1:]
	}
	args := words[1:]
	switch filepath.Base(words[0]) {
	case "echo":
		fmt.Println(strings.Join(args, " "))
	case "env":
		fmt.Println(strings.Join(os.Environ(), "\n"))
	case "true", "migrate":
	case "false":
		os.Exit(1)
	case "sleep":
		seconds, _ := strconv.ParseFloat(args[0], 64)
		time.Sleep(time.Duration(seconds * float64(time.Second)))
	case "exit":
		os.Exit(number(args[0]))
	case "hostname":
		name, err := os.Hostname()
		must(err)
		fmt.Println(name)
	case "cat":
		cat(args)
	case "write":
		write(args[0], args[1])
	case "mode":
		mode(args[0])
	case "count":
		count(args[0])
	case "lookup":
		lookup(args[0])
	case "get":
		get(args[0])
	case "sql":
		query(strings.Join(args, " "))
	case "kill":
		kill(args[1], args[2])
	case "sh":
		shell(args)
	case "attack":
		attack(args)
	case "usual":
		usual()
	case "who":
		who()
	default:
		serve()
	}
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		return 2
	}
	return value
}

func cat(paths []string) {
	if len(paths) == 0 {
		io.Copy(os.Stdout, os.Stdin)
	}
	failed := false
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintf(os.Stderr, "cat: %s: No such file or directory\n", path)
			failed = true
		}
		os.Stdout.Write(text)
	}
	if failed {
		os.Exit(1)
	}
}

// write copies its input into a file with this mode, of user 1000.
func write(path, mode string) {
	bits, _ := strconv.ParseUint(mode, 8, 32)
	text, _ := io.ReadAll(os.Stdin)
	must(os.WriteFile(path, text, 0o600))
	must(os.Chown(path, 1000, 1000))
	must(os.Chmod(path, os.FileMode(bits)))
}

func mode(path string) {
	info, err := os.Stat(path)
	must(err)
	fmt.Printf("%o %d\n", info.Mode().Perm(), info.Sys().(*syscall.Stat_t).Uid)
}

// count writes rising numbers, each into the file first and then into the file second. A copy that follows the names needs time
// for the large file between them.
func count(folder string) {
	must(os.WriteFile(filepath.Join(folder, "large"), make([]byte, 32<<20), 0o644))
	for number := 1; ; number++ {
		for _, name := range []string{"first", "second"} {
			file := filepath.Join(folder, name)
			must(os.WriteFile(file+".new", []byte(strconv.Itoa(number)), 0o644))
			must(os.Rename(file+".new", file))
		}
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func lookup(host string) {
	addresses, err := net.LookupHost(host)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(strings.Join(addresses, " "))
}

func get(url string) {
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	io.Copy(os.Stdout, answer.Body)
}

// query runs statements in the database of DATABASE_URL, and prints the rows of the last one.
func query(text string) {
	database, err := sql.Open("postgres", os.Getenv("DATABASE_URL"))
	must(err)
	rows, err := database.Query(text)
	must(err)
	columns, err := rows.Columns()
	must(err)
	values, pointers := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		pointers[i] = &values[i]
	}
	for rows.Next() {
		must(rows.Scan(pointers...))
		texts := make([]string, len(values))
		for i, value := range values {
			texts[i] = value.String
		}
		fmt.Println(strings.Join(texts, "\t"))
	}
	must(rows.Err())
}

// shell runs `sh -c script`.
func shell(args []string) {
	script, err := syntax.NewParser().Parse(strings.NewReader(strings.TrimPrefix(strings.Join(args, " "), "-c ")), "")
	must(err)
	// The library's shell has no `kill` of its own.
	programs := interp.CallHandler(func(_ context.Context, words []string) ([]string, error) {
		if words[0] == "kill" {
			words[0] = "/bin/kill"
		}
		return words, nil
	})
	runner, err := interp.New(interp.StdIO(os.Stdin, os.Stdout, os.Stderr), programs)
	must(err)
	var status interp.ExitStatus
	if err := runner.Run(context.Background(), script); errors.As(err, &status) {
		os.Exit(int(status))
	}
}

// kill runs `kill -s NAME PID`.
func kill(name, pid string) {
	signals := map[string]syscall.Signal{"INT": syscall.SIGINT, "KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM}
	must(syscall.Kill(number(pid), signals[name]))
}

func serve() {
	behaviours := map[string]string{}
	for _, text := range strings.Split(os.Getenv("MACHINES_SIMULATE"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(text), ":")
		behaviours[name] = value
	}
	if _, crash := behaviours["crash"]; crash {
		fmt.Println("crashing")
		os.Exit(1)
	}
	if code, exits := behaviours["exit"]; exits {
		time.AfterFunc(300*time.Millisecond, func() { os.Exit(number(code)) })
	}
	if _, oom := behaviours["oom"]; oom {
		time.AfterFunc(300*time.Millisecond, func() {
			var all [][]byte
			for {
				block := make([]byte, 1<<24)
				for i := range block {
					block[i] = 1
				}
				all = append(all, block)
			}
		})
	}
	if _, deaf := behaviours["deaf"]; deaf {
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
	}
	if _, orderly := behaviours["orderly"]; orderly {
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGINT, syscall.SIGTERM)
		go func() {
			<-asked
			os.Exit(0)
		}()
	}
	status := http.StatusOK
	if behaviours["checks"] == "critical" {
		status = http.StatusInternalServerError
	}
	fmt.Println("listening on 8080")
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintf(w, "%s of %s\n", os.Getenv("FLY_MACHINE_ID"), os.Getenv("FLY_APP_NAME"))
	})
	// A file of the Machine: read, or written from the body.
	http.HandleFunc("/file/", func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/file")
		if r.Method == http.MethodPut {
			text, _ := io.ReadAll(r.Body)
			if err := os.WriteFile(path, text, 0o644); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
			return
		}
		text, err := os.ReadFile(path)
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		w.Write(text)
	})
	// Answers as soon as a file exists.
	http.HandleFunc("/when/", func(w http.ResponseWriter, r *http.Request) {
		for {
			if _, err := os.Stat(strings.TrimPrefix(r.URL.Path, "/when")); err == nil {
				return
			}
			select {
			case <-r.Context().Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	// Two lines, and between them a pause.
	http.HandleFunc("/slow/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "begun")
		w.(http.Flusher).Flush()
		time.Sleep(time.Duration(number(strings.TrimPrefix(r.URL.Path, "/slow/"))) * time.Millisecond)
		fmt.Fprintln(w, "ended")
	})
	http.HandleFunc("/release", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, os.Getenv("RELEASE")) })
	http.HandleFunc("/headers", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Removed", "yes")
		json.NewEncoder(w).Encode(r.Header)
	})
	http.HandleFunc("/length", func(w http.ResponseWriter, r *http.Request) {
		length, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprintln(w, length)
	})
	// An answer with more than a body.
	http.HandleFunc("/rich", func(w http.ResponseWriter, r *http.Request) {
		for name, values := range map[string][]string{
			"Set-Cookie": {"a=1", "b=2"}, "Connection": {"X-Hop"}, "X-Hop": {"yes"}, "Trailer": {"X-Trailer"},
		} {
			w.Header()[name] = values
		}
		w.(http.Flusher).Flush()
		w.Write(make([]byte, 8<<20))
		w.Header().Set("X-Trailer", "end")
	})
	// It does not read the body.
	http.HandleFunc("/refused", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
	})
	// Another protocol: every byte comes back.
	http.HandleFunc("/upgrade", func(w http.ResponseWriter, r *http.Request) {
		connection, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer connection.Close()
		fmt.Fprint(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		io.Copy(connection, buffered)
	})
	go raw()
	fmt.Println(http.ListenAndServe(":8080", nil))
}

// raw returns on port 9000 what it gets.
func raw() {
	listener, err := net.Listen("tcp", ":9000")
	must(err)
	for {
		connection, err := listener.Accept()
		if err != nil {
			continue
		}
		go func() {
			defer connection.Close()
			io.Copy(connection, connection)
		}()
	}
}
