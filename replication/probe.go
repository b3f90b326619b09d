package replication

import (
	"bufio"
	"context"
	"time"
)

// Probe asks the node of a target whether a copy at a position may follow it, without following. Its error is an *Ended if the node
// answers that it may not, and another one if the node does not answer within the patience.
func (f *Follower) Probe(tenant string, t Target, seq uint64, history string, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(f.ctx, patience)
	defer cancel()
	conn, err := f.config.Connect(ctx, t.From)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	m := open{tenant: tenant, node: f.config.ID, seq: seq, history: history}
	if _, err := conn.Write(endFrame(m.append(beginFrame(nil, kindOpen, 1)), 0)); err != nil {
		return err
	}
	r := frameReader{r: bufio.NewReader(conn)}
	for {
		one, err := r.next()
		if err != nil {
			return err
		}
		switch one.kind {
		case kindHello:
			var m hello
			if err := m.decode(one.payload); err != nil {
				return err
			}
			s := &inStream{follower: f, tenant: tenant, target: t}
			return s.check(m, seq, history)
		case kindEnd:
			var m end
			if err := m.decode(one.payload); err != nil {
				return err
			}
			if m.status == endLater {
				return &later{m.sentence}
			}
			return &Ended{m.status, m.sentence}
		}
	}
}

// later is the error of a node that has no answer at the moment.
type later struct{ sentence string }

func (e *later) Error() string { return e.sentence }
