package interop

import (
	"bytes"
	"context"
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

	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/transports/conform"
)

const (
	// endGrace is what a case gets after its deadline to report where it hangs.
	endGrace = time.Second
	// startGrace is for the start and the end of a process.
	startGrace = 10 * time.Second
	exitNotRun = conform.ExitNotRun
)

// Options shape a run. Cases, if set, are some of Catalogue.
type Options struct {
	conform.Options
	// Shared: client and server must share a process.
	Shared bool
}

// Run executes the selected cases over a transport, each in its own process. It returns soon after ctx ends.
func Run(ctx context.Context, transport string, form carrier.Form, kids Children, o Options) conform.Report {
	o.Options = o.WithDefaults(Catalogue)
	r := &runner{kids: kids, form: form, o: o}
	defer func() { // how it ends is in the verdict of the case that it ended in
		if r.server != nil {
			r.server.stop(startGrace)
		}
	}()
	rep := conform.RunCases(ctx, transport, o.Options, r.judge)
	if r.away != "" {
		rep.Err = fmt.Errorf("%s: %s: %w", transport, r.away, conform.ErrNotRun)
	}
	return rep
}

type runner struct {
	kids   Children
	form   carrier.Form
	o      Options
	server *proc
	peer   Peer
	away   string // why nothing can be started, which the first case found out
}

func (r *runner) caseLimit() time.Duration { return r.o.CaseTimeout + max(startGrace, r.o.CaseTimeout) }

func (r *runner) judge(ctx context.Context, c *conform.Case, res *conform.Result) {
	s := find(c.ID)
	if r.away != "" {
		res.Verdict, res.Evidence = conform.NotRun, r.away
		return
	}
	if why := s.lack(r.form, r.o.Shared); why != "" {
		res.Verdict, res.Evidence = conform.Unsupported, why
		return
	}
	if err := r.attempt(ctx, s, res); err != nil {
		res.Verdict, res.Evidence = conform.NotRun, err.Error()
		if ctx.Err() == nil {
			r.away = res.Evidence
		}
	}
}

// attempt runs the case in a process and sets its verdict. An error is why it did not run.
func (r *runner) attempt(ctx context.Context, s *suite, res *conform.Result) error {
	if err := r.serve(); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	p, err := launch(r.kids("case", res.ID))
	if err != nil {
		return fmt.Errorf("start the case: %w", err)
	}
	defer p.kill()
	defer context.AfterFunc(ctx, func() { p.cmd.Process.Kill() })()
	if !r.o.Shared {
		_ = p.write(r.peer) // a case that is gone says so below
	}
	var o outcome
	if err = p.read(r.caseLimit()-r.o.CaseTimeout+s.limit(r.o.CaseTimeout), &o); err != nil {
		p.kill()
	} else if p.stop(startGrace) != nil && len(o.Wrong) == 0 {
		err = fmt.Errorf("the process ended badly behind its last answer: %v: %s", p.err, p.said.last())
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("run ended: %w", ctx.Err())
	case errors.As(p.err, &exit) && exit.ExitCode() == exitNotRun && err != nil:
		return errors.New(p.said.last())
	case err != nil:
		res.Settle(&conform.Mismatch{Want: []string{"the requirement"}, Got: err.Error()}, p.said.String())
	case len(o.Wrong) > 0:
		evidence := strings.TrimPrefix(strings.Join(o.Notes, "; ")+"\n"+o.Evidence, "\n")
		res.Settle(&conform.Mismatch{Want: []string{"the requirement"}, Got: strings.Join(o.Wrong, "; ")}, evidence)
	default:
		res.Settle(nil, strings.Join(o.Notes, "; "))
	}
	return nil
}

// serve starts the server's process if none lives: a case may have killed it.
func (r *runner) serve() error {
	if r.o.Shared {
		return nil
	}
	if r.server != nil {
		select {
		case <-r.server.ended:
			r.server.kill()
		default:
			return nil
		}
	}
	p, err := launch(r.kids("serve", "--only", "", "--at", ""))
	if err != nil {
		return err
	}
	if err := p.read(r.caseLimit(), &r.peer); err != nil {
		p.kill()
		r.server = nil
		return err
	}
	r.server = p
	return nil
}

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
	<-p.ended
	p.in.Close()
	p.out.Close()
}

// stop asks the child to end, and kills it when it does not.
func (p *proc) stop(limit time.Duration) error {
	p.in.Close()
	defer p.kill()
	select {
	case <-p.ended:
		return p.err
	case <-time.After(limit):
		return fmt.Errorf("the process did not end within %v", limit)
	}
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
