package sched

// strict takes the most urgent class. What is less urgent starves while there is anything more urgent.
type strict struct{}

func (strict) pick(ready classSet, _ *heads) int { return ready.most() }
func (strict) charge(int, int, bool)             {}
