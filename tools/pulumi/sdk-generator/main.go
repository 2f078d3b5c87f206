// Command sdk-generator checks a Pulumi package schema with Pulumi's own binder and runs Pulumi's own SDK generators on it.
// With -programs, it binds the programs of a directory against the schema instead, and writes each in the languages; for Java and
// YAML, their language hosts do that. It reads these files and writes to the given directories; it needs neither the network nor
// plugins.
//
//	sdk-generator [-python DIR] [-go DIR] [-nodejs DIR] [-dotnet DIR] SCHEMA
//	sdk-generator -programs DIR [-python DIR] … [-java DIR -java-host FILE] [-yaml DIR -yaml-host FILE] SCHEMA
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/blang/semver"
	"github.com/hashicorp/hcl/v2"
	dotnet "github.com/pulumi/pulumi-dotnet/pulumi-language-dotnet/v3/codegen"
	golang "github.com/pulumi/pulumi/pkg/v3/codegen/go"
	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/python"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
)

// The name in the banner of the generated files.
const tool = "the Pulumi SDK Generator"

type generator func(pkg *schema.Package) (map[string][]byte, error)

var generators = map[string]generator{
	"python": func(pkg *schema.Package) (map[string][]byte, error) {
		return python.GeneratePackage(tool, pkg, nil, noOtherPackages{})
	},
	"go": func(pkg *schema.Package) (map[string][]byte, error) {
		return golang.GeneratePackage(tool, pkg, nil)
	},
	"nodejs": func(pkg *schema.Package) (map[string][]byte, error) {
		return nodejs.GeneratePackage(tool, pkg, nil, nil, false, noOtherPackages{})
	},
	"dotnet": func(pkg *schema.Package) (map[string][]byte, error) {
		http.DefaultTransport = noNetwork{}
		return dotnet.GeneratePackage(tool, pkg, nil, nil)
	},
}

func main() {
	programs := flag.String("programs", "", "directory of programs in PCL to write in the languages, instead of SDKs")
	targets := map[string]*string{}
	for language := range programGenerators {
		targets[language] = flag.String(language, "", "directory to write the SDK for "+language+" to, or the programs")
	}
	executables := map[string]*string{}
	for _, language := range hosts {
		targets[language] = flag.String(language, "", "directory to write the programs in "+language+" to")
		executables[language] = flag.String(language+"-host", "", "the language host for "+language)
	}
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: sdk-generator [-LANGUAGE DIR]... SCHEMA")
		fmt.Fprintln(os.Stderr, "       sdk-generator -programs DIR [-LANGUAGE DIR [-LANGUAGE-host FILE]]... SCHEMA")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *programs, targets, executables); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(file, programs string, targets, executables map[string]*string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := checkForm(text); err != nil {
		return fmt.Errorf("%s is not of the form of a package schema: %w", file, err)
	}
	if _, err := bind(file, text); err != nil {
		return err
	}
	for language, target := range targets {
		if *target == "" {
			continue
		}
		if executable := executables[language]; executable != nil {
			err := throughHost(*executable, text, func(generate programGenerator) error {
				return generatePrograms(programs, generate, *target)
			})
			if err != nil {
				return fmt.Errorf("writing the programs in %s:\n%w", language, err)
			}
			continue
		}
		// A generator changes its package, so each gets a separate one.
		pkg, err := bind(file, text)
		if err != nil {
			return err
		}
		if programs != "" {
			if err := generatePrograms(programs, withPackage(language, pkg), *target); err != nil {
				return fmt.Errorf("writing the programs in %s:\n%w", language, err)
			}
			continue
		}
		files, err := generators[language](pkg)
		if err != nil {
			return fmt.Errorf("generating the SDK for %s: %w", language, err)
		}
		if err := write(*target, files); err != nil {
			return err
		}
	}
	return nil
}

// checkForm validates the text itself. The binder validates only the keys that it knows.
func checkForm(text []byte) error {
	var raw any
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	if err := schema.MetaSchema.Validate(raw); err != nil {
		return fmt.Errorf("%#v", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(&schema.PackageSpec{})
}

// bind fails on warnings too, because the author of a schema can avoid them.
func bind(file string, text []byte) (*schema.Package, error) {
	var spec schema.PackageSpec
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, err
	}
	pkg, diagnostics, err := schema.BindSpec(spec, noOtherPackages{}, schema.ValidationOptions{})
	if err != nil {
		return nil, err
	}
	if len(diagnostics) > 0 {
		for _, diagnostic := range diagnostics {
			kind := "error"
			if diagnostic.Severity == hcl.DiagWarning {
				kind = "warning"
			}
			fmt.Fprintf(os.Stderr, "%s: %s %s\n", kind, diagnostic.Summary, diagnostic.Detail)
		}
		return nil, fmt.Errorf("%s: %d faults", file, len(diagnostics))
	}
	return pkg, nil
}

func write(dir string, files map[string][]byte) error {
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// noNetwork answers the download of the package's logo, which the generator for .NET wants, with an empty file.
type noNetwork struct{}

func (noNetwork) RoundTrip(request *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: request}, nil
}

// noOtherPackages replaces the packages that a schema may refer to: ours refers to none.
type noOtherPackages struct{}

func (noOtherPackages) refuse(name string) error {
	return fmt.Errorf("the schema refers to the package %s; it must not refer to any other", name)
}

func (l noOtherPackages) LoadPackage(name string, _ *semver.Version) (*schema.Package, error) {
	return nil, l.refuse(name)
}

func (l noOtherPackages) LoadPackageV2(_ context.Context, d *schema.PackageDescriptor) (*schema.Package, error) {
	return nil, l.refuse(d.Name)
}

func (l noOtherPackages) LoadPackageReference(name string, _ *semver.Version) (schema.PackageReference, error) {
	return nil, l.refuse(name)
}

func (l noOtherPackages) LoadPackageReferenceV2(
	_ context.Context, d *schema.PackageDescriptor,
) (schema.PackageReference, error) {
	return nil, l.refuse(d.Name)
}
