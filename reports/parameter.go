package reports

// ParameterNumber reads one numeric option of a result, or zero: its type
// depends on whether the document was just made or read back.
func ParameterNumber(r *Result, name string) float64 {
	switch v := r.Parameters[name].(type) {
	case float64:
		return v
	case int:
		return float64(v)
	case int64:
		return float64(v)
	}
	return 0
}

// loopOf is the loop of a ping-pong: of rdmaperf, plain, or of the provider. Documents had
// that as the parameter volleys once.
func loopOf(r *Result) string {
	if s, ok := r.Parameters["loop"].(string); ok {
		return s
	}
	switch r.Parameters["volleys"] {
	case true:
		return "provider"
	case false:
		return "plain"
	}
	return ""
}
