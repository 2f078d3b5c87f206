package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// readGo parses a program and follows its statements. A statement that the generator never writes is an error.
func readGo(text string) ([]Resource, error) {
	if _, err := format.Source([]byte(text)); err != nil {
		return nil, err
	}
	file, err := parser.ParseFile(token.NewFileSet(), "main.go", text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	if len(file.Decls) != 2 {
		return nil, errors.New("a program has its imports and one function")
	}
	main, isFunction := file.Decls[1].(*ast.FuncDecl)
	if !isFunction || len(main.Body.List) != 1 {
		return nil, errors.New("main has one statement")
	}
	run, isCall := main.Body.List[0].(*ast.ExprStmt).X.(*ast.CallExpr)
	if !isCall || selector(run.Fun) != "pulumi.Run" {
		return nil, errors.New("main calls pulumi.Run")
	}
	p := &goProgram{variables: map[string]any{}}
	return p.resources, p.run(run.Args[0].(*ast.FuncLit).Body.List)
}

type goProgram struct {
	variables map[string]any
	row       map[string]any
	resources []Resource
}

func (p *goProgram) run(statements []ast.Stmt) error {
	for _, statement := range statements {
		if err := p.step(statement); err != nil {
			return err
		}
	}
	return nil
}

func (p *goProgram) step(statement ast.Stmt) error {
	switch s := statement.(type) {
	case *ast.ReturnStmt:
		return nil
	case *ast.AssignStmt:
		value, err := p.value(s.Rhs[0])
		p.variables[s.Lhs[0].(*ast.Ident).Name] = value
		return err
	case *ast.IfStmt:
		if s.Init != nil {
			return p.step(s.Init)
		}
		if condition, isComparison := s.Cond.(*ast.BinaryExpr); isComparison && condition.Op == token.EQL {
			return p.run(s.Body.List)
		}
		return nil
	case *ast.RangeStmt:
		return p.loop(s)
	}
	return fmt.Errorf("unexpected statement %T", statement)
}

func (p *goProgram) loop(s *ast.RangeStmt) error {
	rows := s.X.(*ast.CompositeLit)
	fields := rows.Type.(*ast.ArrayType).Elt.(*ast.StructType).Fields.List
	for _, element := range rows.Elts {
		row := map[string]any{}
		for i, cell := range element.(*ast.CompositeLit).Elts {
			value, err := p.value(cell)
			if err != nil {
				return err
			}
			row[fields[i].Names[0].Name] = value
		}
		p.row = row
		if err := p.run(s.Body.List); err != nil {
			return err
		}
	}
	return nil
}

func selector(expression ast.Expr) string {
	if s, isSelector := expression.(*ast.SelectorExpr); isSelector {
		if of, isName := s.X.(*ast.Ident); isName {
			return of.Name + "." + s.Sel.Name
		}
	}
	return ""
}

func (p *goProgram) value(expression ast.Expr) (any, error) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		switch e.Kind {
		case token.STRING:
			return strconv.Unquote(e.Value)
		case token.INT, token.FLOAT:
			return strconv.ParseFloat(e.Value, 64)
		}
	case *ast.Ident:
		if e.Name == "true" || e.Name == "false" {
			return e.Name == "true", nil
		}
		if value, isKnown := p.variables[e.Name]; isKnown {
			return value, nil
		}
	case *ast.BinaryExpr:
		left, err := p.value(e.X)
		if err != nil {
			return nil, err
		}
		right, err := p.value(e.Y)
		return fmt.Sprint(left) + fmt.Sprint(right), err
	case *ast.UnaryExpr:
		return p.value(e.X)
	case *ast.SelectorExpr:
		name := selector(e)
		if column, isColumn := strings.CutPrefix(name, "row."); isColumn {
			return p.row[column], nil
		}
		return map[string]any{"enum": name}, nil
	case *ast.CompositeLit:
		return p.composite(e)
	case *ast.CallExpr:
		return p.call(e)
	}
	return nil, fmt.Errorf("unexpected expression %T", expression)
}

func (p *goProgram) composite(e *ast.CompositeLit) (any, error) {
	items := []any{}
	entries := map[string]any{}
	for _, element := range e.Elts {
		pair, isPair := element.(*ast.KeyValueExpr)
		if !isPair {
			value, err := p.value(element)
			if err != nil {
				return nil, err
			}
			items = append(items, value)
			continue
		}
		value, err := p.value(pair.Value)
		if err != nil {
			return nil, err
		}
		if field, isField := pair.Key.(*ast.Ident); isField {
			entries[field.Name] = value
			continue
		}
		key, err := p.value(pair.Key)
		if err != nil {
			return nil, err
		}
		entries[key.(string)] = value
	}
	if name := typeName(e.Type); strings.HasSuffix(name, "Array") {
		return items, nil
	}
	return entries, nil
}

func typeName(expression ast.Expr) string {
	if list, isList := expression.(*ast.ArrayType); isList {
		return typeName(list.Elt) + "Array"
	}
	return selector(expression)
}

func (p *goProgram) call(e *ast.CallExpr) (any, error) {
	name := selector(e.Fun)
	if s, isSelector := e.Fun.(*ast.SelectorExpr); isSelector && s.Sel.Name == "ID" {
		return p.value(s.X)
	}
	if resource, isResource := strings.CutPrefix(name, "machines.New"); isResource {
		return p.declare(resource, e.Args[1:])
	}
	switch name {
	case "config.New":
		return nil, nil
	case "cfg.Get", "cfg.Require", "cfg.RequireSecret":
		key, err := p.value(e.Args[0])
		return map[string]any{"setting": key}, err
	}
	if len(e.Args) == 1 && (strings.HasPrefix(name, "pulumi.") || strings.HasPrefix(name, "machines.")) {
		return p.value(e.Args[0])
	}
	return nil, fmt.Errorf("unexpected call of %q", name)
}

func (p *goProgram) declare(kind string, args []ast.Expr) (any, error) {
	name, err := p.value(args[0])
	if err != nil {
		return nil, err
	}
	properties, err := p.value(args[1])
	if err != nil {
		return nil, err
	}
	resource := Resource{Type: kind, Name: name.(string), Properties: properties, IgnoreChanges: []string{}}
	for _, option := range args[2:] {
		if call, isCall := option.(*ast.CallExpr); !isCall || selector(call.Fun) != "pulumi.IgnoreChanges" {
			return nil, errors.New("unexpected option")
		}
		paths, err := p.value(option)
		if err != nil {
			return nil, err
		}
		for _, path := range paths.([]any) {
			resource.IgnoreChanges = append(resource.IgnoreChanges, path.(string))
		}
	}
	p.resources = append(p.resources, resource)
	return map[string]any{"id": kind + " " + resource.Name}, nil
}
