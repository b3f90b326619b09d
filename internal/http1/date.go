package http1

import (
	"net/http"
	"sync/atomic"
	"time"
)

// stamp is a second and its text in a Date field.
type stamp struct {
	second int64
	text   []byte
}

var lastStamp atomic.Pointer[stamp]

// date returns the value of a Date field. It is formatted once a second.
func date(now time.Time) []byte {
	if s := lastStamp.Load(); s != nil && s.second == now.Unix() {
		return s.text
	}
	s := &stamp{now.Unix(), now.UTC().AppendFormat(nil, http.TimeFormat)}
	lastStamp.Store(s)
	return s.text
}
