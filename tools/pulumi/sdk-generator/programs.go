package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/blang/semver"
	"github.com/hashicorp/hcl/v2"
	dotnet "github.com/pulumi/pulumi-dotnet/pulumi-language-dotnet/v3/codegen"
	golang "github.com/pulumi/pulumi/pkg/v3/codegen/go"
	"github.com/pulumi/pulumi/pkg/v3/codegen/hcl2/syntax"
	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/pcl"
	"github.com/pulumi/pulumi/pkg/v3/codegen/python"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
)

// A programGenerator writes the program of a text in PCL; the second text is the path of its file.
type programGenerator func(text []byte, path string) (map[string][]byte, error)

var programGenerators = map[string]func(program *pcl.Program) (map[string][]byte, hcl.Diagnostics, error){
	"python": python.GenerateProgram,
	"go":     golang.GenerateProgram,
	"nodejs": nodejs.GenerateProgram,
	"dotnet": dotnet.GenerateProgram,
}

// hosts are the languages whose generators need other versions of Pulumi's modules than ours: their language hosts have them.
var hosts = []string{"java", "yaml"}

// generatePrograms writes each program of a directory, as `<its name>/<file>`. It names the faults of all of them.
func generatePrograms(from string, generate programGenerator, to string) error {
	paths, err := filepath.Glob(filepath.Join(from, "*.pp"))
	if err != nil {
		return err
	}
	var faults []error
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files, err := generate(text, path)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %s", path, shortened(err.Error())))
			continue
		}
		if err := write(filepath.Join(to, strings.TrimSuffix(filepath.Base(path), ".pp")), files); err != nil {
			return err
		}
	}
	return errors.Join(faults...)
}

// shortened cuts a message of the binder in its middle: it may quote the whole type of a resource.
func shortened(message string) string {
	const most = 2000
	if len(message) <= most {
		return message
	}
	return message[:most/2] + "\n…\n" + message[len(message)-most/2:]
}

// withPackage generates with a generator of our own version. It changes the program, so that each language binds it again.
func withPackage(language string, pkg *schema.Package) programGenerator {
	return func(text []byte, path string) (map[string][]byte, error) {
		parser := syntax.NewParser()
		if err := parser.ParseFile(bytes.NewReader(text), path); err != nil {
			return nil, err
		}
		if err := refused(parser.Diagnostics); err != nil {
			return nil, err
		}
		program, diagnostics, err := pcl.BindProgram(parser.Files, onlyPackage{pkg: pkg}, pcl.PreferOutputVersionedInvokes)
		if err := refused(diagnostics); err != nil {
			return nil, err
		}
		if err != nil {
			return nil, err
		}
		files, diagnostics, err := programGenerators[language](program)
		if err != nil {
			return nil, err
		}
		return files, refused(diagnostics)
	}
}

// refused fails on warnings too: an example has none.
func refused(diagnostics hcl.Diagnostics) error {
	var faults []error
	for _, diagnostic := range diagnostics {
		faults = append(faults, diagnostic)
	}
	return errors.Join(faults...)
}

// onlyPackage answers the package of the programs, and refuses others.
type onlyPackage struct {
	noOtherPackages
	pkg *schema.Package
}

func (l onlyPackage) LoadPackage(name string, version *semver.Version) (*schema.Package, error) {
	if name == l.pkg.Name {
		return l.pkg, nil
	}
	return l.noOtherPackages.LoadPackage(name, version)
}

func (l onlyPackage) LoadPackageV2(_ context.Context, d *schema.PackageDescriptor) (*schema.Package, error) {
	return l.LoadPackage(d.Name, d.Version)
}

func (l onlyPackage) LoadPackageReference(name string, version *semver.Version) (schema.PackageReference, error) {
	pkg, err := l.LoadPackage(name, version)
	if err != nil {
		return nil, err
	}
	return pkg.Reference(), nil
}

func (l onlyPackage) LoadPackageReferenceV2(
	_ context.Context, d *schema.PackageDescriptor,
) (schema.PackageReference, error) {
	return l.LoadPackageReference(d.Name, d.Version)
}
