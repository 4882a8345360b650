package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
)

// The control channel: one JSON object a line, in turns. The first line of each
// side carries the protocol's name and version, and is understood across
// versions as far as these two fields go.
//
//	client                         server
//	plan            ─────────────►
//	                ◄───────────── accept (its capabilities, environment)
//	point (shape)   ─────────────►             ┐ for every point
//	                ◄───────────── listening   │
//	   …sessions are dialled…                  │
//	                ◄───────────── connected   │
//	phase           ─────────────►             │ ┐ for every phase
//	                ◄───────────── ready       │ │
//	   …the client's loops run…                │ │
//	stop (counts)   ─────────────►             │ │
//	                ◄───────────── report      │ ┘
//	end             ─────────────►             │
//	                ◄───────────── ended       ┘
//
// The server answers anything with error instead when it cannot go on, and
// closes. Either side closing the connection ends everything.
const (
	controlMagic = "rdmaperf-control"

	// ControlVersion changes when an older peer would misunderstand.
	ControlVersion = 2

	// maxLine bounds a control line in bytes: a plan of maxPoints points fits.
	maxLine = 1 << 20
)

type messageType string

const (
	msgPlan      messageType = "plan"
	msgAccept    messageType = "accept"
	msgPoint     messageType = "point"
	msgListening messageType = "listening"
	msgConnected messageType = "connected"
	msgPhase     messageType = "phase"
	msgReady     messageType = "ready"
	msgStop      messageType = "stop"
	msgReport    messageType = "report"
	msgEnd       messageType = "end"
	msgEnded     messageType = "ended"
	msgError     messageType = "error"
)

// message is every line; the type says which of the objects is there.
type message struct {
	Magic   string      `json:"magic,omitempty"`
	Version int         `json:"version,omitempty"`
	Type    messageType `json:"type"`

	Plan      *Plan          `json:"plan,omitempty"`
	Accept    *acceptance    `json:"accept,omitempty"`
	Shape     *Shape         `json:"point,omitempty"`
	Listening *listening     `json:"listening,omitempty"`
	Phase     *phaseStart    `json:"phase,omitempty"`
	Stop      *phaseStop     `json:"stop,omitempty"`
	Report    *phaseReport   `json:"report,omitempty"`
	Error     *peerErrorBody `json:"error,omitempty"`
}

// listening is where the server takes the sessions of a point. The token proves
// to it that a connection belongs there. Elsewhere: the transport listens on an
// address of its device, which is not the one by which the client came.
type listening struct {
	Addr      string `json:"addr"`
	Elsewhere bool   `json:"elsewhere,omitempty"`
	Token     []byte `json:"token"`
	Resident  int64  `json:"resident_bytes,omitempty"` // calls: memory of the process without connections
}

// elsewhere tells whether a transport that was to listen at host took another
// address, rather than another name of all of them.
func elsewhere(host, addr string) bool {
	got, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	asked, e1 := netip.ParseAddr(host)
	took, e2 := netip.ParseAddr(got)
	return e1 == nil && e2 == nil && !took.IsUnspecified() && took.Unmap() != asked.Unmap()
}

type phaseStart struct {
	Name       string `json:"name"`
	Generation int    `json:"generation"`
	Operations int64  `json:"operations,omitempty"` // bidirectional: per QP, of the server, too; 0: until the client ends
}

// phaseStop tells the target what it should have received.
type phaseStop struct {
	Lanes []laneCount `json:"lanes,omitempty"`
	Check bool        `json:"check"` // verify the windows
}

type laneCount struct {
	First uint64 `json:"first"`
	Count int64  `json:"count"`
	High  int64  `json:"high,omitempty"` // of the high class of the starvation workload
}

type phaseReport struct {
	Operations  int64   `json:"operations"`
	CPUSeconds  float64 `json:"cpu_seconds"`
	Collections int64   `json:"collections"`
	Allocations int64   `json:"allocations"`
	Pinned      bool    `json:"pinned"`
	Procs       int     `json:"gomaxprocs"`
	Sessions    int     `json:"sessions"` // clients being served
	Verified    bool    `json:"verified"`

	// Bidirectional: the server's own window, and what it sent.
	WindowNs int64       `json:"window_ns,omitempty"`
	Lanes    []laneCount `json:"lanes,omitempty"`

	Counters []reports.DeviceCounters `json:"counters,omitempty"`

	Resident int64 `json:"resident_bytes,omitempty"` // calls, of the phase that asks for it
}

// peerErrorBody is an ExitError on the wire.
type peerErrorBody struct {
	Code      int              `json:"code"`
	Operation string           `json:"operation"`
	Message   string           `json:"message"`
	Hint      string           `json:"hint,omitempty"`
	Corrupt   *CorruptionError `json:"corruption,omitempty"`
}

func toPeer(err error) *peerErrorBody {
	re := reports.NewRunError(err)
	b := &peerErrorBody{Code: re.ExitCode, Operation: re.Operation, Message: re.Message, Hint: re.Hint}
	errors.As(err, &b.Corrupt)
	return b
}

// asError is the peer's error here. A code outside the table is a failure.
func (b *peerErrorBody) asError(peer string) error {
	code := b.Code
	switch code {
	case reports.ExitUsage, reports.ExitCorruption, reports.ExitPeer, reports.ExitNotRun:
	default:
		code = reports.ExitFailed
	}
	err := fmt.Errorf("%s: %s", peer, b.Message)
	if b.Corrupt != nil {
		err = b.Corrupt
	}
	return &reports.ExitError{Code: code, Operation: b.Operation, Err: err, Hint: b.Hint}
}

// control is one end of the channel. Its reader goroutine delivers lines; the
// owner bounds every wait, and ends the reader with close.
type control struct {
	conn net.Conn
	peer string // for messages
	in   chan *message
	err  error // why in was closed; valid then
	quit chan struct{}
	once sync.Once
	done chan struct{}

	// alive ends with the connection, so that whatever is being set up for the
	// peer stops when the peer is gone.
	alive context.Context
	lost  context.CancelFunc
}

func newControl(ctx context.Context, conn net.Conn, peer string) *control {
	c := &control{conn: conn, peer: peer, in: make(chan *message), quit: make(chan struct{}), done: make(chan struct{})}
	c.alive, c.lost = context.WithCancel(ctx)
	go c.read()
	return c
}

// close ends the connection and joins the reader.
func (c *control) close() error {
	err := error(nil)
	c.once.Do(func() {
		close(c.quit)
		err = c.conn.Close()
	})
	<-c.done
	return err
}

func (c *control) read() {
	defer close(c.done)
	defer c.lost()
	defer close(c.in)
	r := bufio.NewReaderSize(c.conn, 4096)
	for {
		line, err := readLine(r)
		if err != nil {
			c.err = err
			return
		}
		m, err := parseMessage(line)
		if err != nil {
			c.err = err
			return
		}
		select {
		case c.in <- m:
		case <-c.quit:
			c.err = net.ErrClosed
			return
		}
	}
}

// errLine: what arrived is not the control protocol.
var errLine = errors.New("not the rdmaperf control protocol")

// readLine returns one line without its end, at most maxLine bytes.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxLine {
			return nil, fmt.Errorf("%w: a line is longer than %d bytes", errLine, maxLine)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(line, []byte("\n")), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			if len(line) > 0 && errors.Is(err, io.EOF) {
				err = fmt.Errorf("%w: the last line is cut short", errLine)
			}
			return nil, err
		}
	}
}

// parseMessage decodes one line. The magic and the version come first: another
// version may use other types for the same names.
func parseMessage(line []byte) (*message, error) {
	var head struct {
		Magic   string      `json:"magic"`
		Version int         `json:"version"`
		Type    messageType `json:"type"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, errLine
	}
	if head.Type == "" || head.Magic != "" && head.Magic != controlMagic {
		return nil, errLine
	}
	if head.Magic == controlMagic && head.Version != ControlVersion {
		return &message{Magic: head.Magic, Version: head.Version, Type: head.Type}, nil
	}
	m := new(message)
	if err := json.Unmarshal(line, m); err != nil {
		return nil, fmt.Errorf("%w: %s: %v", errLine, head.Type, err)
	}
	return m, nil
}

// send writes one line within d.
func (c *control) send(d time.Duration, m *message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode %s: %w", m.Type, err)
	}
	if len(b) >= maxLine {
		return fmt.Errorf("encode %s: %d bytes are above the limit of %d", m.Type, len(b), maxLine)
	}
	if err := c.conn.SetWriteDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	_, err = c.conn.Write(append(b, '\n'))
	return err
}

// errSilent: the peer did not answer in time.
var errSilent = errors.New("no answer")

// receive waits for one line at most d, or until ctx ends. The error is io.EOF
// when the peer closed the connection.
func (c *control) receive(ctx context.Context, d time.Duration) (*message, error) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case m, ok := <-c.in:
		if !ok {
			return nil, c.err
		}
		return m, nil
	case <-t.C:
		return nil, fmt.Errorf("%w within %v", errSilent, d)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
