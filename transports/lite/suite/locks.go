package suite

import (
	"fmt"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/lite"
)

var lockCases = []row{
	must("lock/excludes", "SOSP'17 §7.2", "At most one owner at a time, and every waiter gets its turn.",
		func(c *cluster) {
			c.atomics()
			first := c.client(0, lite.ClientConfig{})
			c.newLock(first, "l", 1)
			h := region(c, first, "count", 8, readWrite, 2)
			var wg sync.WaitGroup
			const each = 20
			errs := make([]error, nodes*2)
			for i := range errs {
				cl := c.client(i%nodes, lite.ClientConfig{})
				wg.Go(func() {
					errs[i] = turns(cl, each)
				})
			}
			wg.Wait()
			for _, err := range errs {
				c.ok("every turn", err)
			}
			got := read(c, first, h, 0, 1)[0]
			c.holds(fmt.Sprintf("%d turns are counted", each*len(errs)), int(got) == each*len(errs), got)
		}),
	must("lock/first-come", "lite_core.c, tickets", "Who waits first is served first.", func(c *cluster) {
		c.atomics()
		a := c.client(0, lite.ClientConfig{})
		l := c.newLock(a, "l", 1)
		c.ok("lock", l.Lock())
		// Tickets are drawn one after the other: the lock's first word counts them.
		word, err := a.Map("l", lite.PermRead, "")
		c.must("map the lock", err)
		order := make(chan int, nodes)
		fail := make(chan error, nodes)
		for i := 1; i <= 2; i++ {
			cl := c.client(i, lite.ClientConfig{})
			m := c.openLock(cl, "l")
			go func() {
				if err := m.Lock(); err != nil {
					fail <- err
					return
				}
				order <- i
				fail <- m.Unlock()
			}()
			for read(c, a, word, 0, 1)[0] != byte(i+1) {
				c.must("draw a ticket in time", c.ctx.Err())
			}
		}
		c.ok("unlock", l.Unlock())
		for range 2 {
			c.ok("lock and unlock", <-fail)
		}
		first, second := <-order, <-order
		c.holds("who waited first is served first", first == 1 && second == 2, fmt.Sprint(first, ", ", second))
	}),
	must("lock/not-held", "package lite, ErrLockLost", "Unlocking what is not held is refused.", func(c *cluster) {
		c.atomics()
		a := c.client(1, lite.ClientConfig{})
		l := c.newLock(a, "l", 0)
		c.wants("unlock", l.Unlock(), lite.ErrLockLost)
		c.ok("lock", l.Lock())
		c.ok("unlock", l.Unlock())
		c.wants("unlock again", l.Unlock(), lite.ErrLockLost)
	}),
	must("lock/owner-dies", "package lite, Lock", "The lock of an owner that dies passes on to who waits.",
		func(c *cluster) {
			c.atomics()
			a, b := c.client(1, lite.ClientConfig{}), c.client(2, lite.ClientConfig{Timeout: 3 * deadAfter})
			l := c.newLock(a, "l", 0)
			m := c.openLock(b, "l")
			c.ok("lock", l.Lock())
			c.kill(1)
			begun := time.Now()
			c.ok("lock behind the death", m.Lock())
			c.Note("passed on after %v", time.Since(begun).Round(time.Millisecond))
			c.ok("unlock", m.Unlock())
		}),
}

// turns counts in a byte that only the lock protects.
func turns(cl Client, n int) error {
	l, err := cl.OpenLock("l")
	if err != nil {
		return err
	}
	defer l.Close()
	h, err := cl.Map("count", readWrite, "sesame")
	if err != nil {
		return err
	}
	b := make([]byte, 1)
	for range n {
		if err := l.Lock(); err != nil {
			return err
		}
		if err := cl.Read(h, 0, b); err != nil {
			return err
		}
		b[0]++
		if err := cl.Write(h, 0, b); err != nil {
			return err
		}
		if err := cl.Read(h, 0, make([]byte, 1)); err != nil { // it has arrived
			return err
		}
		if err := l.Unlock(); err != nil {
			return err
		}
	}
	return nil
}
