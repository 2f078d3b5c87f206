// Package ext holds the fields that a distribution of Traefik can add to its configuration: none.
package ext

// HTTP has no further fields of the HTTP configuration.
type HTTP struct{}

// Router has no further fields of a router.
type Router struct{}
