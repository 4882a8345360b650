// Package cli is what the commands share: errors, logs, help, and what a terminal shows.
package cli

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Usage is an error of the command line.
func Usage(operation string, err error, hint string) error {
	return &reports.ExitError{Code: reports.ExitUsage, Operation: operation, Err: err, Hint: hint}
}

// ErrorLine is what the user sees of an error: one line, whatever is in it.
func ErrorLine(err error) string {
	line := "rdmaperf: " + err.Error()
	var exit *reports.ExitError
	if errors.As(err, &exit) && exit.Hint != "" {
		line += "; try " + exit.Hint
	}
	return view.Printable(strings.Join(strings.FieldsFunc(line, func(r rune) bool { return r == '\n' || r == '\r' }),
		"; "))
}

// LockedWriter lets logs, progress and what a server says be written side by side.
type LockedWriter struct {
	mu sync.Mutex
	W  io.Writer
}

func (l *LockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.W.Write(b)
}

// NewLog writes to stderr.
func NewLog(stderr io.Writer, quiet, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	switch {
	case quiet:
		level = slog.LevelError
	case verbose:
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
}
