package wal

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"testing"

	"fenec/engine/fail"

	"pgregory.net/rapid"
)

// streamed returns what a stream replays of data, which arrives in pieces of the given sizes, and then the rest.
func streamed(data []byte, sizes ...int) (list []string, s *Stream, err error) {
	var kept [][]byte
	s = NewStream(func(_ Kind, data []byte, from, to int) error {
		kept = append(kept, data[from:to])
		return nil
	})
	for _, n := range sizes {
		n = min(n, len(data))
		if _, err = s.Write(data[:n]); err != nil {
			return nil, s, err
		}
		data = data[n:]
	}
	if _, err = s.Write(data); err == nil {
		err = s.End()
	}
	// They are read once everything has arrived: a slice passed to replay does not change.
	for _, b := range kept {
		list = append(list, string(b))
	}
	return list, s, err
}

func TestAStreamInAnyPiecesReplaysWhatOpenDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawFile(t)
		sizes := rapid.SliceOfN(rapid.IntRange(0, 60), 0, 40).Draw(t, "pieces")
		_, all := w.whole(w.data)
		list, _, err := streamed(w.data, sizes...)
		if err != nil || !slices.Equal(list, w.said(all)) {
			t.Fatalf("replayed %q, %v, want %q", list, err, w.texts)
		}
		harmed := harm(t, w.data)
		list, _, err = streamed(harmed, sizes...)
		header, whole := w.whole(harmed)
		// A file that ends with a record, of which each is whole or skipped, is replayed; so is one cut off there.
		end := slices.Index(w.ends, int64(len(harmed)))
		readable := header && end >= 0 && int64(len(harmed)) >= w.base
		for i := 0; readable && i < end; i++ {
			readable = whole[i] || w.skipped(harmed, i)
		}
		switch left := w.said(whole); {
		case readable:
			if err != nil || !slices.Equal(list, left) {
				t.Fatalf("replayed %q, %v, want %q", list, err, left)
			}
		case fail.KindOf(err) != fail.Damaged:
			t.Fatalf("a harmed file is replayed as %q, %v", list, err)
		}
	})
}

func TestAStreamGathersRecordsLargerThanItsSegments(t *testing.T) {
	fs := store(t, nil)
	if err := fs.Remove(file); err != nil {
		t.Fatal(err)
	}
	l, err := Create(file, Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i, n := range []int{10, streamSegment - HeaderSize, 5*streamSegment + 3, 0, streamSegment / 2, streamSegment / 2, 7} {
		text := string(bytes.Repeat([]byte{byte('a' + i)}, n))
		want = append(want, text)
		l.Stage(Block, room(text))
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	data := stored(t, fs)
	var pieces []int
	for range len(data) / 100_000 {
		pieces = append(pieces, 100_000)
	}
	if list, _, err := streamed(data, pieces...); err != nil || !slices.Equal(list, want) {
		t.Fatalf("replayed %d records, %v, want %d", len(list), err, len(want))
	}
}

func TestALengthThatIsNotTrueTakesNoMemory(t *testing.T) {
	data, ends := sample(t)
	h, err := parseFileHeader(data)
	if err != nil {
		t.Fatal(err)
	}
	rec := room("")
	seal(rec, Block, 0, h.salt, ends[len(ends)-1], unknown)
	m := mask(h.salt, ends[len(ends)-1])
	binary.LittleEndian.PutUint32(rec, MaxPayload)
	binary.LittleEndian.PutUint32(rec[12:], checksum(rec[:12])^m)
	_, s, err := streamed(append(data, append(rec, make([]byte, 3*streamSegment)...)...))
	if fail.KindOf(err) != fail.Damaged {
		t.Fatalf("a record that is not there: %v", err)
	}
	if cap(s.data) > 6*streamSegment {
		t.Errorf("%d bytes are kept for it", cap(s.data))
	}
}

func TestALogAppendsAfterWhatAStreamReceived(t *testing.T) {
	data, _ := sample(t)
	fs := store(t, data)
	_, s, err := streamed(data)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fs.OpenFile(file, os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	l := s.Log(file, Options{FS: fs, Sync: Policy{Always: true}}, f)
	if err := l.Commit(l.Stage(Block, room("six"))); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if list, err := words(fs, Options{}); err != nil || !slices.Equal(list, append(slices.Clone(sampleWords), "six")) {
		t.Fatalf("opened again: %q, %v", list, err)
	}
}

func FuzzStream(f *testing.F) {
	data, ends := sample(f)
	f.Add(data, 5)
	f.Add(data[:ends[1]], 30)
	f.Add(data[:ends[2]-3], 1000)
	f.Add([]byte(magic), 1)
	f.Fuzz(func(t *testing.T, data []byte, piece int) {
		list, _, err := streamed(data, piece&0xfff)
		if err != nil {
			if fail.KindOf(err) != fail.Damaged {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		opened, err := replayed(data)
		if err != nil || !slices.Equal(opened, list) {
			t.Fatalf("a stream of what opens as %q, %v is replayed as %q", opened, err, list)
		}
	})
}

// replayed returns what Open replays of data.
func replayed(data []byte) (list []string, err error) {
	h, err := parseFileHeader(data)
	if err != nil {
		return nil, err
	}
	_, err = replayAll(data, h, func(_ Kind, data []byte, from, to int) error {
		list = append(list, string(data[from:to]))
		return nil
	}, func(error) {})
	return list, err
}
