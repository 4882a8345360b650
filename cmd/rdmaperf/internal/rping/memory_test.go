package rping

import (
	"bytes"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A connection behind another registers what its peer is told, and nothing else; and
// what the peer can read is no other's.
func TestMemoryStaysRegistered(t *testing.T) {
	dev := must(memdev.NewFabric(memdev.Config{}).Open("a"))(t)
	m := must(newMemory(dev))(t)
	var keys []uint32
	for range 3 {
		local := must(m.take(ServerSize, rdma.LocalWrite))(t)
		shown := must(m.take(4096, rdma.LocalWrite|rdma.RemoteRead))(t)
		if len(bytes.Trim(shown.buf.Bytes(), "\x00")) > 0 {
			t.Error("a peer may read what belonged to another")
		}
		for _, r := range []registration{local, shown} {
			r.buf.Bytes()[0] = 1
		}
		keys = append(keys, shown.region.RKey())
		check(t, m.give(shown))
		check(t, m.give(local))
	}
	if keys[0] == keys[1] || keys[1] == keys[2] {
		t.Errorf("keys of three peers: %#x", keys)
	}
	if n := m.cache.Counters(); n.MemRegs != 1+3 || n.HitsFast != 2 {
		t.Errorf("%+v", n)
	}
	check(t, m.close())
	check(t, dev.Close())
}
