// Package cli is what the commands share: errors, logs, help, and what a terminal shows.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/internal/onepeer"
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

type ranged struct {
	to         *int
	from, most int
}

// Ranged declares a flag for an int from least to most. Any other is refused where the command line is read.
func Ranged(f *pflag.FlagSet, to *int, name string, value, least, most int, usage string) {
	RangedP(f, to, name, "", value, least, most, usage)
}

// RangedP is Ranged with a letter.
func RangedP(f *pflag.FlagSet, to *int, name, letter string, value, least, most int, usage string) {
	*to = value
	f.VarP(&ranged{to, least, most}, name, letter, usage)
}

func (r *ranged) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < r.from || n > r.most {
		return fmt.Errorf("want %d to %d", r.from, r.most)
	}
	*r.to = n
	return nil
}

func (r *ranged) String() string {
	if r.to == nil { // pflag asks a zero value for its default
		return "0"
	}
	return strconv.Itoa(*r.to)
}

func (r *ranged) Type() string { return "int" }

// NoEmptyLists refuses a list that was given and is empty: it would mean the default.
func NoEmptyLists(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if v, ok := f.Value.(pflag.SliceValue); ok && len(v.GetSlice()) == 0 && err == nil {
			err = Usage("read --"+f.Name, errors.New("it is empty"), "the command without it")
		}
	})
	return err
}
