//go:build !netstack

package netstack

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// Stack is not in this program.
type Stack struct{ stream.Stack }

// Open explains how to get a program with netstack. Error: ErrAbsent.
func Open(Config) (*Stack, error) {
	return nil, fmt.Errorf("%w: this program was built without it (go build -tags netstack ./cmd/rdmaperf)", ErrAbsent)
}

// Totals are zero.
func Totals() Counts { return Counts{} }
