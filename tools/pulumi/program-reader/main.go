// Command program-reader reads generated programs with Pulumi's own code: programs in YAML with that of its language host, and
// programs in PCL with the parser that its converters use. It reads a list of texts from standard input as JSON, and prints what
// each declares.
package main

import (
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/pulumi/pulumi-yaml/pkg/pulumiyaml/ast"
	"github.com/pulumi/pulumi-yaml/pkg/pulumiyaml/syntax/encoding"
	"github.com/zclconf/go-cty/cty"
	"gopkg.in/yaml.v3"
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
	readers := map[string]func(string) ([]Resource, error){"yaml": readYAML, "pcl": readPCL}
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
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		panic(err)
	}
}

// program is what its texts refer to.
type program struct {
	settings map[string]any
	names    map[string]string
}

func readYAML(text string) ([]Resource, error) {
	object, diags := encoding.DecodeYAML("Main.yaml", yaml.NewDecoder(strings.NewReader(text)), nil)
	if diags.HasErrors() {
		return nil, diags
	}
	template, diags := ast.ParseTemplate([]byte(text), object)
	if len(diags) > 0 {
		return nil, diags
	}
	p := &program{settings: map[string]any{}, names: map[string]string{}}
	for _, entry := range template.Config.Entries {
		key := entry.Key.Value
		p.settings[key] = map[string]any{"setting": key}
		if entry.Value.Default != nil {
			value, err := p.yamlValue(entry.Value.Default)
			if err != nil {
				return nil, err
			}
			p.settings[key] = value
		}
	}
	kind := func(resource *ast.ResourceDecl) string { return strings.TrimPrefix(resource.Type.Value, "machines:") }
	for _, entry := range template.Resources.Entries {
		p.names[entry.Key.Value] = kind(entry.Value) + " " + entry.Value.Name.Value
	}
	resources := []Resource{}
	for _, entry := range template.Resources.Entries {
		properties := map[string]any{}
		for _, property := range entry.Value.Properties.PropertyMap.Entries {
			value, err := p.yamlValue(property.Value)
			if err != nil {
				return nil, err
			}
			properties[property.Key.Value] = value
		}
		ignored := []string{}
		for _, path := range entry.Value.Options.IgnoreChanges.GetElements() {
			ignored = append(ignored, path.Value)
		}
		resources = append(resources, Resource{kind(entry.Value), entry.Value.Name.Value, properties, ignored})
	}
	return resources, nil
}

func (p *program) yamlValue(expression ast.Expr) (any, error) {
	switch e := expression.(type) {
	case *ast.StringExpr:
		return e.Value, nil
	case *ast.NumberExpr:
		return e.Value, nil
	case *ast.BooleanExpr:
		return e.Value, nil
	case *ast.NullExpr:
		return nil, nil
	case *ast.SymbolExpr:
		return p.reference(e.Property.RootName())
	case *ast.ListExpr:
		items := []any{}
		for _, item := range e.Elements {
			value, err := p.yamlValue(item)
			if err != nil {
				return nil, err
			}
			items = append(items, value)
		}
		return items, nil
	case *ast.ObjectExpr:
		entries := map[string]any{}
		for _, entry := range e.Entries {
			key, isText := entry.Key.(*ast.StringExpr)
			if !isText {
				return nil, fmt.Errorf("a key is a %T", entry.Key)
			}
			value, err := p.yamlValue(entry.Value)
			if err != nil {
				return nil, err
			}
			entries[key.Value] = value
		}
		return entries, nil
	}
	return nil, fmt.Errorf("unexpected expression %T", expression)
}

func (p *program) reference(name string) (any, error) {
	if value, isSetting := p.settings[name]; isSetting {
		return value, nil
	}
	if of, isResource := p.names[name]; isResource {
		return map[string]any{"id": of}, nil
	}
	return nil, fmt.Errorf("%q is a reference to something else", name)
}

func readPCL(text string) ([]Resource, error) {
	file, diags := hclsyntax.ParseConfig([]byte(text), "main.pp", hcl.InitialPos)
	if diags.HasErrors() {
		return nil, diags
	}
	p := &program{settings: map[string]any{}, names: map[string]string{}}
	blocks := file.Body.(*hclsyntax.Body).Blocks
	for _, block := range blocks {
		name := block.Labels[0]
		attributes, err := p.attributes(block.Body)
		if err != nil && block.Type == "config" {
			return nil, err
		}
		logical := func(otherwise string) string {
			if text, isText := attributes["__logicalName"].(string); isText {
				return text
			}
			return otherwise
		}
		if block.Type == "config" {
			p.settings[name] = map[string]any{"setting": logical(name)}
			if value, hasDefault := attributes["default"]; hasDefault {
				p.settings[name] = value
			}
			continue
		}
		p.names[name] = strings.TrimPrefix(block.Labels[1], "machines:index:") + " " + p.logicalName(block)
	}
	resources := []Resource{}
	for _, block := range blocks {
		if block.Type != "resource" {
			continue
		}
		attributes, err := p.attributes(block.Body)
		if err != nil {
			return nil, err
		}
		delete(attributes, "__logicalName")
		kind := strings.TrimPrefix(block.Labels[1], "machines:index:")
		resources = append(resources, Resource{kind, p.logicalName(block), attributes, []string{}})
	}
	return resources, nil
}

func (p *program) logicalName(block *hclsyntax.Block) string {
	if attribute := block.Body.Attributes["__logicalName"]; attribute != nil {
		if value, diags := attribute.Expr.Value(nil); !diags.HasErrors() {
			return value.AsString()
		}
	}
	return block.Labels[0]
}

func (p *program) attributes(body *hclsyntax.Body) (map[string]any, error) {
	out := map[string]any{}
	for name, attribute := range body.Attributes {
		value, err := p.pclValue(attribute.Expr)
		if err != nil {
			return nil, err
		}
		out[name] = value
	}
	return out, nil
}

func (p *program) pclValue(expression hclsyntax.Expression) (any, error) {
	switch e := expression.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		return p.reference(e.Traversal.RootName())
	case *hclsyntax.TupleConsExpr:
		items := []any{}
		for _, item := range e.Exprs {
			value, err := p.pclValue(item)
			if err != nil {
				return nil, err
			}
			items = append(items, value)
		}
		return items, nil
	case *hclsyntax.ObjectConsExpr:
		entries := map[string]any{}
		for _, item := range e.Items {
			key, diags := item.KeyExpr.Value(nil)
			if diags.HasErrors() {
				return nil, diags
			}
			value, err := p.pclValue(item.ValueExpr)
			if err != nil {
				return nil, err
			}
			entries[key.AsString()] = value
		}
		return entries, nil
	}
	value, diags := expression.Value(nil)
	if diags.HasErrors() {
		return nil, diags
	}
	switch value.Type() {
	case cty.String:
		return value.AsString(), nil
	case cty.Number:
		number, _ := new(big.Float).Copy(value.AsBigFloat()).Float64()
		return number, nil
	case cty.Bool:
		return value.True(), nil
	}
	return nil, fmt.Errorf("unexpected value of type %s", value.Type().FriendlyName())
}
