package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/rdmaperf/rdmaperf/internal/onepeer"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Computes runs what only computes and writes its files at the end, so that an interrupt need not wait for it.
func Computes(ctx context.Context, operation string, do func() error) error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if e := recover(); e != nil { // the process ends as of a panic of the command itself
				done <- Internal(e)
			}
		}()
		done <- do()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return &reports.ExitError{Code: reports.ExitInterrupted, Operation: operation, Err: errors.New("interrupted")}
	}
}

// Internal is the error of a panic, as the runtime's own end has the exit code of a wrong command line.
func Internal(panicked any) error {
	return &reports.ExitError{Code: reports.ExitFailed, Operation: "internal error",
		Err:  fmt.Errorf("%v, at %s", panicked, onepeer.Place()),
		Hint: "to report it with this command line at https://github.com/rdmaperf/rdmaperf/issues"}
}
