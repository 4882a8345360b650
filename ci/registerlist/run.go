package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

// runner runs commands, and keeps what they wrote in its directory until the end.
type runner struct {
	ctx context.Context
	dir string
	n   int
}

// output is what a command left.
type output struct {
	command string
	code    int    // -1: it did not end by itself
	text    string // of both streams
	doc     *reports.Document
}

// build makes the program that the commands name rdmaperf.
func (r *runner) build() error {
	cmd := exec.CommandContext(r.ctx, "go", "build", "-o", filepath.Join(r.dir, "rdmaperf"), "./cmd/rdmaperf")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build ./cmd/rdmaperf: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

const program = "rdmaperf "

// do runs a command as a shell would, without quoting. What begins with rdmaperf is the
// program that was built, and has its document read; the options for that are added
// unseen.
func (r *runner) do(command string) output {
	o := output{command: command, code: -1}
	r.n++
	dir := filepath.Join(r.dir, strconv.Itoa(r.n))
	file := filepath.Join(dir, "result.json")
	words := strings.Fields(command)
	measures := false
	for i, w := range words {
		if w == "rdmaperf" {
			words[i] = filepath.Join(r.dir, w)
			measures = true
		}
	}
	if measures {
		// Everybody's, as the command may run as somebody who may little (umask is in the way).
		if err := errors.Join(os.Mkdir(dir, 0o777), os.Chmod(dir, 0o777)); err != nil {
			o.text = err.Error()
			return o
		}
		words = append(words, "--quiet", "--no-save", "--json", file)
	}
	cmd := exec.CommandContext(r.ctx, words[0], words[1:]...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // of its own, so that what it started ends with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second // arbitrary: guests and processes of ranks end in less
	err := cmd.Run()
	o.text = out.String()
	switch {
	case r.ctx.Err() != nil:
		o.text += "\nthe time was over"
		return o
	case cmd.ProcessState == nil:
		o.text += "\n" + err.Error()
		return o
	}
	o.code = cmd.ProcessState.ExitCode()
	if measures {
		if doc, err := targets.ReadDocument(file); err == nil {
			o.doc = doc
		}
	}
	return o
}

// why is the last line that a command wrote, without its name.
func (o output) why() string {
	lines := strings.Split(strings.TrimSpace(o.text), "\n")
	s := strings.TrimPrefix(strings.TrimSpace(lines[len(lines)-1]), "rdmaperf: ")
	if s == "" {
		s = fmt.Sprintf("exit code %d", o.code)
	}
	return s
}
