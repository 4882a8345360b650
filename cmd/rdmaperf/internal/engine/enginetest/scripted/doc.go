// Package scripted is a stack whose every time is given. In a bubble of [testing/synctest] an operation takes what
// [Times] says, to the nanosecond, and all else takes none. A message leaves when the one before it on its way has
// left; without a receive it waits for one. A poll in vain waits Times.Idle at most: this is what moves the clock.
package scripted
