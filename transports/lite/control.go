package lite

import (
	"encoding/json"
	"errors"

	"github.com/rdmaperf/rdmaperf/internal/onepeer"
	"github.com/rdmaperf/rdmaperf/transports/lite/ring"
	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
)

// controlOp is what a node asks of another's own port: this byte, and the request as JSON, as is the answer.
type controlOp byte

const (
	// Of every node.
	opRing  controlOp = iota + 1 // a ring for a port
	opAlloc                      // extents for a region
	opFree                       // extents of a region go back
	opKill                       // the handles of a region die
	opFill                       // memset of a piece
	opCopy                       // memcpy of a piece that lies there
	opTurn                       // wait for a lock's ticket
	opPass                       // a lock was passed on
	// Of the manager.
	opMembers
	opCreate
	opMap
	opUnmap
	opDelete
	opGrant
	opMove
	opBarrier
	numControlOps
)

type ringRequest struct {
	Port int
	Head uint64 // address in the asker's arena
}

type ringAnswer struct {
	At, Size, Most uint64
}

// empty is the answer of most control messages; errors have a code in the reply's header.
type empty struct{}

// control asks a node and waits as long as c would. The node and all its clients share one client for it, in turn.
func (c *Client) control(node int, op controlOp, req, answer any) error {
	n := c.node
	n.ctlMu.Lock()
	defer n.ctlMu.Unlock()
	return n.askFor(c, node, op, req, answer)
}

// askFor is control for who holds ctlMu.
func (n *Node) askFor(c *Client, node int, op controlOp, req, answer any) error {
	if c != n.ctl {
		most := n.ctl.cfg.Timeout
		n.ctl.cfg.Timeout = c.cfg.Timeout
		defer func() { n.ctl.cfg.Timeout = most }()
	}
	return n.ctl.ask(node, op, req, answer)
}

func (c *Client) ask(node int, op controlOp, req, answer any) error {
	b, err := json.Marshal(req)
	if err != nil {
		return err
	}
	got, err := c.Call(node, wire.ControlPort, append([]byte{byte(op)}, b...))
	if err != nil {
		return err
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(got, answer); err != nil {
		return ErrFail
	}
	return nil
}

// nodeServer answers control messages, the manager's in a goroutine of their own, because the manager asks nodes too.
type nodeServer struct {
	node  *Node
	port  *Port
	queue chan Request // for the node
	admin chan Request // for the manager
	work  *Client      // for copies to other nodes
	locks lockTable
}

// controlQueue bounds control messages that wait; more are refused with ErrPortFull.
const controlQueue = 256

func (n *Node) serveControl() error {
	s := &nodeServer{node: n, queue: make(chan Request, controlQueue), admin: make(chan Request, controlQueue)}
	var err error
	if s.work, err = n.newClient(ClientConfig{MaxReply: 256}); err != nil {
		return err
	}
	s.locks.init()
	if n.cfg.Manager == "" {
		if n.manager, err = newManager(n); err != nil {
			return err
		}
	}
	s.port = &Port{node: n, num: wire.ControlPort, size: controlRing,
		maxMessage: ring.MaxRecord(controlRing) - wire.RequestLen,
		handle:     s.arrived,
		wake:       make(chan struct{}, 1),
	}
	n.ports[wire.ControlPort].Store(s.port)
	n.server = s
	n.wg.Go(func() { s.loop(s.queue, nil) })
	if n.manager != nil {
		n.wg.Go(func() { s.loop(s.admin, n.manager.lost) })
	}
	return nil
}

// arrived sorts a control message. It runs where the node is polled and must not wait.
func (s *nodeServer) arrived(r *Request) {
	if len(r.Payload) == 0 || r.Payload[0] == 0 || r.Payload[0] >= byte(numControlOps) {
		r.refuse(ErrFail)
		return
	}
	q := s.queue
	if controlOp(r.Payload[0]) >= opMembers {
		if s.node.manager == nil {
			r.refuse(ErrFail)
			return
		}
		q = s.admin
	}
	select {
	case q <- *r:
	default:
		r.refuse(ErrPortFull)
	}
}

// errLater: the answer comes from somewhere else.
var errLater = errors.New("answered later")

func (s *nodeServer) loop(q chan Request, lost chan int) {
	for {
		select {
		case <-s.node.ctx.Done():
			return
		case id := <-lost:
			s.node.manager.endNode(id)
		case r := <-q:
			answer, err := s.do(&r)
			switch {
			case err == errLater:
			case err != nil:
				_ = r.ReplyError(codeOf(err))
			default:
				b, err := json.Marshal(answer)
				if err != nil || r.Reply(b) != nil {
					continue // the requester left, or has too little room
				}
			}
		}
	}
}

var controlOps = [numControlOps]func(s *nodeServer, r *Request) (any, error){
	opRing:    ofNode((*nodeServer).openRing),
	opAlloc:   ofNode((*nodeServer).alloc),
	opFree:    ofNode((*nodeServer).free),
	opKill:    ofNode((*nodeServer).kill),
	opFill:    ofNode((*nodeServer).fill),
	opCopy:    ofNode((*nodeServer).copy),
	opTurn:    ofNode((*nodeServer).turn),
	opPass:    ofNode((*nodeServer).pass),
	opMembers: ofManager((*manager).members),
	opCreate:  ofManager((*manager).create),
	opMap:     ofManager((*manager).mapRegion),
	opUnmap:   ofManager((*manager).unmap),
	opDelete:  ofManager((*manager).delete),
	opGrant:   ofManager((*manager).grant),
	opMove:    ofManager((*manager).move),
	opBarrier: ofManager((*manager).barrier),
}

// ofNode decodes a request for f.
func ofNode[T, A any](f func(s *nodeServer, r *Request, q *T) (A, error)) func(*nodeServer, *Request) (any, error) {
	return func(s *nodeServer, r *Request) (any, error) {
		var q T
		if json.Unmarshal(r.Payload[1:], &q) != nil {
			return nil, ErrFail
		}
		return f(s, r, &q)
	}
}

func ofManager[T, A any](f func(m *manager, r *Request, q *T) (A, error)) func(*nodeServer, *Request) (any, error) {
	return ofNode(func(s *nodeServer, r *Request, q *T) (A, error) { return f(s.node.manager, r, q) })
}

// do carries out a request. One that makes this node panic is the end of its sender, unless that is this node.
func (s *nodeServer) do(r *Request) (answer any, err error) {
	defer onepeer.Recover(func(fault error) {
		if p := s.node.peers[r.From].Load(); p != nil {
			go s.node.lose(p, fault)
		}
		answer, err = nil, fault
	})
	return controlOps[r.Payload[0]](s, r)
}

// openRing gives a peer a ring for a port; asked again before anything came, the same one.
func (s *nodeServer) openRing(r *Request, q *ringRequest) (a ringAnswer, err error) {
	n := s.node
	if r.From == n.id || q.Port < 0 || q.Port >= wire.ControlPort {
		return a, ErrFail
	}
	port := n.ports[q.Port].Load()
	if port == nil {
		return a, ErrNoPort
	}
	p, err := n.peerOf(r.From)
	if err != nil {
		return a, err
	}
	if !p.holds(q.Head, wire.WordLen) || q.Head%8 != 0 {
		return a, ErrBounds
	}
	n.pollMu.Lock() // arrivals read p.in
	defer n.pollMu.Unlock()
	in := p.in[q.Port]
	if in == nil {
		receiver, err := ring.NewReceiver(port.size)
		if err != nil {
			return a, err
		}
		off, err := n.alloc(int(port.size))
		if err != nil {
			return a, err
		}
		in = &inRing{ring: receiver, off: off, size: port.size}
		p.in[q.Port] = in
	} else if in.ring.Head() != 0 || in.ring.Open() != 0 {
		return a, ErrExists
	}
	in.headAt = q.Head
	return ringAnswer{At: n.base + in.off, Size: in.size, Most: min(port.maxMessage,
		ring.MaxRecord(in.size)-wire.RequestLen)}, nil
}
