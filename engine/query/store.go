package query

import (
	"context"

	"fenec/engine/doc"
	"fenec/engine/index"
	"fenec/engine/index/hnsw"
	"fenec/engine/index/text"
)

// Reader gives a statement the collections, which the caller keeps unchanged while it runs.
// The documents that a Table returns stay valid and unchanged until the statement has run.
type Reader interface {
	// Names lists the collections by name, ascending.
	Names() []string
	// Table is the collection of that name, nil if there is none.
	Table(name string) Table
	// SchemaVersion changes with every change of any schema. A Plan runs only under the version it was
	// made for.
	SchemaVersion() uint64
}

// Table is one collection, including documents whose ttl has expired: a plan leaves them out.
type Table interface {
	// Schema describes the documents; it is not changed in place while a statement runs.
	Schema() *doc.Schema
	// Len counts the documents.
	Len() int
	// Get is the document of that id, nil if there is none.
	Get(id int64) doc.Document
	// Ascend visits the documents by ascending id, from the id from on, until fn returns false.
	Ascend(from int64, fn func(doc.Document) bool)
	// Ready builds the index on a field or path if no statement has needed it yet, so that the methods
	// below return at once. It fails with the error of Stopped when ctx, which may be nil, ends.
	Ready(ctx context.Context, on string) error
	// Hash is the @hash or @unique index on a field or path, built on its first use; nil
	// if none is declared. Nulls may be left out of it.
	Hash(on string) *index.Hash
	// Sorted is the @sorted or @ttl index on a field or path, built on its first use; nil if
	// none is declared. It holds every document, nulls first.
	Sorted(on string) *index.Sorted
	// Vectors is the @hnsw index on a field, built on its first use; nil if none is declared. It holds the
	// documents whose vector is not null.
	Vectors(on string) *hnsw.Graph
	// Text is the @text index on a field, and Inverted the @inverted one, like Vectors.
	Text(on string) *text.Index
	Inverted(on string) *index.Inverted
}

// Writer is a Reader that accepts one statement's writes. A Table stays valid across them and returns what
// was written. A document read before a write must be read again after it. The caller undoes the writes of
// a statement that fails.
type Writer interface {
	Reader
	// NextID returns an id that no document of the collection ever had.
	NextID(table string) int64
	// TakeID moves the counter of NextID past an id that a statement gave.
	TakeID(table string, id int64)
	// Put inserts the document, or replaces the one of its id, and keeps a copy of d.
	Put(table string, d doc.Document) error
	// Delete removes the document of that id.
	Delete(table string, id int64) error
	// CreateCollection adds an empty collection.
	CreateCollection(s *doc.Schema) error
	// DropCollection removes a collection and its documents.
	DropCollection(name string) error
	// CreateIndex declares an index on a field or path that has none. It fails
	// with the error of Stopped when ctx, which may be nil, ends, as EndStatement does.
	CreateIndex(ctx context.Context, table, on string, x doc.Index) error
	// AlterCollection makes s the schema of the collection of its name, whose documents stay as they are.
	AlterCollection(s *doc.Schema) error
	// EndStatement checks what has to hold only at a statement's end: that no two documents share a unique
	// value (fail.Conflict).
	EndStatement(ctx context.Context) error
}
