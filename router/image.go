package router

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"
)

// imageBuffer is how many bytes of an image the router holds at a time.
const imageBuffer = 256 << 10

// copyImage streams an image from a path of one node to a path of another, which installs it, and returns its length.
// fields are header lines of the request to the second node. The image carries a digest, so the node that gets it refuses
// one that is truncated or changed on the way.
func copyImage(ctx context.Context, from, to nodeAPI, get, put, fields string) (bytes int64, err error) {
	source, stop, err := from.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer stop()
	patience := from.link.pool.transport.silence
	if err := source.Send(from.head(nil, "GET", get, "", 0), nil); err != nil {
		return 0, from.unanswered(err)
	}
	rep, err := source.ReadHead("GET", time.Now().Add(patience))
	if err != nil {
		return 0, from.unanswered(err)
	}
	body := source.Body(patience)
	if rep.Status != 200 {
		said, _ := io.ReadAll(io.LimitReader(body, maxAdminAnswer)) // best effort: the status is enough
		return 0, from.refuses(reply{status: rep.Status, body: said}, "send its image")
	}
	target, stop, err := to.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer stop()
	sending := target.Send(to.head(nil, "PUT", put, fields, rep.Length), nil)
	if sending == nil {
		bytes, sending, err = pump(target, body, rep.Length < 0)
	}
	if err != nil {
		return bytes, from.fails(0, "broke off its image: "+err.Error())
	}
	// If the target did not accept all of it, its answer may contain the reason.
	said, err := to.answer(target, "PUT", installTimeout)
	switch {
	case err != nil && sending != nil:
		return bytes, to.unanswered(sending)
	case err != nil:
		return bytes, to.unanswered(err)
	case said.status != 201:
		return bytes, to.refuses(said, "install the image")
	}
	return bytes, nil
}

// connect opens a new connection that is closed when ctx ends or stop is called.
func (a nodeAPI) connect(ctx context.Context) (w *wire, stop func(), err error) {
	if w, err = a.link.pool.dial(ctx); err != nil {
		return nil, nil, a.unanswered(err)
	}
	release := context.AfterFunc(ctx, w.close)
	return w, func() {
		release()
		w.close()
	}, nil
}

// pump copies a body to a node, in chunks if its length is unknown. It returns the errors of the two sides separately.
func pump(target *wire, body io.Reader, chunked bool) (bytes int64, sending, reading error) {
	buf := make([]byte, imageBuffer)
	const room = 16 // for a chunk's size before the data, and the line end after it
	for {
		n, err := body.Read(buf[room : len(buf)-room])
		if n > 0 {
			bytes += int64(n)
			piece := buf[room : room+n]
			if chunked {
				size := append(strconv.AppendInt(nil, int64(n), 16), '\r', '\n')
				copy(buf[room-len(size):], size)
				piece = append(buf[room-len(size):room+n], '\r', '\n')
			}
			if _, err := target.Write(piece); err != nil {
				return bytes, err, nil
			}
		}
		if errors.Is(err, io.EOF) {
			if chunked {
				_, sending = target.Write([]byte("0\r\n\r\n"))
			}
			return bytes, sending, nil
		}
		if err != nil {
			return bytes, nil, err
		}
	}
}
