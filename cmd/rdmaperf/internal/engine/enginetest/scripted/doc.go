// Package scripted is a stack whose every time is given, for tests of what the engine
// makes of times. It runs in a bubble of [testing/synctest], whose clock stops
// while anything runs: an operation takes what [Times] says, to the nanosecond, and all
// else takes none. So median, mean, rate and window of a run are known before it.
//
// A connection is two links, one a way. A message leaves when the one before it has left,
// takes Times.Send and Times.PerByte of the link, and arrives Times.Out or Times.Back
// later. A poll in vain waits for something to happen on its side, Times.Idle at most:
// this is what moves the clock.
//
// A message without a receive waits for one. There are no faults and no priorities.
package scripted
