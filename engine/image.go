package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"io/fs"

	"fenec/engine/fail"
	"fenec/internal/vfs"

	"github.com/cespare/xxhash/v2"
)

// An image on the wire is the file as of one change, then a trailer: a mark, the file's length in bytes and the XXH64 of
// the file and of that length. The trailer reveals an image that was cut or changed anywhere. The digest guards against
// accidents in transit. Who may install an image is decided by the admin token, and a cryptographic digest would take
// longer than everything else that a move does to the bytes.
const (
	imageMark    = "FENECEND"
	digestSize   = 8
	imageTrailer = len(imageMark) + 8 + digestSize

	// ImageTrailer is how many bytes an image has after those of the file.
	ImageTrailer = int64(imageTrailer)
)

// OpenImage returns a reader of the image of the database as of the change seq, size bytes long. It can be read once.
// Later writes are not in it and do not wait for it.
func (db *DB) OpenImage() (r io.ReadCloser, size int64, seq uint64, err error) {
	db.writer.Lock()
	defer db.writer.Unlock()
	db.mu.RLock()
	closed, seq, last := db.closed, db.seq, db.last
	db.mu.RUnlock()
	if closed {
		return nil, 0, 0, errClosed()
	}
	if err := db.log.Commit(last); err != nil {
		return nil, 0, 0, err
	}
	file, length, err := db.log.Snapshot()
	if err != nil {
		return nil, 0, 0, err
	}
	return newImageReader(file, length), length + int64(imageTrailer), seq, nil
}

// imageReader reads a file and then the trailer of what was read.
type imageReader struct {
	io.Closer
	file    io.Reader
	digest  hash.Hash
	length  int64
	trailer *bytes.Reader // nil until the file is read
}

type snapshot interface {
	io.ReaderAt
	io.Closer
}

func newImageReader(file snapshot, length int64) *imageReader {
	digest := xxhash.New()
	return &imageReader{
		Closer: file, length: length, digest: digest,
		file: io.TeeReader(io.NewSectionReader(file, 0, length), digest),
	}
}

func (r *imageReader) Read(p []byte) (int, error) {
	if r.trailer == nil {
		n, err := r.file.Read(p)
		if !errors.Is(err, io.EOF) {
			return n, err
		}
		r.trailer = bytes.NewReader(trailer(r.digest, r.length))
		if n > 0 {
			return n, nil
		}
	}
	return r.trailer.Read(p)
}

func trailer(digest hash.Hash, length int64) []byte {
	b := binary.LittleEndian.AppendUint64([]byte(imageMark), uint64(length))
	digest.Write(b[len(imageMark):])
	return digest.Sum(b)
}

// storageError wraps an error of the file system with what was being done, without paths.
func storageError(doing string, err error) error {
	if err == nil {
		return nil
	}
	kind, why := fail.Storage, err.Error()
	if vfs.IsFull(err) {
		kind = fail.Full
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		why = path.Err.Error()
	}
	return &fail.Error{Kind: kind, Message: doing + ": " + why, Err: err}
}
