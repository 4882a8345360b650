package pagemap

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestOtherPagesAreNoticed(t *testing.T) {
	m, err := Open()
	if err != nil {
		t.Skipf("not granted here: %v", err)
	}
	defer m.Close()
	const pages = 150 // more than one read takes
	a := expect.Get(rdma.NewArena(pages*4096, rdma.ArenaConfig{Pages: rdma.PagesBase}))(t)
	defer a.Close()
	b := a.Buffer()
	touch := func() {
		for i := range pages {
			b.Bytes()[i*4096]++
		}
	}
	touch()
	was := m.Pages(b.Addr()+10, uint64(b.Len())-20)
	if len(was) != pages {
		t.Fatalf("%d pages", len(was))
	}
	touch()
	if !m.Same(b.Addr(), was) {
		t.Error("the same pages are others")
	}
	for _, at := range []int{0, 77, pages - 1} {
		touch()
		was = m.Pages(b.Addr(), uint64(b.Len()))
		unix.Madvise(b.Bytes()[at*4096:(at+1)*4096], unix.MADV_DONTNEED)
		if m.Same(b.Addr(), was) {
			t.Errorf("page %d is gone and not missed", at)
		}
	}
}
