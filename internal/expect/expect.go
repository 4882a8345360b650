// Package expect ends or fails tests whose calls return other errors than they are to.
package expect

import "errors"

// T is what it needs of a testing.TB.
type T interface {
	Helper()
	Fatal(args ...any)
	Errorf(format string, args ...any)
}

// OK ends the test if err is one.
func OK(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get is the value of a call, which ends the test if it failed.
func Get[V any](v V, err error) func(T) V {
	return func(t T) V {
		t.Helper()
		OK(t, err)
		return v
	}
}

// Is fails the test unless err is want.
func Is(t T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// Err is the error of a call with a value.
func Err[V any](_ V, err error) error { return err }
