// Writes the zip that Go's module proxy makes of a module, and prints its hash as go.sum has it: `module-zip DIR MODULE VERSION FILE`.
// It refuses what the proxy refuses: names that differ only in case, files that are too large, an invalid version.
package main

import (
	"fmt"
	"os"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dir, path, version, file string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := zip.CreateFromDir(out, module.Version{Path: path, Version: version}, dir); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	hash, err := dirhash.HashZip(file, dirhash.Hash1)
	if err == nil {
		fmt.Println(hash)
	}
	return err
}
