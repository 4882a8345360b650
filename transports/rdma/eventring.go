package rdma

import "sync"

// MaxEvents is how many asynchronous events a device keeps for Device.Event.
const MaxEvents = 128

// EventRing holds the asynchronous events of a device until they are taken; the oldest
// gives way to one that finds it full. The zero value is empty. Safe for concurrent use.
type EventRing struct {
	mu          sync.Mutex
	events      [MaxEvents]Event
	head, count int
}

// Put adds an event.
func (r *EventRing) Put(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events[(r.head+r.count)%MaxEvents] = e
	if r.count == MaxEvents {
		r.head = (r.head + 1) % MaxEvents
		return
	}
	r.count++
}

// Event takes the oldest one, as Device.Event does.
func (r *EventRing) Event() (Event, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == 0 {
		return Event{}, false
	}
	e := r.events[r.head]
	r.head = (r.head + 1) % MaxEvents
	r.count--
	return e, true
}
