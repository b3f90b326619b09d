package http1

import (
	"fmt"
	"strconv"
)

// Error is the error of an invalid request or of an upstream's invalid answer:
// the status to answer with and a sentence for people.
type Error struct {
	Status  int
	Message string
	Retry   int  // seconds for Retry-After, 0 for none
	kept    bool // the framing is not in doubt: the connection may be kept
}

func (e *Error) Error() string { return e.Message }

// Answer returns the answer that refuses the request. If the framing is in
// doubt, the connection closes after it.
func (e *Error) Answer() Answer {
	a := ErrorAnswer(e.Status, e.Message)
	if e.Retry > 0 {
		a = ErrorAnswerRetry(e.Status, e.Message, e.Retry)
	}
	a.Close = !e.kept
	return a
}

func refuse(status int, format string, args ...any) *Error {
	return &Error{Status: status, Message: fmt.Sprintf(format, args...)}
}

// JSON is the Content-Type of every answer that is not a stream. It is shared
// and must not be changed.
var JSON = []Header{{Name: []byte("Content-Type"), Value: []byte("application/json")}}

// ErrorAnswer returns an answer with the status and the body {"error": message}.
func ErrorAnswer(status int, message string) Answer {
	return Answer{Status: status, Headers: JSON, Body: AppendError(nil, message)}
}

// ErrorAnswerRetry returns an ErrorAnswer with a wait in seconds in Retry-After
// and in the body.
func ErrorAnswerRetry(status int, message string, seconds int) Answer {
	wait := strconv.AppendInt(nil, int64(seconds), 10)
	body := AppendError(nil, message)
	body = append(body[:len(body)-1], `,"retry_after":`...)
	body = append(append(body, wait...), '}')
	headers := append(JSON[:len(JSON):len(JSON)], Header{Name: []byte("Retry-After"), Value: wait})
	return Answer{Status: status, Headers: headers, Body: body}
}

// AppendError appends {"error": message}. Bytes of the message that are not
// UTF-8 become U+FFFD.
func AppendError(dst []byte, message string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, `{"error":"`...)
	for _, c := range message { // ranging replaces what is not UTF-8
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', byte(c))
		case c == '\n':
			dst = append(dst, `\n`...)
		case c < 0x20 || c == 0x7f:
			dst = append(dst, `\u00`...)
			dst = append(dst, hex[c>>4], hex[c&15])
		default:
			dst = append(dst, string(c)...)
		}
	}
	return append(dst, `"}`...)
}
