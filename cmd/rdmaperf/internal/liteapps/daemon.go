package liteapps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/daemon"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type daemonOptions struct {
	socket, listen, manager, secret string
	places                          int
	placeMemory, arena              string
	links                           int
	quiet                           time.Duration
	parent                          bool
}

func newLiteDaemon(o *liteOptions) *cobra.Command {
	var d daemonOptions
	cmd := &cobra.Command{
		Use:   "daemon",
		Short: "Serve one node of LITE to the processes of this machine",
		Long: `Join a cluster of LITE, or found one, and serve the node to processes of this user at a
Unix socket: they share one registration, few queue pairs and one polling thread. Each
maps a place of the node's memory, and its requests and their ends go through rings in
it. Package transports/lite/daemon has the client, with the interface of the one inside
a process; --transport 'lite(daemon)+X' runs workloads through a daemon.`,
		Example: `  rdmaperf lite daemon --socket /run/user/1000/lite --listen 10.0.0.1:18500
  rdmaperf lite daemon --socket /run/user/1000/lite --listen 10.0.0.2:0 --manager 10.0.0.1:18500`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return d.run(cmd, o) },
	}
	f := cmd.Flags()
	f.StringVar(&d.socket, "socket", "", "path of the Unix socket (required)")
	f.StringVar(&d.listen, "listen", "", "host:port where other nodes reach this one; the transport's own without it")
	f.StringVar(&d.manager, "manager", "", "address of the node that manages the cluster; none founds one")
	f.StringVar(&d.secret, "secret-file", "", "file with the secret of the cluster")
	cli.Ranged(f, &d.places, "places", 16, 1, 1<<12, "processes at once")
	f.StringVar(&d.placeMemory, "place-memory", "4M", "memory of each")
	f.StringVar(&d.arena, "arena", "64M", "additional memory of the node")
	cli.Ranged(f, &d.links, "links", 4, 1, lite.MaxLinks, "queue pairs to each peer")
	f.DurationVar(&d.quiet, "for", 50*time.Microsecond, "how long to poll after the last work before sleeping")
	f.BoolVar(&d.parent, "until-eof", false, "end when standard input does")
	_ = cmd.MarkFlagRequired("socket") // it is declared above
	return cmd
}

func (d *daemonOptions) config() (c lite.Config, err error) {
	c = lite.Config{Listen: d.listen, Manager: d.manager, Links: d.links, Segments: d.places,
		DeadAfter: 15 * time.Second}
	if d.quiet <= 0 {
		return c, fmt.Errorf("--for %v: want more than 0", d.quiet)
	}
	for _, s := range []struct {
		flag, text string
		to         *int
	}{{"place-memory", d.placeMemory, &c.SegmentSize}, {"arena", d.arena, &c.Arena}} {
		n, err := reports.ParseSize(s.text)
		if err != nil {
			return c, fmt.Errorf("--%s %s: %w", s.flag, s.text, err)
		}
		*s.to = int(n)
	}
	if d.secret != "" {
		b, err := os.ReadFile(d.secret)
		if err != nil {
			return c, err
		}
		c.Secret = string(b)
	}
	return c, nil
}

func (d *daemonOptions) run(cmd *cobra.Command, o *liteOptions) (err error) {
	cfg, err := d.config()
	if err != nil {
		return cli.Usage("lite daemon", err, "rdmaperf lite daemon --help")
	}
	at, err := stackspec.Survey(o.transport)
	if err != nil {
		return err
	}
	if cfg.Listen == "" {
		cfg.Listen = at.Listen
	} else if _, port, e := net.SplitHostPort(cfg.Listen); e != nil {
		return cli.Usage("lite daemon", e, "--listen 10.0.0.1:18500")
	} else if _, e := strconv.ParseUint(port, 10, 16); e != nil {
		return cli.Usage("lite daemon", fmt.Errorf("--listen %s: the port is no number", cfg.Listen),
			"--listen 10.0.0.1:18500")
	}
	var s stackspec.Set
	dev, err := s.OpenDevice(at.Spec)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	joined, stop := context.WithTimeout(ctx, 10*time.Second)
	node, err := lite.Open(joined, dev, cfg)
	stop()
	if errors.Is(err, rdma.ErrInvalid) {
		return cli.Usage("lite daemon", err, "other --places, --place-memory, --arena or --links")
	} else if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, node.Close()) }()
	server, err := daemon.Serve(node, d.socket, daemon.Config{For: d.quiet,
		Log: func(text string) { slog.Info(text) }})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	fmt.Fprintf(cmd.OutOrStdout(), "node %d of LITE at %s, over %s, serves %d processes at %s\n", node.ID(),
		node.Addr(), node.Name(), d.places, d.socket)
	if d.parent {
		go func() {
			defer cancel()
			_, _ = io.Copy(io.Discard, os.Stdin)
		}()
	}
	<-ctx.Done()
	leave, stop := context.WithTimeout(context.Background(), 250*time.Millisecond)
	node.Leave(leave)
	stop()
	return nil
}
