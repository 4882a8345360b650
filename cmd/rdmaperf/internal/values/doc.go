// Package values reads the values of flags: sizes, times, lists and sweeps.
//
// A mistake is an [Error] where one step reads several flags, so that the message names the flag and not the step.
package values

import "fmt"

// Error is a mistake in the value of a flag.
type Error struct {
	Flag string // without dashes
	Err  error  // need not name the flag again
}

// Wrong returns a mistake in a flag.
func Wrong(flag, format string, args ...any) error {
	return &Error{flag, fmt.Errorf(format, args...)}
}

func (e *Error) Error() string { return "--" + e.Flag + ": " + e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }
