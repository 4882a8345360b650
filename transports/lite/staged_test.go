package lite

import (
	"bytes"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Without a place in the queue nothing is written to the memory beside it: the request that has
// it is under way, and a device may not have read it. Written over, a head or a credit became
// another ring's, and a message another message.
func TestARequestUnderWayKeepsItsBytes(t *testing.T) {
	for what, sends := range map[string]bool{"with immediate": false, "sends": true} {
		t.Run(what, func(t *testing.T) {
			c := onMem(t, 2, Config{Sends: sends, Depth: 32})
			l := c.nodes[0].peers[1].Load().links[1]
			for name, post := range map[string]func() error{
				"a message":     func() error { return l.message(0, 0, []byte("head"), []byte("body"), 0, 0) },
				"a word":        func() error { return l.write(0, make([]byte, wire.WordLen)) },
				"a held word":   func() error { return l.postDeferred(&deferred{data: make([]byte, wire.WordLen)}) },
				"a held answer": func() error { return l.postDeferred(&deferred{data: make([]byte, 40), notify: true}) },
			} {
				l.mu.Lock()
				stage := l.node.bytes(l.stage, l.depth*stageLen)
				for i := range stage {
					stage[i] = 0xa5
				}
				before := bytes.Clone(stage)
				used, seq := l.inUse.Swap(int32(l.depth)), l.seq
				if err := post(); err != rdma.ErrQueueFull {
					t.Errorf("%s: %v", name, err)
				}
				if !bytes.Equal(stage, before) || l.seq != seq {
					t.Errorf("%s without a place is written beside a request under way", name)
				}
				l.inUse.Store(used)
				l.mu.Unlock()
			}
		})
	}
}
