package engine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fenec/engine/fail"
	"fenec/internal/vfs/crashfs"

	"pgregory.net/rapid"
)

// keyModel is a model of the keys of a database.
type keyModel struct {
	at     time.Time
	texts  string
	answer string
}

// TestKeysMatchTheModel runs random sequences of writes with and without keys, time steps, sweeps, compacts and restarts.
func TestKeysMatchTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_700_000_000, 0)
		o := Options{FS: crashfs.New(1), Clock: func() time.Time { return now }, KeyTTL: time.Minute}
		db, err := Create(file, o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { db.Close() }()
		if _, err := exec(db, `create collection c (n int @unique)`); err != nil {
			t.Fatal(err)
		}
		keys, rows := map[string]keyModel{}, map[int]bool{}
		send := func(key string, ns ...int) {
			var texts []string
			taken := false
			seen := map[int]bool{}
			for _, n := range ns {
				texts = append(texts, fmt.Sprintf(`put c {n: %d}`, n))
				taken = taken || rows[n] || seen[n]
				seen[n] = true
			}
			text := strings.Join(texts, "\n")
			had, found := keys[key]
			found = found && now.Sub(had.at) < time.Minute
			answer, kept, err := keyed(db, key, texts...)
			switch {
			case found && had.texts != text:
				if fail.KindOf(err) != fail.Reused {
					t.Fatalf("%s under the key of %s: %v", text, had.texts, err)
				}
			case found:
				if err != nil || kept == nil || answer != had.answer {
					t.Fatalf("%s sent again: %q, %v, want %q", text, answer, err, had.answer)
				}
			case taken:
				if fail.KindOf(err) != fail.Conflict {
					t.Fatalf("%s: %v", text, err)
				}
			case err != nil || kept != nil:
				t.Fatalf("%s: %v, %v", text, kept, err)
			default:
				keys[key] = keyModel{now, text, answer}
				for n := range seen {
					rows[n] = true
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				res, err := exec(db, `get c count`)
				if want := fmt.Sprintf(`[{"count":%d}]`, len(rows)); err != nil || string(res.Body) != want {
					t.Fatalf("got %s %v, want %s", res.Body, err, want)
				}
				if keysKept(db) > len(keys) {
					t.Fatalf("%d keys are kept, %d were ever taken", keysKept(db), len(keys))
				}
			},
			"send": func(t *rapid.T) {
				send(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "key"), rapid.SliceOfN(rapid.IntRange(0, 30), 1, 2).Draw(t, "n")...)
			},
			"again": func(t *rapid.T) {
				for key, m := range keys {
					var ns []int
					for line := range strings.Lines(m.texts) {
						n := 0
						fmt.Sscanf(line, "put c {n: %d}", &n)
						ns = append(ns, n)
					}
					send(key, ns...)
				}
			},
			"wait": func(t *rapid.T) { now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "s")) * time.Second) },
			"compact": func(t *rapid.T) {
				if _, err := exec(db, `compact`); err != nil {
					t.Fatal(err)
				}
			},
			"sweep": func(t *rapid.T) {
				if err := sweep(db); err != nil {
					t.Fatal(err)
				}
				live := 0
				for _, m := range keys {
					if now.Sub(m.at) < time.Minute {
						live++
					}
				}
				if keysKept(db) != live {
					t.Fatalf("%d keys are kept, want %d", keysKept(db), live)
				}
			},
			"reopen": func(t *rapid.T) {
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
				if db, err = Open(file, o); err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}
