package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
)

// serverLog is the log of a running server. Writing to it never waits and never
// ends the process, whatever becomes of stderr.
type serverLog struct {
	zerolog.Logger
	lines *lineWriter
}

// openLog begins the log of a server on stderr: JSON lines, one event each, or
// something a person reads if stderr is a terminal. The caller closes it.
func openLog(stderr io.Writer) serverLog {
	ignoreBrokenPipes()
	lines := newLineWriter(stderr)
	w := io.Writer(lines)
	if isTerminal(stderr) {
		w = zerolog.ConsoleWriter{Out: lines, TimeFormat: time.TimeOnly}
	}
	log := zerolog.New(w).With().Timestamp().Logger()
	lines.start(func(lost int64) {
		log.Warn().Int64("lines", lost).Msg("lines of this log were lost: stderr did not take them")
	})
	return serverLog{log, lines}
}

// close writes what is left, for at most a second.
func (l serverLog) close() { l.lines.close() }

// lastWords writes the sentence a command ends with. It gives up after a second
// if nobody reads it: the exit code says what counts.
func lastWords(stderr io.Writer, sentence string) {
	ignoreBrokenPipes()
	lines := newLineWriter(stderr)
	lines.start(func(int64) {})
	_, _ = lines.Write([]byte(sentence)) // it returns no error
	lines.close()
}

// ignoreBrokenPipes makes a write to a stderr or stdout whose reader has gone
// fail. By default it ends the process.
func ignoreBrokenPipes() { signal.Ignore(syscall.SIGPIPE) }

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// plain is an error without the name of the system call that found it:
// "notes.json: no such file or directory".
func plain(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Path + ": " + path.Err.Error()
	}
	return err.Error()
}
