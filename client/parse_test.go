package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// readEvents reads a stream to its end.
func readEvents(in io.Reader, most int) (events []sse, err error) {
	for r := newSSEReader(in, most); ; {
		e, err := r.next()
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

func TestEventsAreParsedFromAStream(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		in   string
		want []sse
		err  error
	}{
		"nothing":                    {"", nil, io.ErrUnexpectedEOF},
		"one":                        {"event: a\nid: 1\ndata: x\n\n", []sse{{"a", "1", []byte("x")}}, io.ErrUnexpectedEOF},
		"without blanks":             {"event:a\r\nid:1\r\ndata:x\r\n\r\n", []sse{{"a", "1", []byte("x")}}, io.ErrUnexpectedEOF},
		"two lines of data":          {"data: x\ndata\ndata:  y\n\n", []sse{{"", "", []byte("x\n\n y")}}, io.ErrUnexpectedEOF},
		"an empty line of data":      {"data:\n\n", []sse{{"", "", []byte{}}}, io.ErrUnexpectedEOF},
		"comments":                   {":\n\n: hello\n\nretry: 5\n\n", nil, io.ErrUnexpectedEOF},
		"a cursor in a comment":      {":\nid: 7\n\n", []sse{{"", "7", nil}}, io.ErrUnexpectedEOF},
		"one without its end":        {"data: x\n\ndata: y\n", []sse{{"", "", []byte("x")}}, io.ErrUnexpectedEOF},
		"one that is too long":       {"data: " + strings.Repeat("x", 100) + "\n\n", nil, errEventTooLong},
		"lines that are too long":    {strings.Repeat("data: 1234\n", 10) + "\n", nil, errEventTooLong},
		"a comment that is too long": {":" + strings.Repeat("x", 10_000), nil, errEventTooLong},
		"many small ones":            {strings.Repeat("data: 1234567890\n\n", 10), slicesOf(10, sse{"", "", []byte("1234567890")}), io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(x.in), iotest.OneByteReader(strings.NewReader(x.in))} {
				got, err := readEvents(in, 60)
				if diff := cmp.Diff(x.want, got, cmp.AllowUnexported(sse{})); diff != "" || !errors.Is(err, x.err) {
					t.Errorf("got other events and the error %v, expected %v: %s", err, x.err, diff)
				}
			}
		})
	}
}

// slicesOf returns n times e.
func slicesOf(n int, e sse) []sse {
	all := make([]sse, n)
	for i := range all {
		all[i] = e
	}
	return all
}

func TestReadsAreRecognizedByTheirFirstWord(t *testing.T) {
	t.Parallel()
	for statement, want := range map[string]bool{
		"get a": true, " \t\r\n-- set\n--\nGeT a": true, "explain set a {}": true, "describe(a)": true, "collections": true, "get": true,
		"": false, "--": false, "-- get": false, "getter": false, "gеt a": false, "set a {b: 'get'}": false, "put get {}": false, "get_a b": false,
	} {
		if reads(statement) != want {
			t.Errorf("%q: got %t, expected %t", statement, !want, want)
		}
	}
}

func TestTheErrorOfAnEndedContextNamesTheErrorBefore(t *testing.T) {
	t.Parallel()
	stop := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	refused := &Error{Message: "frozen", kind: ErrUnavailable}
	if err := ended(ctx, refused); err != error(refused) {
		t.Errorf("got %v before the end of the context, expected the error itself", err)
	}
	cancel(stop)
	if err := ended(ctx, refused); !errors.Is(err, stop) || !errors.Is(err, ErrUnavailable) || err.Error() != "stopped, and before that: frozen" {
		t.Errorf("got %v at the end of the context, expected both errors", err)
	}
	if err := ended(ctx, &broken{stop}); err.Error() != "no response: stopped" {
		t.Errorf("got %v at the end of the context in a request, expected no response", err)
	}
}

// FuzzEvents checks that a stream is split into the same events however its bytes arrive, and within bounds.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: seed\nid: 3@1-aa\ndata: {\"seq\":3,\"rows\":[{\"id\":1}]}\n\n:\n\nevent: change\r\nid: 4\r\ndata: {\"puts\":[],\"dels\":[1]}\r\n\r\n"))
	f.Add([]byte("data\ndata: \n\n\n\nid\n\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		const most = 200
		whole, wholeErr := readEvents(bytes.NewReader(in), most)
		parts, partsErr := readEvents(iotest.OneByteReader(bytes.NewReader(in)), most)
		if diff := cmp.Diff(whole, parts, cmp.AllowUnexported(sse{})); diff != "" || !errors.Is(partsErr, wholeErr) {
			t.Fatalf("%v, %v: %s", wholeErr, partsErr, diff)
		}
		for _, e := range whole {
			if len(e.name)+len(e.id)+len(e.data) > most {
				t.Fatalf("got an event of %d bytes, expected at most %d", len(e.name)+len(e.id)+len(e.data), most)
			}
			if event, err := decodeEvent[map[string]any](e); err == nil && event.Position.String() == "" {
				t.Fatalf("got %+v, expected a position", event)
			}
		}
	})
}

// FuzzChanges checks that lines of changes are parsed completely or not at all.
func FuzzChanges(f *testing.F) {
	f.Add([]byte(`{"seq":2,"at":1767323045021,"collection":"books","op":"put","id":1,"doc":{"id":1,"title":"Emma"}}` + "\n" + `{"seq":3,"op":"del","id":1}` + "\n"))
	f.Add([]byte("{}\n\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		changes, err := readChanges(in, "1-aa")
		if err == nil && len(changes) != bytes.Count(in, []byte("\n")) {
			t.Fatalf("got %d changes of %d lines", len(changes), bytes.Count(in, []byte("\n")))
		}
		for _, c := range changes {
			if c.Doc == nil {
				continue
			}
			if _, err := Decode[any](c.Doc); err != nil {
				t.Fatalf("got an invalid document: %v", err)
			}
		}
	})
}
