package mesh

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/internal/onepeer"
)

type member struct {
	*Hello
	*conn
	pinged time.Time // zero: not waited for
	gone   string    // why it takes part no more; "": it does
	via    net.IP    // the address of rank 0 by which it came
}

const helloWait = 5 * time.Second

type arrival struct {
	m    *member
	from string
	why  string // no member
	c    *conn
}

// gather takes ranks until all are there or ctx is over; missing says of the others what was last seen of them.
func gather(ctx context.Context, l net.Listener, size int, key string) (members []*member, missing map[int]string) {
	members = make([]*member, size)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	unhook := context.AfterFunc(ctx, func() { l.Close() })
	defer unhook()
	arrivals := make(chan arrival)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
					return
				}
				select { // out of descriptors
				case <-time.After(10 * time.Millisecond):
				case <-ctx.Done():
				}
				continue
			}
			go func() {
				a := greet(c, size, key)
				select {
				case arrivals <- a:
				case <-ctx.Done():
					a.why = "rank 0 waits no longer"
				}
				if a.why != "" {
					(&member{conn: a.c}).refuse(a.why)
				}
			}()
		}
	}()
	unknown := map[string]string{} // by address: why
	seen := map[int]string{}
	for n := 0; n < size; {
		select {
		case a := <-arrivals:
			switch {
			case a.m == nil:
				unknown[a.from] = a.why
			case members[a.m.Rank] != nil:
				go a.m.refuse(fmt.Sprintf("rank %d is there already, from %s", a.m.Rank, members[a.m.Rank].RemoteAddr()))
			default:
				members[a.m.Rank] = a.m
				n++
			}
		case <-ctx.Done():
			for r := range size {
				if members[r] == nil {
					seen[r] = "it never connected"
				}
			}
			for _, from := range slices.Sorted(maps.Keys(unknown)) {
				for r := range seen {
					seen[r] += fmt.Sprintf("; %s did: %s", from, unknown[from])
				}
			}
			return members, seen
		}
	}
	return members, nil
}

func greet(nc net.Conn, size int, key string) (a arrival) {
	defer onepeer.Recover(func(fault error) { a.m, a.why = nil, fault.Error() })
	host, _, err := net.SplitHostPort(nc.RemoteAddr().String())
	a.from = cmp.Or(host, nc.RemoteAddr().String())
	c := newConn(nc)
	a.c = c
	c.SetReadDeadline(time.Now().Add(helloWait))
	greeting, err := c.receiveAtMost(mostGreeting)
	switch {
	case err != nil:
		a.why = "it said nothing that a rank says"
	case greeting.Magic != magic:
		a.why = "it is no rank of rdmaperf mesh"
	case greeting.Version != version:
		a.why = fmt.Sprintf("it speaks version %d, rank 0 version %d: the same rdmaperf on all ranks", greeting.Version,
			version)
	case subtle.ConstantTimeCompare([]byte(greeting.Key), []byte(key)) != 1:
		a.why = "it is of another run, or has another token"
	}
	if a.why != "" {
		return a
	}
	msg, err := c.receiveAtMost(mostHello)
	c.SetReadDeadline(time.Time{})
	switch {
	case err != nil || msg.Hello == nil:
		a.why = "it did not say which rank it is"
	case msg.Hello.Size != size || msg.Hello.Rank < 0 || msg.Hello.Rank >= size:
		a.why = fmt.Sprintf("it is rank %d of %d, and this run has %d", msg.Hello.Rank, msg.Hello.Size, size)
	default:
		a.m = &member{Hello: msg.Hello, conn: c}
		if t, ok := nc.LocalAddr().(*net.TCPAddr); ok {
			a.m.via = t.IP
		}
	}
	return a
}

func (m *member) refuse(why string) {
	m.send(&message{Refuse: why}) // it may be gone
	// What is closed with bytes unread is reset, and the reason may be lost with it.
	m.SetReadDeadline(time.Now().Add(refuseWait))
	io.CopyN(io.Discard, m.in, mostHello)
	m.Close()
}

const refuseWait = time.Second

// place gives ranks that came over the loopback interface the address by which others reach their host.
func place(members []*member) {
	var ip net.IP
	for _, m := range members {
		if m != nil && m.via != nil && (ip == nil || ip.IsLoopback()) {
			ip = m.via
		}
	}
	if ip == nil {
		ip = net.IPv4(127, 0, 0, 1)
	}
	for _, m := range members {
		if m == nil {
			continue
		}
		host, port, err := net.SplitHostPort(m.Addr)
		if at := net.ParseIP(host); err == nil && (host == "" || at != nil && at.IsLoopback()) {
			m.Addr = net.JoinHostPort(ip.String(), port)
		}
	}
}

// join connects to rank 0, and tries until ctx is over: names may not resolve and rank 0 may not listen yet.
func join(ctx context.Context, addrs []string, key string, hello func(c net.Conn) *Hello) (*conn, *welcome, error) {
	last := make([]error, len(addrs))
	for {
		for i, addr := range addrs {
			began := time.Now()
			c, w, err := joinAt(ctx, addr, key, hello)
			if err == nil {
				return c, w, nil
			}
			// A try that the end cut short says nothing, where one before it did.
			until, bounded := ctx.Deadline()
			if last[i] == nil || ctx.Err() == nil && (!bounded || time.Since(began) < time.Until(until)) {
				last[i] = err
			}
		}
		select {
		case <-ctx.Done():
			var all []error
			for i, addr := range addrs {
				all = append(all, fmt.Errorf("%s: %w", addr, last[i]))
			}
			return nil, nil, engine.PeerError("reach rank 0", errors.Join(all...), "--rendezvous HOST:PORT, or a longer "+
				"--rendezvous-timeout")
		case <-time.After(retryEvery):
		}
	}
}

const (
	retryEvery = 100 * time.Millisecond
	dialWait   = 3 * time.Second // for one try
)

func greeting(key string) *message { return &message{Magic: magic, Version: version, Key: key} }

func joinAt(ctx context.Context, addr, key string, hello func(c net.Conn) *Hello) (*conn, *welcome, error) {
	d := net.Dialer{Timeout: dialWait}
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, nil, dialCause(err)
	}
	c := newConn(nc)
	stop := context.AfterFunc(ctx, func() { c.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if err = c.send(greeting(key), &message{Hello: hello(nc)}); err == nil {
		var m *message
		if m, err = c.receive(); err == nil && m.Welcome != nil {
			return c, m.Welcome, nil
		} else if err == nil && m.Refuse != "" {
			err = fmt.Errorf("it refused this rank: %s", m.Refuse)
		} else if err == nil {
			err = errors.New("it is not rank 0 of rdmaperf mesh")
		}
	}
	c.Close()
	if ctx.Err() != nil {
		err = errors.New("it waits for other ranks")
	}
	return nil, nil, err
}

func dialCause(err error) error {
	var dns *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &dns):
		return fmt.Errorf("the name does not resolve: %s", dns.Err)
	case errors.Is(err, errRefused):
		return errors.New("the host refuses the port: rank 0 does not listen there")
	case errors.As(err, &timeout) && timeout.Timeout():
		return errors.New("the host is silent: a firewall, or another network")
	}
	return err
}
