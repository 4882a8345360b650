package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// PMI is a client of a process manager that speaks PMI-1 (src/pmi/simple/simple_pmi.c of MPICH).
type PMI struct {
	rw   Manager
	in   *bufio.Reader
	name string // of the key-value space
}

// Manager is the connection to a process manager.
type Manager interface {
	io.ReadWriter
	SetDeadline(time.Time) error
}

// Exchange puts a value that rank 0 has for all others, and returns it at each, before ctx ends. It finalizes at once,
// as a rank that ends before that takes the job with it.
func Exchange(ctx context.Context, rw Manager, rank int, value string) (string, error) {
	p := &PMI{rw: rw, in: bufio.NewReader(rw)}
	until, _ := ctx.Deadline()
	if err := rw.SetDeadline(until); err != nil {
		return "", fmt.Errorf("PMI: %w", err)
	}
	defer context.AfterFunc(ctx, func() { rw.SetDeadline(time.Unix(1, 0)) })()
	const key = "rdmaperf-0"
	got, err := p.ask("init pmi_version=1 pmi_subversion=1", "response_to_init")
	if err == nil {
		got, err = p.ask("get_my_kvsname", "my_kvsname")
		p.name = got["kvsname"]
	}
	if err == nil && rank == 0 {
		_, err = p.ask(fmt.Sprintf("put kvsname=%s key=%s value=%s", p.name, key, value), "put_result")
	}
	if err == nil {
		_, err = p.ask("barrier_in", "barrier_out")
	}
	if err == nil && rank != 0 {
		got, err = p.ask(fmt.Sprintf("get kvsname=%s key=%s", p.name, key), "get_result")
		value = got["value"]
	}
	if err == nil {
		_, err = p.ask("finalize", "finalize_ack")
	}
	if err != nil {
		return "", fmt.Errorf("PMI: %w", err)
	}
	return value, nil
}

func (p *PMI) ask(cmd, answer string) (map[string]string, error) {
	verb, _, _ := strings.Cut(cmd, " ")
	if _, err := fmt.Fprintf(p.rw, "cmd=%s\n", cmd); err != nil {
		return nil, fmt.Errorf("%s: %w", verb, err)
	}
	line, err := p.in.ReadString('\n')
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errors.New("no answer; another rank may never have come")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", verb, err)
	}
	got := map[string]string{}
	for _, word := range strings.Fields(line) {
		if k, v, ok := strings.Cut(word, "="); ok {
			got[k] = v
		}
	}
	if got["cmd"] != answer || got["rc"] != "" && got["rc"] != "0" {
		return nil, fmt.Errorf("%s: got %q", verb, strings.TrimSpace(line))
	}
	return got, nil
}
