package client_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"fenec/client"

	"github.com/go-json-experiment/json"
)

func TestAPositionRoundTripsAsText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]client.Position{
		"0": {}, "17@2-9f86": {Seq: 17, History: "2-9f86"}, "9223372036854775807": {Seq: 1<<63 - 1},
	} {
		got, err := client.ParsePosition(text)
		if got != want || got.String() != text || err != nil {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
		var back client.Position
		encoded, err := json.Marshal(got)
		if err != nil || json.Unmarshal(encoded, &back) != nil || back != got {
			t.Errorf("%s: got %s as JSON and %+v from it, %v", text, encoded, back, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "+1", "9223372036854775808", "1@a\nb", "1@ä"} {
		if got, err := client.ParsePosition(text); err == nil {
			t.Errorf("%q: got %+v, expected an error", text, got)
		}
	}
}

// TestAClientRemembersTheLatestWrite receives responses in another order than their writes landed.
func TestAClientRemembersTheLatestWrite(t *testing.T) {
	t.Parallel()
	const lineage, other = "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"
	steps := []struct{ seq, history, want string }{
		{"5", "1-" + lineage + "00", "5@1-" + lineage + "00"},
		{"4", "1-" + lineage + "00", "5@1-" + lineage + "00"},
		{"6", "1-" + lineage + "00", "6@1-" + lineage + "00"},
		{"3", "2-" + lineage + "11", "3@2-" + lineage + "11"}, // a fork continues from where it began
		{"9", "1-" + lineage + "00", "3@2-" + lineage + "11"}, // a late response from before the fork
		{"1", "1-" + other + "22", "1@1-" + other + "22"},     // the tenant was created again
	}
	turns := make([]turn, len(steps))
	for i, s := range steps {
		turns[i] = says(200, `{"affected":1}`, "Fenec-Seq", s.seq, "Fenec-History", s.history)
	}
	server, _ := scripted(t, turns...)
	c := newClient(t, server, client.Options{})
	for i, s := range steps {
		exec(t, c.WithKeys(), "put books {}")
		if got := c.Position().String(); got != s.want {
			t.Errorf("after response %d: got %s, expected %s", i, got, s.want)
		}
	}
}

func TestReadsOfACopyNameTheLatestWriteOfTheClient(t *testing.T) {
	t.Parallel()
	var heads []http.Header
	server, _ := scripted(t, func(w http.ResponseWriter, r *http.Request) {
		heads = append(heads, r.Header.Clone())
		says(200, `[{}]`, "Fenec-Seq", "7", "Fenec-History", "1-aa")(w, r)
	})
	c := newClient(t, server, client.Options{Token: "tok"})
	read := c.Read()
	exec(t, read, "get books")
	if _, err := c.Exec(t.Context(), "put books {}"); err != nil {
		t.Fatal(err)
	}
	exec(t, read, "get books")
	exec(t, c, "get books")
	exec(t, c.At(client.Position{Seq: 3}).Read(), "get books")
	for i, want := range []string{"replica", "", "replica 7 1-aa", "", "replica 3"} {
		h := heads[i]
		got := strings.TrimSpace(strings.Join([]string{h.Get("Fenec-Read"), h.Get("Fenec-After"), h.Get("Fenec-History")}, " "))
		if got != want || h.Get("Authorization") != "Bearer tok" {
			t.Errorf("request %d: got the headers %q, expected %q", i, got, want)
		}
	}
}

func TestAParsedPositionIsAcceptedForReads(t *testing.T) {
	t.Parallel()
	c := withBooks(t)
	for i := range 20 {
		exec(t, c, "put books {title: $1}", string(rune('a'+i)))
		rows, err := client.Query[book](t.Context(), c.Read(), "get books")
		if err != nil || len(rows) != i+1 {
			t.Fatalf("got %d rows after %d writes, %v", len(rows), i+1, err)
		}
	}
	at := c.Position()
	p, err := client.ParsePosition(at.String())
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := c.At(p)
	exec(t, elsewhere.Read(), "get books")
	lost := elsewhere.At(client.Position{Seq: 1, History: "1-0123456789abcdef0123456789abcdef"})
	_, err = client.Query[book](t.Context(), lost.Read(), "get books")
	var e *client.Error
	if !errors.Is(err, client.ErrBehind) || errors.Is(err, client.ErrUnavailable) || !errors.As(err, &e) || e.Position != at {
		t.Errorf("got %#v for a position of another tenant, expected ErrBehind with %s", err, at)
	}
	exec(t, lost.At(client.Position{}).Read(), "get books")
}
