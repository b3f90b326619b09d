package command

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

// serverLog is the log of a running server. Writing to it never blocks and never
// ends the process, even if stderr fails.
type serverLog struct {
	zerolog.Logger
	lines *lineWriter
}

// openLog opens the log of a server on stderr: JSON lines, one event each, or a
// readable format if stderr is a terminal. The caller closes it.
func openLog(stderr io.Writer) serverLog {
	ignoreBrokenPipes()
	lines := newLineWriter(stderr)
	w := io.Writer(lines)
	if isTerminal(stderr) {
		w = zerolog.ConsoleWriter{Out: lines, TimeFormat: time.TimeOnly}
	}
	log := zerolog.New(w).With().Timestamp().Logger()
	lines.start(func(lost int64) {
		log.Warn().Int64("lines", lost).Msg("log lines were lost: they could not be written to stderr")
	})
	return serverLog{log, lines}
}

// close writes the queued lines, for at most a second.
func (l serverLog) close() { l.lines.close() }

// lastWords writes the error of a command. It gives up after a second if stderr is
// not read: the exit code has the result.
func lastWords(stderr io.Writer, sentence string) {
	ignoreBrokenPipes()
	lines := newLineWriter(stderr)
	lines.start(func(int64) {})
	_, _ = lines.Write([]byte(sentence)) // it returns no error
	lines.close()
}

// ignoreBrokenPipes makes a write to stderr or stdout fail if its reader is gone.
// By default it would end the process.
func ignoreBrokenPipes() { signal.Ignore(syscall.SIGPIPE) }

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// plain returns an error without the name of the system call, such as "notes.json:
// no such file or directory".
func plain(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Path + ": " + path.Err.Error()
	}
	return err.Error()
}
