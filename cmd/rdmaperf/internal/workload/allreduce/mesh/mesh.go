// Package mesh joins ranks by RDMA connections, one for each pair, and moves vectors between them as MPI libraries do:
// short messages through buffers of its own, long ones by a rendezvous that registers the user's memory.
//
//	receiver → clear to send: address, key, length       (send)
//	sender   → the bytes, in segments                    (writes)
//	         → a word behind each that it is there       (send)
//
// Where the next step sends what this one receives, a segment goes on as soon as it was added. A send is delivered
// after the writes that were posted before it (RFC 5040 §5.5, IBTA 9.6), so the word proves the segment.
//
// A Mesh belongs to one goroutine, and owns its queues, connections and buffers. The device is its opener's. Memory
// that is exchanged is the caller's again when Reduce returns.
package mesh

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/steps"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Config is what all ranks agree on.
type Config struct {
	Rank    int           `json:"rank"`
	Size    int           `json:"size"`
	Eager   int           `json:"eager_bytes"`   // up to which a message is sent without a rendezvous
	Segment int           `json:"segment_bytes"` // of a long one, while it has no more than segments()
	Wait    bool          `json:"wait"`          // sleep for completions instead of polling on
	Timeout time.Duration `json:"timeout_ns"`    // of every wait
}

const (
	// MaxRanks bounds what a peer may have sent and this rank not read, for which receives are posted. Arbitrary.
	MaxRanks     = 32
	mostSegments = 32 // of a message; larger messages have larger segments
	eagerSlots   = 8  // of sends to a peer
	heads        = 256
)

// slotBytes bounds segments where slots are large: what caches do not hold is filled more slowly. Arbitrary.
const slotBytes = 512 << 10

func (c *Config) segments() int { return min(max(slotBytes/max(c.Eager, 1), 8), mostSegments) }

// recvs is how many messages of a peer may be unheard: segments of two messages, what follows, and eager ones.
func (c *Config) recvs() int { return 2*c.segments() + 16 + 2*c.Size }

// Cost is what a rank of a mesh holds: bytes of its slots, queue pairs, and the places of each.
func Cost(ranks, eager int) (slots int64, qps, places int) {
	m := Mesh{cfg: Config{Size: ranks, Eager: eager}}
	return int64(m.each() * ranks), ranks - 1, sends + m.cfg.recvs()
}

func (m *Mesh) each() int { return m.cfg.recvs()*m.slot() + heads*headLen + eagerSlots*m.slot() }

const sends = 4*mostSegments + eagerSlots + 16

type Mesh struct {
	cfg   Config
	dev   rdma.Device
	cq    rdma.CQ
	l     rdma.Listener
	peers []*peer // by rank; nil: this one
	wcs   []rdma.WC
	buf   rdma.Buffer // of all slots
	mr    rdma.MR
	used  int

	temp   rdma.Buffer // where what is to be added arrives
	tempMR rdma.MR

	gather bool // the device takes the pieces of a message from two places

	wrs   []rdma.SendWR // of a message's segments, to be posted together
	spans []steps.Span  // of Reduce, kept for the next
}

type peer struct {
	rank     int
	qp       rdma.QP
	recvBase int                   // of recvs() slots of headLen+Eager bytes
	headBase int                   // of heads slots of headLen
	sendBase int                   // of eagerSlots
	head     int                   // the next
	eager    int                   // sends of eager bytes that are under way
	lent     int                   // of these, those of the user's memory
	holds    [eagerSlots]arms.Hold // the user's memory that a slot's message is taken from, until it was sent
	slot     int                   // the next

	sent, heard [numKinds]uint32 // numbers
	clears      []head
	there       []head
	eagers      []arrival // that nobody has taken
	posted      int       // long messages that were begun
	done        int       // those whose last send has completed
}

type arrival struct{ slot, n int }

// Open listens at listen ("host:port"), with buffers for all peers. The caller tells the others Addr.
func Open(dev rdma.Device, listen string, cfg Config) (*Mesh, error) {
	if cfg.Size < 1 || cfg.Size > MaxRanks || cfg.Rank < 0 || cfg.Rank >= cfg.Size || cfg.Eager < 0 || cfg.Segment < 1 {
		return nil, fmt.Errorf("rank %d of %d: %w", cfg.Rank, cfg.Size, rdma.ErrInvalid)
	}
	caps := dev.Caps()
	need := rdma.Need{Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite)}
	if cfg.Wait {
		need.Features = rdma.FeatEvents
	}
	if err := caps.Missing(need); err != nil {
		return nil, err
	}
	m := &Mesh{cfg: cfg, dev: dev, wcs: make([]rdma.WC, 64), peers: make([]*peer, cfg.Size),
		wrs: make([]rdma.SendWR, 0, 2*mostSegments), gather: caps.MaxSGE > 1}
	if err := m.open(listen); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func (m *Mesh) open(listen string) (err error) {
	if m.buf, err = rdma.Alloc(m.each() * m.cfg.Size); err != nil {
		return err
	}
	if m.mr, err = m.dev.RegMR(0, m.buf, rdma.LocalWrite); err != nil {
		return err
	}
	if m.cq, err = m.dev.NewCQ((sends + m.cfg.recvs()) * m.cfg.Size); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), m.cfg.Timeout)
	defer cancel()
	m.l, err = m.dev.Listen(ctx, listen, m.cfg.Size)
	return err
}

func (m *Mesh) slot() int { return (headLen + m.cfg.Eager + 63) &^ 63 }

// Addr is where other ranks reach this one.
func (m *Mesh) Addr() string { return m.l.Addr() }

func (m *Mesh) newPeer(rank int) (*peer, error) {
	p := &peer{rank: rank}
	take := func(n int) int { at := m.used; m.used += n; return at }
	p.recvBase, p.headBase, p.sendBase = take(m.cfg.recvs()*m.slot()), take(heads*headLen), take(eagerSlots*m.slot())
	var err error
	p.qp, err = m.dev.NewQP(rdma.QPConfig{SendCQ: m.cq, RecvCQ: m.cq, SendDepth: sends, RecvDepth: m.cfg.recvs()})
	if err != nil {
		return nil, err
	}
	m.peers[rank] = p
	for i := range m.cfg.recvs() {
		if err := m.postRecv(p, i); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Join connects to all ranks: it dials those below and waits for those above. All have the same token.
func (m *Mesh) Join(ctx context.Context, addrs []string, token uint64) error {
	if len(addrs) != m.cfg.Size {
		return fmt.Errorf("%d addresses of %d ranks: %w", len(addrs), m.cfg.Size, rdma.ErrInvalid)
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Timeout)
	defer cancel()
	hello := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, token), uint32(m.cfg.Rank))
	for r := range m.cfg.Rank {
		p, err := m.newPeer(r)
		if err == nil {
			_, err = p.qp.Connect(ctx, addrs[r], rdma.ConnParam{PrivateData: hello})
		}
		if err != nil {
			return fmt.Errorf("connect to rank %d: %w", r, err)
		}
	}
	for range m.cfg.Size - 1 - m.cfg.Rank {
		if err := m.accept(ctx, token); err != nil {
			return fmt.Errorf("wait for the ranks above %d: %w", m.cfg.Rank, err)
		}
	}
	// Who dialled speaks first: without that, iWARP holds back what the other side sends (RFC 5044 §7.1.2).
	for r := range m.cfg.Rank {
		if err := m.sendEager(ctx, m.peers[r], nil); err != nil {
			return err
		}
	}
	for r := m.cfg.Rank + 1; r < m.cfg.Size; r++ {
		if err := m.takeEager(ctx, m.peers[r], 0, func([]byte) {}); err != nil {
			return err
		}
	}
	return nil
}

func (m *Mesh) accept(ctx context.Context, token uint64) error {
	for {
		req, err := m.l.Accept(ctx)
		if err != nil {
			return err
		}
		b := req.Param().PrivateData
		var rank int
		if len(b) >= 12 { // some devices pad it
			rank = int(binary.BigEndian.Uint32(b[8:]))
		}
		if len(b) < 12 || binary.BigEndian.Uint64(b) != token || rank <= m.cfg.Rank || rank >= m.cfg.Size ||
			m.peers[rank] != nil {
			if err := req.Reject(ctx, nil); err != nil {
				return err
			}
			continue
		}
		p, err := m.newPeer(rank)
		if err != nil {
			return errors.Join(err, req.Reject(ctx, nil))
		}
		_, err = req.Accept(ctx, p.qp, rdma.ConnParam{})
		return err
	}
}

// Reserve makes sure that spans of n bytes can arrive to be added.
func (m *Mesh) Reserve(n int) error {
	if m.temp.Len() >= n {
		return nil
	}
	if err := m.freeTemp(); err != nil {
		return err
	}
	var err error
	if m.temp, err = rdma.Alloc(n); err != nil {
		return err
	}
	m.tempMR, err = m.dev.RegMR(0, m.temp, rdma.LocalWrite|rdma.RemoteWrite)
	return err
}

func (m *Mesh) freeTemp() error {
	var err error
	if m.tempMR != nil {
		err, m.tempMR = m.tempMR.Close(), nil
	}
	err = errors.Join(err, m.temp.Free())
	m.temp = rdma.Buffer{}
	return err
}

// Close ends the connections and gives everything back.
func (m *Mesh) Close() error {
	var errs []error
	if m.l != nil {
		errs = append(errs, m.l.Close())
	}
	for _, p := range m.peers {
		if p != nil {
			errs = append(errs, p.qp.Close())
		}
	}
	if m.cq != nil {
		errs = append(errs, m.cq.Close())
	}
	errs = append(errs, m.freeTemp())
	if m.mr != nil {
		errs = append(errs, m.mr.Close())
	}
	return errors.Join(append(errs, m.buf.Free())...)
}
