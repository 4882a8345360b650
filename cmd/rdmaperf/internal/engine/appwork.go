package engine

import "github.com/rdmaperf/rdmaperf/transports"

// compute is the application's work on the messages among n finished operations.
func (w *Worker) compute(n int) {
	messages := int64(0)
	for i := range w.Done[:n] {
		if w.Done[i].Kind == transports.KindRecv {
			messages++
		}
	}
	for end := Now() + messages*w.appWork; messages > 0 && Now() < end; {
	}
}
