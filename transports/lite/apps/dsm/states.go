package dsm

// state is what a node may do with a page.
type state uint8

const (
	invalid state = iota
	shared        // read
	owned         // read and write; no other node has a copy
	numStates
)

// wish is an access to a page.
type wish uint8

const (
	readWish wish = iota
	writeWish
	numWishes
)

// allows is true for what needs no message.
var allows = [numStates][numWishes]bool{shared: {readWish: true}, owned: {readWish: true, writeWish: true}}

// event is what changes the state of a page at a node.
type event uint8

const (
	grantedShared event = iota
	grantedOwned
	askedForRead  // another node reads: the page goes home and a copy stays
	askedForWrite // another node writes
	numEvents
)

var (
	granted = [numWishes]event{readWish: grantedShared, writeWish: grantedOwned}
	asked   = [numWishes]event{readWish: askedForRead, writeWish: askedForWrite}
)

var moves = [numStates][numEvents]state{
	invalid: {grantedShared: shared, grantedOwned: owned, askedForRead: invalid, askedForWrite: invalid},
	shared:  {grantedShared: shared, grantedOwned: owned, askedForRead: shared, askedForWrite: invalid},
	owned:   {grantedShared: shared, grantedOwned: owned, askedForRead: shared, askedForWrite: invalid},
}

func move(s state, e event) state { return moves[s][e] }
