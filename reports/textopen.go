package reports

import "strconv"

// rateText is a rate without needless digits.
func rateText(perSecond float64) string { return strconv.FormatFloat(perSecond, 'f', -1, 64) }
