package run

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestHolderChild holds the name that the environment has until its stdin ends.
func TestHolderChild(t *testing.T) {
	name := os.Getenv("RDMAPERF_HOLD")
	if name == "" {
		return // it is only the child of TestTheSecondOfTwoRunsSaysSo
	}
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	fmt.Println("held")
	os.Stdin.Read(make([]byte, 1))
}

func TestTheSecondOfTwoRunsSaysSo(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	name := fmt.Sprintf("@rdmaperf/test-%d", os.Getpid())
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))

	first := hold(ctx, log, name)
	hold(ctx, log, name).Close() // of the same process: no second run
	if out.Len() > 0 {
		t.Errorf("alone it says %q", &out)
	}
	first.Close()

	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestHolderChild$")
	child.Env = append(os.Environ(), "RDMAPERF_HOLD="+name)
	stdin, _ := child.StdinPipe()
	stdout, _ := child.StdoutPipe()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line := make([]byte, 5); true {
		if _, err := stdout.Read(line); err != nil || string(line) != "held\n" {
			t.Fatalf("the child says %q, %v", line, err)
		}
	}
	hold(ctx, log, name).Close()
	if want := fmt.Sprintf("process=%d", child.Process.Pid); !strings.Contains(out.String(), want) {
		t.Errorf("beside another it says %q, want %q", &out, want)
	}
	stdin.Close()
	child.Wait()
	out.Reset()
	hold(ctx, log, name).Close()
	if out.Len() > 0 {
		t.Errorf("behind the other it says %q", &out)
	}
}
