package command

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// outlet is a stderr whose reader can be slow or go away.
type outlet struct {
	text  strings.Builder
	read  chan struct{} // each write waits until it is closed; nil for no wait
	away  bool
	calls int
}

func (s *outlet) Write(p []byte) (int, error) {
	if s.read != nil {
		<-s.read
	}
	s.calls++
	if s.away {
		return 0, errors.New("broken pipe")
	}
	return s.text.Write(p)
}

func TestALineIsWrittenInOrderAndAtTheLatestByClose(t *testing.T) {
	r := &outlet{}
	w := newLineWriter(r)
	w.start(func(int64) {})
	want := ""
	for i := range 1000 {
		line := fmt.Sprintf("line %d\n", i)
		want += line
		if n, err := w.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatalf("Write returns %d, %v", n, err)
		}
	}
	w.close()
	if r.text.String() != want || w.lost.Load() != 0 {
		t.Errorf("%d bytes were written, want %d; %d lines were lost", r.text.Len(), len(want), w.lost.Load())
	}
}

func TestLinesPastTheQueueAreLostAndReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &outlet{read: make(chan struct{})}
		w := newLineWriter(r)
		var reports []int64
		w.start(func(lost int64) {
			reports = append(reports, lost)
			w.Write(fmt.Appendf(nil, "%d lost\n", lost))
		})
		line := []byte(strings.Repeat("x", 1023) + "\n")
		w.Write([]byte("first\n"))
		synctest.Wait() // the writer is stuck with it
		const most = lineQueue / 1024
		for range most + 3 {
			w.Write(line)
		}
		if lost := w.lost.Load(); lost != 3 {
			t.Errorf("%d lines are lost without a reader, want 3", lost)
		}
		close(r.read)
		w.close()
		if len(reports) != 1 || reports[0] != 3 {
			t.Errorf("the losses are reported as %d, want 3 once", reports)
		}
		if got := strings.Count(r.text.String(), "\n"); got != 1+most+1 || !strings.HasSuffix(r.text.String(), "3 lost\n") {
			t.Errorf("%d lines were written, want %d, the last of them the report", got, 1+most+1)
		}
	})
}

func TestLinesThatTheStreamRefusesAreCounted(t *testing.T) {
	r := &outlet{away: true}
	w := newLineWriter(r)
	w.start(func(lost int64) { t.Errorf("%d lost lines are reported", lost) })
	w.Write([]byte("one\ntwo\n"))
	w.close()
	if lost := w.lost.Load(); lost != 2 || r.calls == 0 {
		t.Errorf("%d lines are lost in %d writes, want 2", lost, r.calls)
	}
}

// TestCloseGivesAStuckStreamUp checks that a process can exit although its stderr is stuck.
func TestCloseGivesAStuckStreamUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &outlet{read: make(chan struct{})}
		w := newLineWriter(r)
		w.start(func(int64) {})
		w.Write([]byte("never read\n"))
		w.close()
		if r.calls != 0 {
			t.Error("close waited for a stream that takes nothing")
		}
		close(r.read)
	})
}
