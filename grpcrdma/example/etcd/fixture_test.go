package etcd

import (
	"context"
	"net"
	"net/url"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/fused"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
)

// long is longer than anything here takes; a test that waits so long has failed.
const long = 30 * time.Second

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), long)
	t.Cleanup(cancel)
	return ctx
}

func network(t *testing.T) *grpcrdma.Net {
	t.Helper()
	dev, err := iwarp.Open(iwarp.Config{})
	must(t, err)
	n, err := grpcrdma.New(dev, grpcrdma.Config{})
	must(t, err)
	t.Cleanup(func() { n.Close(); dev.Close() })
	return n
}

// member is an etcd with one member, and its own client over TCP.
func member(t *testing.T) (*embed.Etcd, *clientv3.Client) {
	t.Helper()
	any := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg := embed.NewConfig()
	cfg.Dir, cfg.ZapLoggerBuilder = t.TempDir(), embed.NewZapLoggerBuilder(zap.NewNop())
	cfg.ListenClientUrls, cfg.ListenPeerUrls = any, any
	cfg.AdvertiseClientUrls, cfg.AdvertisePeerUrls = any, any
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.UnsafeNoFsync = true // no test here cuts the power
	e, err := embed.StartEtcd(cfg)
	must(t, err)
	t.Cleanup(e.Close)
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(long):
		t.Fatal("etcd is not ready")
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{e.Clients[0].Addr().String()}, DialTimeout: long,
		Logger: zap.NewNop()})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return e, c
}

// api is what etcd's clients are made of.
type api struct {
	clientv3.KV
	clientv3.Watcher
	clientv3.Lease
}

var forms = []struct {
	name    string
	connect func(t *testing.T, e *embed.Etcd, tcp *clientv3.Client) api
}{
	{"grpc(tcp)", func(_ *testing.T, _ *embed.Etcd, c *clientv3.Client) api { return api{c, c, c} }},
	{"grpc(dropin)+iwarp", func(t *testing.T, e *embed.Etcd, _ *clientv3.Client) api {
		n := network(t)
		l, err := n.Listen(t.Context(), "127.0.0.1:0")
		must(t, err)
		s := v3rpc.Server(e.Server, nil, nil)
		go s.Serve(l)
		t.Cleanup(s.Stop)
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{"rdma:///" + l.Addr().String()}, DialTimeout: long,
			Logger:      zap.NewNop(),
			DialOptions: []grpc.DialOption{grpcrdma.WithRDMA(n)}})
		must(t, err)
		t.Cleanup(func() { c.Close() })
		return api{c, c, c}
	}},
	{"grpc(fused)+iwarp", func(t *testing.T, e *embed.Etcd, _ *clientv3.Client) api {
		n := network(t)
		l, err := n.Listen(t.Context(), "127.0.0.1:0")
		must(t, err)
		s, err := fused.NewServer(fused.Config{})
		must(t, err)
		pb.RegisterKVServer(s, v3rpc.NewQuotaKVServer(e.Server))
		pb.RegisterWatchServer(s, v3rpc.NewWatchServer(e.Server))
		pb.RegisterLeaseServer(s, v3rpc.NewQuotaLeaseServer(e.Server))
		go s.Serve(l)
		t.Cleanup(s.Stop)
		ch, err := fused.NewChannel(func(ctx context.Context) (net.Conn, error) {
			return n.DialContext(ctx, l.Addr().String())
		}, fused.Config{})
		must(t, err)
		t.Cleanup(func() { ch.Close() })
		a := api{clientv3.NewKVFromKVClient(pb.NewKVClient(ch), nil),
			clientv3.NewWatchFromWatchClient(pb.NewWatchClient(ch), nil),
			clientv3.NewLeaseFromLeaseClient(pb.NewLeaseClient(ch), nil, long)}
		t.Cleanup(func() { a.Watcher.Close(); a.Lease.Close() })
		return a
	}},
}
