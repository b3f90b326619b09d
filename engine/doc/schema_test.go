package doc

import (
	"bytes"
	"encoding/hex"
	"slices"
	"testing"

	"fenec/engine/fail"

	"github.com/google/go-cmp/cmp"
)

func sampleSchema() *Schema {
	return &Schema{
		Name: "notes",
		Fields: []Field{
			{Name: "title", Type: Type{Kind: TypeText}, Required: true, Index: Index{Kind: IndexSorted}, Slot: 0},
			{Name: "tags", Type: Type{Kind: TypeList, Elem: TypeText}, Slot: 2},
			{Name: "größe", Type: Type{Kind: TypeJSON}, Slot: 200},
		},
		Paths: []PathIndex{{Path: "größe.a", Index: IndexUnique}},
		Slots: 300,
	}
}

// sampleHex is a schema of the first version as stored in files. It must stay readable.
const sampleHex = "01056e6f746573ac0203057469746c6504000103000474616773080400000207" + "6772c3b6c39f6507000000c8010109" + "6772c3b6c39f652e6102"

func TestSchemaKeepsItsFormat(t *testing.T) {
	if got := hex.EncodeToString(sampleSchema().AppendBinary(nil)); got != sampleHex {
		t.Errorf("encoded as\n%s, want\n%s", got, sampleHex)
	}
	b, err := hex.DecodeString(sampleHex)
	if err != nil {
		t.Fatal(err)
	}
	s, err := DecodeSchema(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sampleSchema(), s); diff != "" {
		t.Error(diff)
	}
	for n := range b {
		if _, err := DecodeSchema(b[:n]); fail.KindOf(err) != fail.Damaged {
			t.Errorf("the first %d of %d bytes: got %v, want a damaged schema", n, len(b), err)
		}
	}
	b[0] = 4
	if _, err := DecodeSchema(b); err == nil || err.Error() != "a schema has version 4, and this version of fenec reads versions up to 3" {
		t.Errorf("a later version: %v", err)
	}
}

func TestSchemaFieldAndClone(t *testing.T) {
	s := sampleSchema()
	c := s.Clone()
	c.Fields[0].Name, c.Paths[0].Path = "x", "y"
	if s.Field("title") != &s.Fields[0] || s.Field("x") != nil || s.Field("id") != nil || s.Paths[0].Path != "größe.a" {
		t.Error("a clone shares its fields")
	}
	for kind, want := range map[IndexKind]string{0: "", IndexHash: "@hash", IndexUnique: "@unique", IndexSorted: "@sorted", IndexTTL: "@ttl"} {
		if kind.String() != want {
			t.Errorf("index %d is written %s, want %s", kind, kind, want)
		}
	}
}

func FuzzDecodeSchema(f *testing.F) {
	f.Add(sampleSchema().AppendBinary(nil))
	f.Add((&Schema{Name: "c"}).AppendBinary(nil))
	if b, err := hex.DecodeString(ttlHex); err == nil {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := DecodeSchema(b)
		if err != nil {
			if fail.KindOf(err) != fail.Damaged {
				t.Fatalf("%v is not of kind damaged", err)
			}
			return
		}
		again, err := DecodeSchema(s.AppendBinary(nil))
		if err != nil || !cmp.Equal(s, again) {
			t.Fatalf("%+v reads back as %+v, %v", s, again, err)
		}
		if len(s.AppendBinary(nil)) < len(b) && bytes.Equal(s.AppendBinary(nil), b[:len(s.AppendBinary(nil))]) {
			t.Fatal("bytes after the end were ignored")
		}
	})
}

func TestASlotIsNeverUsedAgain(t *testing.T) {
	s := &Schema{Name: "c"}
	for _, name := range []string{"a", "b", "j"} {
		s.AddField(Field{Name: name, Type: Type{Kind: TypeJSON}})
	}
	s.Paths = []PathIndex{{"j.k", IndexHash}, {"jk.j", IndexHash}, {"a.k", IndexSorted}}
	if got := s.Dropped(); got != nil {
		t.Errorf("slots %v are said to be dropped, none is", got)
	}
	s.RenameField("j", "k")
	s.DropField("a")
	s.AddField(Field{Name: "a"})
	want := &Schema{
		Name:   "c",
		Fields: []Field{{Name: "b", Type: Type{Kind: TypeJSON}, Slot: 1}, {Name: "k", Type: Type{Kind: TypeJSON}, Slot: 2}, {Name: "a", Slot: 3}},
		Paths:  []PathIndex{{"k.k", IndexHash}, {"jk.j", IndexHash}},
		Slots:  4,
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
	if got := s.Dropped(); !slices.Equal(got, []int{0}) {
		t.Errorf("slots %v are said to be dropped, slot 0 is", got)
	}
}
