package reports

import (
	"encoding/json"
)

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
	case json.Number:
		if f, err := v.Float64(); err == nil {
			return f
		}
	}
	return 0
}
