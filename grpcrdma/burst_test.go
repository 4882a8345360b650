package grpcrdma

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A listener whose backlog is full lets diallers wait, and refuses nobody.
func TestAFullBacklogRefusesNobody(t *testing.T) {
	onEach(t, func(t *testing.T, p provider) {
		e := newPair(t, p, Config{Ring: 4 << 10}, Config{Ring: 4 << 10, Backlog: 2})
		const diallers = 60
		go func() {
			for range diallers {
				c, err := e.l.Accept()
				if err != nil {
					return
				}
				go c.Close()
			}
		}()
		var wg sync.WaitGroup
		var refused atomic.Int32
		for range diallers {
			wg.Go(func() {
				c, err := e.a.DialContext(soon(t), e.l.Addr().String())
				if err != nil {
					t.Log(err)
					refused.Add(1)
					return
				}
				c.Close()
			})
		}
		wg.Wait()
		if n := refused.Load(); n > 0 {
			t.Errorf("%d of %d were refused", n, diallers)
		}
	})
}

// Who is refused for a reason learns it, and does not come back for more.
func TestARefusalSaysWhy(t *testing.T) {
	onEach(t, func(t *testing.T, p provider) {
		e := newPair(t, p, Config{}, Config{MaxConns: 1})
		first, second := e.conn()
		defer first.Close()
		defer second.Close()
		go e.l.Accept()
		begun := time.Now()
		_, err := e.a.DialContext(soon(t), e.l.Addr().String())
		if !errors.Is(err, rdma.ErrRejected) || !strings.Contains(err.Error(), "1 connections are open") {
			t.Errorf("%v", err)
		}
		if took := time.Since(begun); took > busyWait/2 {
			t.Errorf("after %v", took)
		}
	})
}
