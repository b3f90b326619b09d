package wal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"fenec/engine/fail"
	"fenec/internal/vfs"
	"fenec/internal/vfs/crashfs"

	"github.com/rs/zerolog"
)

// sample returns a small file as a killed process left it: an image of two words, then three blocks. ends are the
// offsets after each record.
func sample(t testing.TB) (data []byte, ends []int64) {
	t.Helper()
	fs := crashfs.New(1)
	if err := fs.MkdirAll("/data", 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := Create(file, Options{FS: fs}, Record{Image, imageOf([]string{"one", "two"})})
	if err != nil {
		t.Fatal(err)
	}
	ends = append(ends, l.Size())
	for _, word := range []string{"three", "four", "five-and-the-last"} {
		l.Stage(Block, room(word))
		ends = append(ends, l.Size())
	}
	kill(t, l)
	return stored(t, fs), ends
}

func stored(t testing.TB, fs vfs.FS) []byte {
	t.Helper()
	f, err := fs.OpenFile(file, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := readAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// store is a file system that holds data as the file.
func store(t testing.TB, data []byte) *crashfs.FS {
	t.Helper()
	fs := crashfs.New(1)
	if err := fs.MkdirAll("/data", 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := fs.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(data, 0); err != nil {
		t.Fatal(err)
	}
	return fs
}

var sampleWords = []string{"one", "two", "three", "four", "five-and-the-last"}

// wantDamaged asserts that opening the file fails with the offset and changes nothing.
func wantDamaged(t *testing.T, name string, data []byte) {
	t.Helper()
	fs := store(t, data)
	before := fs.Ops()
	list, err := words(fs, Options{})
	if fail.KindOf(err) != fail.Damaged || !strings.Contains(err.Error(), "offset ") {
		t.Fatalf("%s: found %q, %v, want it damaged at an offset", name, list, err)
	}
	if fs.Ops() != before {
		t.Fatalf("%s: a damaged file was changed", name)
	}
}

// wantCut asserts that the file opens with the words, and accepts another after them.
func wantCut(t *testing.T, name string, data []byte, want []string) {
	t.Helper()
	fs := store(t, data)
	if list, err := words(fs, Options{}); err != nil || !slices.Equal(list, want) {
		t.Fatalf("%s: found %q, %v, want %q", name, list, err, want)
	}
	l, err := Open(file, Options{FS: fs}, func(Kind, []byte, int, int) error { return nil })
	if err != nil {
		t.Fatalf("%s: opened again: %v", name, err)
	}
	l.Stage(Block, room("z"))
	if err := l.Close(); err != nil {
		t.Fatalf("%s: closed: %v", name, err)
	}
	if size := int64(len(stored(t, fs))); size != l.Size() {
		t.Fatalf("%s: the file has %d bytes, the log %d", name, size, l.Size())
	}
	if list, err := words(fs, Options{}); err != nil || !slices.Equal(list, append(slices.Clone(want), "z")) {
		t.Fatalf("%s: with another word found %q, %v", name, list, err)
	}
}

func TestAFlippedByteCutsTheLastRecordOrIsReported(t *testing.T) {
	data, ends := sample(t)
	last := ends[len(ends)-2]
	for off := range data {
		for _, flip := range []byte{0x01, 0x80, 0xff, data[off]} {
			if flip == 0 {
				continue
			}
			flipped := bytes.Clone(data)
			flipped[off] ^= flip
			name := fmt.Sprintf("byte %d changed by %#x", off, flip)
			if int64(off) < last {
				wantDamaged(t, name, flipped)
			} else {
				wantCut(t, name, flipped, sampleWords[:4])
			}
		}
	}
}

func TestAFlippedByteInAnImageIsReportedThoughNothingFollows(t *testing.T) {
	fs := store(t, nil)
	if err := fs.Remove(file); err != nil {
		t.Fatal(err)
	}
	l, err := Create(file, Options{FS: fs}, Record{Image, imageOf([]string{"one"})}, Record{Image, imageOf([]string{"two"})})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	data := stored(t, fs)
	for off := range data[:l.Size()-HeaderSize] { // damage in the mark after it is what a crash may leave
		flipped := bytes.Clone(data)
		flipped[off] ^= 0x04
		wantDamaged(t, fmt.Sprintf("byte %d flipped", off), flipped)
	}
}

// TestADerivedRecordThatIsDamagedIsPassedOver damages two of them, in the image and between blocks. Their content can
// be rebuilt, so the file is not refused for them. Their headers say where they begin and end; that is not guessed.
func TestADerivedRecordThatIsDamagedIsPassedOver(t *testing.T) {
	fs := store(t, nil)
	if err := fs.Remove(file); err != nil {
		t.Fatal(err)
	}
	l, err := Create(file, Options{FS: fs}, Record{Image, imageOf([]string{"one"})}, Record{Derived, room("kept")})
	if err != nil {
		t.Fatal(err)
	}
	derived := [][2]int64{{l.Size() - 4 - HeaderSize, l.Size()}}
	l.Stage(Block, room("two"))
	at := l.Size()
	l.Stage(Derived, room("later"))
	derived = append(derived, [2]int64{at, l.Size()})
	l.Stage(Block, room("three"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	data := stored(t, fs)
	all := []string{"one", "kept", "two", "later", "three"}
	for i, d := range derived {
		left := slices.Delete(slices.Clone(all), 2*i+1, 2*i+2)
		for off := d[0]; off < d[1]; off++ {
			flipped := bytes.Clone(data)
			flipped[off] ^= 0x20
			name := fmt.Sprintf("byte %d flipped", off)
			if off < d[0]+HeaderSize {
				wantDamaged(t, name, flipped)
				continue
			}
			var log bytes.Buffer
			fs := store(t, flipped)
			list, err := words(fs, Options{Log: zerolog.New(&log)})
			if err != nil || !slices.Equal(list, left) || !bytes.Equal(stored(t, fs), flipped) {
				t.Fatalf("%s: opened as %q, %v, want %q and the file as it was", name, list, err, left)
			}
			if !strings.Contains(log.String(), fmt.Sprintf("offset %d is damaged in its payload", d[0])) {
				t.Fatalf("%s: nothing in the log: %s", name, &log)
			}
			if list, _, err := streamed(flipped, 7); err != nil || !slices.Equal(list, left) {
				t.Fatalf("%s: streamed as %q, %v, want %q", name, list, err, left)
			}
			if list, damage, r := found(t, flipped); !slices.Equal(list, left) || !slices.Equal(damage, []int64{d[0]}) || r.Torn != 0 {
				t.Fatalf("%s: check finds %q, damage at %d, %+v", name, list, damage, r)
			}
		}
	}
}

func TestARecordOfAnotherFileIsNoRecord(t *testing.T) {
	data, ends := sample(t)
	other, otherEnds := sample(t)
	if !slices.Equal(ends, otherEnds) || bytes.Equal(data, other) {
		t.Fatal("want two files that differ in their salt alone")
	}
	wantCut(t, "a last record of another file", append(bytes.Clone(data[:ends[2]]), other[ends[2]:]...), sampleWords[:4])
}

func TestAFileCutAnywhereLosesOnlyTheRecordThatIsCut(t *testing.T) {
	data, ends := sample(t)
	for size := range data {
		name := fmt.Sprintf("cut to %d bytes", size)
		if int64(size) < ends[0] {
			wantDamaged(t, name, data[:size])
			continue
		}
		whole := 1 // words of the image, less one
		for _, end := range ends {
			if end <= int64(size) {
				whole++
			}
		}
		wantCut(t, name, data[:size], sampleWords[:whole])
	}
}

func TestATailThatIsNoRecordIsCutOff(t *testing.T) {
	data, ends := sample(t)
	cut := data[:ends[2]+7]
	for name, torn := range map[string][]byte{
		"one zero byte":                        append(bytes.Clone(data), 0),
		"a page of zeros":                      append(bytes.Clone(data), make([]byte, 4096)...),
		"half a record and zeros":              append(bytes.Clone(cut), make([]byte, 9000)...),
		"a header without a payload and zeros": append(bytes.Clone(data[:ends[2]+HeaderSize]), make([]byte, 17)...),
		"noise":                                append(bytes.Clone(data), bytes.Repeat([]byte{0x02, 0, 0, 0, 0xfe}, 99)...),
		"a copy of the last record":            append(bytes.Clone(data), data[ends[2]:]...),
	} {
		want := sampleWords
		if bytes.HasPrefix(torn, cut) && !bytes.HasPrefix(torn, data) {
			want = sampleWords[:4]
		}
		wantCut(t, name, torn, want)
	}
}

func TestACopyOfARecordInsideATornDocumentIsNoRecord(t *testing.T) {
	data, ends := sample(t)
	copied := data[ends[0]:ends[1]]
	fs := store(t, data)
	l, err := Open(file, Options{FS: fs}, func(Kind, []byte, int, int) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	l.Stage(Block, append(make([]byte, HeaderSize), bytes.Repeat(copied, 5)...))
	kill(t, l)
	torn := stored(t, fs)
	wantCut(t, "a torn document that holds records", torn[:len(torn)-1], sampleWords)
}

func TestWhatIsNoFileOfThisVersionIsRefusedByName(t *testing.T) {
	data, ends := sample(t)
	newer := bytes.Clone(data)
	newer[6] = 2
	binary.LittleEndian.PutUint32(newer[20:], checksum(newer[:20]))
	var header fileHeader
	header, err := parseFileHeader(data)
	if err != nil {
		t.Fatal(err)
	}
	kind := bytes.Clone(data)
	rec := room("of the future")
	seal(rec, Kind(9), checksum(rec[HeaderSize:]), header.salt, ends[3], unknown)
	kind = append(kind, rec...)
	for _, c := range []struct {
		name, want string
		data       []byte
	}{
		{"an empty file", "empty", nil},
		{"another file", "not a fenec database", []byte("SQLite format 3\x00 and so on and on")},
		{"a newer format", "format version 2", newer},
		{"a newer kind of record", "kind 9", kind},
	} {
		wantDamaged(t, c.name, c.data)
		if _, err := words(store(t, c.data), Options{}); !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s has the error %q, want %q in it", c.name, err, c.want)
		}
	}
}

// found is what Check visits: the words it reads and the offsets of damage.
func found(t *testing.T, data []byte) (list []string, damage []int64, r Report) {
	t.Helper()
	r, err := Check(store(t, data), file, func(offset int64, k Kind, payload []byte, err error) {
		if err != nil {
			damage = append(damage, offset)
		} else {
			list = append(list, strings.Fields(string(payload))...)
		}
	})
	if err != nil {
		t.Fatalf("check: %v", err)
	}
	return list, damage, r
}

func TestCheckReadsPastAFlippedByteAnywhere(t *testing.T) {
	data, ends := sample(t)
	if list, damage, r := found(t, data); !slices.Equal(list, sampleWords) || damage != nil || r.Torn != 0 || r.Records != 4 {
		t.Fatalf("a whole file: found %q, damage at %d, %+v", list, damage, r)
	}
	for off := range data {
		flipped := bytes.Clone(data)
		flipped[off] ^= 0x10
		want := slices.Clone(sampleWords)
		at := int64(0) // offset of the damage in the error
		switch o := int64(off); {
		case o < fileHeaderSize:
		case o < ends[0]:
			want, at = want[2:], fileHeaderSize
		default:
			for i, end := range ends {
				if o < end {
					want, at = slices.Delete(want, i+1, i+2), ends[i-1]
					break
				}
			}
		}
		list, damage, r := found(t, flipped)
		torn := int64(off) >= ends[2]
		if !slices.Equal(list, want) || torn != (r.Torn > 0) || !torn && !slices.Equal(damage, []int64{at}) {
			t.Fatalf("byte %d flipped: found %q, want %q; damage at %d, want %d; %+v", off, list, want, damage, at, r)
		}
	}
}

func TestCheckSaysThatAnImageIsCutAtTheEndOfARecord(t *testing.T) {
	fs := store(t, nil)
	if err := fs.Remove(file); err != nil {
		t.Fatal(err)
	}
	l, err := Create(file, Options{FS: fs}, Record{Image, room("one")}, Record{Image, room("two")})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	end := int64(fileHeaderSize + HeaderSize + len("one"))
	list, damage, r := found(t, stored(t, fs)[:end])
	if !slices.Equal(list, []string{"one"}) || !slices.Equal(damage, []int64{end}) || r.Records != 1 {
		t.Fatalf("found %q, damage at %d, %+v", list, damage, r)
	}
}

func FuzzOpen(f *testing.F) {
	data, ends := sample(f)
	f.Add(data)
	f.Add(data[:ends[1]])
	f.Add(data[:ends[2]-3])
	f.Add(append(bytes.Clone(data), make([]byte, 100)...))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		fs := store(t, data)
		list, err := words(fs, Options{})
		if err != nil {
			if fail.KindOf(err) != fail.Damaged || !bytes.Equal(stored(t, fs), data) {
				t.Fatalf("refused with %v, or changed", err)
			}
		} else if kept := stored(t, fs); !bytes.HasPrefix(data, kept[:len(kept)-HeaderSize]) { // less the mark
			t.Fatal("what is kept is no prefix of what was there")
		} else if again, err := words(fs, Options{}); err != nil || !slices.Equal(again, list) {
			t.Fatalf("opened again: %q, %v, want %q", again, err, list)
		}
		end := int64(0)
		_, _ = Check(store(t, data), file, func(offset int64, _ Kind, payload []byte, _ error) {
			if offset < end || offset+int64(len(payload)) > int64(len(data)) {
				t.Fatalf("visited %d bytes at %d, after %d of %d", len(payload), offset, end, len(data))
			}
			end = offset + int64(len(payload))
		})
	})
}

// paged returns a file of more than four pages as a killed process left it: blocks of about a thousand bytes. The first
// two were synced before the third was staged, and no later one was. ends are the offsets after each record.
func paged(t *testing.T) (data []byte, ends []int64, words []string) {
	t.Helper()
	fs, l := create(t, Options{})
	for i := range 20 {
		words = append(words, fmt.Sprintf("%d-%s", i, strings.Repeat("x", 900+i)))
		l.Stage(Block, room(words[i]))
		ends = append(ends, l.Size())
		if i == 1 {
			if err := l.Sync(); err != nil {
				t.Fatal(err)
			}
		}
	}
	kill(t, l)
	return stored(t, fs), ends, words
}

// TestPagesThatNeverReachedTheDiskAreCutOff puts whole records after a page that was not written. If they say that it
// was, or it does not look like such a page, the file is corrupt.
func TestPagesThatNeverReachedTheDiskAreCutOff(t *testing.T) {
	data, ends, all := paged(t)
	// A page that was never written holds what it held at the last sync, and zeros from there on.
	lost := func(page int) []byte {
		b := bytes.Clone(data)
		clear(b[max(int64(page)*pageSize, ends[1]) : (page+1)*pageSize])
		return b
	}
	before := func(off int64) int {
		return len(all[:slices.IndexFunc(ends, func(end int64) bool { return end > off })])
	}
	for page := range 3 {
		from := max(int64(page)*pageSize, ends[1])
		wantCut(t, fmt.Sprintf("page %d lost", page), lost(page), all[:before(from)])
	}
	flip := func(at int64) []byte {
		b := bytes.Clone(data)
		b[at] ^= 0x10
		return b
	}
	wantDamaged(t, "a byte flipped in what was synced", flip(ends[0]+50))
	wantDamaged(t, "a byte flipped in what may not have been", flip(ends[10]+50))
	zeros := bytes.Clone(data)
	clear(zeros[ends[10]+100 : ends[10]+200])
	wantDamaged(t, "zeros that end in no page's end", zeros)
	synced := bytes.Clone(data)
	clear(synced[ends[0]:ends[1]])
	wantDamaged(t, "a record of what was synced lost", synced)

	// Once a record says that all before it was on disk, no page before it is lost to a crash.
	fs := store(t, data)
	l, err := Open(file, Options{FS: fs}, func(Kind, []byte, int, int) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Sync(); err != nil {
		t.Fatal(err)
	}
	l.Stage(Block, room("and one more"))
	kill(t, l)
	data = stored(t, fs)
	wantDamaged(t, "a page lost that was on disk", lost(2))
}

// TestAFileClosedInOrderLosesNothingSilently changes each byte of one: only a change in its mark looks like a crash.
func TestAFileClosedInOrderLosesNothingSilently(t *testing.T) {
	data, _ := sample(t)
	fs := store(t, data)
	if _, err := words(fs, Options{}); err != nil {
		t.Fatal(err)
	}
	closed := stored(t, fs)
	if len(closed) != len(data)+HeaderSize {
		t.Fatalf("closing it added %d bytes", len(closed)-len(data))
	}
	for off := range closed {
		flipped := bytes.Clone(closed)
		flipped[off] ^= 0x10
		name := fmt.Sprintf("byte %d flipped", off)
		if off < len(data) {
			wantDamaged(t, name, flipped)
		} else {
			wantCut(t, name, flipped, sampleWords)
		}
	}
}
