package lite

import (
	"crypto/sha256"
	"crypto/subtle"
	"sync"
	"time"
)

// manager is the directory of a cluster. The admin loop of its node handles requests in turn; mu guards what others
// call.
type manager struct {
	node   *Node
	client *Client // to ask nodes

	mu         sync.Mutex
	addrs      map[int]string
	reserved   map[int]time.Time // numbers of nodes that have not joined yet
	lost       chan int          // nodes whose regions must be ended
	recovering map[int]bool      // nodes whose numbers must not be assigned yet

	names    map[string]*region
	byID     map[uint64]*region
	lastID   uint64
	ending   []*region
	barriers map[string]*barrier
}

type region struct {
	id       uint64
	name     string
	size     uint64
	open     Perm // what any node with the password may have
	password [32]byte
	pieces   []piece
	grants   map[int]Perm // what a node may have without it
	mapped   map[int]Perm // what the handles of a node may do
}

func newManager(n *Node) (*manager, error) {
	m := &manager{node: n, addrs: map[int]string{}, reserved: map[int]time.Time{}, lost: make(chan int, MaxNodes*4),
		recovering: map[int]bool{}, names: map[string]*region{}, byID: map[uint64]*region{},
		barriers: map[string]*barrier{}}
	var err error
	m.client, err = n.newClient(ClientConfig{MaxReply: controlReply})
	return m, err
}

func (m *manager) number() (uint8, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := 1; id < MaxNodes; id++ {
		p := m.node.peers[id].Load()
		if p != nil && !p.dead.Load() || m.recovering[id] {
			continue
		}
		if t, ok := m.reserved[id]; ok && time.Since(t) < m.node.cfg.DeadAfter {
			continue
		}
		m.reserved[id] = time.Now()
		return uint8(id), nil
	}
	return 0, ErrNoSpace
}

// members returns the members that joined before, and stores where the new one is reached.
func (m *manager) members(by *Request, q *membersRequest) (a membersAnswer, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range MaxNodes {
		addr, ok := m.addrs[id]
		if ok && id != by.From {
			a.Members = append(a.Members, member{id, addr})
		}
	}
	m.addrs[by.From] = q.Addr
	delete(m.reserved, by.From)
	return a, nil
}

func (m *manager) nodeLost(id int) {
	m.mu.Lock()
	delete(m.addrs, id)
	m.recovering[id] = true
	m.mu.Unlock()
	select {
	case m.lost <- id:
	case <-m.node.ctx.Done():
	}
}

// endNode ends the regions of a lost node, and frees those that only it still mapped. It runs in the admin loop.
func (m *manager) endNode(id int) {
	m.releaseWaiters()
	for _, r := range m.byID {
		delete(r.grants, id)
		delete(r.mapped, id)
		if liesAt(r.pieces, id) {
			m.end(r, ErrPeerDead)
		}
	}
	dying := m.ending
	m.ending = nil
	for _, r := range dying {
		delete(r.mapped, id)
		if len(r.mapped) > 0 {
			m.ending = append(m.ending, r)
		} else {
			m.freePieces(r.id, r.pieces)
		}
	}
	m.mu.Lock()
	delete(m.recovering, id)
	m.mu.Unlock()
}

type createRequest struct {
	Name     string
	Size     uint64
	Nodes    []int // where the chunks lie, in turns
	Open     Perm
	Password []byte
	At       uint64 // memory of the asker's own arena that is published; 0: the nodes find some
}

type mapAnswer struct {
	Region uint64
	Size   uint64
	Perm   Perm
	Pieces []piece
}

func (m *manager) create(by *Request, q *createRequest) (a mapAnswer, err error) {
	switch {
	case q.Name == "" || len(q.Name) > 255 || q.Size == 0 || len(q.Nodes) == 0 || len(q.Nodes) > MaxNodes ||
		q.Open&^PermAll != 0:
		return a, ErrFail
	case m.names[q.Name] != nil:
		return a, ErrExists
	case q.Size > maxRegion:
		return a, ErrNoSpace
	}
	m.lastID++
	id := m.lastID
	var pieces []piece
	switch {
	case q.At == 0:
		pieces, err = m.place(id, q.Size, q.Nodes)
	case q.Nodes[0] != by.From:
		err = ErrPermission // only a node itself publishes its memory
	default:
		pieces = wholePieces(by.From, q.At, q.Size)
	}
	if err != nil {
		return a, err
	}
	r := &region{id: id, name: q.Name, size: q.Size, open: q.Open, password: sha256.Sum256(q.Password), pieces: pieces,
		grants: map[int]Perm{by.From: PermAll}, mapped: map[int]Perm{by.From: PermAll}}
	m.names[q.Name], m.byID[id] = r, r
	return mapAnswer{id, q.Size, PermAll, pieces}, nil
}

// maxRegion keeps the list of pieces within one control message.
const maxRegion = 1024 * ChunkSize

type allocRequest struct {
	Region uint64
	Sizes  []uint64
}

type allocAnswer struct{ Offs []uint64 }

type freeRequest struct {
	Region uint64
	Offs   []uint64
}

// place takes chunks on the nodes by turns, all or none.
func (m *manager) place(id, size uint64, nodes []int) ([]piece, error) {
	var pieces []piece
	sizes := map[int][]uint64{}
	for i := 0; size > 0; i++ {
		n := min(size, ChunkSize)
		node := nodes[i%len(nodes)]
		pieces = append(pieces, piece{Node: node, Len: n})
		sizes[node] = append(sizes[node], n)
		size -= n
	}
	offs := map[int][]uint64{}
	for node, list := range sizes {
		var a allocAnswer
		err := m.client.ask(node, opAlloc, allocRequest{id, list}, &a)
		if err == nil && len(a.Offs) != len(list) {
			err = ErrFail
		}
		if err != nil {
			m.freeAt(id, offs)
			return nil, err
		}
		offs[node] = a.Offs
	}
	for i := range pieces {
		p := &pieces[i]
		p.Off, offs[p.Node] = offs[p.Node][0], offs[p.Node][1:]
	}
	return pieces, nil
}

func (m *manager) freePieces(id uint64, pieces []piece) {
	offs := map[int][]uint64{}
	for _, p := range pieces {
		offs[p.Node] = append(offs[p.Node], p.Off)
	}
	m.freeAt(id, offs)
}

func (m *manager) freeAt(id uint64, offs map[int][]uint64) {
	for node, list := range offs {
		_ = m.client.ask(node, opFree, freeRequest{id, list}, nil) // a lost node needs none
	}
}

type mapRequest struct {
	Name     string
	Want     Perm
	Password []byte
}

func (m *manager) mapRegion(by *Request, q *mapRequest) (a mapAnswer, err error) {
	r := m.names[q.Name]
	if r == nil {
		return a, ErrNoRegion
	}
	if !r.grants[by.From].Has(q.Want) {
		sum := sha256.Sum256(q.Password)
		if subtle.ConstantTimeCompare(sum[:], r.password[:]) != 1 {
			return a, ErrPassword
		}
		if !(r.open | r.grants[by.From]).Has(q.Want) {
			return a, ErrPermission
		}
	}
	r.mapped[by.From] |= q.Want
	return mapAnswer{r.id, r.size, q.Want, r.pieces}, nil
}

type regionRequest struct {
	Region uint64
	Node   int  // grant: to whom
	Perm   Perm // grant: what; of the asker's handle
	Mine   Perm
	Nodes  []int // move: where to
	Why    Code  // kill: the error of dead handles
}

func (m *manager) unmap(by *Request, q *regionRequest) (empty, error) {
	if r := m.byID[q.Region]; r != nil {
		delete(r.mapped, by.From)
	}
	return empty{}, nil
}

// allowed holds a request against what the node's handles may do; a handle's own rights are checked where it lives.
func (m *manager) allowed(from int, id uint64, want Perm) (*region, error) {
	r := m.byID[id]
	switch {
	case r == nil:
		return nil, ErrDeadHandle
	case !r.mapped[from].Has(want):
		return nil, ErrPermission
	}
	return r, nil
}

func (m *manager) delete(by *Request, q *regionRequest) (empty, error) {
	r, err := m.allowed(by.From, q.Region, PermMaster)
	if err == nil {
		m.end(r, ErrDeadHandle)
	}
	return empty{}, err
}

// end kills every handle of a region and frees its memory, at once or when the node that has it mapped is lost.
func (m *manager) end(r *region, why Code) {
	delete(m.names, r.name)
	delete(m.byID, r.id)
	m.kill(r, why)
	if len(r.mapped) > 0 {
		m.ending = append(m.ending, r)
		return
	}
	m.freePieces(r.id, r.pieces)
}

// kill ends the handles of a region, and strikes off the nodes that have done it.
func (m *manager) kill(r *region, why Code) {
	for node := range r.mapped {
		err := m.client.ask(node, opKill, regionRequest{Region: r.id, Why: why}, nil)
		if err == nil || err == ErrPeerDead || err == ErrNoMember {
			delete(r.mapped, node)
		}
	}
}

func (m *manager) grant(by *Request, q *regionRequest) (empty, error) {
	r, err := m.allowed(by.From, q.Region, PermMaster)
	if err == ErrPermission {
		// PermShare passes on what the requester has, except PermMaster.
		r, err = m.allowed(by.From, q.Region, PermShare|q.Perm)
		if q.Perm.Has(PermMaster) {
			err = ErrPermission
		}
	}
	if err != nil {
		return empty{}, err
	}
	if q.Perm&^PermAll != 0 || q.Node < 0 || q.Node >= MaxNodes {
		return empty{}, ErrFail
	}
	r.grants[q.Node] |= q.Perm
	return empty{}, nil
}

// move puts a region onto other nodes: all handles die, the nodes copy the bytes, and the asker maps what is new.
func (m *manager) move(by *Request, q *regionRequest) (a mapAnswer, err error) {
	r, err := m.allowed(by.From, q.Region, PermMaster)
	if err != nil {
		return a, err
	}
	if len(q.Nodes) == 0 || len(q.Nodes) > MaxNodes {
		return a, ErrFail
	}
	m.lastID++
	id := m.lastID
	pieces, err := m.place(id, r.size, q.Nodes)
	if err != nil {
		return a, err
	}
	rights := r.mapped[by.From]
	m.kill(r, ErrDeadHandle)
	if len(r.mapped) > 0 { // writes to the old pieces may still come
		m.freePieces(id, pieces)
		return a, ErrFail
	}
	for i, p := range r.pieces {
		to := pieces[i]
		err := m.client.ask(p.Node, opCopy, copyRequest{Region: r.id, Off: p.Off, Len: p.Len, Node: to.Node,
			To: to.Off}, nil)
		if err != nil { // the old place is still whole
			m.freePieces(id, pieces)
			return a, err
		}
	}
	old, oldID := r.pieces, r.id
	delete(m.byID, r.id)
	r.id, r.pieces, r.mapped = id, pieces, map[int]Perm{by.From: rights}
	m.byID[id] = r
	m.freePieces(oldID, old)
	return mapAnswer{id, r.size, q.Mine, pieces}, nil
}
