package drive

import "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"

// SendStart has the client of a stream both ways begin it, and do no more.
func SendStart(client engine.Side) (bool, error) {
	w := client.(*Flow).workers[0]
	return w.sendControl(w.lanes[0], ctlStart)
}
