package etcd

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/naming/endpoints"
	etcdresolver "go.etcd.io/etcd/client/v3/naming/resolver"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/example/helloworld/hello"
	"github.com/rdmaperf/rdmaperf/grpcrdma/fused"
)

type named struct {
	hello.UnimplementedGreeterServer
	name string
}

func (n named) Greet(context.Context, *hello.GreetRequest) (*hello.GreetReply, error) {
	return &hello.GreetReply{Text: n.name}, nil
}

type carrier struct {
	name   string
	prefix string // of its addresses in etcd
	serve  func(t *testing.T, s hello.GreeterServer) (addr string, stop func())
	client func(t *testing.T, target string, r resolver.Builder) hello.GreeterClient
}

const turns = `{"loadBalancingConfig":[{"round_robin":{}}]}`

func client(t *testing.T, target string, r resolver.Builder, more ...grpc.DialOption) hello.GreeterClient {
	t.Helper()
	cc, err := grpc.NewClient(target, append(more, grpc.WithResolvers(r), grpc.WithDefaultServiceConfig(turns),
		grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	must(t, err)
	t.Cleanup(func() { cc.Close() })
	return hello.NewGreeterClient(cc)
}

func serve(t *testing.T, l net.Listener, err error, s hello.GreeterServer) (string, func()) {
	t.Helper()
	must(t, err)
	g := grpc.NewServer()
	hello.RegisterGreeterServer(g, s)
	go g.Serve(l)
	t.Cleanup(g.Stop)
	return l.Addr().String(), g.Stop
}

func carriers(n *grpcrdma.Net) []carrier {
	return []carrier{
		{"grpc(tcp)", "", func(t *testing.T, s hello.GreeterServer) (string, func()) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			return serve(t, l, err, s)
		}, func(t *testing.T, target string, r resolver.Builder) hello.GreeterClient { return client(t, target, r) }},
		{"grpc(dropin)+iwarp", "rdma:///", func(t *testing.T, s hello.GreeterServer) (string, func()) {
			l, err := n.Listen(t.Context(), "127.0.0.1:0")
			return serve(t, l, err, s)
		}, func(t *testing.T, target string, r resolver.Builder) hello.GreeterClient {
			return client(t, target, r, grpcrdma.WithRDMA(n))
		}},
		{"grpc(fused)+iwarp", "rdma:///", func(t *testing.T, s hello.GreeterServer) (string, func()) {
			l, err := n.Listen(t.Context(), "127.0.0.1:0")
			must(t, err)
			f, err := fused.NewServer(fused.Config{})
			must(t, err)
			hello.RegisterGreeterServer(f, s)
			go f.Serve(l)
			t.Cleanup(f.Stop)
			return l.Addr().String(), f.Stop
		}, func(t *testing.T, target string, r resolver.Builder) hello.GreeterClient {
			ch, err := fused.NewClient(target, (&grpcrdma.Dialer{Net: n}).DialContext,
				fused.Config{Resolvers: []resolver.Builder{r}, ServiceConfig: turns})
			must(t, err)
			t.Cleanup(func() { ch.Close() })
			return hello.NewGreeterClient(ch)
		}},
	}
}

// answers calls n times and returns who answered, sorted, and what failed last.
func answers(t *testing.T, c hello.GreeterClient, n int) (names []string, err error) {
	for range n {
		r, e := c.Greet(soon(t), &hello.GreetRequest{}, grpc.WaitForReady(true))
		if e != nil {
			err = e
		} else if !slices.Contains(names, r.Text) {
			names = append(names, r.Text)
		}
	}
	slices.Sort(names)
	return names, err
}

// Servers in etcd are called in turns, and only while they are there. Calls of a server that dies alone may fail.
func TestServersComeAndGoInEtcd(t *testing.T) {
	_, etcd := member(t)
	builder, err := etcdresolver.NewBuilder(etcd)
	must(t, err)
	for i, form := range carriers(network(t)) {
		t.Run(form.name, func(t *testing.T) {
			service := fmt.Sprintf("services/%d", i)
			manager, err := endpoints.NewManager(etcd, service)
			must(t, err)
			stops := map[string]func(){}
			enter := func(name string, opts ...clientv3.OpOption) {
				t.Helper()
				addr, stop := form.serve(t, named{name: name})
				stops[name] = stop
				must(t, manager.AddEndpoint(soon(t), service+"/"+name, endpoints.Endpoint{Addr: form.prefix + addr},
					opts...))
			}
			lease, err := etcd.Grant(soon(t), 60)
			must(t, err)
			enter("a")
			enter("b", clientv3.WithLease(lease.ID))
			enter("c")
			c := form.client(t, "etcd:///"+service, builder)
			// until calls until these answer, and no others. Meanwhile calls may fail with code.
			until := func(code codes.Code, want ...string) {
				t.Helper()
				for end := time.Now().Add(long); ; time.Sleep(10 * time.Millisecond) {
					got, err := answers(t, c, 12)
					if err != nil && status.Code(err) != code {
						t.Fatalf("waiting for %v: %v", want, err)
					}
					if err == nil && slices.Equal(got, want) {
						return
					}
					if time.Now().After(end) {
						t.Fatalf("%v answer, last error %v, want %v", got, err, want)
					}
				}
			}
			expect := func(want ...string) { t.Helper(); until(codes.OK, want...) }
			expect("a", "b", "c")
			must(t, manager.DeleteEndpoint(soon(t), service+"/a"))
			expect("b", "c")
			stops["a"]() // nobody calls it any more
			expect("b", "c")
			_, err = etcd.Revoke(soon(t), lease.ID)
			must(t, err)
			expect("c")
			stops["b"]()
			enter("d")
			expect("c", "d")
			// One that dies is called no more although etcd still has it. Its call may fail: nobody knows whether it ran.
			stops["c"]()
			until(codes.Unavailable, "d")
			expect("d")
		})
	}
}

// An address with rdma:// is reached by RDMA or not at all, whoever resolved it.
func TestAnAddressOfRDMAIsNeverReachedByTCP(t *testing.T) {
	_, etcd := member(t)
	builder, err := etcdresolver.NewBuilder(etcd)
	must(t, err)
	all := carriers(network(t))
	addr, _ := all[0].serve(t, named{name: "over tcp"})
	for _, prefix := range []string{"rdma:///", ""} {
		service := "plain" + strings.Trim(prefix, ":/")
		manager, err := endpoints.NewManager(etcd, service)
		must(t, err)
		must(t, manager.AddEndpoint(soon(t), service+"/a", endpoints.Endpoint{Addr: prefix + addr}))
		r, err := all[1].client(t, "etcd:///"+service, builder).Greet(soon(t), &hello.GreetRequest{})
		if prefix == "" && (err != nil || r.Text != "over tcp") {
			t.Errorf("without a scheme: %v, %v", r, err)
		}
		if prefix != "" && (status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "rdma")) {
			t.Errorf("with it: %v, %v, want Unavailable that speaks of rdma", r, err)
		}
	}
}
