package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// object is a sequential object. Its states are comparable values.
type object struct {
	initial any
	// step returns the states in which an operation with its answer may leave the object; none if it cannot have this
	// answer. A lost operation took effect before its client learned of the loss, or never: the process was killed, or it
	// had finished the request.
	step func(state any, op *operation) []any
}

var objects = map[string]object{
	"machine":  {machineState{Mark: "first", Metadata: "{}"}, stepMachine},
	"name":     {"", stepHolder},
	"volume":   {"", stepHolder},
	"capacity": {"", stepCapacity},
	"secrets":  {secretsState{Values: "{}"}, stepSecrets},
}

// isRead says whether an operation has no effect.
func isRead(op operation) bool { return strings.HasPrefix(op.Input.Do, "read") }

// equals compares two answers.
func (a output) equals(b output) bool {
	return a.Result == b.Result && a.Mark == b.Mark && a.Version == b.Version &&
		slices.Equal(a.Marks, b.Marks) && maps.Equal(a.Values, b.Values)
}

// after returns the next states: the one with the effect if the answer fits, and without an answer also the old one.
func after[State comparable](state, effect State, op *operation, answers ...output) []any {
	if op.Output == nil {
		return []any{state, effect}
	}
	if slices.ContainsFunc(answers, op.Output.equals) {
		return []any{effect}
	}
	return nil
}

// valuesIn reads a map in a state.
func valuesIn(text string) map[string]string {
	values := map[string]string{}
	if err := json.Unmarshal([]byte(text), &values); err != nil {
		panic(err) // only merged writes such texts
	}
	return values
}

// merged returns a map in a state with changes; null or an empty value removes its key.
func merged(text string, changes map[string]*string) string {
	values := valuesIn(text)
	for key, value := range changes {
		if value == nil || *value == "" {
			delete(values, key)
		} else {
			values[key] = *value
		}
	}
	return plain(values)
}
