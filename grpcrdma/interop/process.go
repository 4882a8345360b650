package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Children makes the command of a child process: this executable with the same stack, in one of the roles
//
//	serve --only VARIANT --at ADDR   Serve; both may be empty
//	linger                           Linger
//	case ID                          RunCase
//
// A child writes to descriptor 3 and reads its standard input.
type Children func(args ...string) *exec.Cmd

type proc struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *os.File
	said  tail
	ended chan struct{}
	err   error // of its end; valid when ended is closed
}

// launch starts a child. The caller ends it with kill or stop.
func launch(cmd *exec.Cmd) (*proc, error) {
	p := &proc{cmd: cmd, ended: make(chan struct{})}
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	p.out = out
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &p.said, &p.said, []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	if p.in, err = cmd.StdinPipe(); err != nil {
		out.Close()
		return nil, err
	}
	started := make(chan error, 1)
	go func() {
		// The death signal is sent when the thread that forked ends (PR_SET_PDEATHSIG(2const)), so that thread stays.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		out.Close()
		return nil, err
	}
	return p, nil
}

// read takes one value of the child's answers.
func (p *proc) read(limit time.Duration, v any) error {
	if err := p.out.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	err := json.NewDecoder(p.out).Decode(v)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("no answer within %v", limit)
	case errors.Is(err, io.EOF):
		<-p.ended
		return fmt.Errorf("the process died: %v: %s", p.err, p.said.last())
	}
	return err
}

func (p *proc) write(v any) error { return json.NewEncoder(p.in).Encode(v) }

// kill ends the child at once, and waits for its end. Idempotent.
func (p *proc) kill() {
	p.cmd.Process.Kill()
	p.release()
}

// stop asks the child to end, and kills it when it does not.
func (p *proc) stop(limit time.Duration) error {
	p.in.Close()
	select {
	case <-p.ended:
	case <-time.After(limit):
		p.cmd.Process.Kill()
		p.release()
		return fmt.Errorf("the process did not end within %v", limit)
	}
	p.release()
	return p.err
}

func (p *proc) release() {
	<-p.ended
	p.in.Close()
	p.out.Close()
}

// tail keeps the end of a child's output.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// tailMax is more than a message and less than a dump of all goroutines.
const tailMax = 16 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text = append(t.text, b...); len(t.text) > tailMax {
		t.text = bytes.Clone(t.text[len(t.text)-tailMax:])
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// last is the last line, or the reason of a dump of goroutines.
func (t *tail) last() string {
	line := "it said nothing"
	for l := range strings.Lines(t.String()) {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "panic: ") || strings.HasPrefix(l, "fatal error: ") {
			return l
		}
		if l != "" {
			line = l
		}
	}
	return line
}
