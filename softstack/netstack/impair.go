package netstack

import (
	"math/rand/v2"
	"time"
)

// impairment is what a link does to frames, from a seed.
type impairment struct {
	cfg  *Config
	dice *rand.Rand
	late [][]byte  // a frame that the next one overtakes
	held time.Time // since when
	due  time.Duration
}

// newImpairment makes the two ends of a link differ.
func newImpairment(cfg *Config, end uint64) impairment {
	return impairment{cfg: cfg, dice: rand.New(rand.NewPCG(cfg.Seed, end))}
}

func (i *impairment) sends() bool {
	return i.cfg.Loss != 0 || i.cfg.Duplicate != 0 || i.cfg.Reorder != 0
}

func (i *impairment) delays() bool { return i.cfg.Delay != 0 || i.cfg.Jitter != 0 }

// out calls put for what becomes of a frame that leaves, and counts.
func (i *impairment) out(parts [][]byte, n *Counts, put func([][]byte)) {
	hit := func(p float64) bool { return p != 0 && i.dice.Float64() < p }
	if hit(i.cfg.Loss) {
		n.Lost++
		return
	}
	late := i.late
	if late == nil && hit(i.cfg.Reorder) {
		var whole []byte
		for _, p := range parts {
			whole = append(whole, p...)
		}
		i.late, i.held = [][]byte{whole}, time.Now()
		n.Reordered++
		return
	}
	put(parts)
	if hit(i.cfg.Duplicate) {
		n.Duplicated++
		put(parts)
	}
	if late != nil {
		i.late = nil
		put(late)
	}
}

// overtake is how long a frame waits for one that overtakes it: it is late, and not lost.
const overtake = 200 * time.Microsecond

// overdue is a frame that nothing has overtaken in time, or nil.
func (i *impairment) overdue() (late [][]byte) {
	if i.late != nil && time.Since(i.held) > overtake {
		late, i.late = i.late, nil
	}
	return late
}

// arrival is when a frame that came at now is handed on, after all before it. Times are
// since any moment that stays the same.
func (i *impairment) arrival(now time.Duration) time.Duration {
	at := now + i.cfg.Delay
	if i.cfg.Jitter > 0 {
		at += time.Duration(i.dice.Int64N(int64(i.cfg.Jitter)))
	}
	i.due = max(i.due, at)
	return i.due
}
