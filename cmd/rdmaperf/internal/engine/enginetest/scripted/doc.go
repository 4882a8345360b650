// Package scripted is a stack whose every time is given, for tests of what the engine
// makes of times. It runs in a bubble of [testing/synctest], whose clock stands still
// while anything runs: an operation takes what [Times] says, to the nanosecond, and all
// else takes none. So a test knows median, mean, rate and window before the run.
//
// A connection is two links, one a way. A message leaves when the one before it has left,
// takes Times.Send and Times.PerByte of the link, and arrives Times.Out or Times.Back
// later. A poll in vain waits for something to happen on its side, Times.Idle at most:
// this is what moves the clock.
//
// # Ownership
//
// A Fabric and what it opens live in one bubble.
//
// # Limitations
//
// No faults, no priorities, no receiver-not-ready timer: a message without a receive
// waits for one.
package scripted
