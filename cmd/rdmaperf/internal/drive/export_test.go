package drive

import "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"

// SayGo has the client of a stream both ways begin it, and do no more.
func SayGo(client engine.Side) (bool, error) {
	w := client.(*Flow).workers[0]
	return w.say(w.lanes[0], noticeGo)
}
