package launch

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// script answers as Hydra does, and returns what it was asked.
func script(t *testing.T, conn net.Conn, answers []string) <-chan []string {
	t.Helper()
	asked := make(chan []string, 1)
	go func() {
		var lines []string
		in := bufio.NewScanner(conn)
		for _, a := range answers {
			if !in.Scan() {
				break
			}
			lines = append(lines, in.Text())
			fmt.Fprintln(conn, a)
		}
		conn.Close()
		asked <- lines
	}()
	return asked
}

func TestAnExchangeIsPutBarrierGetAndFinalize(t *testing.T) {
	const value = "10.0.0.1:18516,10.1.0.1:18516;00ff"
	for rank, want := range []string{"put kvsname=kvs_7_0 key=rdmaperf-0 value=" + value + "\ncmd=barrier_in",
		"barrier_in\ncmd=get kvsname=kvs_7_0 key=rdmaperf-0"} {
		near, far := net.Pipe()
		second := []string{"cmd=put_result rc=0 msg=success", "cmd=barrier_out"}
		if rank != 0 {
			second = []string{"cmd=barrier_out", "cmd=get_result rc=0 msg=success value=" + value}
		}
		asked := script(t, far, append(append([]string{"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
			"cmd=my_kvsname kvsname=kvs_7_0"}, second...), "cmd=finalize_ack"))
		got, err := Exchange(context.Background(), near, rank, value)
		if err != nil || got != value {
			t.Errorf("rank %d: %q, %v", rank, got, err)
		}
		want = "cmd=init pmi_version=1 pmi_subversion=1\ncmd=get_my_kvsname\ncmd=" + want + "\ncmd=finalize"
		if lines := strings.Join(<-asked, "\n"); lines != want {
			t.Errorf("rank %d asked\n%s\nwant\n%s", rank, lines, want)
		}
	}
}

func TestAnExchangeEndsWithWhatTheManagerSaid(t *testing.T) {
	for answer, want := range map[string]string{
		"cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=-1": "rc=-1",
		"cmd=something_else": "init: got",
	} {
		near, far := net.Pipe()
		script(t, far, []string{answer})
		if _, err := Exchange(context.Background(), near, 1, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", answer, err)
		}
	}
	near, far := net.Pipe()
	script(t, far, []string{"cmd=response_to_init rc=0"})
	if _, err := Exchange(context.Background(), near, 1, ""); err == nil || !strings.Contains(err.Error(), "get_my_kvsname") {
		t.Errorf("a manager that goes away: %v", err)
	}
}

func TestAnExchangeEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	// The manager has no answer to barrier_in while another rank is missing.
	silent, answers := net.Pipe()
	go func() {
		in := bufio.NewScanner(answers)
		for _, a := range []string{"cmd=response_to_init rc=0", "cmd=my_kvsname kvsname=k"} {
			in.Scan()
			fmt.Fprintln(answers, a)
		}
		for in.Scan() {
		}
	}()
	if _, err := Exchange(ctx, silent, 1, ""); err == nil || !strings.Contains(err.Error(), "barrier_in: no answer") {
		t.Errorf("a manager that is silent: %v", err)
	}
	ended, stop := context.WithCancel(context.Background())
	stop()
	again, _ := net.Pipe()
	if _, err := Exchange(ended, again, 1, ""); err == nil {
		t.Error("an exchange after the end of its context")
	}
}
