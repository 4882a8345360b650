package shm

import (
	"net"
	"sync"
	"time"
)

// knocks is how many processes may be at the door at a time.
const knocks = 128

// Listener lets processes in at one port.
type Listener struct {
	f     *Family
	u     *net.UnixListener
	admit func(*net.UnixConn, []byte, Hello)
	done  chan struct{}
	once  sync.Once
	group sync.WaitGroup
}

// Listen takes port, without letting anybody in yet. Error: EADDRINUSE, wrapped, where the port is somebody's.
func (f *Family) Listen(port string) (*Listener, error) {
	u, err := net.ListenUnix("unix", &net.UnixAddr{Name: f.room(port), Net: "unix"})
	if err != nil {
		return nil, err
	}
	return &Listener{f: f, u: u, done: make(chan struct{})}, nil
}

// Serve calls admit with the socket and the memory of each process, in a goroutine that Close waits for. Once at most.
func (l *Listener) Serve(admit func(*net.UnixConn, []byte, Hello)) {
	l.admit = admit
	l.group.Add(1)
	go l.serve()
}

// serve gives each knock a goroutine and a deadline, so that a silent one keeps nobody out.
func (l *Listener) serve() {
	defer l.group.Done()
	slots := make(chan struct{}, knocks)
	for {
		u, err := l.u.AcceptUnix()
		if err != nil {
			select {
			case <-l.done:
				return
			case <-time.After(10 * time.Millisecond): // out of descriptors: not in a spin
				continue
			}
		}
		slots <- struct{}{}
		l.group.Add(1)
		go func() {
			defer l.group.Done()
			defer func() { <-slots }()
			l.open(u)
		}()
	}
}

func (l *Listener) open(u *net.UnixConn) {
	u.SetDeadline(time.Now().Add(meetWithin))
	mem, h, err := l.f.welcome(u)
	if err != nil {
		u.Close()
		return
	}
	u.SetDeadline(time.Time{})
	l.admit(u, mem, h)
}

// Close ends listening and waits for who is at the door, two seconds at most.
func (l *Listener) Close() {
	l.once.Do(func() {
		close(l.done)
		l.u.Close()
		l.group.Wait()
	})
}
