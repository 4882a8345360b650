package dsm

import (
	"time"

	"github.com/rdmaperf/rdmaperf/transports/lite"
)

// recvWait is how often a goroutine that waits for messages checks that the port is open.
const recvWait = time.Second

// home serves the directory of the pages of a node, one request after the other: an entry is never in between.
type home struct {
	m      *Memory
	port   *lite.Port
	client *lite.Client
	dir    map[int]*entry
	out    []byte
}

type entry struct {
	data   []byte // up to date unless a node owns it
	seq    uint64
	copies map[int]bool
	owner  int // node, or nobody
	lost   bool
}

const noOwner = -1

func newHome(m *Memory) (*home, error) {
	h := &home{m: m, dir: map[int]*entry{}}
	var err error
	if h.client, err = m.node.Client(lite.ClientConfig{MaxReply: m.cfg.PageSize}); err != nil {
		return nil, err
	}
	if h.port, err = m.node.Serve(m.cfg.Port, lite.PortConfig{}); err != nil {
		h.client.Close()
		return nil, err
	}
	return h, nil
}

func (h *home) serve() {
	defer h.m.wg.Done()
	for {
		r, err := h.port.Recv(recvWait, lite.WaitAdaptive)
		if err == lite.ErrTimeout {
			continue
		}
		if err != nil {
			return
		}
		p, w, _, err := getRequest(r.Payload, h.m.cfg.Pages)
		if err != nil || h.m.homeOf(p) != h.m.node.ID() {
			r.Release()
			continue
		}
		h.out = h.grant(h.out[:0], p, w, r.From)
		_ = r.Reply(h.out) // a requester that left needs none
	}
}

func (h *home) grant(b []byte, p int, w wish, to int) []byte {
	e := h.dir[p]
	if e == nil {
		e = &entry{data: make([]byte, h.m.cfg.PageSize), copies: map[int]bool{}, owner: noOwner}
		h.dir[p] = e
	}
	e.seq++
	if e.owner != noOwner {
		h.recall(e, p, w)
	}
	if w == writeWish {
		for node := range e.copies {
			if node != to {
				h.revoke(node, p, w, e.seq) // a lost node has no copy
			}
			delete(e.copies, node)
		}
	}
	if e.lost {
		return putGrant(b, e.seq, codeLost, nil)
	}
	e.seq++
	if w == writeWish {
		e.owner = to
	} else {
		e.copies[to] = true
	}
	return putGrant(b, e.seq, codeFine, e.data)
}

func (h *home) recall(e *entry, p int, w wish) {
	data, err := h.revoke(e.owner, p, w, e.seq)
	if err != nil {
		e.lost = true
	} else if len(data) == len(e.data) {
		copy(e.data, data)
	}
	// A node that has not received its grant yet may have the copy that it had before.
	if w == readWish && err == nil {
		e.copies[e.owner] = true
	}
	e.owner = noOwner
}

// revoke has a node give up a page, or the right to write it.
func (h *home) revoke(node, p int, w wish, seq uint64) ([]byte, error) {
	var req [requestLen]byte
	putRequest(req[:], p, w, seq)
	return h.client.Call(node, h.m.cfg.Port+1, req[:])
}
