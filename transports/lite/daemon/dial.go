package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/extent"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// ClientConfig is how a process uses a daemon. Zero values mean the defaults.
type ClientConfig struct {
	Calls    int           // started and not finished; 1
	Depth    int           // of Post and PostMessage, not polled; 496. Unsignaled ones may exceed it by 16
	MaxReply int           // bytes of an answer; 4 KiB
	Timeout  time.Duration // of everything that blocks; 5 s
	Cross    bool          // each request rings the daemon's doorbell, and each end is slept for, without polling
}

// Dial reaches the daemon at a Unix socket.
func Dial(ctx context.Context, path string, cfg ClientConfig) (*Client, error) {
	c, err := dial(ctx, path, cfg)
	if err != nil {
		return nil, &rdma.OpError{Op: "dial", Object: path, Err: err}
	}
	return c, nil
}

func dial(ctx context.Context, path string, cfg ClientConfig) (c *Client, err error) {
	cfg.Calls, cfg.Depth = cmp.Or(cfg.Calls, 1), cmp.Or(cfg.Depth, depth-slack)
	cfg.MaxReply, cfg.Timeout = cmp.Or(cfg.MaxReply, 4096), cmp.Or(max(cfg.Timeout, 0), 5*time.Second)
	if cfg.Depth < 1 || cfg.Depth > depth-slack {
		return nil, rdma.ErrInvalid
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, "unixpacket", path)
	if err != nil {
		return nil, err
	}
	c = &Client{cfg: cfg, conn: nc.(*net.UnixConn), lines: make(chan reply, 1), done: make(chan struct{}),
		prepared: map[[2]int]bool{}, waited: map[uint32]end{}, receives: map[uint32]room{}}
	if err = c.mapPlace(ctx); err != nil {
		_ = c.conn.Close()
		return nil, err
	}
	go c.read()
	return c, c.carve()
}

func (c *Client) mapPlace(ctx context.Context) error {
	until := time.Now().Add(helloTime)
	if t, ok := ctx.Deadline(); ok {
		until = t
	}
	_ = c.conn.SetDeadline(until) // a socket takes deadlines
	if err := sendLine(c.conn, hello{Version: version, Calls: c.cfg.Calls, MaxReply: c.cfg.MaxReply}); err != nil {
		return err
	}
	var w welcome
	files, err := receiveLine(c.conn, &w, 2)
	if err != nil {
		return err
	}
	if w.Refuse != "" || w.Version != version || len(files) != 2 || w.Size < dataAt+4096 {
		closeAll(files)
		if w.Refuse != "" {
			return fmt.Errorf("the daemon refuses: %s", w.Refuse)
		}
		return errMessage
	}
	c.doorbell, c.node, c.addr = files[1], w.Node, w.Addr
	mem, err := unix.Mmap(int(files[0].Fd()), 0, w.Size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	_ = files[0].Close() // the mapping stays
	if err != nil {
		_ = c.doorbell.Close()
		return os.NewSyscallError("mmap", err)
	}
	c.page = mem
	_ = c.conn.SetDeadline(time.Time{})
	return nil
}

func (c *Client) carve() (err error) {
	c.space = extent.New(dataAt, uint64(len(c.page)-dataAt))
	if c.word, err = c.space.Alloc(64); err == nil {
		c.replyAt, err = c.space.Alloc(uint64(max(c.cfg.MaxReply, 1)))
	}
	if err != nil {
		err = errors.Join(lite.ErrNoSpace, c.Close())
	}
	return err
}

func (c *Client) read() {
	defer close(c.done)
	for {
		var a reply
		if _, err := receiveLine(c.conn, &a, 0); err != nil {
			c.ended.Store(true)
			wakeWord(c.page.word(wordEnded))
			return
		}
		select {
		case c.lines <- a:
		default: // an answer to nothing
		}
	}
}

// Close leaves the daemon, which clears what the client had. Idempotent.
func (c *Client) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	err := c.conn.Close()
	<-c.done
	c.ended.Store(true)
	return errors.Join(err, c.doorbell.Close(), unix.Munmap(c.page))
}

func (c *Client) ask(q *ask) (uint64, error) {
	if c.ended.Load() {
		return 0, lite.ErrClosed
	}
	select {
	case <-c.lines: // an answer that came too late
	default:
	}
	if err := sendLine(c.conn, q); err != nil {
		return 0, err
	}
	t := time.NewTimer(c.cfg.Timeout + time.Second) // the daemon's own deadline is earlier
	defer t.Stop()
	select {
	case a := <-c.lines:
		return a.Value, a.err()
	case <-c.done:
		return 0, lite.ErrClosed
	case <-t.C:
		// Its answer would be taken for another's.
		return 0, errors.Join(lite.ErrTimeout, c.conn.Close())
	}
}
