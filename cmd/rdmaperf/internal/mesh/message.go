// Package mesh measures the pairs of many ranks, which an existing launcher has started.
//
// Rank 0 listens. Each rank connects, itself included, says what it is, and gets pairs to measure: it runs the client
// of a workload against the server in another rank, as rdmaperf run HOST and rdmaperf serve do. Pairs of a round have
// no rank in common.
//
//	rank                    rank 0
//	hello      ───────────►            its number, address and facts, and the key of the run
//	           ◄───────────  welcome   or refuse
//	           ◄───────────  task      one direction of a pair, to one of its ranks
//	done       ───────────►            figures, or an error
//	           ◄───────────  ping      to a rank that another could not reach
//	pong       ───────────►
//	           ◄───────────  end
package mesh

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

const (
	magic = "rdmaperf-mesh"

	// version changes when ranks of an older one would misunderstand.
	version = 1

	sendWait = 5 * time.Second // for a line to leave
)

// message is a line of JSON; the member that is there says what it is.
type message struct {
	Magic   string `json:"magic,omitempty"` // of hello
	Version int    `json:"version,omitempty"`

	Hello   *Hello   `json:"hello,omitempty"`
	Welcome *welcome `json:"welcome,omitempty"`
	Refuse  string   `json:"refuse,omitempty"` // why
	Task    *Task    `json:"task,omitempty"`
	Done    *Done    `json:"done,omitempty"`
	Ping    int      `json:"ping,omitempty"` // also the answer
	End     bool     `json:"end,omitempty"`
}

// Hello is what a rank says of itself.
type Hello struct {
	Key     string            `json:"key"` // the same for all ranks of the run
	Rank    int               `json:"rank"`
	Size    int               `json:"size"`
	Host    string            `json:"host"`
	Machine string            `json:"machine"` // the same for ranks on one kernel
	CPUs    []int             `json:"cpus"`    // that it may run on
	Switch  string            `json:"switch,omitempty"`
	Addr    string            `json:"addr"` // of its server; without a host: that by which rank 0 is reached
	Facts   map[string]string `json:"facts,omitempty"`
	Lacks   []string          `json:"lacks,omitempty"` // what doctor would say
}

// welcome is what all ranks are to know.
type welcome struct {
	Token []byte        `json:"token"` // of the servers of this run
	Plans []engine.Plan `json:"plans"` // one a stack: its first point is the latency, its second the bandwidth
}

// Task is one direction of a pair, for From.
type Task struct {
	ID     int    `json:"id"`
	Plan   int    `json:"plan"`
	From   int    `json:"from"`
	To     int    `json:"to"`
	Addr   string `json:"addr"`
	Points []int  `json:"points"`
}

// Done is what came of it.
type Done struct {
	ID      int              `json:"id"`
	Results []reports.Result `json:"results,omitempty"` // one for each point until the error
	Code    int              `json:"code,omitempty"`
	Error   string           `json:"error,omitempty"`
}

// conn is one end of a connection. Lines are read by one goroutine and sent by another.
type conn struct {
	net.Conn
	in *bufio.Reader
}

func newConn(c net.Conn) *conn { return &conn{c, bufio.NewReader(c)} }

func (c *conn) send(m *message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := c.SetWriteDeadline(time.Now().Add(sendWait)); err != nil {
		return err
	}
	_, err = c.Write(append(b, '\n'))
	return err
}

func (c *conn) receive() (*message, error) {
	line, err := engine.ReadLine(c.in)
	if err != nil {
		return nil, err
	}
	m := new(message)
	if err := json.Unmarshal(line, m); err != nil {
		return nil, fmt.Errorf("not the protocol of rdmaperf mesh: %w", err)
	}
	return m, nil
}
