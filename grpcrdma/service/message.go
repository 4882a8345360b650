package service

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// About is a service's description of itself.
type About struct {
	Device   string `json:",omitempty"` // name of the stack below
	Label    string `json:",omitempty"` // of its results
	MaxConns int    `json:",omitempty"`
	Memory   int    `json:",omitempty"` // registered bytes of a connection
	Layer    string `json:",omitempty"` // name of the layer over it, with its parameters
	Failed   string `json:",omitempty"` // why there is no service
	Code     int    `json:",omitempty"` // of Failed, as the program's exit code
}

// message is one datagram of the socket. A connection comes with the files of its queues.
type message struct {
	// of the request that it is or answers; of the listener, for a connection that came
	ID    uint64 `json:",omitempty"`
	Op    string `json:",omitempty"` // dial, listen, close; about, done, came
	Addr  string `json:",omitempty"`
	Err   string `json:",omitempty"`
	Gone  bool   `json:",omitempty"` // Err is rdma.ErrUnreachable
	About *About `json:",omitempty"`

	files []*os.File
}

const maxMessage = 16 << 10

func (m *message) close() {
	for _, f := range m.files {
		f.Close()
	}
}

type socket struct {
	conn *net.UnixConn
	mu   sync.Mutex
}

func (s *socket) send(m *message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(b) > maxMessage {
		return fmt.Errorf("message of %d bytes", len(b))
	}
	var rights []byte
	if len(m.files) > 0 {
		fds := make([]int, len(m.files))
		for i, f := range m.files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _, err = s.conn.WriteMsgUnix(b, rights, nil)
	return err
}

func (s *socket) receive() (*message, error) {
	b, rights := make([]byte, maxMessage), make([]byte, 256)
	n, nr, _, _, err := s.conn.ReadMsgUnix(b, rights)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, net.ErrClosed
	}
	m := &message{}
	all, err := unix.ParseSocketControlMessage(rights[:nr])
	if err != nil {
		return nil, err
	}
	for i := range all {
		fds, err := unix.ParseUnixRights(&all[i])
		if err != nil {
			return nil, err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			unix.SetNonblock(fd, true)
			m.files = append(m.files, os.NewFile(uintptr(fd), "queue"))
		}
	}
	if err := json.Unmarshal(b[:n], m); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}
