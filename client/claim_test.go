package client_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"fenec/client"
)

const claim = "set jobs {run_at: now() + 30_000} where run_at <= now() order run_at limit 1 returning *"

func TestAClaimIsSentUntilItsWaitEnds(t *testing.T) {
	t.Parallel()
	nothing, job, unmet := says(200, "[]"), says(200, `[{"id":7}]`), says(412, "{}")
	plain := func(c *client.Client) *client.Client { return c }
	for name, x := range map[string]struct {
		of    func(*client.Client) *client.Client
		wait  time.Duration
		turns []turn
		waits []string
		rows  int
		err   error
	}{
		"a job at once":               {plain, time.Minute, []turn{job}, []string{"30000"}, 1, nil},
		"a job at last":               {plain, time.Minute, []turn{nothing, job}, []string{"30000", "30000"}, 1, nil},
		"a job that was waited for":   {plain, time.Hour, []turn{unmet, job}, []string{"30000", "30000"}, 1, nil},
		"no job":                      {plain, time.Second, []turn{nothing}, []string{"1000"}, 0, nil},
		"no wait":                     {plain, 0, []turn{nothing}, []string{"1"}, 0, nil},
		"a require not met":           {plain, time.Second, []turn{unmet}, []string{"1000"}, 0, client.ErrRequire},
		"under one key":               {func(c *client.Client) *client.Client { return c.WithKey("k") }, time.Minute, []turn{nothing}, []string{"30000"}, 0, nil},
		"under keys, its answer lost": {(*client.Client).WithKeys, time.Second, []turn{cuts, job}, []string{"1000", "1000"}, 1, nil},
		"a tenant that moves":         {plain, time.Second, []turn{frozen}, []string{"1000"}, 0, client.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var waits []string
			turns := slices.Clone(x.turns)
			for i, next := range turns {
				turns[i] = func(w http.ResponseWriter, r *http.Request) {
					ms, err := time.ParseDuration(r.Header.Get("Fenec-Wait") + "ms")
					if err != nil {
						t.Error(err)
					}
					waits = append(waits, ms.Round(100*time.Millisecond).String())
					next(w, r)
				}
			}
			server, _ := scripted(t, turns...)
			rows, err := client.Claim[book](t.Context(), x.of(newClient(t, server, client.Options{})), x.wait, claim)
			if len(rows) != x.rows || !errors.Is(err, x.err) {
				t.Errorf("got %d rows and the error %v, expected %d and %v", len(rows), err, x.rows, x.err)
			}
			want := make([]string, len(x.waits))
			for i, ms := range x.waits {
				d, _ := time.ParseDuration(ms + "ms")
				want[i] = d.Round(100 * time.Millisecond).String()
			}
			if !slices.Equal(waits, want) {
				t.Errorf("got the waits %s, expected %s", waits, want)
			}
		})
	}
}
