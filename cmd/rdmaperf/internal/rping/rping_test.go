package rping

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// CM-17: sizes 64..65535 and a long run.
func TestPingsOfEverySizeComeBack(t *testing.T) {
	overAll(t, func(t *testing.T, r rig) {
		book, _ := serve(t, r, ServerConfig{})
		for _, c := range []ClientConfig{
			{Count: 1}, {Count: 200}, {Size: MinSize, Count: 120}, {Size: 65, Count: 3}, {Size: 4096, Count: 20},
			{Size: 65000, Count: 12}, {Size: MaxSize, Count: 12}, {Size: MaxSize, Count: 12, Busy: true},
		} {
			pingOK(t, r, c)
		}
		book.wants(t, 8, "client disconnected")
		if strings.Contains(book.String(), "WARN") {
			t.Errorf("the server complains about good clients:\n%s", book)
		}
	})
}

func TestBothSidesSeeRpingsBytes(t *testing.T) {
	overAll(t, func(t *testing.T, r rig) {
		var want, client, server []string
		for n := range 12 {
			b := make([]byte, 100)
			Fill(b, n)
			want = append(want, string(b))
		}
		_, end := serve(t, r, ServerConfig{OnPing: func(b []byte) { server = append(server, string(b)) }})
		pingOK(t, r, ClientConfig{Size: 100, Count: 12, OnPing: func(b []byte) { client = append(client, string(b)) }})
		end()
		if !slices.Equal(client, want) {
			t.Errorf("the client saw %q, want %q", client, want)
		}
		if !slices.Equal(server, want) {
			t.Errorf("the server saw %q, want %q", server, want)
		}
	})
}

func TestClientsSideBySideAndMoreThanPlaces(t *testing.T) {
	overAll(t, func(t *testing.T, r rig) {
		book, _ := serve(t, r, ServerConfig{MaxClients: 3})
		var clients sync.WaitGroup
		for range 9 {
			clients.Go(func() { pingOK(t, r, ClientConfig{Size: 3000, Count: 15}) })
		}
		clients.Wait()
		book.wants(t, 9, "client disconnected")
	})
}

// Each of these clients breaks the protocol in its own way, with the message
// that the server logs. A good client works beside and after each.
func TestServerSurvivesBadClients(t *testing.T) {
	one := rdma.ConnParam{IRD: 1, ORD: 1}
	wild := Advert{Addr: 0x1000, RKey: 0xbad, Size: 64}
	for _, c := range []struct {
		name  string
		param rdma.ConnParam
		act   func(c *badClient)
		log   string
	}{
		{"says nothing and leaves", one, func(c *badClient) { c.hangUp() }, "client disconnected"},
		{"sends 15 bytes", one, func(c *badClient) { c.sendRaw(15) }, "message of 15 bytes, want 16"},
		{"sends nothing", one, func(c *badClient) { c.sendRaw(0) }, "message of 0 bytes, want 16"},
		{"sends 17 bytes", one, func(c *badClient) { c.sendRaw(17) }, "local length error"},
		{"sends 4096 bytes", one, func(c *badClient) { c.sendRaw(4096) }, "local length error"},
		{"advertises 0 bytes", one, func(c *badClient) { c.sendAdvert(c.advert(0)) }, "source of 0 bytes"},
		{"advertises more than the buffer", one, func(c *badClient) { c.sendAdvert(c.advert(ServerSize + 1)) },
			"source of 65537 bytes, want 1 to 65536"},
		{"advertises 4 GiB", one, func(c *badClient) { c.sendAdvert(c.advert(1<<32 - 1)) },
			"source of 4294967295 bytes"},
		{"advertises more than it registered", one, func(c *badClient) { c.sendAdvert(c.advert(4097)) },
			"client dropped"},
		{"advertises a wild source", one, func(c *badClient) { c.sendAdvert(wild) }, "client dropped"},
		{"leaves in the middle", one, func(c *badClient) {
			c.sendAdvert(c.advert(64))
			c.goAhead()
			c.hangUp()
		}, "in the middle of a ping"},
		{"has a sink too small", one, func(c *badClient) {
			c.sendAdvert(c.advert(64))
			c.goAhead()
			c.sendAdvert(c.advert(63))
		}, "sink of 63 bytes for a ping of 64"},
		{"sends a bad sink message", one, func(c *badClient) {
			c.sendAdvert(c.advert(64))
			c.goAhead()
			c.sendRaw(8)
		}, "message of 8 bytes"},
		{"advertises a wild sink", one, func(c *badClient) {
			c.sendAdvert(c.advert(64))
			c.goAhead()
			c.sendAdvert(wild)
		}, ""}, // with local completion the server learns of it too late to know why
		{"allows no read", rdma.ConnParam{IRD: 0, ORD: 1}, func(*badClient) {}, "allows no RDMA read"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			overTwo(t, func(t *testing.T, r rig) {
				book, _ := serve(t, r, ServerConfig{})
				bad := dial(t, r, c.param)
				pingOK(t, r, ClientConfig{Count: 2})
				c.act(bad)
				pingOK(t, r, ClientConfig{Count: 2})
				book.wants(t, 3, " pings=") // all three are gone
				book.wants(t, 1, c.log)
				pingOK(t, r, ClientConfig{Count: 2})
			})
		})
	}
}

// A client that does not wait for its go-aheads is no rping, but nothing is
// wrong with its messages: what does not fit the two receives is its own loss.
func TestServerSurvivesAFloodOfAdvertisements(t *testing.T) {
	overTwo(t, func(t *testing.T, r rig) {
		book, _ := serve(t, r, ServerConfig{})
		bad := dial(t, r, rdma.ConnParam{IRD: 1, ORD: 1})
		for range 50 {
			if bad.send(context.Background(), bad.advert(64)) != nil {
				break
			}
		}
		pingOK(t, r, ClientConfig{Count: 3})
		bad.hangUp()
		book.wants(t, 2, "pings=")
	})
}

func TestSilentClientsAreDroppedInTime(t *testing.T) {
	overTwo(t, func(t *testing.T, r rig) {
		book, _ := serve(t, r, ServerConfig{MaxClients: 3, Timeout: time.Second})
		dial(t, r, rdma.ConnParam{IRD: 1, ORD: 1})
		half := dial(t, r, rdma.ConnParam{IRD: 1, ORD: 1})
		half.sendAdvert(half.advert(64))
		pingOK(t, r, ClientConfig{Count: 1})
		book.wants(t, 1, "wait for advertisement of a source: nothing within 1s")
		book.wants(t, 1, "wait for advertisement of a sink: nothing within 1s")
	})
}

// Clients that take all places and say nothing are no wait of anybody else: the longest
// silent one gives way, long before its own deadline.
func TestSilentClientsGiveWay(t *testing.T) {
	overTwo(t, func(t *testing.T, r rig) {
		book, _ := serve(t, r, ServerConfig{MaxClients: 4, Timeout: time.Minute})
		for range 4 {
			dial(t, r, rdma.ConnParam{IRD: 1, ORD: 1})
		}
		for range 2 {
			pingOK(t, r, ClientConfig{Count: 1})
		}
		book.wants(t, 1, "idle, and closed for another client")
	})
}

func TestServerEndsAtOnceWithClientsConnected(t *testing.T) {
	overTwo(t, func(t *testing.T, r rig) {
		book, end := serve(t, r, ServerConfig{})
		idle := dial(t, r, rdma.ConnParam{IRD: 1, ORD: 1})
		idle.sendAdvert(idle.advert(64))
		idle.goAhead()
		end()
		book.wants(t, 1, "server ends")
	})
}

// A closed listener is the other way to end a server.
func TestServerEndsWithItsListener(t *testing.T) {
	r := providers[0].open(t)
	done := make(chan error, 1)
	go func() { done <- Serve(context.Background(), r.passive, r.ln, ServerConfig{}) }()
	pingOK(t, r, ClientConfig{Count: 1})
	check(t, r.ln.Close())
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("Serve = %v, want nil", err)
		}
	case <-time.After(testTimeout):
		t.Fatal("Serve did not end")
	}
}

// badServer accepts one client and hands its endpoint to act.
func badServer(t *testing.T, r rig, act func(e *endpoint, data registration) error) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		defer cancel()
		done <- func() (err error) {
			req, err := r.ln.Accept(ctx)
			if err != nil {
				return err
			}
			m, err := newMemory(r.passive)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, m.close()) }()
			e, err := newEndpoint(m, rdma.LocalWrite, testTimeout, false)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, e.close()) }()
			data, err := e.register(ServerSize, rdma.LocalWrite)
			if err != nil {
				return err
			}
			if _, err := req.Accept(ctx, e.qp, rdma.ConnParam{IRD: 1, ORD: 1}); err != nil {
				return err
			}
			return act(e, data)
		}()
	}()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Errorf("scripted server: %v", err)
		}
	})
}

// answer is one ping as a server answers it; change may spoil the data, and write false leaves the sink as it is.
func answer(e *endpoint, data registration, change func([]byte), write bool) error {
	ctx := context.Background()
	source, err := e.recv(ctx, "source")
	if err != nil {
		return err
	}
	if err := e.transfer(ctx, rdma.OpRead, data, source, source.Size); err != nil {
		return err
	}
	if err := e.send(ctx, Advert{}); err != nil {
		return err
	}
	sink, err := e.recv(ctx, "sink")
	if err != nil {
		return err
	}
	if change != nil {
		change(data.buf.Bytes()[:source.Size])
	}
	if write {
		if err := e.transfer(ctx, rdma.OpWrite, data, sink, source.Size); err != nil {
			return err
		}
	}
	return e.send(ctx, Advert{})
}

// awaitEnd waits until the peer has gone.
func awaitEnd(e *endpoint) error {
	if _, err := e.recv(context.Background(), "end"); !errors.Is(err, errEnded) {
		return fmt.Errorf("the client did not disconnect: %w", err)
	}
	return nil
}

func TestBadServersAreNamed(t *testing.T) {
	for _, c := range []struct {
		name    string
		timeout time.Duration
		act     func(e *endpoint, data registration) error
		is      error
		text    string
	}{
		{"short go-ahead", testTimeout, func(e *endpoint, _ registration) error {
			if _, err := e.recv(context.Background(), "source"); err != nil {
				return err
			}
			wr := rdma.SendWR{ID: idSend, Op: rdma.OpSend, NumSGE: 1}
			wr.SGE[0] = e.slot(recvDepth)
			wr.SGE[0].Len = 12
			if err := e.post(wr, &e.sending, true); err != nil {
				return err
			}
			return awaitEnd(e)
		}, rdma.ErrProtocol, "message of 12 bytes, want 16"},
		{"leaves in the middle", testTimeout, func(e *endpoint, _ registration) error {
			if _, err := e.recv(context.Background(), "source"); err != nil {
				return err
			}
			return e.disconnect(context.Background())
		}, ErrPeerGone, "ping 0"},
		{"never answers", time.Second, func(e *endpoint, _ registration) error {
			if _, err := e.recv(context.Background(), "source"); err != nil {
				return err
			}
			return awaitEnd(e)
		}, rdma.ErrUnreachable, "wait for go-ahead after the read: nothing within 1s"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			overTwo(t, func(t *testing.T, r rig) {
				badServer(t, r, c.act)
				_, err := Ping(context.Background(), r.active, ClientConfig{Addr: r.ln.Addr(), Timeout: c.timeout})
				if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("Ping = %v, want %v with %q", err, c.is, c.text)
				}
			})
		})
	}
}

func TestNobodyListens(t *testing.T) {
	overTwo(t, func(t *testing.T, r rig) {
		addr := must(r.passive.Listen(context.Background(), r.ln.Addr()[:strings.LastIndexByte(r.ln.Addr(), ':')]+":0", 1))(t)
		check(t, addr.Close())
		_, err := Ping(context.Background(), r.active, ClientConfig{Addr: addr.Addr(), Timeout: 2 * time.Second})
		if !errors.Is(err, rdma.ErrUnreachable) {
			t.Errorf("Ping = %v, want unreachable", err)
		}
	})
}

func TestARejectionIsOne(t *testing.T) {
	overTwo(t, func(t *testing.T, r rig) {
		done := make(chan error, 1)
		go func() {
			req, err := r.ln.Accept(context.Background())
			if err == nil {
				err = req.Reject(context.Background(), nil)
			}
			done <- err
		}()
		_, err := Ping(context.Background(), r.active, ClientConfig{Addr: r.ln.Addr(), Timeout: testTimeout})
		if !errors.Is(err, rdma.ErrRejected) {
			t.Errorf("Ping = %v, want rejected", err)
		}
		check(t, <-done)
	})
}

func TestACancelledClientSaysHowFarItCame(t *testing.T) {
	for _, p := range providers[:2] {
		for _, busy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s busy=%v", p.name, busy), func(t *testing.T) {
				r := p.open(t)
				book, _ := serve(t, r, ServerConfig{})
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				n := 0
				sum, err := Ping(ctx, r.active, ClientConfig{Addr: r.ln.Addr(), Timeout: testTimeout, Busy: busy,
					Validate: true, OnPing: func([]byte) {
						if n++; n == 25 {
							cancel()
						}
					}})
				if !errors.Is(err, context.Canceled) || sum.Pings != 25 {
					t.Errorf("Ping = %+v, %v, want 25 pings and context.Canceled", sum, err)
				}
				book.wants(t, 1, "msg=\"client disconnected\"")
				book.wants(t, 1, "pings=25")
			})
		}
	}
}

func TestBadArgumentsAreRefused(t *testing.T) {
	r := providers[0].open(t)
	for _, c := range []ClientConfig{{Size: MinSize - 1}, {Size: MaxSize + 1}, {Size: -1}, {Count: -1}} {
		if _, err := Ping(context.Background(), r.active, c); !errors.Is(err, rdma.ErrInvalid) {
			t.Errorf("Ping(%+v) = %v, want invalid", c, err)
		}
	}
	for _, c := range []ServerConfig{{Size: MinSize - 1}, {Size: ServerSize + 1}, {Size: -1}} {
		if err := Serve(context.Background(), r.passive, r.ln, c); !errors.Is(err, rdma.ErrInvalid) {
			t.Errorf("Serve(%+v) = %v, want invalid", c, err)
		}
	}
}

// A server with a smaller buffer refuses larger pings and takes its own size.
func TestServersSizeIsTheLimit(t *testing.T) {
	r := providers[0].open(t)
	book, _ := serve(t, r, ServerConfig{Size: 100})
	pingOK(t, r, ClientConfig{Size: 100, Count: 2})
	_, err := Ping(context.Background(), r.active, ClientConfig{Addr: r.ln.Addr(), Size: 101, Timeout: testTimeout})
	if !errors.Is(err, ErrPeerGone) {
		t.Errorf("Ping(101 bytes) = %v, want %v", err, ErrPeerGone)
	}
	book.wants(t, 1, "source of 101 bytes, want 1 to 100")
}

func TestDebugLogNamesTheSteps(t *testing.T) {
	r := providers[0].open(t)
	serve(t, r, ServerConfig{})
	var book logBook
	log := slog.New(slog.NewTextHandler(&book, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if _, err := Ping(context.Background(), r.active, ClientConfig{Addr: r.ln.Addr(), Count: 1, Timeout: testTimeout,
		Log: log}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"connected", "advertise for read", "advertise for write", "disconnect"} {
		if !strings.Contains(book.String(), want) {
			t.Errorf("debug log lacks %q:\n%s", want, &book)
		}
	}
}

// Port scanners and browsers reach the port too: they speak no iWARP at all.
func TestServerSurvivesForeignBytes(t *testing.T) {
	r := providers[1].open(t)
	serve(t, r, ServerConfig{})
	for _, hello := range []string{"", "GET / HTTP/1.0\r\n\r\n", "MPA ID Req Frame", strings.Repeat("\xff", 4096)} {
		conn := must(net.Dial("tcp", r.ln.Addr()))(t)
		defer conn.Close()
		// The server may have hung up on the first bytes already.
		_, _ = conn.Write([]byte(hello))
		pingOK(t, r, ClientConfig{Count: 2})
	}
}
