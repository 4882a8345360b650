package measure

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
)

// A working set above what may be locked is measured, as the cache gives up for the next
// buffer what nobody uses; other points above it are not. The thread that drops its
// capability ends with the goroutine.
func TestAWorkingSetMayExceedWhatMayBeLocked(t *testing.T) {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &lim); err != nil || lim.Cur > 64<<20 || lim.Cur < 1<<20 {
		t.Skipf("RLIMIT_MEMLOCK of %d bytes is not one to go above here", lim.Cur)
	}
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		runtime.LockOSThread()
		hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&hdr, &data[0]); err != nil {
			t.Error(err)
			return
		}
		data[0].Effective &^= 1 << unix.CAP_IPC_LOCK
		if err := unix.Capset(&hdr, &data[0]); err != nil {
			t.Error(err)
			return
		}
		g, err := Pin()
		if err != nil {
			t.Logf("skipped: %v", err)
			return
		}
		defer g.Close()
		const size = 64 << 10
		n := 2 * int(lim.Cur) / size
		p := Point{Arm: arms.Cache, Size: size, Pattern: PatternSet, Buffers: n, Regions: 2 * n}
		if most, why := Most(g, p); p.Bytes() > most {
			t.Errorf("at most %d bytes: %s", most, why)
		}
		d, err := Run(context.Background(), g, p, 20*time.Millisecond, 7)
		if err != nil {
			t.Error(err)
			return
		}
		if d.Cache["evictions"] == 0 || d.SetHits == 0 || d.SetHits == d.SetGets {
			t.Errorf("%d hits of %d, %v", d.SetHits, d.SetGets, d.Cache)
		}
		if most, _ := Most(g, Point{Arm: arms.Cache, Size: int(lim.Cur), Pattern: PatternRepeated}); most >= int(
			lim.Cur) {
			t.Errorf("a buffer of all that may be locked: at most %d", most)
		}
	}()
	wg.Wait()
}
