package http1

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const mib = 1 << 20

func TestABudgetIsNeverExceeded(t *testing.T) {
	b := NewBudget(8 * mib)
	for _, c := range []struct {
		says    string
		n, held int64
		want    bool
		used    int64
	}{
		{"a large one takes what is there", 6 * mib, 0, true, 6 * mib},
		{"another finds the quarter kept free", mib + 1, 0, false, 6 * mib},
		{"a modest one has that quarter", mib, 0, true, 7 * mib},
		{"of which the large one gets nothing", mib, 6 * mib, false, 7 * mib},
		{"and a modest one no more than there is", mib, 0, true, 8 * mib},
		{"nor a byte past it", 1, 0, false, 8 * mib},
	} {
		if got := b.Take(c.n, c.held); got != c.want || b.Used() != c.used {
			t.Fatalf("%s: %v, %d in use", c.says, got, b.Used())
		}
	}
	b.Give(8 * mib)
	if !b.Take(5*mib, 0) || !b.Take(3*mib, 5*mib) || b.Used() != 8*mib {
		t.Errorf("the only one does not get all of it: %d in use", b.Used())
	}
	var none *Budget
	if !none.Take(1<<60, 0) || !none.Wait(1<<60, 0, 0, nil) || none.Used() != 0 || none.Max() != 0 {
		t.Error("no budget has a bound")
	}
	none.Give(1)
}

func TestWaitersOfABudgetAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(8 * mib)
		b.Take(6*mib, 0)
		served := make(chan string, 4)
		wait := func(name string, n int64) {
			go func() {
				if b.Wait(n, 0, time.Minute, nil) {
					served <- name
				}
			}()
			synctest.Wait()
		}
		wait("first", 5*mib)
		wait("second", 2*mib)
		if b.Take(2*mib, 0) {
			t.Error("a newcomer overtakes those that wait")
		}
		wait("modest", mib)
		if got := <-served; got != "modest" {
			t.Errorf("%s is served before the modest one", got)
		}
		b.Give(2 * mib) // the second would fit, and is not first
		synctest.Wait()
		if len(served) > 0 {
			t.Errorf("%s overtakes the first", <-served)
		}
		b.Give(4 * mib)
		if got := <-served; got != "first" {
			t.Errorf("%s is served before the first", got)
		}
		synctest.Wait()
		b.Give(5 * mib)
		if got := <-served; got != "second" || b.Used() != 3*mib {
			t.Errorf("%s, %d in use", got, b.Used())
		}
	})
}

func TestAHolderThatBecomesLargeDoesNotOvertakeWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(8 * mib)
		b.Take(4*mib, 0)
		b.Take(mib/2, 0)
		served := make(chan bool, 1)
		go func() { served <- b.Wait(5*mib, 0, time.Minute, nil) }()
		synctest.Wait()
		if b.Take(mib, mib/2) {
			t.Error("one that becomes large overtakes the one that waits")
		}
		if !b.Take(mib/4, mib/2) {
			t.Error("one that stays modest waits for a large one")
		}
		if !b.Take(mib, 4*mib) {
			t.Error("one that is large already waits for one that holds nothing")
		}
		b.Give(5*mib + 3*mib/4)
		if !<-served || b.Used() != 5*mib {
			t.Errorf("%d bytes are in use", b.Used())
		}
	})
}

func TestAWaitForABudgetEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(8 * mib)
		b.Take(8*mib, 0)
		began := time.Now()
		if b.Wait(mib, 0, 3*time.Second, nil) || time.Since(began) != 3*time.Second {
			t.Errorf("without room it ended after %v", time.Since(began))
		}
		done := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(done) })
		began = time.Now()
		if b.Wait(mib, 0, time.Minute, done) || time.Since(began) != time.Second {
			t.Errorf("given up it ended after %v", time.Since(began))
		}
		// A waiter that gives up unblocks those after it.
		b.Give(4 * mib)
		got := make(chan bool, 1)
		go b.Wait(8*mib, 0, time.Second, nil)
		synctest.Wait()
		go func() { got <- b.Wait(2*mib, 0, time.Minute, nil) }()
		if !<-got || b.Used() != 6*mib {
			t.Errorf("%d in use", b.Used())
		}
	})
}

// unfinished sends a body without its end, and does not wait until it is read.
func unfinished(c net.Conn, length int, head string) {
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: a\r\n"+head)
	go io.Copy(c, io.LimitReader(zeros{}, int64(length)))
}

// zeros reads zeros without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestBodiesShareABudget(t *testing.T) {
	bodies := NewBudget(16 * mib)
	bubble(t, &Server{Handler: digest, Bodies: bodies}, func(t *testing.T, dial func() net.Conn) {
		var slow []net.Conn
		for i := range 12 {
			c := dial()
			slow = append(slow, c)
			if i%2 == 0 {
				unfinished(c, 7*mib, "Content-Length: 8388608\r\n\r\n")
			} else {
				unfinished(c, 7*mib, "Transfer-Encoding: chunked\r\n\r\n800000\r\n")
			}
		}
		synctest.Wait()
		if used := bodies.Used(); used > 12*mib || used < 8*mib {
			t.Errorf("twelve unfinished bodies hold %d bytes of 16 MiB", used)
		}
		for _, n := range []int{10, keepBuffer, mib} {
			began := time.Now()
			c := dial()
			io.WriteString(c, fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", n))
			go io.Copy(c, io.LimitReader(zeros{}, int64(n)))
			if resp, body := receive(t, bufio.NewReader(c), "POST"); resp.StatusCode != 200 || time.Since(began) > 0 {
				t.Errorf("a body of %d beside them: %d %s after %v", n, resp.StatusCode, body, time.Since(began))
			}
			c.Close()
		}
		time.Sleep(4 * BodyWait) // some are let through as others are turned away, and wait again
		synctest.Wait()
		refused := 0
		for _, c := range slow {
			c.SetReadDeadline(time.Now().Add(time.Millisecond))
			head := make([]byte, 1024)
			if n, _ := c.Read(head); n > 0 {
				refused++
				if text := string(head[:n]); !strings.HasPrefix(text, "HTTP/1.1 503 ") || !strings.Contains(text, "\r\nRetry-After: 1\r\n") || !strings.Contains(text, "\r\nConnection: close\r\n") {
					t.Errorf("a body without room: %s", text)
				}
			}
			c.Close()
		}
		if refused < 10 || refused == 12 {
			t.Errorf("%d of 12 were turned away", refused)
		}
		time.Sleep(BodyWait)
		synctest.Wait()
		if used := bodies.Used(); used != 0 {
			t.Errorf("%d bytes stay in use when all have left", used)
		}
	})
}

func TestABodyWaitsForRoomAndGivesItBack(t *testing.T) {
	bodies := NewBudget(8 * mib)
	bubble(t, &Server{Handler: digest, Bodies: bodies}, func(t *testing.T, dial func() net.Conn) {
		bodies.Take(8*mib, 0)
		c := dial()
		defer c.Close()
		b := bufio.NewReader(c)
		for range 3 {
			began := time.Now()
			time.AfterFunc(4*time.Second, func() { bodies.Give(8 * mib) })
			unfinished(c, 8*mib, "Content-Length: 8388608\r\n\r\n")
			if resp, body := receive(t, b, "POST"); resp.StatusCode != 200 || time.Since(began) != 4*time.Second {
				t.Errorf("%d %s after %v", resp.StatusCode, body, time.Since(began))
			}
			synctest.Wait()
			if !bodies.Take(8*mib, 0) {
				t.Fatalf("%d bytes are in use after the answer", bodies.Used())
			}
		}
		bodies.Give(8 * mib)
	})
}

func TestABodyThatArrivedFastMayNotStall(t *testing.T) {
	bubble(t, &Server{Handler: digest}, func(t *testing.T, dial func() net.Conn) {
		for name, head := range map[string]string{"with a length": "Content-Length: 60000000\r\n\r\n", "chunked": "Transfer-Encoding: chunked\r\n\r\n3938700\r\n"} {
			c := dial()
			began := time.Now()
			unfinished(c, 50*mib, head)
			if resp, body := receive(t, bufio.NewReader(c), "POST"); resp.StatusCode != 408 || time.Since(began) != BodyTimeout {
				t.Errorf("%s: %d %s after %v", name, resp.StatusCode, body, time.Since(began))
			}
			c.Close()
		}
		// At BodyRate in bursts it is taken.
		c := dial()
		defer c.Close()
		const burst = 20 * BodyRate
		io.WriteString(c, fmt.Sprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", 10*burst))
		go func() {
			for range 10 {
				time.Sleep(20 * time.Second)
				io.Copy(c, io.LimitReader(zeros{}, burst))
			}
		}()
		if resp, body := receive(t, bufio.NewReader(c), "POST"); resp.StatusCode != 200 {
			t.Errorf("in bursts: %d %s", resp.StatusCode, body)
		}
	})
}

func TestWhatARequestHoldsIsGivenBackWithItsAnswer(t *testing.T) {
	answers := NewBudget(8 * mib)
	handler := HandlerFunc(func(r *Request) Answer {
		for range 3 {
			r.Holding(answers).Take(mib)
		}
		body := make([]byte, 3*mib)
		switch string(r.Path) {
		case "/panic":
			panic("with memory in use")
		case "/panicking":
			return Answer{Status: 200, Stream: func(*Writer) error { panic("with memory in use") }}
		case "/stream":
			return Answer{Status: 200, Stream: func(w *Writer) error { _, err := w.Write(body); return err }}
		}
		return Answer{Status: 200, Body: body}
	})
	bubble(t, &Server{Handler: handler}, func(t *testing.T, dial func() net.Conn) {
		for _, path := range []string{"/", "/stream"} {
			c := dial()
			b := bufio.NewReader(c)
			for range 2 {
				io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n")
				b.Peek(1)
				synctest.Wait()
				if used := answers.Used(); used != 3*mib {
					t.Errorf("%s: %d bytes are in use while the client reads", path, used)
				}
				receive(t, b, "GET")
				synctest.Wait()
				if used := answers.Used(); used != 0 {
					t.Errorf("%s: %d bytes are in use after the answer", path, used)
				}
			}
			io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n")
			b.Peek(1)
			c.Close()
			synctest.Wait()
			if used := answers.Used(); used != 0 {
				t.Errorf("%s: %d bytes are in use after the client left", path, used)
			}
		}
		for _, path := range []string{"/panic", "/panicking"} {
			c := dial()
			io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n")
			if resp, _ := receive(t, bufio.NewReader(c), "GET"); resp.StatusCode != 500 {
				t.Errorf("%s: got status %d, expected 500", path, resp.StatusCode)
			}
			c.Close()
			synctest.Wait()
			if used := answers.Used(); used != 0 {
				t.Errorf("%s: got %d bytes in use after a panic, expected 0", path, used)
			}
		}
	})
}
