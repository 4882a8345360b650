//go:build !lwip || !cgo

package lwip

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// In says how lwIP is in this program: "", not at all.
func In() string { return "" }

// Stack is not in this program.
type Stack struct{ stream.Stack }

// Open explains how to get a program with lwIP. Error: ErrAbsent.
func Open(Config) (*Stack, error) {
	return nil, fmt.Errorf("%w: this program was built without it (apt-get install liblwip-dev gcc; CGO_ENABLED=1 go "+
		"build -tags lwip ./cmd/rdmaperf)", ErrAbsent)
}

// Counts are zero.
func (*Stack) Counts() Counts { return Counts{} }

// Totals are zero.
func Totals() Counts { return Counts{} }
