package iwarp

import (
	"runtime"
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// BenchmarkPingPong is a 64-byte send and its echo, both sides polling on
// locked threads of one process: protocol cost, not a latency claim.
func BenchmarkPingPong(b *testing.B) {
	for name, cfg := range map[string]Config{"crc": {}, "nocrc": {NoCRC: true}} {
		b.Run(name, func(b *testing.B) {
			x, y := pair(b, cfg, rdma.QPConfig{})
			stop := make(chan struct{})
			done := make(chan struct{})
			go func() {
				defer close(done)
				runtime.LockOSThread()
				echo(y, stop)
			}()
			runtime.LockOSThread()
			send := []rdma.SendWR{{Op: rdma.OpSend, Flags: rdma.Signaled, NumSGE: 1, SGE: [4]rdma.SGE{x.sge(0, 64)}}}
			recv := []rdma.RecvWR{{NumSGE: 1, SGE: [4]rdma.SGE{x.sge(4096, 64)}}}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				x.qp.PostRecv(recv)
				x.qp.PostSend(send)
				for got := false; !got; {
					n, _ := x.cq.Poll(x.wcs)
					for _, wc := range x.wcs[:n] {
						got = got || wc.Opcode == rdma.WCRecv
					}
				}
			}
			b.StopTimer()
			runtime.UnlockOSThread()
			close(stop)
			<-done
		})
	}
}

func echo(y *end, stop chan struct{}) {
	send := []rdma.SendWR{{Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{y.sge(0, 64)}}}
	recv := []rdma.RecvWR{{NumSGE: 1, SGE: [4]rdma.SGE{y.sge(0, 64)}}}
	y.qp.PostRecv(recv)
	for {
		for range 1000 {
			n, _ := y.cq.Poll(y.wcs)
			for range n {
				y.qp.PostRecv(recv)
				y.qp.PostSend(send)
			}
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}

// BenchmarkWrite streams writes; the peer polls. One iteration is one write.
func BenchmarkWrite(b *testing.B) {
	for _, c := range []struct {
		name  string
		cfg   Config
		size  int
		depth int
	}{{"64B/crc", Config{}, 64, 128}, {"64B/nocrc", Config{NoCRC: true}, 64, 128}, {"64K/crc", Config{}, 64 << 10, 32},
		{"1M/crc", Config{}, 1 << 20, 16}, {"1M/nocrc", Config{NoCRC: true}, 1 << 20, 16}} {
		b.Run(c.name, func(b *testing.B) {
			x, y := pair(b, c.cfg, rdma.QPConfig{})
			stop := make(chan struct{})
			done := make(chan struct{})
			go func() {
				defer close(done)
				runtime.LockOSThread()
				for {
					for range 1000 {
						y.cq.Poll(y.wcs)
					}
					select {
					case <-stop:
						return
					default:
					}
				}
			}()
			wrs := make([]rdma.SendWR, c.depth)
			for i := range wrs {
				wrs[i] = rdma.SendWR{Op: rdma.OpWrite, Flags: rdma.Signaled, NumSGE: 1,
					SGE: [4]rdma.SGE{x.sge(0, c.size)}, RKey: y.mr.RKey(), RemoteAddr: y.mr.Addr()}
			}
			wcs := make([]rdma.WC, c.depth)
			runtime.LockOSThread()
			b.SetBytes(int64(c.size))
			b.ReportAllocs()
			b.ResetTimer()
			free := c.depth
			for posted := 0; posted < b.N || free < c.depth; {
				if k := min(free, b.N-posted); k > 0 {
					n, _ := x.qp.PostSend(wrs[:k])
					posted += n
					free -= n
				}
				n, _ := x.cq.Poll(wcs)
				free += n
			}
			x.post(rdma.SendWR{Op: rdma.OpRead, NumSGE: 1, SGE: [4]rdma.SGE{x.sge(0, 8)}, RKey: y.mr.RKey(),
				RemoteAddr: y.mr.Addr()})
			x.next(nil)
			b.StopTimer()
			runtime.UnlockOSThread()
			close(stop)
			<-done
		})
	}
}
