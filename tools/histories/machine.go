package main

// machineState is a Machine: its version, its metadata and its lease.
type machineState struct {
	// Mark is the mark of the update that created the version.
	Mark     string
	Metadata string
	Lease    lease
}

// lease is the lease of a Machine; without a mark there is none. The service granted it at a moment between the call and
// the answer of a request, so it expires at a moment between two times.
type lease struct {
	Mark        string
	From, Until int64
}

// tolerance is how much the clocks of the service and of the clients may differ, in microseconds.
const tolerance = 100_000

func stepMachine(state any, op *operation) []any {
	machine := state.(machineState)
	next := []any{}
	for _, seen := range machine.atTimeOf(op) {
		answer, effect := seen.apply(op)
		next = append(next, after(seen, effect, op, answer)...)
	}
	return next
}

// atTimeOf returns the Machine as an operation may find it: with its lease, without it, or both if it expires meanwhile.
func (machine machineState) atTimeOf(op *operation) []machineState {
	states := []machineState{}
	held, expired := machine, machine
	expired.Lease = lease{}
	if held.Lease.Mark != "" && op.Call < held.Lease.Until+tolerance {
		held.Lease.From = max(held.Lease.From, op.Call-tolerance)
		states = append(states, held)
	}
	if held.Lease.Mark == "" || op.Return > machine.Lease.From-tolerance {
		states = append(states, expired)
	}
	return states
}

// apply returns the answer to an operation, and the next state.
func (machine machineState) apply(op *operation) (output, machineState) {
	in := op.Input
	held := machine.Lease.Mark
	ok := output{Result: "ok"}
	switch in.Do {
	case "update":
		switch {
		case held != "" && held != in.Nonce:
			return output{Result: "held"}, machine
		case held == "" && in.Nonce != "":
			return output{Result: "outdated"}, machine
		case in.Expected != "" && in.Expected != machine.Mark:
			return output{Result: "mismatch"}, machine
		}
		machine.Mark = in.Mark
		machine.Metadata = merged("{}", in.Values)
		return ok, machine
	case "patch":
		if in.Expected != "" && in.Expected != machine.Mark {
			return output{Result: "mismatch"}, machine
		}
		machine.Metadata = merged(machine.Metadata, in.Values)
		return ok, machine
	case "read":
		return output{Result: "ok", Mark: machine.Mark, Values: valuesIn(machine.Metadata)}, machine
	case "acquire":
		if held != "" {
			return output{Result: "held"}, machine
		}
		machine.Lease = granted(in.Mark, op)
		return ok, machine
	case "refresh", "release":
		switch held {
		case "":
			return output{Result: "missing"}, machine
		case in.Nonce:
			machine.Lease = lease{}
			if in.Do == "refresh" {
				machine.Lease = granted(held, op)
			}
			return ok, machine
		}
		return output{Result: "held"}, machine
	case "readLease":
		if held == "" {
			return output{Result: "missing"}, machine
		}
		return output{Result: "ok", Mark: held}, machine
	}
	return output{Result: "no operation " + in.Do}, machine
}

// granted returns a lease that an operation takes or extends.
func granted(mark string, op *operation) lease {
	ttl := op.Input.TTL * 1_000_000
	return lease{Mark: mark, From: op.Call + ttl, Until: op.Return + ttl}
}
