package run

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
)

// peer is the server side of a run without a host.
type peer struct {
	addr   string
	stop   func() error // ends it and waits until it is gone
	freeze func(bool)   // stops the process as Ctrl-Z does, or lets it go on
}

const (
	childStart = 10 * time.Second // until it reports its port
	childEnd   = 3 * time.Second  // until it is killed
)

// startChild runs this executable as a server, because goroutines of one process share a scheduler and a collector.
func startChild(ctx context.Context, stderr io.Writer, more ...string) (*peer, error) {
	return startChildAt(ctx, stderr, "127.0.0.1", func(start func() error) error { return start() }, more...)
}

// startChildAt is startChild at another address; where starts the process in the right network namespace.
func startChildAt(ctx context.Context, stderr io.Writer, bind string, where func(start func() error) error,
	more ...string) (*peer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, failed("start server process", err, "")
	}
	in, parent, err := os.Pipe() // parent's end closes with this process, however it dies
	if err != nil {
		return nil, failed("start server process", err, "")
	}
	defer in.Close()
	portIn, portOut, err := os.Pipe()
	if err != nil {
		parent.Close()
		return nil, failed("start server process", err, "")
	}
	defer portIn.Close()
	cmd := exec.Command(self, append([]string{"serve", "--once-parent", "--quiet", "--bind", bind, "--port", "0",
		"--max-clients", "1024"}, // one for each stack and variant of a run
		more...)...)
	cmd.Stdin, cmd.Stderr, cmd.ExtraFiles = in, stderr, []*os.File{portOut}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}

	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		// The death signal is sent when the thread that forked ends (PR_SET_PDEATHSIG(2const)).
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := where(cmd.Start)
		portOut.Close()
		started <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		parent.Close()
		return nil, failed("start server process", err, "")
	}
	stop := func() error {
		parent.Close()
		select {
		case err := <-ended:
			return err
		case <-time.After(childEnd):
			cmd.Process.Kill()
			<-ended
			return fmt.Errorf("the server process did not end within %v", childEnd)
		}
	}
	addr, err := readAddr(ctx, portIn)
	if err != nil {
		err = errors.Join(err, stop())
		if ctx.Err() != nil { // Ctrl-C, which ends a child of the same group, too
			return nil, engine.Interrupted()
		}
		return nil, failed("start server process", err, "")
	}
	freeze := func(stop bool) {
		sig := syscall.SIGCONT
		if stop {
			sig = syscall.SIGSTOP
		}
		cmd.Process.Signal(sig) // it may have ended: then there is nobody to stop
	}
	return &peer{addr, stop, freeze}, nil
}

func readAddr(ctx context.Context, f *os.File) (string, error) {
	if err := f.SetReadDeadline(time.Now().Add(childStart)); err != nil {
		return "", err
	}
	unhook := context.AfterFunc(ctx, func() { f.SetReadDeadline(time.Unix(1, 0)) })
	defer unhook()
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("it did not report its port: %w", err)
	}
	return strings.TrimSpace(line), nil
}

// inProcess serves one client in this process, for transports that cannot leave it.
func inProcess(ctx context.Context, s *engine.Server) (client net.Conn, stop func() error) {
	near, far := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.ServeConn(context.WithoutCancel(ctx), far)
	}()
	return near, func() error {
		near.Close()
		<-done
		return nil
	}
}

// thisMachine tells whether a host name is of this machine, as far as addresses tell.
func thisMachine(host string) bool {
	addrs, err := net.LookupIP(host)
	if err != nil {
		return false
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	return len(addrs) > 0 && !slices.ContainsFunc(addrs, func(ip net.IP) bool {
		return !ip.IsLoopback() && !slices.ContainsFunc(own, func(a net.Addr) bool {
			n, ok := a.(*net.IPNet)
			return ok && n.IP.Equal(ip)
		})
	})
}
