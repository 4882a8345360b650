// Package serve is the serve command: the peer of a run, and the target of wire tests.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/access"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/reports"
)

type Options struct {
	bind       string
	port       int
	maxClients int
	maxWindow  string
	verbs      stackspec.VerbsFlags
	guard      access.ServerFlags
	quiet      bool
	verbose    bool
	once       bool
	shared     bool
	onceParent bool
	profile    string
	target     bool
	transport  string

	Results func(host string, results []reports.Result) // see engine.Server
}

func (o *Options) Register(f *pflag.FlagSet) {
	f.StringVar(&o.bind, "bind", "", "address to listen on (default all)")
	cli.RangedP(f, &o.port, "port", "p", access.DefaultPort, 0, math.MaxUint16, "control port; 0 picks one")
	cli.Ranged(f, &o.maxClients, "max-clients", engine.DefaultMaxClients, 1, 1<<20, "clients served at once")
	f.StringVar(&o.maxWindow, "max-window", reports.FormatSize(engine.DefaultMaxWindow),
		"memory for the windows of one client")
	o.verbs.RegisterLocal(f)
	o.guard.Register(f)
	f.BoolVar(&o.once, "once", false, "end when the first client has left")
	f.BoolVar(&o.shared, "shared", false, "let clients measure at the same time: their figures suffer from each other")
	f.BoolVar(&o.quiet, "quiet", false, "log errors only")
	f.BoolVar(&o.verbose, "verbose", false, "log more")
	f.BoolVar(&o.target, "target", false,
		"be the test target of 'rdmaperf conform --wire': report STags, post what the suite asks; for test networks")
	f.StringVar(&o.transport, "transport", "", "with --target: the stack under test (default "+stackspec.Embedded()+")")
	f.BoolVar(&o.onceParent, "once-parent", false,
		"end with the parent process, which holds the other end of stdin; report the port on descriptor 3")
	f.StringVar(&o.profile, "cpu-profile", "", "write a CPU profile for go tool pprof to this file")
	f.MarkHidden("once-parent") // the flag exists: no error is possible
}

func (o *Options) Run(ctx context.Context, stderr io.Writer) (err error) {
	if err := o.verbs.Check(); err != nil {
		return cli.Usage("serve", err, "rdmaperf serve --help")
	}
	if err := o.checkTarget(); err != nil {
		return err
	}
	window, err := reports.ParseSize(o.maxWindow)
	if err != nil || window < 1 {
		return cli.Usage("serve", fmt.Errorf("--max-window %q: want a size above 0", o.maxWindow), "4G")
	}
	var s engine.Server
	if err := o.guard.Apply(&s); err != nil {
		return err
	}
	addr := net.JoinHostPort(o.bind, strconv.Itoa(o.port))
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return listenFailed(addr, err)
	}
	if o.profile != "" {
		f, e := cli.StartProfile(o.profile)
		if e != nil {
			return errors.Join(e, l.Close())
		}
		defer func() { err = errors.Join(err, f.Stop()) }()
	}
	log := cli.NewLog(stderr, o.quiet, o.verbose)
	if o.target {
		return o.serveTarget(ctx, l, &s, log)
	}
	if err := o.verbs.TryHere(); err != nil {
		return errors.Join(err, l.Close())
	}
	if o.onceParent {
		var cancel context.CancelFunc
		if ctx, cancel, err = followParent(ctx, l); err != nil {
			l.Close()
			return err
		}
		defer cancel()
	} else {
		log.Info("listening", "addr", l.Addr().String(), "control", engine.ControlVersion)
		if ip := access.PublicAddress(l.Addr(), net.InterfaceAddrs); ip != "" && o.guard.Open(&s) {
			log.Warn("anybody who reaches this address may use this machine", "addr", ip, "try",
				"--bind, --allow, --token-file or --tls-client-ca")
		}
	}
	if o.once {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		l = &firstClient{Listener: l, left: cancel}
	}
	env := reports.Collect()
	stacks := new(stackspec.Set)
	s.Workloads, s.Counters, s.Log = catalogue.Table(), stackspec.Counters, log
	s.Open, s.Device = openHere(o, stacks.Open), openHere(o, stacks.OpenDevice)
	s.MaxClients, s.MaxWindow, s.Results = o.maxClients, window, o.Results
	s.Exclusive = !o.shared && !o.onceParent
	s.Environment = func() reports.Environment { return env }
	if !o.onceParent {
		cli.TellHolds(ctx, log, func() []any { return []any{"clients", s.Clients()} })
	}
	return s.Serve(ctx, l)
}

func openHere[T any](o *Options, open func(string) (T, error)) func(string) (T, error) {
	return func(spec string) (opened T, err error) {
		if spec, err = o.verbs.Here(spec, !o.onceParent); err != nil {
			return opened, err
		}
		return open(spec)
	}
}

func listenFailed(addr string, err error) error {
	hint := ""
	cause := err
	var op *net.OpError
	if errors.As(err, &op) {
		cause = op.Err
		var sys *os.SyscallError
		if errors.As(op.Err, &sys) {
			cause = sys.Err
		}
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		hint = "another --port, or ending the server that has it"
	}
	return &reports.ExitError{Code: reports.ExitFailed, Operation: "listen on " + addr, Err: cause, Hint: hint}
}

const portFD = 3

// followParent makes a child of rdmaperf run, which ends with stdin and leaves Ctrl-C to the parent.
func followParent(ctx context.Context, l net.Listener) (context.Context, context.CancelFunc, error) {
	var st unix.Stat_t
	if err := unix.Fstat(portFD, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return nil, nil, cli.Usage("serve",
			fmt.Errorf("--once-parent is for rdmaperf's own children: descriptor %d is no pipe", portFD),
			"serve without it")
	}
	signal.Ignore(os.Interrupt)
	out := os.NewFile(portFD, "port")
	defer out.Close()
	if _, err := fmt.Fprintln(out, l.Addr().String()); err != nil {
		return nil, nil, fmt.Errorf("report port: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		io.Copy(io.Discard, os.Stdin)
	}()
	return ctx, cancel, nil
}

// firstClient calls left when its first connection is closed.
type firstClient struct {
	net.Listener
	once sync.Once
	left func()
}

func (f *firstClient) Accept() (net.Conn, error) {
	c, err := f.Listener.Accept()
	if err == nil {
		f.once.Do(func() { c = &firstConn{Conn: c, left: f.left} })
	}
	return c, err
}

type firstConn struct {
	net.Conn
	once sync.Once
	left func()
}

func (c *firstConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.left)
	return err
}
