package main

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// readYAML reads a program as Pulumi's language host for YAML does: the same parser, the same form of each scalar, and the same
// rule for dollars. tools/pulumi/program-reader has the language host's own code, which takes much longer to build.
func readYAML(text string) ([]Resource, error) {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return nil, err
	}
	p := &yamlProgram{settings: map[string]any{}, names: map[string]string{}}
	root := document.Content[0]
	if err := each(root, func(key string, value *yaml.Node) error {
		switch key {
		case "config":
			return each(value, p.setting)
		case "resources":
			return each(value, p.declare)
		}
		return fmt.Errorf("a program has no %q", key)
	}); err != nil {
		return nil, err
	}
	for _, node := range p.nodes {
		if err := p.read(node); err != nil {
			return nil, err
		}
	}
	return p.resources, nil
}

type yamlProgram struct {
	settings  map[string]any
	names     map[string]string
	nodes     []*yaml.Node
	resources []Resource
}

func (p *yamlProgram) setting(key string, node *yaml.Node) error {
	p.settings[key] = map[string]any{"setting": key}
	return each(node, func(part string, value *yaml.Node) error {
		if part != "default" {
			return nil
		}
		text, err := p.value(value)
		p.settings[key] = text
		return err
	})
}

func (p *yamlProgram) declare(key string, node *yaml.Node) error {
	resource, err := p.header(node)
	p.names[key] = resource.Type + " " + resource.Name
	p.nodes = append(p.nodes, node)
	return err
}

func (p *yamlProgram) header(node *yaml.Node) (Resource, error) {
	resource := Resource{IgnoreChanges: []string{}}
	err := each(node, func(key string, value *yaml.Node) error {
		if key != "type" && key != "name" {
			return nil
		}
		found, err := p.value(value)
		text, isText := found.(string)
		if err == nil && !isText {
			err = fmt.Errorf("%s is no text: %v", key, found)
		}
		if key == "type" {
			resource.Type = strings.TrimPrefix(text, "machines:")
		} else {
			resource.Name = text
		}
		return err
	})
	return resource, err
}

func (p *yamlProgram) read(node *yaml.Node) error {
	resource, err := p.header(node)
	if err != nil {
		return err
	}
	err = each(node, func(key string, value *yaml.Node) error {
		switch key {
		case "type", "name":
			return nil
		case "properties":
			// The language host reads these keys as they are.
			properties := map[string]any{}
			resource.Properties = properties
			return each(value, func(name string, inner *yaml.Node) (err error) {
				properties[name], err = p.value(inner)
				return err
			})
		case "options":
			return each(value, func(option string, inner *yaml.Node) error {
				if option != "ignoreChanges" {
					return fmt.Errorf("unexpected option %q", option)
				}
				for _, item := range inner.Content {
					text, err := p.value(item)
					if err != nil {
						return err
					}
					resource.IgnoreChanges = append(resource.IgnoreChanges, fmt.Sprint(text))
				}
				return nil
			})
		}
		return fmt.Errorf("a resource has no %q", key)
	})
	p.resources = append(p.resources, resource)
	return err
}

// each visits the entries of a mapping whose keys must be texts.
func each(node *yaml.Node, visit func(string, *yaml.Node) error) error {
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d is no mapping", node.Line)
	}
	for i := 0; i < len(node.Content); i += 2 {
		key, err := plainScalar(node.Content[i])
		if err != nil {
			return err
		}
		text, isText := key.(string)
		if !isText {
			return fmt.Errorf("mapping keys must be strings, got %v", key)
		}
		if err := visit(text, node.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func plainScalar(node *yaml.Node) (any, error) {
	if node.Kind != yaml.ScalarNode {
		return nil, fmt.Errorf("line %d is no scalar", node.Line)
	}
	var value any
	if err := node.Decode(&value); err != nil {
		return nil, err
	}
	switch value.(type) {
	case nil, bool, int, int64, uint64, float64:
		return value, nil
	}
	return node.Value, nil
}

func (p *yamlProgram) value(node *yaml.Node) (any, error) {
	switch node.Kind {
	case yaml.SequenceNode:
		items := []any{}
		for _, item := range node.Content {
			value, err := p.value(item)
			if err != nil {
				return nil, err
			}
			items = append(items, value)
		}
		return items, nil
	case yaml.MappingNode:
		entries := map[string]any{}
		return entries, each(node, func(key string, inner *yaml.Node) error {
			if strings.Contains(strings.ToLower(key), "fn::") {
				return fmt.Errorf("%q calls a function", key)
			}
			name, err := p.interpolated(key)
			if err != nil {
				return err
			}
			text, isText := name.(string)
			if !isText {
				return fmt.Errorf("the key %q is a reference", key)
			}
			entries[text], err = p.value(inner)
			return err
		})
	case yaml.ScalarNode:
		value, err := plainScalar(node)
		if text, isText := value.(string); isText && err == nil {
			return p.interpolated(text)
		}
		return value, err
	}
	return nil, fmt.Errorf("line %d is an alias", node.Line)
}

// interpolated is parseInterpolate of the language host, for texts that are one reference as a whole, or none.
func (p *yamlProgram) interpolated(text string) (any, error) {
	var out strings.Builder
	for rest := text; rest != ""; {
		switch {
		case strings.HasPrefix(rest, "$$"):
			out.WriteByte('$')
			rest = rest[2:]
		case strings.HasPrefix(rest, "${"):
			return p.reference(text)
		default:
			out.WriteByte(rest[0])
			rest = rest[1:]
		}
	}
	return out.String(), nil
}

func (p *yamlProgram) reference(text string) (any, error) {
	inner, isWhole := strings.CutSuffix(strings.TrimPrefix(text, "${"), "}")
	if value, isSetting := p.settings[inner]; isWhole && isSetting {
		return value, nil
	}
	if of, isResource := p.names[strings.TrimSuffix(inner, ".id")]; isWhole && isResource {
		return map[string]any{"id": of}, nil
	}
	return nil, fmt.Errorf("%q is a reference to something else", text)
}
