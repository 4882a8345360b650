// Package guide is the service of the tours example. It knows nothing of how calls
// reach it.
//
// A Guide is safe for concurrent use and owns nothing but its notes, of which it
// keeps at most maxNotes.
//
// # Limitations
//
// Everything is forgotten at the end of the process.
package guide

import (
	"context"
	"io"
	"math"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/grpcrdma/example/tours/tour"
)

// Places are those along the trail.
var Places = []*tour.Place{
	{Name: "car park", At: &tour.Point{East: 0, North: 0}},
	{Name: "spring", At: &tour.Point{East: 300, North: 400}},
	{Name: "hut", At: &tour.Point{East: 900, North: 1200}},
	{Name: "summit", At: &tour.Point{East: 1500, North: 2000}},
}

// maxNotes bounds what visitors can leave.
const maxNotes = 1000

// Guide serves the tours.
type Guide struct {
	tour.UnimplementedGuideServer

	mu    sync.Mutex
	notes []*tour.Note
}

func metres(a, b *tour.Point) float64 {
	return math.Hypot(float64(a.GetEast()-b.GetEast()), float64(a.GetNorth()-b.GetNorth()))
}

// Nearest is a unary call.
func (g *Guide) Nearest(_ context.Context, at *tour.Point) (*tour.Place, error) {
	return slices.MinFunc(Places, func(a, b *tour.Place) int { return int(metres(a.At, at) - metres(b.At, at)) }), nil
}

// Within streams to the client.
func (g *Guide) Within(c *tour.Circle, out grpc.ServerStreamingServer[tour.Place]) error {
	if c.GetRadius() < 0 {
		return status.Errorf(codes.InvalidArgument, "a radius of %d metres", c.GetRadius())
	}
	for _, p := range Places {
		if metres(p.At, c.GetMiddle()) > float64(c.GetRadius()) {
			continue
		}
		if err := out.Send(p); err != nil {
			return err
		}
	}
	return nil
}

// Walk streams from the client.
func (g *Guide) Walk(in grpc.ClientStreamingServer[tour.Point, tour.Summary]) error {
	var last *tour.Point
	var n int32
	var length float64
	for {
		p, err := in.Recv()
		if err == io.EOF {
			return in.SendAndClose(&tour.Summary{Points: n, Metres: int32(length)})
		}
		if err != nil {
			return err
		}
		if n++; last != nil {
			length += metres(last, p)
		}
		last = p
	}
}

// Chat streams both ways.
func (g *Guide) Chat(both grpc.BidiStreamingServer[tour.Note, tour.Note]) error {
	for {
		n, err := both.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		before, err := g.leave(n)
		if err != nil {
			return err
		}
		for _, old := range before {
			if err := both.Send(old); err != nil {
				return err
			}
		}
	}
}

// leave keeps a note and returns those that were there.
func (g *Guide) leave(n *tour.Note) (before []*tour.Note, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, old := range g.notes {
		if metres(old.At, n.GetAt()) == 0 {
			before = append(before, old)
		}
	}
	if len(g.notes) == maxNotes {
		return nil, status.Errorf(codes.ResourceExhausted, "there is no room for more than %d notes", maxNotes)
	}
	g.notes = append(g.notes, n)
	return before, nil
}
