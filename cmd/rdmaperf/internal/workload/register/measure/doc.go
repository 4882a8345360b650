// Package measure takes what registering memory costs: by the device itself, through a
// cache, and from memory that was registered when it was mapped.
//
// A [Target] is its maker's to close, when no [Run] uses it any more. A Run owns all
// memory and registrations that it makes, and has given them back when it returns.
//
// A use moves at most [UseBytes], whatever was registered. Look-ups are shorter than a
// reading of the clock and timed in batches: a sample is the mean of its batch then, and
// its percentiles are those of means. Stages of fresh memory are timed one by one, so
// each arms.Holds one reading of the clock.
package measure
