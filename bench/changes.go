package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"fenec/engine"
	"fenec/engine/doc"
	"fenec/engine/feed"
)

const (
	followed  = 20_000 // writes of a turn, by one client
	fedPuts   = 50_000 // of a turn
	pageOfAll = 10_000 // the most changes a page has
)

// changeFigures compares handing out changes with making them, and a put that is followed with one that is not.
func changeFigures(r *report) error {
	if err := fedFigure(r); err != nil {
		return err
	}
	l, err := newLab()
	if err != nil {
		return err
	}
	defer l.close()
	port, err := l.startNode("", "changes", "--sync", "off")
	if err != nil {
		return err
	}
	if err := createTenant(port, "x"); err != nil {
		return err
	}
	base := "http://" + address(port) + "/t/x"
	if _, err := send("POST", base+"/query", "", `{"query": "create collection c (body text)"}`); err != nil {
		return err
	}
	body := `{"body": "` + strings.Repeat("x", 166) + `"}` // 200 bytes with what a document has around it
	p50 := l.ping(port, "/t/x/c", followed, "POST", body)
	since := uint64(1)
	got, err := turns(rounds,
		side{"POST /c", func() (float64, error) {
			us, err := p50()
			return 1e6 / us, err
		}},
		side{"/_changes", func() (float64, error) {
			began := time.Now()
			n, err := follow(base, &since)
			if err == nil && n < followed {
				err = fmt.Errorf("%d changes are handed out where %d were made", n, followed)
			}
			return float64(n) / time.Since(began).Seconds(), err
		}})
	if err != nil {
		return err
	}
	r.row(figure{
		name: "writes of 200 bytes that /_changes hands out, beside one client's puts", unit: "/s", rate: true, atLeast: 10,
		peer: side{name: "POST /c"},
	}, got[1], got[0])
	return nil
}

// fedFigure puts in turns into a database that a feed follows and one that none does.
func fedFigure(r *report) error {
	row := text(strings.Repeat("x", 180))
	turn := func(feed engine.Feed) (func() (float64, error), error) {
		o, err := create("fed.fenec", engine.Options{FS: memoryFS{}, Feed: feed}, `create collection c (n int, body text)`)
		if err != nil {
			return nil, err
		}
		st := engine.Statement{Text: `put c {n: $1, body: $2}`, Params: []doc.Value{integer(7), row}}
		return func() (float64, error) {
			began := time.Now()
			for range fedPuts {
				if _, err := o.db.Exec(context.Background(), engine.Everything(), st, nil); err != nil {
					return 0, err
				}
			}
			return float64(time.Since(began).Nanoseconds()) / 1e3 / fedPuts, nil
		}, nil
	}
	with, err := turn(feed.New(feed.DefaultKeep))
	if err != nil {
		return err
	}
	without, err := turn(nil)
	if err != nil {
		return err
	}
	return r.figure(figure{
		name: "put of 200 bytes that a feed follows, beside one without", unit: "us", atMost: 1.05,
		ours: side{"with a feed", with}, peer: side{"without", without},
	})
}

// follow reads the changes behind since to their end, and says how many there were.
func follow(base string, since *uint64) (changes int, err error) {
	for {
		res, err := http.Get(fmt.Sprintf("%s/_changes?since=%d&limit=%d", base, *since, pageOfAll))
		if err != nil {
			return changes, err
		}
		got, err := countLines(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != 200 {
			return changes, errors.Join(errors.New("/_changes: "+res.Status), err)
		}
		if _, err := fmt.Sscan(res.Header.Get("Fenec-Next"), since); err != nil {
			return changes, fmt.Errorf("/_changes names no next position: %w", err)
		}
		if changes += got; got == 0 {
			return changes, nil
		}
	}
}

// countLines reads to the end and counts the lines.
func countLines(r io.Reader) (n int, err error) {
	buf := make([]byte, 256<<10)
	for {
		k, err := r.Read(buf)
		for _, c := range buf[:k] {
			if c == '\n' {
				n++
			}
		}
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}
