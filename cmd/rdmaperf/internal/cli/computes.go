package cli

import (
	"context"
	"errors"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Computes runs what only computes and writes its files at the end, so that an interrupt need not wait for it.
func Computes(ctx context.Context, operation string, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return &reports.ExitError{Code: reports.ExitInterrupted, Operation: operation, Err: errors.New("interrupted")}
	}
}
