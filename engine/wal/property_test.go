package wal

import (
	"bytes"
	"slices"
	"testing"

	"fenec/engine/fail"

	"pgregory.net/rapid"
)

// written is a file as it was written: where each record ends, and how many of them are its image.
type written struct {
	data  []byte
	base  int64
	ends  []int64 // the first is where the header ends
	kinds []Kind
	texts []string // empty for a mark
}

// said are the texts of the records that are replayed, of which those of whole are there.
func (w written) said(whole []bool) (texts []string) {
	for i, ok := range whole {
		if ok && w.kinds[i] != mark {
			texts = append(texts, w.texts[i])
		}
	}
	return texts
}

func drawFile(t *rapid.T) written {
	fs := store(&testing.T{}, nil)
	if err := fs.Remove(file); err != nil {
		t.Fatal(err)
	}
	w := written{ends: []int64{fileHeaderSize}}
	draw := func() []byte {
		text := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "payload")
		w.texts = append(w.texts, string(text))
		w.ends = append(w.ends, w.ends[len(w.ends)-1]+HeaderSize+int64(len(text)))
		return room(string(text))
	}
	var image []Record
	for range rapid.IntRange(0, 3).Draw(t, "image records") {
		w.kinds = append(w.kinds, rapid.SampledFrom([]Kind{Image, Derived}).Draw(t, "kind"))
		image = append(image, Record{w.kinds[len(w.kinds)-1], draw()})
	}
	w.base = w.ends[len(w.ends)-1]
	l, err := Create(file, Options{FS: fs}, image...)
	if err != nil {
		t.Fatal(err)
	}
	for range rapid.IntRange(0, 6).Draw(t, "blocks") {
		w.kinds = append(w.kinds, rapid.SampledFrom([]Kind{Block, Derived}).Draw(t, "kind"))
		l.Stage(w.kinds[len(w.kinds)-1], draw())
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	if rapid.Bool().Draw(t, "closed in order") {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		w.kinds, w.texts = append(w.kinds, mark), append(w.texts, "")
		w.ends = append(w.ends, l.Size())
	}
	w.data = stored(&testing.T{}, fs)
	return w
}

// harm changes the file in one way a disk or a hand might.
func harm(t *rapid.T, data []byte) []byte {
	data = bytes.Clone(data)
	if len(data) == 0 {
		return data
	}
	at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
	to := min(len(data), at+rapid.IntRange(1, 80).Draw(t, "bytes"))
	switch rapid.IntRange(0, 5).Draw(t, "harm") {
	case 0:
		data[at] ^= rapid.ByteRange(1, 255).Draw(t, "flip")
	case 1:
		clear(data[at:to])
	case 2:
		data = data[:at]
	case 3: // a part of the file again, after it
		data = append(data, data[at:to]...)
	case 4: // a part of the file over another
		copy(data[rapid.IntRange(0, len(data)-1).Draw(t, "onto"):], bytes.Clone(data[at:to]))
	case 5: // bytes lost in the middle
		data = slices.Delete(data, at, to)
	}
	return data
}

// whole reports which records of data are as they were written, and whether the header is.
func (w written) whole(data []byte) (header bool, records []bool) {
	same := func(from, to int64) bool {
		return to <= int64(len(data)) && bytes.Equal(data[from:to], w.data[from:to])
	}
	for i := range w.texts {
		records = append(records, same(w.ends[i], w.ends[i+1]))
	}
	return same(0, fileHeaderSize), records
}

// skipped reports whether record i is derived and its header in data is whole.
func (w written) skipped(data []byte, i int) bool {
	from, to := w.ends[i], w.ends[i]+HeaderSize
	return w.kinds[i] == Derived && w.ends[i+1] <= int64(len(data)) && bytes.Equal(data[from:to], w.data[from:to])
}

// replayed returns what Open makes of data: the records up to the first harm that is after the image and has nothing
// whole after it, without derived ones whose header is intact. Open refuses any other harm before that.
func (w written) replayed(data []byte) (texts []string, refused bool) {
	header, records := w.whole(data)
	if !header {
		return nil, true
	}
	for i, whole := range records {
		switch {
		case whole && w.kinds[i] == mark:
		case whole:
			texts = append(texts, w.texts[i])
		case w.ends[i] >= w.base && !slices.Contains(records[i:], true):
			return texts, false
		case !w.skipped(data, i):
			return nil, true
		}
	}
	return texts, false
}

// TestHarmIsCutOffTheEndOrReportedAndNothingElse checks exactly what each file opens as.
func TestHarmIsCutOffTheEndOrReportedAndNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawFile(t)
		data := w.data
		for range rapid.IntRange(1, 2).Draw(t, "harms") {
			data = harm(t, data)
		}
		header, records := w.whole(data)
		want, refused := w.replayed(data)
		var got []string
		l, err := Open(file, Options{FS: store(&testing.T{}, data)}, func(_ Kind, data []byte, from, to int) error {
			got = append(got, string(data[from:to]))
			return nil
		})
		switch {
		case refused:
			if fail.KindOf(err) != fail.Damaged {
				t.Fatalf("opened with %d records, %v; whole are %v", len(got), err, records)
			}
		case err != nil:
			t.Fatalf("refused with %v; whole are %v", err, records)
		default:
			if !slices.Equal(got, want) {
				t.Fatalf("opened with %q, want %q of %q", got, want, w.texts)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
		checkReads(t, w, data, header, records)
	})
}

// checkReads asserts that Check finds every whole record and no other, as long as it can derive the salt from the
// header or the first record.
func checkReads(t *rapid.T, w written, data []byte, header bool, records []bool) {
	var got []string
	want := w.said(records)
	_, err := Check(store(&testing.T{}, data), file, func(_ int64, _ Kind, payload []byte, err error) {
		if err == nil {
			got = append(got, string(payload))
		}
	})
	if (header || len(records) > 0 && records[0]) && (err != nil || !slices.Equal(got, want)) {
		t.Fatalf("check reads %q, %v, want %q", got, err, want)
	}
}
