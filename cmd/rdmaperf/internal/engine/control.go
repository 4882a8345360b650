package engine

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
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/onepeer"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// The control channel: one JSON object a line, in turns. The first line of each side carries the protocol's name and
// version, and is understood across versions as far as these two fields go.
//
//	client                         server
//	hello           ─────────────►
//	                ◄───────────── challenge   ┐ where the server has a token
//	proof           ─────────────►             ┘
//	                ◄───────────── welcome
//	plan            ─────────────►
//	                ◄───────────── wait (for another client, any number of times)
//	                ◄───────────── accept (its capabilities, environment)
//	point           ─────────────►             ┐ for every point
//	   …data in both directions, as the workload's two sides want…
//	end             ─────────────►             │
//	                ◄───────────── ended       │
//	results         ─────────────►             ┘ where the server wants them
//
// The server answers anything with error instead when it cannot go on, and closes. Either side closing the connection
// ends everything.
const (
	ControlMagic   = "rdmaperf-control"
	ControlVersion = 12      // changes when an older peer would misunderstand
	MaxLine        = 2 << 20 // bounds a control line in bytes: a plan of maxPoints points with their options fits
	greetingLine   = 4096
)

type messageType string

const (
	MsgHello     messageType = "hello"
	MsgWelcome   messageType = "welcome"
	MsgPlan      messageType = "plan"
	msgWait      messageType = "wait" // before accept: another client measures
	msgAccept    messageType = "accept"
	MsgPoint     messageType = "point"
	MsgEnd       messageType = "end"
	MsgEnded     messageType = "ended"
	MsgError     messageType = "error"
	msgChallenge messageType = "challenge" // between hello and welcome: prove that you know the token
	msgProof     messageType = "proof"
	msgResults   messageType = "results" // data: those of the point that has ended
	msgData      messageType = "data"    // what a workload says, either way
)

// Message is every line; the type says which of the objects is there.
type Message struct {
	Magic   string           `json:"magic,omitempty"`
	Version int              `json:"version,omitempty"`
	Type    messageType      `json:"type"`
	Plan    *Plan            `json:"plan,omitempty"`
	Caps    *transports.Caps `json:"caps,omitempty"` // of plan: the client's stack
	Wait    *Waiting         `json:"wait,omitempty"`
	Accept  *acceptance      `json:"accept,omitempty"`
	Error   *peerErrorBody   `json:"error,omitempty"`
	Proof   []byte           `json:"proof,omitempty"` // of challenge: the nonce
	Point   *Point           `json:"point,omitempty"`
	Data    json.RawMessage  `json:"data,omitempty"`
}

// Listening is where the server takes the sessions of a point, and the token that they show. Elsewhere: at an address
// of its device, which is not the one by which the client came.
type Listening struct {
	Addr      string `json:"addr"`
	Elsewhere bool   `json:"elsewhere,omitempty"`
	Token     []byte `json:"token"`
	Resident  int64  `json:"resident_bytes,omitempty"` // calls: memory of the process without connections
}

// Elsewhere reports whether a transport that was to listen at host took another address.
func Elsewhere(host, addr string) bool {
	got, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	asked, e1 := netip.ParseAddr(host)
	took, e2 := netip.ParseAddr(got)
	return e1 == nil && e2 == nil && !took.IsUnspecified() && took.Unmap() != asked.Unmap()
}

type PhaseStart struct {
	Name       string `json:"name"`
	Generation int    `json:"generation"`
	Operations int64  `json:"operations,omitempty"` // per QP, where the server sends, too; 0: until the client ends
}

// PhaseStop says to the target what it should have received.
type PhaseStop struct {
	Lanes []LaneCount `json:"lanes,omitempty"`
	Check bool        `json:"check"` // verify the windows
}

type LaneCount struct {
	First  uint64 `json:"first"`
	Count  int64  `json:"count"`
	Second int64  `json:"second,omitempty"` // of a second class, where a workload has two, which Count leaves out

	SecondFirst uint64 `json:"second_first,omitempty"` // First of it
}

type PhaseReport struct {
	Operations  int64                    `json:"operations"`
	CPUSeconds  float64                  `json:"cpu_seconds"`
	Switches    int64                    `json:"switches,omitempty"`
	Collections int64                    `json:"collections"`
	Allocations int64                    `json:"allocations"`
	Pinned      bool                     `json:"pinned"`
	Procs       int                      `json:"gomaxprocs"`
	Sessions    int                      `json:"sessions"` // clients being served
	Verified    bool                     `json:"verified"`
	Compared    Compared                 `json:"compared,omitzero"` // what the server compared
	Noise       *reports.Noise           `json:"noise,omitempty"`   // of the server's threads; nil: not known
	WindowNs    int64                    `json:"window_ns,omitempty"`
	Lanes       []LaneCount              `json:"lanes,omitempty"`
	PeakBps     float64                  `json:"peak_bytes_per_second,omitempty"` // 0: not known
	Counters    []reports.DeviceCounters `json:"counters,omitempty"`
	Resident    int64                    `json:"resident_bytes,omitempty"` // calls, of the phase that asks for it
}

type peerErrorBody struct {
	Code      int              `json:"code"`
	Operation string           `json:"operation"`
	Message   string           `json:"message"`
	Hint      string           `json:"hint,omitempty"`
	Corrupt   *CorruptionError `json:"corruption,omitempty"`
}

func toPeer(err error) *peerErrorBody {
	re := reports.NewRunError(err)
	b := &peerErrorBody{Code: re.ExitCode, Operation: short(re.Operation), Message: short(re.Message), Hint: re.Hint}
	errors.As(err, &b.Corrupt)
	return b
}

// AsError is the peer's error here. A code outside the table is a failure.
func (b *peerErrorBody) AsError(peer string) error {
	code := b.Code
	if !slices.Contains([]int{reports.ExitUsage, reports.ExitCorruption, reports.ExitPeer, reports.ExitNotRun}, code) {
		code = reports.ExitFailed
	}
	err := fmt.Errorf("%s: %s", peer, b.Message)
	if b.Corrupt != nil {
		err = b.Corrupt
	}
	return &reports.ExitError{Code: code, Operation: b.Operation, Err: err, Hint: b.Hint}
}

// Control is one end of the channel. Its owner bounds every wait, and ends the reader goroutine with close.
type Control struct {
	Conn  net.Conn
	peer  string // for messages
	in    chan *Message
	err   error        // why in was closed; valid then
	most  atomic.Int64 // bytes of a line
	quit  chan struct{}
	once  sync.Once
	done  chan struct{}
	Alive context.Context // ends with the connection, and with it what is being set up for the peer
	lost  context.CancelFunc
}

func newControl(ctx context.Context, conn net.Conn, peer string, most int64) *Control {
	c := &Control{Conn: conn, peer: peer, in: make(chan *Message), quit: make(chan struct{}), done: make(chan struct{})}
	c.most.Store(most)
	c.Alive, c.lost = context.WithCancel(ctx)
	go c.read()
	return c
}

func (c *Control) close() error {
	err := error(nil)
	c.once.Do(func() {
		close(c.quit)
		err = c.Conn.Close()
	})
	<-c.done
	return err
}

func (c *Control) read() {
	defer close(c.done)
	defer c.lost()
	defer close(c.in)
	defer onepeer.Recover(func(fault error) { c.err = fault })
	r := bufio.NewReaderSize(c.Conn, 4096)
	if first, err := r.Peek(1); err == nil && first[0] == tlsRecord {
		c.err = errServerPlain
		return
	}
	for {
		line, err := readLine(r, &c.most)
		if err != nil {
			c.err = err
			return
		}
		m, err := ParseMessage(line)
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

// ErrLine: what arrived is not the control protocol.
var ErrLine = errors.New("not the rdmaperf control protocol")

// ReadLine returns one line without its end, at most so many bytes.
func ReadLine(r *bufio.Reader, atMost int64) ([]byte, error) {
	var most atomic.Int64
	most.Store(atMost)
	return readLine(r, &most)
}

func readLine(r *bufio.Reader, most *atomic.Int64) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if n := most.Load(); int64(len(line)+len(part)) > n {
			return nil, fmt.Errorf("%w: a line is longer than %d bytes", ErrLine, n)
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(line, []byte("\n")), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			if len(line) > 0 && errors.Is(err, io.EOF) {
				err = fmt.Errorf("%w: the last line is cut short", ErrLine)
			}
			return nil, err
		}
	}
}

// ParseMessage decodes one line. Another version may use other types for the same names, so magic and version come
// first.
func ParseMessage(line []byte) (*Message, error) {
	var head struct {
		Magic   string      `json:"magic"`
		Version int         `json:"version"`
		Type    messageType `json:"type"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, ErrLine
	}
	if head.Type == "" || head.Magic != "" && head.Magic != ControlMagic {
		return nil, ErrLine
	}
	if head.Magic == ControlMagic && head.Version != ControlVersion {
		return &Message{Magic: head.Magic, Version: head.Version, Type: head.Type}, nil
	}
	m := new(Message)
	if err := json.Unmarshal(line, m); err != nil {
		return nil, fmt.Errorf("%w: %s: %v", ErrLine, head.Type, err)
	}
	return m, nil
}

// Send writes one line within d.
func (c *Control) Send(d time.Duration, m *Message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode %s: %w", m.Type, err)
	}
	if len(b) >= MaxLine {
		return fmt.Errorf("encode %s: %d bytes are above the limit of %d", m.Type, len(b), MaxLine)
	}
	if err := c.Conn.SetWriteDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	_, err = c.Conn.Write(append(b, '\n'))
	return err
}

var errSilent = errors.New("no answer")

// receive waits for one line at most d, or until ctx ends. The error is io.EOF when the peer closed the connection.
func (c *Control) receive(ctx context.Context, d time.Duration) (*Message, error) {
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
