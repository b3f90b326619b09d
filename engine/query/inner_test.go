package query

import (
	"fmt"
	"testing"

	"fenec/engine/fail"
)

func TestAnInnerGetReturnsAtMostMaxInnerValues(t *testing.T) {
	s := newSegment(t, MaxInner+1)
	count := func(where string) (string, error) {
		p := s.plan(t, fmt.Sprintf(`get c where id in (get c select id%s) count`, where))
		r, err := p.Run(&Env{Now: testNow}, s, nil)
		return string(r.Body), err
	}
	if got, err := count(fmt.Sprintf(" where id <= %d", MaxInner)); err != nil || got != fmt.Sprintf(`[{"count":%d}]`, MaxInner) {
		t.Error(got, err)
	}
	if got, err := count(""); fail.KindOf(err) != fail.Invalid {
		t.Errorf("one value more: got %s, %v", got, err)
	}
}
