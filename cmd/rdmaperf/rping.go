package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/rping"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const rpingBacklog = 128

// rpingFlags are rping(1)'s, and the few long ones that are ours.
type rpingFlags struct {
	server, client, persistent bool
	addr                       string
	port                       uint16
	count, size                int
	verbose, validate, debug   bool
	transport                  string
	busy                       bool
	timeout                    time.Duration
}

func newRpingCommand() *cobra.Command {
	var f rpingFlags
	cmd := &cobra.Command{
		Use:   "rping -s | -c -a ADDRESS",
		Short: "Speak librdmacm's rping, as server or client",
		Long: `Speak the protocol of librdmacm's rping over any provider, with rping's flags, so
that foreign rdma_cm programs can talk to it: one RDMA read and one RDMA write a
ping, with sends between them.

The server serves any number of clients, one after another and side by side, and
runs until Ctrl-C; -P is accepted and changes nothing. -C, -V and --busy are the
client's. On the server -S bounds the pings it takes, and SIGUSR1 makes it log what it
holds.`,
		Example: `  rdmaperf rping -s -a 127.0.0.1 -p 7174
  rdmaperf rping -c -a 127.0.0.1 -p 7174 -C 1000 -S 65000 -V`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.BoolVarP(&f.server, "server", "s", false, "be the server")
	fl.BoolVarP(&f.client, "client", "c", false, "be the client")
	fl.StringVarP(&f.addr, "address", "a", "", "server: address to listen on (all); client: the server's address")
	fl.Uint16VarP(&f.port, "port", "p", 7174, "port")
	cli.RangedP(fl, &f.count, "count", "C", 0, 0, math.MaxInt, "pings to send; 0 goes on until Ctrl-C")
	cli.RangedP(fl, &f.size, "size", "S", 0, rping.MinSize, rping.MaxSize,
		fmt.Sprintf("bytes a ping, %d to %d (client %d, server's limit %d)",
			rping.MinSize, rping.MaxSize, rping.DefaultSize, rping.ServerSize))
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "print the ping data")
	fl.BoolVarP(&f.validate, "validate", "V", false, "compare what comes back; a difference exits with 4")
	fl.BoolVarP(&f.persistent, "persistent", "P", false, "accepted for rping's sake: the server always goes on")
	fl.BoolVarP(&f.debug, "debug", "d", false, "log every step")
	fl.StringVar(&f.transport, "transport", stackspec.Embedded(), "provider")
	fl.BoolVar(&f.busy, "busy", false, "client: spin instead of sleeping until an answer comes")
	fl.DurationVar(&f.timeout, "timeout", rping.DefaultTimeout, "longest wait for one step of the peer")
	return cmd
}

func (f *rpingFlags) check() error {
	switch {
	case f.server == f.client:
		return cli.Usage("rping", errors.New("want one of -s and -c"), "-s for a server, -c for a client")
	case f.client && f.addr == "":
		return cli.Usage("rping", errors.New("a client needs a server"), "-a ADDRESS")
	case f.port == 0 && f.client:
		return cli.Usage("rping", errors.New("-p 0 is no port"), "the port that the server printed")
	case f.timeout <= 0:
		return cli.Usage("rping", fmt.Errorf("--timeout %v: out of range", f.timeout), "10s")
	case f.server && f.busy:
		return cli.Usage("rping", errors.New("--busy would make an idle server poll"), "--busy on the client")
	}
	return nil
}

func openRpingDevice(spec string) (rdma.Device, error) {
	spec, err := stackspec.WithRDMACM(spec)
	if err != nil {
		return nil, err
	}
	var s stackspec.Set
	dev, err := s.OpenDevice(spec)
	if err == nil && (dev.Caps().Label == rdma.LabelMem || dev.Caps().Clock != nil) {
		dev.Close()
		return nil, cli.Usage("open transport "+strconv.Quote(spec),
			errors.New("it is in-process only, and rping needs two processes"), "--transport "+stackspec.Embedded())
	}
	return dev, err
}

func (f *rpingFlags) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	dev, err := openRpingDevice(f.transport)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	log := cli.NewLog(stderr, false, f.debug)
	if f.server {
		return f.serve(ctx, dev, log, stdout)
	}
	return f.ping(ctx, dev, log, stdout)
}

func (f *rpingFlags) hostPort() string {
	return net.JoinHostPort(f.addr, strconv.Itoa(int(f.port)))
}

func (f *rpingFlags) serve(ctx context.Context, dev rdma.Device, log *slog.Logger, stdout io.Writer) error {
	ln, err := dev.Listen(ctx, f.hostPort(), rpingBacklog)
	if err != nil {
		return rpingError(err)
	}
	if err := f.listensThere(dev.Name(), ln.Addr()); err != nil {
		return errors.Join(err, ln.Close())
	}
	log.Info("rping server listens; Ctrl-C ends it", "addr", ln.Addr(), "transport", dev.Name())
	cli.TellHolds(ctx, log, nil)
	err = rping.Serve(ctx, dev, ln, rping.ServerConfig{Size: f.size, Timeout: f.timeout,
		OnPing: f.echo(stdout, "server ping data: "), Log: log})
	return rpingError(errors.Join(err, ln.Close()))
}

// listensThere refuses a listener elsewhere: a device with a network of its own moves it, and no client would learn
// that.
func (f *rpingFlags) listensThere(device, addr string) error {
	asked, err := netip.ParseAddr(f.addr)
	got, gerr := netip.ParseAddrPort(addr)
	if err != nil || gerr != nil || asked.IsUnspecified() || got.Addr().Unmap() == asked.Unmap() {
		return nil
	}
	return cli.Usage("rping", fmt.Errorf("-a %s is not an address of %s", f.addr, device), "-a "+got.Addr().String())
}

func (f *rpingFlags) ping(ctx context.Context, dev rdma.Device, log *slog.Logger, stdout io.Writer) error {
	sum, err := rping.Ping(ctx, dev, rping.ClientConfig{Addr: f.hostPort(), Size: f.size, Count: f.count,
		Validate: f.validate,
		Busy:     f.busy, Timeout: f.timeout, OnPing: f.echo(stdout, "ping data: "), Log: log})
	if ctx.Err() != nil && f.count == 0 && errors.Is(err, ctx.Err()) {
		err = nil // Ctrl-C is the only way for an endless client to end well
	}
	if sum.Pings > 0 || err == nil {
		checked := ""
		if f.validate {
			checked = ", every byte compared"
		}
		fmt.Fprintf(stdout, "%d pings in %.3f s over %s, %d bytes there and back%s\n", sum.Pings, sum.Elapsed.Seconds(),
			dev.Name(), sum.Bytes, checked)
	}
	return rpingError(err)
}

// echo prints ping data as rping -v does, without bytes that could steer a terminal.
func (f *rpingFlags) echo(w io.Writer, prefix string) func([]byte) {
	if !f.verbose {
		return nil
	}
	var line []byte
	return func(data []byte) {
		text, _, _ := bytes.Cut(data, []byte{0})
		line = append(line[:0], prefix...)
		for _, c := range text {
			if c < ' ' || c > '~' {
				c = '.'
			}
			line = append(line, c)
		}
		_, _ = w.Write(append(line, '\n'))
	}
}

func rpingError(err error) error {
	if err == nil {
		return nil
	}
	code, hint := reports.ExitFailed, ""
	var mismatch *rping.MismatchError
	var status *rdma.StatusError
	var timeout *rping.TimeoutError
	switch {
	case errors.As(err, &mismatch):
		code = reports.ExitCorruption
	case errors.Is(err, rdma.ErrNotSupported):
		code = reports.ExitNotRun
	case errors.Is(err, rdma.ErrAddrInUse):
		hint = "another port with -p"
	case errors.As(err, &timeout):
		code, hint = reports.ExitPeer, "a longer --timeout if the peer is only slow"
	case errors.Is(err, rdma.ErrUnreachable):
		code, hint = reports.ExitPeer, "rdmaperf rping -s on that host first, and the same -p"
	case errors.Is(err, rdma.ErrProtocol):
		code, hint = reports.ExitPeer, "a peer that speaks rping over the same transport"
	case errors.Is(err, rdma.ErrNoDevice):
		code = reports.ExitNotRun
	case errors.Is(err, rdma.ErrFabric), errors.Is(err, rdma.ErrRejected), errors.Is(err, rping.ErrPeerGone),
		errors.As(err, &status):
		code = reports.ExitPeer
	}
	return &reports.ExitError{Code: code, Operation: "rping", Err: err, Hint: cmp.Or(rdma.Advice(err), hint)}
}
