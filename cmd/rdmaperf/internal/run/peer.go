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
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/answer"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/resultfile"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/render"
	"github.com/rdmaperf/rdmaperf/reports/render/text"
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

// DefaultTurns is how many runs each program makes: enough for intervals of 12 comparisons.
const DefaultTurns = 10

// Turns has two programs run the same options in turns, A B, B A and so on, each into a directory of its own, and
// prints how they compare.
func Turns(ctx context.Context, stdout, stderr io.Writer, programs, dirs [2]string, options []string,
	rounds int) error {
	if rounds < 1 || rounds > engine.MaxRounds {
		return cli.Usage("read --rounds", fmt.Errorf("%d: want 1 to %d", rounds, engine.MaxRounds), "the default")
	}
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			return cli.Usage("read command line", err, "two programs, such as ./before ./after")
		}
	}
	for _, dir := range dirs {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	options = briefly(options)
	log := cli.NewLog(stderr, false, false)
	docs := make([][2]*reports.Document, rounds)
	began := time.Now()
	for round := range docs {
		order := []int{0, 1}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, side := range order {
			args := []any{"program", programs[side], "round", round + 1, "of", rounds}
			if round > 0 && side == order[0] {
				left := time.Since(began) / time.Duration(round) * time.Duration(rounds-round)
				args = append(args, "left", left.Round(time.Second))
			}
			log.Info("run", args...)
			file := filepath.Join(dirs[side], fmt.Sprintf("%04d.json", round))
			var err error
			if docs[round][side], err = oneRun(ctx, stderr, programs[side], options, file); err != nil {
				return err
			}
		}
	}
	names := [2]string{filepath.Base(programs[0]), filepath.Base(programs[1])}
	if names[0] == names[1] {
		names = [2]string{"A", "B"}
	}
	d := answer.Turns(names, docs)
	return render.Find("text", render.OfRun).Write(stdout, d, text.Options{Own: catalogue.Tables(),
		Color: cli.Coloured(stdout), Width: cli.TerminalColumns(stdout)})
}

// turnTime is how long a point of one of many runs takes where nothing else is asked for: three slices.
const turnTime = "300ms"

func briefly(options []string) []string {
	said := slices.ContainsFunc(options, func(o string) bool {
		name, _, _ := strings.Cut(o, "=")
		return strings.HasPrefix(o, "-D") || strings.HasPrefix(o, "-n") ||
			slices.Contains([]string{"--duration", "--iters", "--rounds", "--repeat", "--scenario"}, name)
	})
	if said {
		return options
	}
	return append([]string{"-D", turnTime}, options...)
}

func oneRun(ctx context.Context, stderr io.Writer, program string, options []string, file string) (*reports.Document,
	error) {
	cmd := exec.CommandContext(ctx, program, append(append([]string{"run"}, options...), "--quiet", "--no-save",
		"--json", file)...)
	cmd.Stderr = stderr
	// It ends its server and its sessions by itself.
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, childEnd
	if err := cmd.Run(); ctx.Err() != nil {
		return nil, engine.Interrupted()
	} else if err != nil {
		failed := &reports.ExitError{Code: reports.ExitFailed, Operation: "run " + program, Err: err,
			Hint: "the same command by itself: " + cmd.String()}
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
			failed.Code = exit.ExitCode()
		}
		return nil, failed
	}
	return resultfile.ReadDocument(file)
}
