package cli

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"syscall"

	"github.com/rdmaperf/rdmaperf/reports"
)

// TellHolds logs on SIGUSR1 what the process holds, until ctx ends, after it gave unused memory back. more adds pairs.
func TellHolds(ctx context.Context, log *slog.Logger, more func() []any) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	go func() {
		defer signal.Stop(asked)
		for {
			select {
			case <-asked:
			case <-ctx.Done():
				return
			}
			var said []any
			if more != nil {
				said = more()
			}
			log.Info("holds", append(said, holds()...)...)
		}
	}()
}

// holds is what /proc says that this process uses, as pairs for a log; -1 where it says nothing (proc(5)).
func holds() []any {
	debug.FreeOSMemory()
	descriptors, mappings, resident := -1, -1, -1
	if all, err := os.ReadDir("/proc/self/fd"); err == nil {
		descriptors = len(all) - 1 // one of them reads the directory
	}
	if maps, err := os.ReadFile("/proc/self/maps"); err == nil {
		mappings = bytes.Count(maps, []byte("\n"))
	}
	if statm, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := bytes.Fields(statm); len(fields) > 1 {
			if pages, err := strconv.Atoi(string(fields[1])); err == nil {
				resident = pages * os.Getpagesize() >> 10
			}
		}
	}
	threads := -1
	if all, err := os.ReadDir("/proc/self/task"); err == nil {
		threads = len(all)
	}
	return []any{"descriptors", descriptors, "goroutines", runtime.NumGoroutine(), "threads", threads, "mappings",
		mappings, "resident_kib", resident}
}

// Profile is a CPU profile in progress. It writes its file when it ends: package pprof hides that a disk is full.
type Profile struct {
	file *os.File
	made bytes.Buffer
}

// StartProfile profiles this process into a new file. There is one profile at a time.
func StartProfile(name string) (*Profile, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, ProfileFailed(err)
	}
	p := &Profile{file: f}
	if err := pprof.StartCPUProfile(&p.made); err != nil {
		return nil, ProfileFailed(errors.Join(err, f.Close()))
	}
	return p, nil
}

// Stop ends the profile; nil has none.
func (p *Profile) Stop() error {
	if p == nil {
		return nil
	}
	pprof.StopCPUProfile()
	_, err := p.file.Write(p.made.Bytes())
	if err = errors.Join(err, p.file.Close()); err != nil {
		return ProfileFailed(err)
	}
	return nil
}

func ProfileFailed(err error) error {
	return &reports.ExitError{Code: reports.ExitFailed, Operation: "profile the CPU", Err: err,
		Hint: "--cpu-profile where files can be written"}
}
