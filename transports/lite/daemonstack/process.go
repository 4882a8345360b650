package daemonstack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/lite/daemon"
)

// Process is a daemon that was started, as a child.
type Process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	dir   string
	cfg   Config
}

// Need is what a daemon must have room for.
type Need struct {
	Clients int // at once
	Place   int // bytes of each
	Arena   int // bytes beside that

	Secret []byte // of the cluster; empty: none
}

// Start starts a daemon at listen that joins the cluster of manager, or founds one. ctx bounds that.
func (s *Stack) Start(ctx context.Context, listen, manager string, n Need) (p *Process, err error) {
	dir, err := os.MkdirTemp("", "lite")
	if err != nil {
		return nil, err
	}
	p = &Process{dir: dir, cfg: s.cfg}
	defer func() {
		if err != nil {
			err = fmt.Errorf("start the daemon: %w", errors.Join(err, p.Close()))
			p = nil
		}
	}()
	page := os.Getpagesize()
	args := append(append([]string(nil), s.cfg.Command[1:]...), "--socket", p.socket(), "--places",
		strconv.Itoa(n.Clients),
		"--place-memory", strconv.Itoa((n.Place+page-1)/page*page), "--arena", strconv.Itoa(n.Arena), "--until-eof")
	secret := ""
	if len(n.Secret) > 0 { // in a file of this user: command lines are everybody's to read
		secret = filepath.Join(dir, "secret")
		if err = os.WriteFile(secret, fmt.Appendf(nil, "%x", n.Secret), 0o600); err != nil {
			return p, err
		}
	}
	for flag, v := range map[string]string{"--listen": listen, "--manager": manager, "--secret-file": secret} {
		if v != "" {
			args = append(args, flag, v)
		}
	}
	if s.cfg.Links > 0 {
		args = append(args, "--links", strconv.Itoa(s.cfg.Links))
	}
	if !s.cfg.Cross {
		args = append(args, "--for", "100ms") // behind a longer gap the client rings
	}
	p.cmd = exec.Command(s.cfg.Command[0], args...)
	var said strings.Builder
	p.cmd.Stderr = &said
	// The daemon ends when this process does, however that ends.
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return p, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return p, err
	}
	if err = p.cmd.Start(); err != nil {
		p.cmd = nil
		return p, err
	}
	p.stdin = in
	ready := make(chan error, 1)
	go func() {
		_, err := bufio.NewReader(out).ReadString('\n')
		ready <- err
	}()
	select {
	case err = <-ready:
	case <-ctx.Done():
		err = ctx.Err()
		_ = p.cmd.Process.Kill() // the reader ends
		<-ready
	}
	if err != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait() // then its output is complete
		p.cmd = nil
		if text := strings.TrimSpace(said.String()); text != "" {
			err = errors.New(text)
		}
	}
	return p, err
}

func (p *Process) socket() string { return filepath.Join(p.dir, "s") }

// Dial makes a client.
func (p *Process) Dial(ctx context.Context, c daemon.ClientConfig) (*daemon.Client, error) {
	c.Cross = p.cfg.Cross
	return daemon.Dial(ctx, p.socket(), c)
}

// endTime bounds the orderly end of a daemon.
const endTime = 2 * time.Second

// Close ends the daemon. Its clients are to be closed before. Idempotent.
func (p *Process) Close() error {
	if p.cmd != nil && p.cmd.ProcessState == nil {
		_ = p.stdin.Close() // it ends by that
		t := time.AfterFunc(endTime, func() { _ = p.cmd.Process.Kill() })
		_ = p.cmd.Wait() // it may be killed
		t.Stop()
	}
	return os.RemoveAll(p.dir)
}
