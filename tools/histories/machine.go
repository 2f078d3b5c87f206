package main

// machineState is a Machine: its version, its metadata and its lease.
type machineState struct {
	// Mark is the mark of the update that created the version.
	Mark     string
	Metadata string
}

func stepMachine(state any, op *operation) []any {
	machine := state.(machineState)
	answer, next := machine.apply(op)
	return after(machine, next, op, answer)
}

// apply returns the answer to an operation, and the next state.
func (machine machineState) apply(op *operation) (output, machineState) {
	in := op.Input
	switch in.Do {
	case "update":
		if in.Expected != "" && in.Expected != machine.Mark {
			return output{Result: "mismatch"}, machine
		}
		machine.Mark = in.Mark
		machine.Metadata = merged("{}", in.Values)
		return output{Result: "ok"}, machine
	case "read":
		return output{Result: "ok", Mark: machine.Mark, Values: valuesIn(machine.Metadata)}, machine
	}
	return output{Result: "no operation " + in.Do}, machine
}
