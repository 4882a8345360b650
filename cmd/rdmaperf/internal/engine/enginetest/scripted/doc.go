// Package scripted is a stack whose every time is given, for tests of what the engine makes of times. In a bubble of
// [testing/synctest] an operation takes what [Times] says, to the nanosecond, and all else takes none.
//
// A connection is two links, one a way. A message leaves when the one before it has left, takes Times.Send and
// Times.PerByte of the link, and arrives Times.Out or Times.Back later; without a receive it waits for one. A poll in
// vain waits for something to happen on its side, Times.Idle at most: this is what moves the clock.
package scripted
