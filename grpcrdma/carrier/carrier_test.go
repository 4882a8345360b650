package carrier

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/callstest"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func ends(t *testing.T, cfg Config) (client, server *Carrier) {
	t.Helper()
	fabric := memdev.NewFabric(memdev.Config{})
	open := func(name string) *Carrier {
		var dev rdma.Device
		if cfg.Form.OverRDMA() {
			d, err := fabric.Open(name)
			must(t, err)
			dev = d
		}
		c, err := New(cfg, dev)
		must(t, err)
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Errorf("close %s: %v", name, err)
			}
		})
		return c
	}
	return open("client"), open("server")
}

var (
	must = rpctest.Must
	soon = rpctest.Soon
)

func serve(t *testing.T, c *Carrier, register func(grpc.ServiceRegistrar)) string {
	t.Helper()
	srv, err := c.NewServer()
	must(t, err)
	register(srv)
	l, err := c.Listener(soon(t), "127.0.0.1:0")
	must(t, err)
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	t.Cleanup(func() {
		srv.Stop()
		if err := <-ended; err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String()
}

func forms() []Config {
	return []Config{{Form: TCP}, {Form: TCP, Options: Options{Best: true}}, {Form: Unix}, {Form: BufConn},
		{Form: DropIn}, {Form: DropIn, Options: Options{Window: 1 << 20}}, {Form: Fused}}
}

func TestGeneratedStubs(t *testing.T) {
	for _, cfg := range forms() {
		t.Run(cfg.Form.String(), func(t *testing.T) {
			client, server := ends(t, cfg)
			addr := serve(t, server, func(r grpc.ServiceRegistrar) {
				pb.RegisterTestServiceServer(r, &rpctest.Service{})
			})
			conn, err := client.Connect(soon(t), addr)
			must(t, err)
			defer conn.Close()
			network := cfg.Form.String()
			if cfg.Form.OverRDMA() {
				network = "rdma"
			}
			x := rpctest.Target{Client: pb.NewTestServiceClient(conn), Network: network}
			rpctest.Unary(t, x)
			rpctest.Bidirectional(t, x)
		})
	}
}

func TestNeutralCallsKeepTheContract(t *testing.T) {
	for i, cfg := range forms() {
		t.Run(fmt.Sprintf("%v %d", cfg.Form, i), func(t *testing.T) {
			callstest.Run(t, func(t *testing.T) (transports.CallTransport, transports.CallTransport) {
				return ends(t, cfg)
			})
		})
	}
}

func TestConnectSaysWhy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	nobody := l.Addr().String()
	l.Close()
	for _, c := range []struct {
		cfg  Config
		addr string
		want string
	}{
		{Config{Form: TCP}, nobody, "refused"},
		{Config{Form: Unix}, "@rdmaperf-nobody", "refused"},
		{Config{Form: DropIn}, nobody, "unreachable"},
		{Config{Form: Fused}, nobody, "unreachable"},
	} {
		client, _ := ends(t, c.cfg)
		begun := time.Now()
		conn, err := client.Connect(soon(t), c.addr)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.cfg.Form.String()) {
			t.Errorf("%v: %v, want %q", c.cfg.Form, err, c.want)
		}
		if conn != nil {
			conn.Close()
		}
		if took := time.Since(begun); took > 15*time.Second {
			t.Errorf("%v: took %v", c.cfg.Form, took)
		}
	}
}

func TestNamesSayEverything(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, "grpc(tcp)"},
		{Config{Form: Unix, Options: Options{ReadBuffer: 64 << 10, Workers: 3}}, "grpc(unix,read=64K,workers=3)"},
		{Config{Form: DropIn}, "grpc(dropin,bpev,busy=200us,pollers=1,idle=1ms,ring=256K,notice)+"},
		{Config{Form: Fused, Net: grpcrdma.Config{Ring: 1 << 20, Polling: bpev.Config{BusyTime: -1, Pollers: 2,
			IdleSleep: -1}, Arrival: grpcrdma.ArrivalNotice}}, "grpc(fused,bpev,busy=0s,pollers=2,idle=0s,ring=1M,notice)+"},
		{Config{Form: Fused, NoSink: true}, "grpc(fused,bpev,busy=200us,pollers=1,idle=1ms,ring=256K,notice,noland)+"},
		{Config{Form: Fused, Net: grpcrdma.Config{Polling: bpev.Config{Mode: bpev.Event}, SendBuffer: 4096}},
			"grpc(fused,event,ring=256K,send=4K,notice)+"},
		{Config{Form: DropIn, Net: grpcrdma.Config{Polling: bpev.Config{Mode: bpev.BP}},
			Options: Options{Window: 1 << 20}}, "grpc(dropin,bp,ring=256K,watch,window=1M)+"},
	} {
		client, _ := ends(t, c.cfg)
		if got := client.Name(); got != c.want && !(strings.HasSuffix(c.want, "+") && strings.HasPrefix(got, c.want)) {
			t.Errorf("%+v: %s, want %s", c.cfg, got, c.want)
		}
	}
}

func TestConfigMistakes(t *testing.T) {
	dev, err := memdev.NewFabric(memdev.Config{}).Open("one")
	must(t, err)
	defer dev.Close()
	for _, c := range []struct {
		cfg  Config
		dev  rdma.Device
		want error
	}{
		{Config{Form: numForms}, nil, ErrConfig},
		{Config{Form: Fused}, nil, ErrConfig},
		{Config{Form: TCP}, dev, ErrConfig},
		{Config{Form: Fused, Options: Options{Best: true}}, dev, ErrConfig},
		{Config{Form: TCP, Options: Options{Window: 1000}}, nil, ErrConfig},
		{Config{Form: TCP, Options: Options{ReadBuffer: -1}}, nil, ErrConfig},
		{Config{Form: DropIn, NoSink: true}, dev, ErrConfig},
		{Config{Form: DropIn, Net: grpcrdma.Config{Ring: 5000}}, dev, rdma.ErrInvalid},
		{Config{Form: DropIn, Net: grpcrdma.Config{Polling: bpev.Config{Pollers: 1000}}}, dev, bpev.ErrConfig},
	} {
		if _, err := New(c.cfg, c.dev); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.cfg, err, c.want)
		}
	}
}

func TestACarrierSaysWhatItIs(t *testing.T) {
	c, _ := ends(t, Config{Form: Unix})
	if k := c.Caps(); k.Kinds != transports.Kinds(transports.KindCall) || !k.SameHost || k.InProcess {
		t.Errorf("caps %+v", k)
	}
	f, _ := ends(t, Config{Form: Fused})
	if cost := f.CallCost(); cost.Form != "fused" || cost.Mode != "bpev" || cost.Ring != 256<<10 ||
		cost.Registered == 0 || cost.Registered > 64<<10 || cost.BusyTime <= 0 || cost.Pollers != 1 {
		t.Errorf("cost %+v", cost)
	}
}

// A connection to which a call writes more than its peer takes is closed long before gRPC gives up after five seconds.
func TestAConnectionIsClosedWhosePeerTakesNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		t.Cleanup(func() { conn.Close() })
		f := http2.NewFramer(conn, nil)
		f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: math.MaxInt32})
		f.WriteWindowUpdate(0, math.MaxInt32-65535)
	}()
	c, _ := ends(t, Config{Form: TCP})
	conn, err := c.Connect(soon(t), l.Addr().String())
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	in := &pb.SimpleRequest{Payload: &pb.Payload{Body: make([]byte, 32<<20)}}
	if _, err := pb.NewTestServiceClient(conn).UnaryCall(ctx, in); err == nil {
		t.Fatal("the call has an answer")
	}
	begin := time.Now()
	if err := conn.Close(); err != nil || time.Since(begin) > 3*time.Second {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}
