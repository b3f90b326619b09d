package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
)

// Names are made of syllables: four of five plain, the others with marks, some in Greek and Cyrillic, some in capitals,
// with a hyphen or an apostrophe, as a list of people has them.
var (
	plainSyllables  = strings.Fields("an ber ca do el fa gar ha is jo ka lin ma nor ol pe ra sa tor ul vi wen xi ya zu mar ste chri phi tho")
	markedSyllables = strings.Fields("é ün ñez ö å ç ø ś ž ř ğ ı ě à û ï ß æ ł đ")
	greekSyllables  = strings.Fields("α νί κο λά ος μα ρία γιώ πα δη")
	slavicSyllables = strings.Fields("ив ан ов ел ена се рге й на тё ша мих")
)

// nameOf is the i-th name: the same for both sides.
func nameOf(at *rand.Rand) string {
	script := at.IntN(20)
	word := func() string {
		var b strings.Builder
		for range 2 + at.IntN(3) {
			switch {
			case script == 0:
				b.WriteString(greekSyllables[at.IntN(len(greekSyllables))])
			case script == 1:
				b.WriteString(slavicSyllables[at.IntN(len(slavicSyllables))])
			case script < 6 && at.IntN(3) == 0:
				b.WriteString(markedSyllables[at.IntN(len(markedSyllables))])
			default:
				b.WriteString(plainSyllables[at.IntN(len(plainSyllables))])
			}
		}
		w := b.String()
		if at.IntN(10) > 0 {
			r := []rune(w)
			w = strings.ToUpper(string(r[:1])) + string(r[1:])
		}
		return w
	}
	between := " "
	switch at.IntN(30) {
	case 0:
		between = "-"
	case 1:
		between = " O'"
	}
	return word() + between + word()
}

func names(each func(i int, name string)) {
	at := rand.New(rand.NewPCG(3, 4))
	for i := range millionRows {
		each(i, nameOf(at))
	}
}

// collationFigures compares a million names in Unicode's order with PostgreSQL's by ICU. Both sort all of them and
// answer the last, so that neither is asked to send a million rows.
func collationFigures(r *report) error {
	pg, err := startPostgres()
	if errors.Is(err, errNoPostgres) {
		r.skip("a million names in order", err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	defer pg.close()
	if err := pg.load("names", "id bigint, name text", func(w *bytes.Buffer) {
		names(func(i int, name string) { fmt.Fprintf(w, "%d\t%s\n", i+1, name) })
	}); err != nil {
		return err
	}
	ours, err := newDatabase(`create collection names (name text)`)
	if err != nil {
		return err
	}
	defer ours.close()
	names(func(_ int, name string) {
		if err == nil {
			err = ours.exec(`put names {name: $1}`, text(name))
		}
	})
	if err != nil {
		return err
	}
	if err := sameOrder(r, pg, ours); err != nil {
		return err
	}
	for _, workers := range []int{1, 0} {
		if err := pg.figure(r, ours, millionFigure{
			name: "order of 1 000 000 names by und", workers: workers, runs: 1, atLeast: 1,
			ours: fmt.Sprintf(ourName, millionRows-1), peer: fmt.Sprintf(postgresName, millionRows-1),
		}); err != nil {
			return err
		}
	}
	return nil
}

const (
	ourName      = `get names select name order name collate und offset %d limit 1`
	postgresName = `select name from names order by name collate "und-x-icu" offset %d limit 1`
)

// sameOrder says how far the two orders agree: they come from tables of different Unicode versions.
func sameOrder(r *report, pg *postgres, ours *ours) error {
	sorted, err := pg.psql(strings.NewReader(`select name from names order by name collate "und-x-icu";`))
	if err != nil {
		return err
	}
	if err := ours.exec(`get names select name order name collate und`); err != nil {
		return err
	}
	var got []struct{ Name string }
	if err := json.Unmarshal(ours.dst, &got); err != nil {
		return err
	}
	same := 0
	for i, name := range strings.Split(strings.TrimSuffix(sorted, "\n"), "\n") {
		if i < len(got) && got[i].Name == name {
			same++
		}
	}
	r.fact("names of 1 000 000 in the same place in both orders", fmt.Sprint(same), fmt.Sprint(millionRows), same == millionRows)
	return nil
}
