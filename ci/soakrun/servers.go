package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// server is a child that stays.
type server struct {
	name string
	addr string
	cmd  *exec.Cmd
	log  string
	done chan error // has what it ended with
	held []holding
}

// holding is what a server has at one time.
type holding struct {
	after                                                  time.Duration // since the first step
	descriptors, goroutines, threads, mappings, residentMB float64
}

// tokenOf is what the second server and its clients share, in the environment of both.
var tokenOf = func() string {
	b := make([]byte, 16)
	rand.Read(b) // never fails (crypto/rand)
	return "RDMAPERF_TOKEN=" + hex.EncodeToString(b)
}()

const noToken = "RDMAPERF_TOKEN="

// listening finds the address in a server's log.
var listening = regexp.MustCompile(
	`msg="?(?:rping server listens; Ctrl-C ends it|listening)"? addr=(\S+)(?: fused=(\S+))?`)

// start begins all servers, and takes the plan of a genuine client down.
func (s *soak) start(ctx context.Context) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if s.certs, err = certify(s.logs); err != nil {
		return err
	}
	for _, p := range []struct {
		at   **server
		name string
		env  string
		line []string
	}{
		{&s.serve, "serve", noToken, []string{s.rdmaperf, "serve", "--bind", "127.0.0.1", "-p", "0"}},
		{&s.guarded, "serve with a token", tokenOf, []string{s.rdmaperf, "serve", "--bind", "127.0.0.1", "-p", "0",
			"--max-clients", "8"}},
		{&s.secured, "serve with TLS", tokenOf,
			append([]string{s.rdmaperf, "serve", "--bind", "127.0.0.1", "-p", "0", "--tls-client-ca", s.certs.ca},
				s.certs.of("server")...)},
		{&s.rping, "rping -s", noToken, []string{s.rdmaperf, "rping", "-s", "-a", "127.0.0.1", "-p", "0"}},
		{&s.grpc, "gRPC dropin, fused", noToken, []string{self, "-as", "grpc-server"}},
	} {
		var more string
		if *p.at, more, err = begin(ctx, s.logs, p.name, p.env, p.line...); err != nil {
			s.stop()
			return err
		}
		if more != "" {
			s.fused = more
		}
	}
	if s.plan, err = s.record(ctx); err != nil {
		s.stop()
	}
	return err
}

func (s *soak) servers() []*server {
	return []*server{s.serve, s.guarded, s.secured, s.rping, s.grpc}
}

func (s *soak) stop() {
	for _, p := range s.servers() {
		if p == nil {
			continue
		}
		p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(10 * time.Second):
			p.cmd.Process.Kill()
			<-p.done
		}
	}
}

// begin starts a server and waits for its address, and that of a second listener.
func begin(ctx context.Context, dir, name, env string, line ...string) (*server, string, error) {
	p := &server{name: name, log: filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".log"),
		done: make(chan error, 1)}
	f, err := os.Create(p.log)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	p.cmd = exec.Command(line[0], line[1:]...)
	p.cmd.Stdout, p.cmd.Stderr = f, f
	p.cmd.Env = append(os.Environ(), env)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, "", err
	}
	go func() { p.done <- p.cmd.Wait() }()
	for range 100 {
		text, err := os.ReadFile(p.log)
		if err != nil {
			return p, "", err
		}
		if m := listening.FindSubmatch(text); m != nil {
			p.addr = strings.Trim(string(m[1]), `"`)
			return p, strings.Trim(string(m[2]), `"`), nil
		}
		if err := errors.Join(p.gone(), sleep(ctx, 100*time.Millisecond)); err != nil {
			return p, "", err
		}
	}
	return p, "", fmt.Errorf("%s does not listen: see %s", name, p.log)
}

// gone tells whether the server ended, which it never shall.
func (p *server) gone() error {
	select {
	case err := <-p.done:
		p.done <- err
		text, _ := os.ReadFile(p.log)
		return fmt.Errorf("%s ended: %v: %s", p.name, err, text[max(0, len(text)-2000):])
	default:
		return nil
	}
}

var saysGoroutines = regexp.MustCompile(`msg=holds .*\bgoroutines=(\d+)`)

// holds asks a server to collect its garbage, reads what it says of its goroutines, and
// looks at the rest from outside (proc(5)).
func (p *server) holds(ctx context.Context) (h holding, err error) {
	before, err := os.ReadFile(p.log)
	if err != nil {
		return h, err
	}
	if err := p.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		return h, err
	}
	var m [][]byte
	for range 100 {
		text, err := os.ReadFile(p.log)
		if err != nil {
			return h, err
		}
		if m = saysGoroutines.FindSubmatch(text[len(before):]); m != nil {
			break
		}
		if err := errors.Join(p.gone(), sleep(ctx, 100*time.Millisecond)); err != nil {
			return h, err
		}
	}
	if m == nil {
		return h, fmt.Errorf("%s does not say what it holds within 10 s", p.name)
	}
	h.goroutines, _ = strconv.ParseFloat(string(m[1]), 64) // digits, by the expression
	proc := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	fds, e1 := os.ReadDir(proc + "fd")
	tasks, e2 := os.ReadDir(proc + "task")
	maps, e3 := os.ReadFile(proc + "maps")
	statm, e4 := os.ReadFile(proc + "statm")
	if err := errors.Join(e1, e2, e3, e4); err != nil {
		return h, err
	}
	fields := bytes.Fields(statm)
	if len(fields) < 2 {
		return h, fmt.Errorf("%sstatm: %q", proc, statm)
	}
	pages, err := strconv.Atoi(string(fields[1]))
	h.descriptors, h.threads, h.mappings = float64(len(fds)), float64(len(tasks)),
		float64(bytes.Count(maps, []byte("\n")))
	h.residentMB = float64(pages) * float64(os.Getpagesize()) / (1 << 20)
	return h, err
}
