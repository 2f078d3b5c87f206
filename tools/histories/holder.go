package main

import (
	"slices"
	"strings"
)

// stepHolder is a name or a volume: something that at most one other object has. The state is the mark of its holder.
func stepHolder(state any, op *operation) []any {
	holder := state.(string)
	in := op.Input
	ok := output{Result: "ok"}
	switch in.Do {
	case "take":
		if holder == "" || holder == in.Mark {
			return after(holder, in.Mark, op, ok)
		}
		// Some refusals do not name the holder.
		return after(holder, holder, op, output{Result: "taken", Mark: holder}, output{Result: "taken"})
	case "free":
		// A repeated request has the same answer while the first one is being carried out.
		if in.Mark != "" && in.Mark != holder || holder == "" {
			return after(holder, holder, op, ok, output{Result: "missing"})
		}
		return after(holder, "", op, ok)
	case "read":
		return after(holder, holder, op, output{Result: "ok", Mark: holder})
	}
	return nil
}

// stepCapacity is a region with a limit. The state has the marks of its Machines, sorted.
func stepCapacity(state any, op *operation) []any {
	text := state.(string)
	machines := strings.Fields(text)
	in := op.Input
	ok := output{Result: "ok"}
	switch in.Do {
	case "create":
		if len(machines) >= in.Limit {
			return after(text, text, op, output{Result: "full"})
		}
		machines = append(machines, in.Mark)
		slices.Sort(machines)
		return after(text, strings.Join(machines, " "), op, ok)
	case "destroy":
		at, found := slices.BinarySearch(machines, in.Mark)
		if !found {
			return after(text, text, op, ok, output{Result: "missing"})
		}
		return after(text, strings.Join(slices.Delete(machines, at, at+1), " "), op, ok)
	case "read":
		return after(text, text, op, output{Result: "ok", Marks: machines})
	}
	return nil
}
