package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"fenec/engine/doc"
	"fenec/engine/fail"
	"fenec/internal/vfs"

	"github.com/cespare/xxhash/v2"
)

// An image on the wire is the file as of one change, then a trailer: a mark, the file's length in bytes and the
// XXH64 of the file and of that length. Cut anywhere or changed anywhere, it is told from a whole one. The digest is
// against accidents of the way: who may install an image is the admin token's to say, and a cryptographic one would take
// longer than all else a move does to the bytes.
const (
	imageMark    = "FENECEND"
	digestSize   = 8
	imageTrailer = len(imageMark) + 8 + digestSize
)

// incoming is what the side file of an image being installed is called after.
const incoming = ".incoming"

// OpenImage is the whole database as of the change seq, to be read once, size bytes long. Writes after it are not in
// it and do not wait for it.
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

// imageReader reads a file and, as it ends, the trailer of what was read.
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

// InstallImage makes the image src the database at path and returns the change it stands at. Nothing is at path until
// the image is whole, checked, replayed and on disk. An image that is cut or changed is fail.Invalid; os.ErrExist
// where there is a database already.
func InstallImage(path string, src io.Reader, o Options) (seq uint64, err error) {
	o = o.withDefaults()
	if _, err := o.FS.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = os.ErrExist
		}
		return 0, err
	}
	side := path + incoming
	defer func() {
		if err != nil {
			o.FS.Remove(side) // what is left of it is removed as the directory is opened
		}
	}()
	if seq, err = receive(side, src, o); err != nil {
		return 0, err
	}
	if err := o.FS.Rename(side, path); err != nil {
		return 0, storageError("installing the image", err)
	}
	if err := o.FS.SyncDir(filepath.Dir(path)); err != nil {
		o.FS.Remove(path) // it may not keep its name, so it shall not be found under it
		return 0, storageError("installing the image", err)
	}
	return seq, nil
}

// receive writes src, less its trailer, to a file at side, synced and replayed.
func receive(side string, src io.Reader, o Options) (seq uint64, err error) {
	file, err := o.FS.OpenFile(side, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, storageError("writing the image", err)
	}
	f := &sideFile{File: file}
	defer func() {
		err = errors.Join(err, storageError("syncing the image", f.wait()), storageError("closing the image", f.Close()))
	}()
	if err := f.fill(src); err != nil {
		return 0, err
	}
	if err := f.wait(); err != nil {
		return 0, storageError("syncing the image", err)
	}
	f.begin() // the last of it, while the file is replayed
	return verify(side, o)
}

// syncEvery is how much of an image is written, in bytes, before that much is synced while the rest comes in.
const syncEvery = 8 << 20

// sideFile is an image being written. It is synced beside the writing, so that little is left to wait for at its end.
type sideFile struct {
	vfs.File
	written int64
	behind  int64      // written since a sync last began
	syncing chan error // answers the sync under way, nil without one
}

// fill writes an image to the file, less its trailer, which must be the right one.
func (f *sideFile) fill(src io.Reader) error {
	digest := xxhash.New()
	buf := make([]byte, 0, 1<<20+imageTrailer)
	for {
		n, err := io.ReadFull(src, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return fail.New(fail.Invalid, "the image broke off after %d bytes: %v", f.written+int64(len(buf)), err)
		}
		if len(buf) < imageTrailer {
			return fail.New(fail.Invalid, "the image is truncated: it has no end mark")
		}
		body := buf[:len(buf)-imageTrailer]
		digest.Write(body)
		if err := f.append(body); err != nil {
			return storageError("writing the image", err)
		}
		if last {
			break
		}
		buf = append(buf[:0], buf[len(body):]...)
	}
	if end := buf[len(buf)-imageTrailer:]; !bytes.Equal(end, trailer(digest, f.written)) {
		return fail.New(fail.Invalid, "the image is truncated or changed: its digest is not that of its bytes")
	}
	return nil
}

// append writes p behind what there is, and has a sync begin where enough has gathered and none is under way.
func (f *sideFile) append(p []byte) error {
	if _, err := f.WriteAt(p, f.written); err != nil {
		return err
	}
	f.written += int64(len(p))
	if f.behind += int64(len(p)); f.behind < syncEvery {
		return nil
	}
	if f.syncing != nil {
		select {
		case err := <-f.syncing:
			f.syncing = nil
			if err != nil {
				return err
			}
		default:
			return nil
		}
	}
	f.begin()
	return nil
}

// begin starts a sync, which the next wait waits for.
func (f *sideFile) begin() {
	f.behind = 0
	f.syncing = make(chan error, 1)
	go func(done chan<- error) { done <- f.Sync() }(f.syncing)
}

// wait ends the sync under way, if there is one.
func (f *sideFile) wait() error {
	if f.syncing == nil {
		return nil
	}
	err := <-f.syncing
	f.syncing = nil
	return err
}

// verify replays the file at side and looks into every document.
func verify(side string, o Options) (seq uint64, err error) {
	db, err := Open(side, o)
	if err != nil {
		if kind := fail.KindOf(err); kind == fail.Damaged {
			return 0, fail.New(fail.Invalid, "the image cannot be replayed: %s", err)
		}
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, t := range db.tables {
		t.Ascend(1, func(d doc.Document) bool {
			err = doc.Validate(d)
			return err == nil
		})
		if err != nil {
			return 0, fail.New(fail.Invalid, "the image holds a document of %s that cannot be read: %s", t.schema.Name, err)
		}
	}
	return db.seq, nil
}

// storageError says what was being done when the file system refused, without its paths.
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
