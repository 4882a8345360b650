// Command hostileclients attacks a running rdmaperf serve with connections that cost their
// owner nothing: silent ones, ones that say a byte a second, ones that said a real plan and
// then wait. ci/hostile runs it.
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
// IPv4 loopback, one address. What it sends is well formed or nothing; bent lines are what
// the fuzz targets of the control channel are for.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
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
	flag.Parse()
	if err := attack(*server, *record, *silent, *slow, *idle); err != nil {
		fmt.Fprintln(os.Stderr, "hostileclients:", err)
		os.Exit(1)
	}
}

func attack(server, record string, silent, slow, idle int) error {
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
			if _, err := c.Write(say); err != nil {
				return err
			}
		}
		return nil
	}
	for _, group := range []struct {
		n   int
		say []byte
	}{{idle, plan}, {silent, nil}, {slow, []byte("{")}} {
		if err := open(group.n, group.say); err != nil {
			return err
		}
	}
	fmt.Printf("attacking: %d silent, %d slow, %d idle\n", silent, slow, idle)
	for tick := time.NewTicker(time.Second); ; <-tick.C {
		for i, c := range all[idle+silent:] {
			if _, err := c.Write([]byte(" ")); err == nil {
				continue
			}
			// It was thrown out: it comes again, as whoever means it would.
			if again, err := net.Dial("tcp", server); err == nil {
				c.Close()
				all[idle+silent+i] = again
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
	fmt.Println("recording")
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
