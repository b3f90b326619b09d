package node

import (
	"strconv"
	"time"

	"fenec/engine/doc"
	"fenec/internal/http1"
)

// statementStats is /_stats/statements: a GET lists what the tenant's statements did and cost, a DELETE resets the counts.
func (c *call) statementStats() http1.Answer {
	if c.request.Method == "DELETE" {
		if err := c.tenant.DB.ResetStatementStats(c.scope); err != nil {
			return c.node.answerError(c.request, err)
		}
		return http1.Answer{Status: 204}
	}
	all, err := c.tenant.DB.StatementStats(c.scope)
	if err != nil {
		return c.node.answerError(c.request, err)
	}
	body := append(c.request.Scratch(), '[')
	for i, s := range all {
		if i > 0 {
			body = append(body, ',')
		}
		body = doc.AppendQuoted(append(body, `{"statement":`...), []byte(s.Shape))
		body = appendNumber(append(body, ','), "calls", s.Calls)
		body = appendMilliseconds(append(body, `,"total_ms":`...), s.Total)
		body = appendMilliseconds(append(body, `,"max_ms":`...), s.Longest)
		body = appendNumber(append(body, ','), "rows", s.Rows)
		body = append(appendNumber(append(body, ','), "errors", s.Errors), '}')
	}
	return http1.Answer{Status: 200, Headers: c.headNow(), Body: append(body, ']')}
}

// appendMilliseconds appends d as milliseconds, to the nanosecond.
func appendMilliseconds(dst []byte, d time.Duration) []byte {
	return strconv.AppendFloat(dst, float64(d.Nanoseconds())/1e6, 'f', -1, 64)
}
