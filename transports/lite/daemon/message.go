package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	version  = 2
	lineMost = 16 << 10 // bytes of a message on the socket
)

// hello is a client's introduction.
type hello struct {
	Version  int
	Calls    int // started and not finished
	MaxReply int // bytes of an answer
}

// welcome is the daemon's answer; the memory and the doorbell come with it.
type welcome struct {
	Version int
	Size    int // bytes of the place
	Node    int
	Addr    string // of the node, for others that join
	Refuse  string
}

// ask is a call over the socket; which fields count depends on Op.
type ask struct {
	Op       string
	Handle   lite.Handle        `json:",omitempty"`
	Other    lite.Handle        `json:",omitempty"`
	Region   *lite.RegionConfig `json:",omitempty"`
	Name     string             `json:",omitempty"`
	Password string             `json:",omitempty"`
	Perm     lite.Perm          `json:",omitempty"`
	Off      uint64             `json:",omitempty"`
	To       uint64             `json:",omitempty"`
	Len      uint64             `json:",omitempty"`
	Node     int                `json:",omitempty"`
	Nodes    []int              `json:",omitempty"`
	Port     int                `json:",omitempty"`
	Byte     byte               `json:",omitempty"`
}

type reply struct {
	Code  int32  `json:",omitempty"` // of lite, or -1 for the rest
	Text  string `json:",omitempty"`
	Value uint64 `json:",omitempty"`
}

func (r *reply) err() error {
	switch {
	case r.Code == 0:
		return nil
	case r.Code < -1:
		return &rdma.OpError{Op: "lite daemon", Object: r.Text, Err: lite.Code(r.Code)}
	}
	return fmt.Errorf("lite daemon: %s", r.Text)
}

func fail(what string, err error) reply {
	if c, ok := errors.AsType[lite.Code](err); ok {
		return reply{Code: int32(c), Text: what}
	}
	return reply{Code: -1, Text: err.Error()}
}

// sendLine writes v as one message, with files.
func sendLine(c *net.UnixConn, v any, files ...*os.File) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var rights []byte
	if len(files) > 0 {
		var fds []int
		for _, f := range files {
			// File.Fd would make the file block.
			raw, err := f.SyscallConn()
			if err == nil {
				err = raw.Control(func(fd uintptr) { fds = append(fds, int(fd)) })
			}
			if err != nil {
				return err
			}
		}
		rights = unix.UnixRights(fds...)
	}
	_, _, err = c.WriteMsgUnix(b, rights, nil)
	return err
}

// receiveLine reads one message of a SOCK_SEQPACKET socket, with most files at most.
func receiveLine(c *net.UnixConn, v any, most int) (files []*os.File, err error) {
	b, oob := make([]byte, lineMost), make([]byte, unix.CmsgSpace(4*8))
	n, on, flags, _, err := c.ReadMsgUnix(b, oob)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			closeAll(files)
			files = nil
		}
	}()
	if on > 0 {
		messages, err := unix.ParseSocketControlMessage(oob[:on])
		if err != nil {
			return nil, err
		}
		for i := range messages {
			fds, err := unix.ParseUnixRights(&messages[i])
			if err != nil {
				continue // something else than files
			}
			for _, fd := range fds {
				unix.CloseOnExec(fd)
				files = append(files, os.NewFile(uintptr(fd), "passed"))
			}
		}
	}
	switch {
	case n == 0:
		return files, errEnded
	case flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 || len(files) > most:
		return files, errMessage
	}
	if json.Unmarshal(b[:n], v) != nil {
		return files, errMessage
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // nothing was written
	}
}

var (
	errEnded   = errors.New("the other end closed the socket")
	errMessage = fmt.Errorf("%w: a message on the socket of the daemon", rdma.ErrProtocol)
)
