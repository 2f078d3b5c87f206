package main

// secretsState is the secrets of an App, with the version that each change increments.
type secretsState struct {
	Version int64
	Values  string
}

func stepSecrets(state any, op *operation) []any {
	secrets := state.(secretsState)
	if op.Input.Do == "read" {
		return after(secrets, secrets, op, output{Result: "ok", Values: valuesIn(secrets.Values)})
	}
	changed := secretsState{secrets.Version + 1, merged(secrets.Values, op.Input.Values)}
	if op.Input.Do == "unset" {
		// Only a secret that exists can be unset.
		for name := range op.Input.Values {
			if _, ok := valuesIn(secrets.Values)[name]; !ok {
				return after(secrets, secrets, op, output{Result: "missing"})
			}
		}
	}
	return after(secrets, changed, op, output{Result: "ok", Version: changed.Version})
}
