package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// check checks each object of a history alone: a history is linearizable if and only if those of its objects are.
func check(one history) (verdict, error) {
	found := verdict{ID: one.ID, Result: "ok", Problems: []string{}}
	byObject := map[string][]operation{}
	for _, op := range one.Operations {
		name := op.Object + " " + op.Key
		byObject[name] = append(byObject[name], op)
	}
	for _, name := range slices.Sorted(maps.Keys(byObject)) {
		operations := byObject[name]
		object, ok := objects[operations[0].Object]
		if !ok {
			return found, fmt.Errorf("there is no model of the object %q", operations[0].Object)
		}
		switch linearize(object, operations, patience) {
		case porcupine.Illegal:
			found.Result = "illegal"
			found.Problems = append(found.Problems, name+": "+explain(object, operations))
		case porcupine.Unknown:
			if found.Result == "ok" {
				found.Result = "unknown"
			}
			found.Problems = append(found.Problems, fmt.Sprintf("%s: not decided in %s", name, patience))
		}
	}
	return found, nil
}

var seed = maphash.MakeSeed()

// linearize looks for an order of the operations on one object that explains all answers.
func linearize(object object, operations []operation, patience time.Duration) porcupine.CheckResult {
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{object.initial} },
		Step: func(state, input, _ any) []any { return object.step(state, input.(*operation)) },
		Hash: func(state any) uint64 { return maphash.Comparable(seed, state) },
	}
	calls := make([]porcupine.Operation, len(operations))
	for i := range operations {
		op := &operations[i]
		calls[i] = porcupine.Operation{ClientId: op.Client, Input: op, Call: op.Call, Return: op.Return}
	}
	return porcupine.CheckOperationsTimeout(model.ToModel(), calls, patience)
}

// Limits of an explanation: the time of each step that shortens it, the time of all steps, and the answers shown.
const (
	stepPatience    = 100 * time.Millisecond
	explainPatience = time.Second
	mostShown       = 6
)

// explain returns a small set of answers that no order explains together.
func explain(object object, operations []operation) string {
	byReturn := func(a, b operation) int { return cmp.Compare(a.Return, b.Return) }
	operations = slices.SortedFunc(slices.Values(operations), byReturn)
	// If the history is wrong up to some moment, it is wrong up to every later one.
	end := sort.Search(len(operations)-1, func(i int) bool {
		return linearize(object, until(operations, operations[i].Return), patience) == porcupine.Illegal
	})
	part := until(operations, operations[end].Return)
	// An answer is not needed if the history is still wrong when it counts as lost.
	late := time.Now().Add(explainPatience)
	for i := len(part) - 1; i >= 0 && time.Now().Before(late); i-- {
		if less := without(part, i); linearize(object, less, stepPatience) == porcupine.Illegal {
			part = less
		}
	}
	texts := []string{}
	for _, op := range part {
		if op.Output != nil {
			texts = append(texts, describe(op))
		}
	}
	if more := len(texts) - mostShown; more > 0 {
		texts = append([]string{fmt.Sprintf("%d earlier answers", more)}, texts[more:]...)
	}
	return "no order explains " + strings.Join(texts, " and ")
}

// until returns the operations up to a moment. The answers of the running ones are not known yet.
func until(operations []operation, end int64) []operation {
	part := []operation{}
	for _, op := range operations {
		if op.Return > end {
			op.Output = nil
		}
		if op.Call <= end && (op.Output != nil || !isRead(op)) {
			part = append(part, op)
		}
	}
	return part
}

// without returns the operations without the answer of one. A read without an answer says nothing.
func without(operations []operation, i int) []operation {
	if isRead(operations[i]) {
		return slices.Delete(slices.Clone(operations), i, i+1)
	}
	less := slices.Clone(operations)
	less[i].Output = nil
	return less
}

// describe shows an operation as in `client 3 [12-15 ms] update {"mark":"a"} -> {"result":"ok"}`.
func describe(op operation) string {
	asked := op.Input
	asked.Do = "" // shown before
	return fmt.Sprintf("client %d [%.1f-%.1f ms] %s %s -> %s", op.Client, float64(op.Call)/1000,
		float64(op.Return)/1000, op.Input.Do, plain(asked), plain(op.Output))
}

func plain(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}
