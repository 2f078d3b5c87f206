module app

go 1.23.0

require github.com/lib/pq v1.10.9

require (
	golang.org/x/sys v0.33.0 // indirect
	golang.org/x/term v0.32.0 // indirect
	mvdan.cc/sh/v3 v3.12.0
)
