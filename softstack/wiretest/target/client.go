package target

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"time"
)

// ErrSilent: whoever listens there does not speak first, so it is no test target.
var ErrSilent = errors.New("it does not greet as a test target does")

// ErrUnsupported: the target's device cannot do what was asked.
var ErrUnsupported = errors.New("not supported by the device under test")

// Client leads a test target. Its methods return ErrUnsupported, or an error of the
// control channel or of what was asked.
type Client struct {
	Hello Hello

	c    net.Conn
	in   *bufio.Reader
	wait time.Duration
	ids  int // of the stage's posts
}

// Find connects to a test target's control port. It waits for the greeting as long as silence says, for every later
// answer as long as wait says beyond what was asked for. ErrSilent: there is somebody, and no test target.
func Find(addr string, silence, wait time.Duration) (*Client, error) {
	c, err := net.DialTimeout("tcp", addr, wait)
	if err != nil {
		return nil, err
	}
	v := &Client{c: c, in: bufio.NewReaderSize(c, 4096), wait: wait}
	c.SetReadDeadline(time.Now().Add(silence))
	line, err := v.line()
	if err == nil {
		err = json.Unmarshal(line, &v.Hello)
	}
	switch {
	case err != nil, v.Hello.Magic != magic:
		c.Close()
		return nil, ErrSilent
	case v.Hello.Version != Version:
		c.Close()
		return nil, fmt.Errorf("target at %s speaks version %d of its protocol, want %d", addr, v.Hello.Version,
			Version)
	}
	return v, nil
}

// Close ends the connection, and with it the stage.
func (v *Client) Close() error { return v.c.Close() }

// Stage prepares a QP, which ends the one before.
func (v *Client) Stage(s Stage) (*Ready, error) {
	r, err := v.ask(&request{Do: doStage, Stage: &s}, 0)
	if err == nil && r.Ready == nil {
		err = errors.New("a stage without regions")
	}
	if err != nil {
		return nil, err
	}
	v.ids = len(s.Post)
	return r.Ready, nil
}

// Joined waits for the end of the stage's connect or accept.
func (v *Client) Joined(wait time.Duration) (*Joined, error) {
	r, err := v.ask(&request{Do: doJoined, WaitMS: int(wait.Milliseconds())}, wait)
	if err == nil && r.Joined == nil {
		err = errors.New("an answer without outcome")
	}
	if err != nil {
		return nil, err
	}
	return r.Joined, nil
}

// Post posts send requests, signaled, and returns the ID of the first.
func (v *Client) Post(p ...Post) (uint64, error) {
	_, err := v.ask(&request{Do: doPost, Post: p}, 0)
	first := uint64(FirstPost + v.ids)
	if err == nil {
		v.ids += len(p)
	}
	return first, err
}

// Completions waits for n more completions and returns all there are, fewer when the time is over.
func (v *Client) Completions(n int, wait time.Duration) ([]Completion, error) {
	r, err := v.ask(&request{Do: doCompletions, N: n, WaitMS: int(wait.Milliseconds())}, wait)
	if err != nil {
		return nil, err
	}
	return r.Completions, nil
}

// Memory is the arena, or nil when it holds exactly want.
func (v *Client) Memory(want []byte) ([]byte, error) {
	r, err := v.ask(&request{Do: doMemory, Sum: crc32.ChecksumIEEE(want)}, 0)
	switch {
	case err != nil:
		return nil, err
	case r.Same || bytes.Equal(r.Memory, want):
		return nil, nil
	case len(r.Memory) != len(want):
		return nil, fmt.Errorf("an arena of %d octets, want %d", len(r.Memory), len(want))
	}
	return r.Memory, nil
}

// State is the QP's.
func (v *Client) State() (string, error) {
	r, err := v.ask(&request{Do: doState}, 0)
	if err != nil {
		return "", err
	}
	return r.State, nil
}

func (v *Client) ask(q *request, more time.Duration) (*reply, error) {
	b, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	v.c.SetDeadline(time.Now().Add(v.wait + more))
	if _, err := v.c.Write(append(b, '\n')); err != nil {
		return nil, fmt.Errorf("write to the target: %w", err)
	}
	line, err := v.line()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, fmt.Errorf("the target does not answer %q within %v", q.Do, v.wait+more)
	}
	if err != nil {
		return nil, fmt.Errorf("read from the target: %w", err)
	}
	var r reply
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, fmt.Errorf("read from the target: %w", err)
	}
	switch {
	case r.Unsupported:
		return nil, fmt.Errorf("%w: %s", ErrUnsupported, r.Error)
	case r.Error != "":
		return nil, fmt.Errorf("the target cannot %s: %s", q.Do, r.Error)
	}
	return &r, nil
}

func (v *Client) line() ([]byte, error) { return readLine(v.in, maxReply) }

func readLine(in *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > limit:
			return nil, fmt.Errorf("a line of more than %d octets", limit)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		}
		return line, err
	}
}
