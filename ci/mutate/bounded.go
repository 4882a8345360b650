package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// A change may loop, and take memory or print in that loop: what runs it has bounds of all three.
const (
	memoryLimit = "4194304" // KiB that can be written to: Go programs and browsers reserve addresses far beyond
	outputLimit = 1 << 20
)

// inMemory runs the command behind it within the bound: as go test -exec takes it.
const inMemory = `sh -c 'ulimit -d ` + memoryLimit + ` && exec "$0" "$@"'`

// bounded runs a program, and ends it with whatever it started.
func bounded(ctx context.Context, dir string, env []string, limit time.Duration, args ...string) (output string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	args = append([]string{"sh", "-c", "ulimit -d " + memoryLimit + ` && exec "$0" "$@"`}, args...)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var out beginning
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if cmd.Process != nil { // children that outlived it
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	return out.String(), err
}

// beginning keeps the beginning of an output.
type beginning struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *beginning) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Buffer.Write(p[:min(len(p), outputLimit-b.Len())])
	return len(p), nil
}
