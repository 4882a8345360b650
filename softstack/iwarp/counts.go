package iwarp

import "sync"

var process struct {
	mu    sync.Mutex
	open  map[*Device]struct{}
	ended Counts
}

// Totals adds up what all devices of this process have copied, the closed ones too.
func Totals() Counts {
	process.mu.Lock()
	defer process.mu.Unlock()
	sum := process.ended
	for d := range process.open {
		sum.add(d.Counts())
	}
	return sum
}

func (d *Device) enterProcess() {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.open == nil {
		process.open = map[*Device]struct{}{}
	}
	process.open[d] = struct{}{}
}

func (d *Device) leaveProcess() {
	process.mu.Lock()
	defer process.mu.Unlock()
	delete(process.open, d)
	process.ended.add(d.Counts())
}

// Counts are the octets that were copied, added where they are. What the stack below copies it counts itself.
type Counts struct {
	Staged uint64 // octets of the stream, headers too, that passed a staging buffer
	Placed uint64 // payload copied into registered memory, from a staging buffer or a packet
	Direct uint64 // payload that the stack below put there itself
	Yields uint64 // system calls by which a receive thread and the application offer each other a CPU
	Framed uint64 // payload copied beside its headers before it is sent
	Thread uint64 // nanoseconds of CPU of the thread that receives (Config.ReceiveThread)
}

func (c *Counts) add(n Counts) {
	c.Staged += n.Staged
	c.Placed += n.Placed
	c.Direct += n.Direct
	c.Framed += n.Framed
	c.Yields += n.Yields
	c.Thread += n.Thread
}

// Counts adds up what the device's QPs have copied, the closed ones too.
func (d *Device) Counts() Counts {
	var sum Counts
	d.everyQP(func(q *qp) {
		q.mu.Lock()
		sum.add(q.counts)
		sum.Framed += q.tx.moved
		q.mu.Unlock()
	})
	if d.receiver != nil {
		sum.Yields, sum.Thread = d.receiver.Yields.Load(), d.receiver.CPU.Load()
	}
	d.mu.Lock()
	sum.add(d.ended)
	d.mu.Unlock()
	return sum
}
