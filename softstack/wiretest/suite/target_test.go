package suite

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest/target"
	"github.com/rdmaperf/rdmaperf/transports/conform"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// inert is a device that agrees to everything and does nothing: no octet of a stream is
// looked at, nothing completes, every state is RTS.
type inert struct{ rdma.Device }

func (inert) Name() string { return "inert" }
func (inert) Caps() rdma.Caps {
	return rdma.Caps{Ops: ^rdma.OpSet(0), MaxQPWR: 1000, MaxCQE: 1000, MaxSGE: 1, MaxRDAtom: 64, MaxPrivate: 500}
}
func (inert) AllocPD() (rdma.PD, error)            { return 1, nil }
func (inert) FreePD(rdma.PD) error                 { return nil }
func (inert) NewCQ(int) (rdma.CQ, error)           { return inertCQ{}, nil }
func (inert) NewQP(rdma.QPConfig) (rdma.QP, error) { return &inertQP{}, nil }
func (inert) Close() error                         { return nil }
func (inert) RegMR(_ rdma.PD, b rdma.Buffer, a rdma.Access) (rdma.MR, error) {
	return inertMR{b, a}, nil
}

func (inert) Listen(_ context.Context, addr string, _ int) (rdma.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return inertListener{l.(*net.TCPListener)}, nil
}

type inertMR struct {
	b rdma.Buffer
	a rdma.Access
}

func (m inertMR) LKey() uint32        { return 7 }
func (m inertMR) RKey() uint32        { return 7 }
func (m inertMR) Addr() uint64        { return m.b.Addr() }
func (m inertMR) Len() uint64         { return uint64(m.b.Len()) }
func (m inertMR) Access() rdma.Access { return m.a }
func (inertMR) Close() error          { return nil }

type inertCQ struct{ rdma.CQ }

func (inertCQ) Poll([]rdma.WC) (int, error) { return 0, nil }
func (inertCQ) Close() error                { return nil }

type inertQP struct {
	rdma.QP
	conn net.Conn
}

func (q *inertQP) PostSend(w []rdma.SendWR) (int, error) { return len(w), nil }
func (q *inertQP) PostRecv(w []rdma.RecvWR) (int, error) { return len(w), nil }
func (q *inertQP) State() rdma.QPState                   { return rdma.QPRTS }

func (q *inertQP) Close() error {
	if q.conn != nil {
		q.conn.Close()
	}
	return nil
}

// Connect takes any answer, and none, for an accepting one.
func (q *inertQP) Connect(_ context.Context, addr string, _ rdma.ConnParam) (rdma.ConnParam, error) {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return rdma.ConnParam{}, err
	}
	q.take(c)
	_, err = c.Write(mpa.AppendFrame(nil, &mpa.Frame{Rev: 2, Enhanced: true, Enh: mpa.Enhanced{IRD: 4, ORD: 4}}))
	return rdma.ConnParam{}, err
}

func (q *inertQP) take(c net.Conn) {
	q.conn = c
	go io.Copy(io.Discard, c)
}

type inertListener struct{ *net.TCPListener }

func (l inertListener) Addr() string { return l.TCPListener.Addr().String() }

func (l inertListener) Accept(ctx context.Context) (rdma.ConnRequest, error) {
	stop := context.AfterFunc(ctx, func() { l.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	c, err := l.TCPListener.Accept()
	return inertRequest{c: c}, err
}

type inertRequest struct {
	rdma.ConnRequest
	c net.Conn
}

func (inertRequest) Param() rdma.ConnParam { return rdma.ConnParam{} }

func (r inertRequest) Accept(_ context.Context, qp rdma.QP, _ rdma.ConnParam) (rdma.ConnParam, error) {
	r.c.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.ReadFull(r.c, make([]byte, mpa.FrameHeaderLen)); err != nil {
		return rdma.ConnParam{}, err
	}
	rep := mpa.Frame{Reply: true, Rev: 2, Markers: true, Enhanced: true, Enh: mpa.Enhanced{IRD: 4, ORD: 9},
		Private: rdmap.AppendOffer(nil, rdmap.ExtAll)}
	r.c.Write(mpa.AppendFrame(nil, &rep))
	r.c.SetDeadline(time.Time{})
	qp.(*inertQP).take(r.c)
	return rdma.ConnParam{}, nil
}

// TestEveryCaseOfATargetCanFail: a test target whose device keeps no rule is red in every case that
// only a test target can be asked.
func TestEveryCaseOfATargetCanFail(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- target.Serve(ctx, l, target.Config{Transport: "inert", Variants: []string{variantMarkers},
			Log:  slog.New(slog.DiscardHandler),
			Open: func(string) (rdma.Device, string, error) { return inert{}, "", nil }})
	}()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	var only []string
	for _, r := range table() {
		if r.lacks != "" {
			only = append(only, r.ID)
		}
	}
	rep := Run(t.Context(), l.Addr().String(),
		Options{Options: conform.Options{CaseTimeout: 400 * time.Millisecond, Only: only}, Hazard: true})
	if rep.Err != nil || len(rep.Results) != len(only) || len(only) < 15 {
		t.Fatalf("%d of %d cases: %v", len(rep.Results), len(only), rep.Err)
	}
	for _, r := range rep.Results {
		if r.Level != conform.May.String() && (r.Verdict != conform.Fail || len(r.Want) == 0 || r.Got == "") {
			t.Errorf("%s: %s %q want %q, got %q", r.ID, r.Verdict, r.Evidence, r.Want, r.Got)
		}
	}
}
