// Command hostileclients attacks a running server with connections that cost their owner
// nothing: silent ones, ones that say a byte a second, ones that said a real plan, or how
// iWARP begins, and then wait, and ones that say noise. ci/hostile runs it.
//
// The plan is a genuine client's: it listens at -record, gives what comes to the server,
// and keeps the first line.
//
// # Ownership
//
// Its connections end with the process.
//
// # Limitations
//
// IPv4 loopback, one address. What it sends is well formed, nothing, or noise; what is nearly
// right is what the fuzz targets are for.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"time"
)

func main() {
	server := flag.String("server", "", "address of rdmaperf serve")
	record := flag.String("record", "", "address to wait at for one genuine client, whose plan is kept")
	silent := flag.Int("silent", 0, "connections that say nothing")
	slow := flag.Int("slow", 0, "connections that say a byte a second")
	idle := flag.Int("idle", 0, "connections that say the plan, and then wait")
	mpa := flag.Int("mpa", 0, "connections that say the first frame of iWARP, and then wait")
	noise := flag.Int("noise", 0, "connections that say 4 KiB of noise")
	flag.Parse()
	if err := attack(*server, *record, *silent, *slow, *idle, *mpa, *noise); err != nil {
		fmt.Fprintln(os.Stderr, "hostileclients:", err)
		os.Exit(1)
	}
}

// request is an MPA Request Frame, revision 1, with CRC and without private data (RFC 5044,
// section 7.1.1).
const request = "MPA ID Req Frame\x40\x01\x00\x00"

func attack(server, record string, silent, slow, idle, mpa, noise int) error {
	var plan []byte
	if record != "" {
		var err error
		if plan, err = recordPlan(server, record); err != nil {
			return err
		}
	}
	var all []net.Conn
	open := func(n int, say []byte) error {
		for range n {
			c, err := net.Dial("tcp", server)
			if err != nil {
				return err
			}
			all = append(all, c)
			c.Write(say) // who is thrown out at once is no failure
		}
		return nil
	}
	bytes := make([]byte, 4096)
	rand.NewChaCha8([32]byte{1}).Read(bytes)
	for _, group := range []struct {
		n   int
		say []byte
	}{{idle, plan}, {silent, nil}, {mpa, []byte(request)}, {noise, bytes}, {slow, []byte("{")}} {
		if err := open(group.n, group.say); err != nil {
			return err
		}
	}
	fmt.Printf("attacking: %d connections\n", len(all))
	patient := len(all) - slow
	for tick := time.NewTicker(time.Second); ; <-tick.C {
		for i, c := range all[patient:] {
			if _, err := c.Write([]byte(" ")); err == nil {
				continue
			}
			// It was thrown out: it comes again, as whoever means it would.
			if again, err := net.Dial("tcp", server); err == nil {
				c.Close()
				all[patient+i] = again
			}
		}
	}
}

// recordPlan passes one client through and returns its first line.
func recordPlan(server, at string) ([]byte, error) {
	l, err := net.Listen("tcp", at)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	fmt.Println("recording at", l.Addr())
	client, err := l.Accept()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	target, err := net.Dial("tcp", server)
	if err != nil {
		return nil, err
	}
	defer target.Close()
	from := bufio.NewReader(client)
	line, err := from.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	if _, err := target.Write(line); err != nil {
		return nil, err
	}
	go func() { // ends with the client
		io.Copy(target, from)
		target.Close()
	}()
	io.Copy(client, target)
	return line, nil
}
