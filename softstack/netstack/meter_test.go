package netstack

import (
	"encoding/binary"
	"testing"
)

func segment(seq, ack uint32, flags byte) []byte {
	b := make([]byte, tcpHeaderLen)
	binary.BigEndian.PutUint32(b[4:], seq)
	binary.BigEndian.PutUint32(b[8:], ack)
	b[13] = flags
	return b
}

func packet(tcp []byte) []byte {
	return append([]byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, tcp...)
}

// TestTheMeterFollowsSequenceNumbersAroundTheirEnd: they have 32 bits, and streams more.
func TestTheMeterFollowsSequenceNumbersAroundTheirEnd(t *testing.T) {
	var m meter
	const iss = 0xfffffff0
	m.in(packet(segment(0, 77, flagACK))) // before a connection
	m.out(segment(iss, 0, flagSYN), 0)
	seq, total := uint32(iss)+1, uint64(0)
	for range 5000 {
		m.out(segment(seq, 0, flagACK), 1<<20)
		seq += 1 << 20
		total += 1 << 20
		if got := m.sent.Load(); got != total {
			t.Fatalf("%d octets sent, want %d", got, total)
		}
		m.in(packet(segment(0, seq-100, flagACK)))
		if got := m.acked.Load(); got != total-100 {
			t.Fatalf("%d octets acknowledged, want %d", got, total-100)
		}
	}
	m.out(segment(seq-5000, 0, flagACK), 1000) // again
	m.in(packet(segment(0, seq-200, flagACK))) // late
	m.in(packet(segment(0, seq+1, flagACK)))   // with the FIN
	if m.sent.Load() != total || m.acked.Load() != total {
		t.Errorf("%d sent, %d acknowledged, want %d", m.sent.Load(), m.acked.Load(), total)
	}
}

// FuzzMeter: headers come from another process.
func FuzzMeter(f *testing.F) {
	f.Add(packet(segment(1, 2, flagACK)))
	f.Add([]byte{0x4f})
	f.Add(append(append([]byte{0x60, 5: 20, 6: 6}, make([]byte, 33)...), segment(1, 60, flagACK)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m meter
		m.out(segment(1, 0, flagSYN), 0)
		m.out(segment(2, 0, flagACK), 100)
		m.in(b)
		if m.acked.Load() > 100 {
			t.Errorf("%d of 100 octets acknowledged", m.acked.Load())
		}
	})
}
